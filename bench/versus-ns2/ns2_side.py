"""Run a case in ns-2.35."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hopline_side
import measure
import networks

HERE = Path(__file__).resolve().parent
WALK = HERE.parents[1] / "scenarios" / "walk"


def ensure_installed():
    if shutil.which("ns"):
        return
    print("installing ns2", file=sys.stderr)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "ns2"]):
        subprocess.run(["apt-get", *words], check=True, stdout=subprocess.DEVNULL, env=quiet)


def version():
    query = ["dpkg-query", "-W", "-f", "${Version}", "ns2"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout or "unknown"


def command(case, seed):
    if case.topology == "wired":
        first, second = (f"{rate}Mb {delay}ms" for rate, delay in case.links)
        options = {"transport": case.transport, "window": case.window, "sink": case.sink,
                   "ber": case.bit_error_rate, "bytes": case.transfer_bytes, "beta": case.beta,
                   "first": first, "second": second, "seed": seed}
        script = "wired.tcl"
    elif case.topology == "last-hop":
        options = {"transport": case.transport, "window": case.window, "sink": case.sink,
                   "loss": case.packet_loss, "snoop": int(case.snoop),
                   "duration": case.duration, "seed": seed}
        script = "lasthop.tcl"
    else:
        options = {"topology": case.topology, "hops": case.hops, "window": case.window,
                   "sink": case.sink, "transport": case.transport, "routing": case.routing,
                   "spacing": case.spacing, "lanes": case.lanes, "queue": case.queue,
                   "basic": case.basic_rate_mbps, "duration": case.duration, "mss": case.mss,
                   "seed": seed}
        if case.ranges:
            options |= dict(zip(("range", "sense"), case.ranges))
        script = "wireless.tcl"
        if case.topology == "random":
            options |= {"topology": "files", "start": 0, **networks.stored(case.network)}
        if case.topology == "door":
            options |= {"topology": "files", "start": 0,
                        **networks.walkers(hopline_side.PROGRAM, seed)}
        if case.topology == "walk":
            options |= {"topology": "files", "start": 0, "flows": WALK / "flows.csv",
                        "movement": WALK / "walk.ns_movements"}
    words = ["ns", HERE / "ns2" / script]
    for key, value in options.items():
        words += [f"-{key}", value]
    return words


def start():
    """What it costs to start ns-2 with nothing to do."""
    return measure.run(["ns", HERE / "ns2" / "nothing.tcl"])


def contradictions():
    """What the presets ns2-* say of ns-2's sinks, and this ns-2 does otherwise."""
    for words, expected_ms in (([], "70"), (["false"], "20")):
        measured = measure.run(["ns", HERE / "ns2" / "echo.tcl", *words]).output.strip()
        if measured != expected_ms:
            yield f"echo.tcl {' '.join(words)}: a round trip of {measured} ms, not {expected_ms}"


def run(case, seed):
    measured = measure.run(command(case, seed))
    lines = [line for line in measured.output.splitlines() if line.startswith("{")]
    return json.loads(lines[-1])["flows"], measured
