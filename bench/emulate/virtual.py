#!/usr/bin/env python3
"""Linux's TCP in virtual time beside the simulator's TCP with `tcp.preset = "linux"`.

    python3 virtual.py                                  # the table; runs of kernels come from virtual.json
    python3 virtual.py --measure                        # all runs of kernels anew: 20 minutes. Nothing needs root
    python3 virtual.py --measure --missing              # those alone that an interrupted measurement has not made
    python3 virtual.py --measure --case chain-3 --control bbr
    python3 virtual.py --write docs/virtual-time.md

Sockets send at nodes with kernels of `make uml`, and in the simulator, as agreement.py does in real time. Each flow begins at the
same virtual time, when the kernels know their neighbours' addresses. Bytes that have arrived 20 s later count.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import agreement
from agreement import CHAIN, CROSS, DURATION_S, PROGRAM, TRANSPORTS

RUNS = 3
WALKER_RUNS = 30  # A timeout that doubles while the relay is away decides about the rest of a run.
START_S = 8  # pings and interpreters have time until then

# The relay in the middle is out of reach for about 2.8 of each 8 s.
WALKER = CHAIN.format(nodes=2) + "\n[[node]]\nname = \"walker\"\nx_m = 400\ny_m = 0\nwaypoints = [" + ", ".join(
    f"{{ at_s = {at}, x_m = 400, y_m = {y}, speed_mps = 100 }}"
    for start in range(START_S + 4, START_S + DURATION_S, 8)
    for at, y in ((start, -200), (start + 4, 0))) + "]\n\n[[node]]\nname = \"far\"\nx_m = 600\ny_m = 0\n"

CASES = {f"chain-{hops}": (CHAIN.format(nodes=hops + 1), [(0, hops)]) for hops in range(1, 9)} | {
    "cross": (CROSS, [(0, 4), (5, 8)]),
    "grid": agreement.CASES["grid"],
    "walker": (WALKER, [(0, 3)]),
}
TITLES = agreement.TITLES | {f"chain-{hops}": f"chain, {hops} hops" for hops in (7, 8)} | {
    "walker": "chain of 3 hops, a relay walks away and back"}


def names(case):
    return ["n0", "n1", "walker", "far"] if case == "walker" else [f"n{number}" for number in range(32)]


def program(name, node, command, times):
    return f"\n[[program]]\nname = \"{name}\"\nnode = \"{node}\"\n{times}\ncommand = {json.dumps(command)}\n"


def scenario(case, control, kernel):
    network, flows = CASES[case]
    node = names(case)
    text = f"name = \"virtual\"\nduration_s = {START_S + DURATION_S + kernel}\nradio.preset = \"ns2-wavelan\"\n"
    if not kernel:
        text += f"warmup_s = {START_S}\ntransport = \"{TRANSPORTS[control]}\"\ntcp.preset = \"linux\"\n"
    text += network
    script = str(Path(agreement.__file__).resolve())
    for at, (a, b) in enumerate(flows):
        if not kernel:
            text += f"\n[[flow]]\nsrc = \"{node[a]}\"\ndst = \"{node[b]}\"\nstart_s = {START_S}\n"
            continue
        address = f"10.0.0.{b + 1}"
        wait = f"until ping -q -c 1 -W 1 {address}; do :; done"
        port, start = str(5201 + at), str(START_S)
        text += program(f"ping-{at}", node[a], ["sh", "-c", wait], f"start_s = {1 + at / 10}")
        text += program(f"sink-{at}", node[b], [sys.executable, script, "--sink", port, start], "start_s = 6")
        source = [sys.executable, script, "--source", address, port, control, start]
        text += program(f"source-{at}", node[a], source, f"start_s = 6\nstop_s = {START_S + DURATION_S}")
    return text


def kernel(case, control, run):
    """Sum of the goodputs in b/s of one run of Linux's TCP."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(scenario(case, control, True), encoding="ascii")
        words = [PROGRAM, "emulate", "--virtual-time", path, "--run", run, "-o", f"{folder}/results"]
        words = [str(word) for word in words]
        began = time.monotonic()
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{case}, {control}, run {run}: {done.stderr.strip()[-600:]}")
        took_s = time.monotonic() - began
        print(f"{case}, {control}, run {run}: {took_s:.0f} s", file=sys.stderr, flush=True)
        return 8 * sum(int(path.read_text()) for path in Path(folder, "results").glob("sink-*.stdout")) / DURATION_S


def simulated(case, control, run):
    """The same of a simulated run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(scenario(case, control, False), encoding="ascii")
        words = [PROGRAM, "run", path, "--json", "--run", str(run)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["aggregate_goodput_bps"]


def version():
    """Version of the kernel of `make uml`, without that of its configuration."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    done = subprocess.run([cache / "hopline/uml/linux", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.partition("-")[0]


STUDY = agreement.Study(
    title="Linux, virtual time", mark="<!-- virtual time agreement -->", reference=agreement.HERE / "virtual.json", cases=CASES,
    titles=TITLES, runs=lambda name: WALKER_RUNS if name == "walker" else RUNS, at_once=os.cpu_count() or 1, kernel=kernel,
    simulated=simulated, version=version)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    STUDY.add_options(parser)
    STUDY.main(parser.parse_args())


if __name__ == "__main__":
    main()
