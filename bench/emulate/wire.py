#!/usr/bin/env python3
"""TCP of kernels in virtual time beside TCP of this machine's kernel over the same emulated link in real time.

    python3 wire.py --write docs/virtual-time.md              # as root: real time needs namespaces, and an idle machine
    python3 wire.py --virtual --write docs/virtual-time.md    # virtual time alone, beside the runs of real time in that page

iperf3 sends for 20 s over a wire of 20 Mb/s, 25 ms each way and a queue of 83 packets. The same scenario runs in both ways.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from agreement import PROGRAM, half_width

from page import put_into

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "virtual-time.md"
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


def measured(control, options):
    """Mean goodput in Mb/s, its half-width, and retransmissions of all runs, as they stand in the table."""
    runs = [goodput(control, run, options) for run in range(1, RUNS + 1)]
    rates = [rate / 1e6 for rate, _ in runs]
    return f"{statistics.mean(rates):.2f}", f"{half_width(rates):.2f}", " ".join(str(count) for _, count in runs)


def stored(control):
    """The same of real time, from the table of the page."""
    pattern = rf"^\| {control} \| ([0-9.]+) ± ([0-9.]+) \|(?:[^|]*\|){{3}} ([0-9 ]+) \|"
    return re.search(pattern, PAGE.read_text(encoding="utf-8").split(MARK)[1], re.M).groups()


def release(keeps_real):
    """Version of the kernel that ran in real time."""
    if keeps_real:
        return re.search(r"^Linux ([0-9.]+) in real time", PAGE.read_text(encoding="utf-8").split(MARK)[1], re.M)[1]
    return os.uname().release.partition("-")[0]


def row(control, keeps_real):
    real, virtual = stored(control) if keeps_real else measured(control, []), measured(control, ["--virtual-time"])
    off = 100 * (float(virtual[0]) / float(real[0]) - 1)
    cells = " | ".join(f"{mean} ± {half}" for mean, half, _ in (real, virtual))
    print(f"{control}: {cells}", file=sys.stderr, flush=True)
    verdict = "yes" if abs(off) <= TARGET_PCT else "**no**"
    return f"| {control} | {cells} | {off:+.1f} % | {verdict} | {real[2]} | {virtual[2]} |".replace("-", "−")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--virtual", action="store_true", help="measure in virtual time alone, and keep the page's runs of real time")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    rows = [row(control, arguments.virtual) for control in ("reno", "cubic", "bbr")]
    text = "\n".join([
        f"Linux {release(arguments.virtual)} in real time, 6.12 in virtual time; {RUNS} runs each. Goodput in Mb/s; "
        "± is a 95 % half-width.", "",
        f"| control | real time | virtual time | virtual beside real | within {TARGET_PCT} % | resent, real | resent, virtual |",
        "|---|--:|--:|--:|---|--:|--:|", *rows])
    if arguments.write:
        put_into(arguments.write, MARK, text)
    print(text)


if __name__ == "__main__":
    main()
