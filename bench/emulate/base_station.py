#!/usr/bin/env python3
"""Goodput of CUBIC from a server over a lossy radio under `hopline emulate`: without a proxy at the base station, with Snoop and
with a gateway.

    python3 base_station.py --write docs/emulate.md                   # in real time, as root: four minutes
    python3 base_station.py --virtual --write docs/virtual-time.md    # in virtual time, beside the table of docs/emulate.md

The network and the configuration of Snoop are those of docs/emulate.md. The same scenario runs in both ways.
"""

import argparse
import json
import os
import re
import secrets
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
VIRTUAL_MARK = "<!-- virtual time base station -->"
RUNS = 5
VIRTUAL_RUNS = 10
SECONDS = 10
# With the pings that the benchmark sends before and after the transfer.
DURATION_S = SECONDS + 6
MOBILE = "10.0.0.2"  # the second node

ENTRANCE = f"""
name = "entrance"
state_dir = "{{state}}/entrance"
[[proxy]]
kind = "gateway"
exit = "{MOBILE}:7172"
identity = "base"
key_file = "link.key"
transport = "tpa-wide"
divert = "wire0"
"""
EXIT = f"""
name = "exit"
state_dir = "{{state}}/exit"
[[proxy]]
kind = "gateway-exit"
peers = ["base = link.key"]
transport = "tpa-wide"
allowed = ["{MOBILE} 1-65535"]
"""
# Files of configuration, and the nodes that run proxies with them.
CASES = {
    "none": {},
    "Snoop": {"snoop.toml": "base"},
    "gateway over TPA-wide": {"exit.toml": "mobile", "entrance.toml": "base"},
}
BENCH = ["hopline", "bench", "-c", "mobile", "--transport", "tcp:cubic", "-t", str(SECONDS), "-J"]


def block(mark):
    """Returns the block of the page behind a mark."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```toml\n(.*?)```", PAGE.read_text(), re.S)
    return found[1]


def program(name, node, command, start_s=0):
    """Returns the table of a program."""
    return f'[[program]]\nname = "{name}"\nnode = "{node}"\nstart_s = {start_s}\ncommand = {json.dumps(command)}\n'


def prepare(folder, proxies, state):
    """Writes the scenario and what its proxies read. They keep their state in the folder `state`."""
    snoop = re.sub('^state_dir = ".*"', f'state_dir = "{state}"', block("proxy: snoop.toml"), flags=re.M)
    texts = {"snoop.toml": snoop, "entrance.toml": ENTRANCE.format(state=state), "exit.toml": EXIT.format(state=state)}
    for name in proxies:
        (folder / name).write_text(texts[name])
    key = folder / "link.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32))
    programs = [
        *(program(name.partition(".")[0], node, ["hopline", "proxy", "run", name]) for name, node in proxies.items()),
        program("server", "mobile", ["hopline", "bench", "-s"]),
        program("bench", "server", BENCH, 2),
    ]
    (folder / "last-hop.toml").write_text("\n".join([block("network: last-hop.toml"), *programs]))


def measured(proxies, run, is_virtual):
    """Returns the goodput in Mb/s, and whether the run was valid."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        folder = Path(name)
        # Only /tmp can be written to at a node in virtual time, and it is the node's own.
        prepare(folder, proxies, "/tmp/state" if is_virtual else folder / "state")
        options = ["--set", f"duration_s={DURATION_S}", "--run", str(run), "-o", "results", "--json", "summary.json"]
        way = "--virtual-time" if is_virtual else "--best-effort"
        command = [PROGRAM, "emulate", way, "last-hop.toml", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"base_station: {done.stderr}")
        bench = json.loads((folder / "results" / "bench.stdout").read_text())
        valid = is_virtual or json.loads((folder / "summary.json").read_text())["valid"]
        return bench["end"]["sum_received"]["bits_per_second"] / 1e6, valid


def goodput(rates):
    return f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"


def real_table():
    """Returns the table of this machine in real time."""
    rows = [
        f"Linux {os.uname().release}: medians of {RUNS} runs of {SECONDS} s each, with the least and the greatest.",
        "",
        "| proxy at the base station | goodput, Mb/s | valid runs |",
        "|---|--:|--:|",
    ]
    for name, proxies in CASES.items():
        runs = [measured(proxies, run, is_virtual=False) for run in range(1, RUNS + 1)]
        valid = sum(valid for _, valid in runs)
        rows.append(f"| {name} | {goodput([rate for rate, _ in runs])} | {valid} of {RUNS} |")
        print(rows[-1], file=sys.stderr)
    return "\n".join(rows)


def virtual_table():
    """Returns the table of virtual time, beside the last one of real time."""
    table = PAGE.read_text().split(MARK)[1]
    rows = [
        f"Goodput in Mb/s over {SECONDS} s, with the least and the greatest: medians of {VIRTUAL_RUNS} runs of Linux 6.12 in virtual "
        "time, and of those of [real time](emulate.md#proxies-at-a-base-station).",
        "",
        "| proxy at the base station | real time | virtual time | virtual beside real |",
        "|---|--:|--:|--:|",
    ]
    for name, proxies in CASES.items():
        real = re.search(rf"^\| {name} \| (([0-9.]+) \(.*?\)) \|", table, re.M)
        rates = [measured(proxies, run, is_virtual=True)[0] for run in range(1, VIRTUAL_RUNS + 1)]
        beside = f"{100 * (statistics.median(rates) / float(real[2]) - 1):+.0f} %".replace("-", "−")
        rows.append(f"| {name} | {real[1]} | {goodput(rates)} | {beside} |")
        print(rows[-1], file=sys.stderr)
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--virtual", action="store_true", help="measure in virtual time")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    arguments = parser.parse_args()
    text = virtual_table() if arguments.virtual else real_table()
    if arguments.write:
        put_into(arguments.write, VIRTUAL_MARK if arguments.virtual else MARK, text)
    print(text)


if __name__ == "__main__":
    main()
