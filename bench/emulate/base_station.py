#!/usr/bin/env python3
"""Goodput of CUBIC from a server over a lossy radio under `hopline emulate`: without a proxy at the base station, with Snoop and
with a gateway.

    python3 base_station.py                          # the table, as root: two minutes
    python3 base_station.py --write docs/emulate.md

The network and the configuration of Snoop are those of the page.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page import put_into  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HOPLINE", ROOT / "target" / "release" / "hopline"))
PAGE = ROOT / "docs" / "emulate.md"
MARK = "<!-- emulate base station -->"
RUNS = 5
SECONDS = 10

GATEWAY = """\
cat > entrance.toml <<.
name = "entrance"
state_dir = "entrance"
[[proxy]]
kind = "gateway"
exit = "$HOPLINE_MOBILE:7172"
identity = "base"
key_file = "link.key"
transport = "tpa-wide"
divert = "wire0"
.
cat > exit.toml <<.
name = "exit"
state_dir = "exit"
[[proxy]]
kind = "gateway-exit"
peers = ["base = link.key"]
transport = "tpa-wide"
allowed = ["$HOPLINE_MOBILE 1-65535"]
.
(umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > link.key)
hopline exec mobile -- hopline proxy run exit.toml 2> exit.log &
hopline exec base -- hopline proxy run entrance.toml 2> entrance.log &
"""
SNOOP = "hopline exec base -- hopline proxy run snoop.toml 2> snoop.log &\n"
CASES = {"none": "", "Snoop": SNOOP, "gateway over TPA-wide": GATEWAY}
MEASURE = f"""\
hopline exec mobile -- hopline bench -s > /dev/null 2>&1 &
sleep 2
hopline exec server -- hopline bench -c mobile --transport tcp:cubic -t {SECONDS} -J > bench.json
"""


def block(mark):
    """Returns the block of the page behind a mark."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```toml\n(.*?)```", PAGE.read_text(), re.S)
    return found[1]


def measured(start):
    """Returns the goodput in Mb/s, and whether the run was valid."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "last-hop.toml").write_text(block("network: last-hop.toml"))
        (folder / "snoop.toml").write_text(block("proxy: snoop.toml"))
        script = "set -e\n" + start + MEASURE
        command = [PROGRAM, "emulate", "last-hop.toml", "--best-effort", "--json", "summary.json", "--", "sh", "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"base_station: {done.stderr}")
        bench = json.loads((folder / "bench.json").read_text())
        valid = json.loads((folder / "summary.json").read_text())["valid"]
        return bench["end"]["sum_received"]["bits_per_second"] / 1e6, valid


def table():
    rows = [
        f"Linux {os.uname().release}: medians of {RUNS} runs of {SECONDS} s each, with the least and the greatest.",
        "",
        "| proxy at the base station | goodput, Mb/s | valid runs |",
        "|---|--:|--:|",
    ]
    for name, start in CASES.items():
        runs = [measured(start) for _ in range(RUNS)]
        rates = [rate for rate, _ in runs]
        valid = sum(valid for _, valid in runs)
        rows.append(f"| {name} | {statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f}) | {valid} of {RUNS} |")
        print(rows[-1], file=sys.stderr)
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    text = table()
    if arguments.write:
        put_into(arguments.write, MARK, text)
    print(text)


if __name__ == "__main__":
    main()
