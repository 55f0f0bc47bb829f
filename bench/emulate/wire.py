#!/usr/bin/env python3
"""TCP of kernels in virtual time beside TCP of this machine's kernel over the same emulated link in real time.

    python3 wire.py --write docs/virtual-time.md        # as root: real time needs namespaces

iperf3 sends for 20 s over a wire of 20 Mb/s, 25 ms each way and a queue of 83 packets. The same scenario runs in both ways.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from agreement import PROGRAM, half_width

from page import put_into

MARK = "<!-- virtual time wire -->"
RUNS = 3
TARGET_PCT = 5
SCENARIO = """
name = "wire"
duration_s = 24
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
a = "a"
b = "b"
rate_mbps = 20
delay_ms = 25
queue.capacity_packets = 83
[[program]]
name = "server"
node = "b"
command = ["iperf3", "-s"]
[[program]]
name = "client"
node = "a"
start_s = 1
command = ["iperf3", "-c", "b", "-C", "{control}", "-t", "20", "-J"]
"""


def goodput(control, run, options):
    """Goodput in b/s, and retransmissions, as iperf3 reports them."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        Path(folder, "wire.toml").write_text(SCENARIO.replace("{control}", control), encoding="ascii")
        words = [str(PROGRAM), "emulate", "wire.toml", "--run", str(run), "-o", "results", *options]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{control}, run {run}: {done.stderr.strip()[-600:]}")
        end = json.loads(Path(folder, "results", "client.stdout").read_text())["end"]
        return end["sum_received"]["bits_per_second"], end["sum_sent"]["retransmits"]


def row(control):
    real, virtual = ([goodput(control, run, options) for run in range(1, RUNS + 1)] for options in ([], ["--virtual-time"]))
    rates = [[rate for rate, _ in runs] for runs in (real, virtual)]
    off = 100 * (statistics.mean(rates[1]) / statistics.mean(rates[0]) - 1)
    cells = " | ".join(f"{statistics.mean(of) / 1e6:.2f} ± {half_width(of) / 1e6:.2f}" for of in rates)
    resent = " | ".join(" ".join(str(count) for _, count in runs) for runs in (real, virtual))
    print(f"{control}: {cells}", file=sys.stderr, flush=True)
    return f"| {control} | {cells} | {off:+.1f} % | {'yes' if abs(off) <= TARGET_PCT else '**no**'} | {resent} |".replace("-", "−")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    rows = [row(control) for control in ("reno", "cubic", "bbr")]
    text = "\n".join([
        f"Linux {os.uname().release.partition('-')[0]} in real time, 6.12 in virtual time; {RUNS} runs each. Goodput in Mb/s; "
        "± is a 95 % half-width.", "",
        f"| control | real time | virtual time | virtual beside real | within {TARGET_PCT} % | resent, real | resent, virtual |",
        "|---|--:|--:|--:|---|--:|--:|", *rows])
    if arguments.write:
        put_into(arguments.write, MARK, text)
    print(text)


if __name__ == "__main__":
    main()
