#!/usr/bin/env python3
"""Silences after which AODV gives neighbours up, by the broadcasts that were lost in them.

    python3 bench/hello_silences.py target/release/hopline

Runs TCP over chains of one and four hops with each way of saying HELLO, and reads the traces: a silence ends a link if no sign
of life of a neighbour arrives within the patience of its preset. A broadcast of the neighbour in that time that did not arrive
is a lost one.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CHAIN = Path(__file__).resolve().parents[1] / "papers/tpa/scenarios/testbed-chain.toml"
# Settings under [routing.aodv], and how long a neighbour may be silent in seconds.
KINDS = {
    "to the letter": (["preset=rfc3561-hello"], 2.0),
    "two losses": (["link_sensing=hello"], 2.5),
    "aodv-uu": (["preset=aodv-uu"], 2.05),
}
SIGNS = ["aodv-message", "any-packet"]
FRAME = re.compile(r"^([sr]) (\S+) _(\d+)_ MAC .* (\S+) \d+ \[\S+ (\S+) (\S+) 800\]")
ALL = "ffffffff"


def frames(trace):
    """Time, whether sent, node, whether AODV, whether HELLO, receiver's address, transmitter of each frame with data."""
    for line in trace.read_text().splitlines():
        if found := FRAME.match(line):
            kind, time, node, packet, to, transmitter = found.groups()
            yield float(time), kind == "s", int(node), packet == "AODV", "HELLO" in line, to, int(transmitter, 16)


def silences(seen, node, neighbour, patience, sign):
    """Numbers of broadcasts of `neighbour` lost in each silence that `node` noticed."""
    last, missed = None, []
    for time, sent, at, is_aodv, is_hello, to, transmitter in seen:
        if last is not None and time > last + patience:
            yield sum(when <= last + patience for when in missed)
            last = None
        if sent and at == neighbour and to == ALL:
            missed.append(time)
        if sent or at != node or transmitter != neighbour or to not in (ALL, f"{node:x}"):
            continue
        # A neighbour is watched from its first HELLO on.
        if is_hello or last is not None and (is_aodv or sign == "any-packet"):
            last, missed = time, []


def run(program, hops, settings, folder):
    own = [f"routing.aodv.{setting}" for setting in settings]
    words = [f"nodes.count={hops + 1}", f"flow.0.dst=n{hops}", "routing.protocol=aodv", "tcp.window=unclamped", *own]
    sets = [word for setting in words for word in ("--set", setting)]
    command = [program, "run", CHAIN, "-q", "--json", "--ns2-trace", "--force", "-o", folder, *sets]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(program):
    print("| hops | HELLO | sign of life | silences, by broadcasts lost in them | goodput, kb/s |\n|--:|---|---|---|--:|")
    for hops in (1, 4):
        for kind, (settings, patience) in KINDS.items():
            for sign in SIGNS:
                with tempfile.TemporaryDirectory() as folder:
                    result = run(program, hops, [*settings, f"neighbour_liveness={sign}"], folder)
                    seen = list(frames(Path(folder) / "run.tr"))
                pairs = [(a, b) for a in range(hops + 1) for b in (a - 1, a + 1) if 0 <= b <= hops]
                lost = [n for a, b in pairs for n in silences(seen, a, b, patience, sign)]
                counts = collections.Counter(lost)
                words = ", ".join(f"{counts[n]} of {n}" for n in sorted(counts)) or "none"
                print(f"| {hops} | {kind} | {sign} | {words} | {result['aggregate_goodput_bps'] / 1000:.1f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
