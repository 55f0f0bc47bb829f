#!/usr/bin/env python3
"""Capacity of `hopline emulate`: how late its events are in three networks of real programs.

    python3 capacity.py                          # the table, as root on an idle machine: two minutes
    python3 capacity.py --case hop               # one network
    python3 capacity.py --write docs/emulate.md

Each network runs for some seconds. Its lateness is that of all events, those of the start included. The processor time is
that of the thread that carries the frames, as a share of one core.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page import put_into  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("HOPLINE", ROOT / "target" / "release" / "hopline"))
MARK = "<!-- emulate capacity -->"
TARGET_MS = 1
TICKS = os.sysconf("SC_CLK_TCK")

SCENARIO = """\
name = "capacity"
duration_s = 60
radio.preset = "{preset}"
[nodes]
layout = "grid"
columns = {columns}
rows = {rows}
spacing_m = 200
"""

# A routing daemon at each node, with its default intervals.
DAEMONS = """\
for n in $(seq 0 99); do
    hopline exec n$n -- babeld -I $n.pid -S $n.state air0 > /dev/null 2>&1 &
done
sleep 40
hopline exec n0 -- ip route show proto babel | wc -l > routes
"""

# From each node of rows 0 and 3, every second column, to its neighbour.
FLOWS = """\
for n in 0 2 4 6 8 30 32 34 36 38; do
    hopline exec n$((n + 1)) -- iperf3 -s -1 > /dev/null &
done
sleep 1
for n in 0 2 4 6 8 30 32 34 36 38; do
    hopline exec n$n -- iperf3 -c 10.0.0.$((n + 2)) -u -b 2M -l 1000 -t 20 -J > flow-$n.json & clients="$clients $!"
done
wait $clients
"""

# Unlimited: the kernel sends as fast as the interface takes frames.
HOP = """\
hopline exec n1 -- iperf3 -s -1 > /dev/null & sleep 0.5
hopline exec n0 -- iperf3 -c 10.0.0.2 -t 20 -J > flow-tcp.json
hopline exec n1 -- iperf3 -s -1 > /dev/null & sleep 0.5
hopline exec n0 -- iperf3 -c 10.0.0.2 -u -b 60M -l 1470 -t 20 -J > flow-udp.json
"""

CASES = {
    "daemons": ("100 nodes (10 × 10), 2 Mb/s, babeld at each", (10, 10, "ns2-wavelan"), ["--no-routes"], DAEMONS),
    "flows": ("50 nodes (10 × 5), 54 Mb/s, ten flows of 2 Mb/s over one hop (UDP)", (10, 5, "dot11a"), [], FLOWS),
    "hop": ("one hop of 54 Mb/s at full rate (TCP, then UDP)", (2, 1, "dot11a"), [], HOP),
}


class Watch(threading.Thread):
    """Processor time of the thread `air` of a process, read until it ends."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.seconds = process, 0.0

    def run(self):
        while self.process.poll() is None:
            for task in Path(f"/proc/{self.process.pid}/task").glob("*"):
                try:
                    if (task / "comm").read_text() == "air\n":
                        # utime and stime, counted from the field after the name.
                        fields = (task / "stat").read_text().rpartition(")")[2].split()
                        self.seconds = (int(fields[11]) + int(fields[12])) / TICKS
                except OSError:
                    pass
            time.sleep(0.1)


def measure(name):
    _, (columns, rows, preset), options, script = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "scenario.toml").write_text(SCENARIO.format(columns=columns, rows=rows, preset=preset), encoding="ascii")
        words = [PROGRAM, "emulate", "scenario.toml", *options, "--best-effort", "--json", "summary.json", "--",
                 "sh", "-c", script]
        process = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True)
        watch = Watch(process)
        watch.start()
        _, said = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{name}: {said}")
        print(said, file=sys.stderr)
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        rates = [json.loads(path.read_text(encoding="utf-8"))["end"]["sum_received"]["bits_per_second"] / 1e6
                 for path in sorted(folder.glob("flow-*.json"))]
        routes = folder / "routes"
        found = int(routes.read_text()) if routes.exists() else None
    return summary, rates, found, watch.seconds


def row(name):
    summary, rates, routes, seconds = measure(name)
    late, duration = summary["lateness"], summary["duration_s"]
    if name == "hop":
        carried = " and ".join(f"{rate:.1f}" for rate in rates) + " Mb/s"
    elif rates:
        carried = f"{sum(rates):.1f} Mb/s"
    else:
        carried = f"{routes} routes at the first node"
    p99_ms = 1e3 * late["p99_s"]
    verdict = "yes" if p99_ms < TARGET_MS else "**no**"
    return (f"| {CASES[name][0]} | {carried} | {late['events'] / duration:,.0f} | {100 * seconds / duration:.0f} % "
            f"| {1e3 * late['p50_s']:.3f} | {p99_ms:.3f} | {1e3 * late['max_s']:.1f} "
            f"| {100 * late['share_over_1_ms']:.2f} % | {verdict} |")


def table(names):
    release = os.uname().release.partition("-")[0]
    lines = [f"Linux {release}, {os.cpu_count()} cores, programs included; one run each.", "",
             "| network | carried | events a second | processor | p50, ms | p99, ms | most, ms | over 1 ms | p99 under 1 ms |",
             "|---|---|--:|--:|--:|--:|--:|--:|---|"]
    return "\n".join(lines + [row(name) for name in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="this network alone; may be repeated")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    text = table(arguments.case or CASES)
    if arguments.write:
        put_into(arguments.write, MARK, text)
    print(text)


if __name__ == "__main__":
    main()
