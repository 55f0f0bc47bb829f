#!/usr/bin/env python3
"""This kernel's TCP under `hopline emulate` beside the simulator's TCP with `tcp.preset = "linux"`.

    python3 agreement.py                                  # the table; runs of the kernel come from reference.json
    python3 agreement.py --measure                        # all of the kernel's runs anew, as root: 20 minutes
    python3 agreement.py --measure --missing              # those alone that an interrupted measurement has not made
    python3 agreement.py --measure --case chain-3 --control bbr
    python3 agreement.py --write docs/emulate.md

Sockets send at the nodes of an emulation, all from the same moment, when the kernels know their neighbours' addresses. iperf3 would
not do: where six flows compete, its control connections wait so long that some flows begin after the first ones have ended. Bytes
that have arrived by the end count. The simulator has the same network and the same flows. A run of the kernel that was late
by its own account is made again.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page import put_into  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("HOPLINE", ROOT / "target" / "release" / "hopline"))

TRANSPORTS = {"cubic": "tcp-cubic", "reno": "tcp-sack", "bbr": "tcp-bbr"}
DURATION_S = 20
SIMULATED_RUNS = 30
ATTEMPTS = 5
TARGET_PCT = 10

CHAIN = """
[nodes]
layout = "chain"
count = {nodes}
spacing_m = 200
"""
CROSS = CHAIN.format(nodes=5) + "".join(f"\n[[node]]\nx_m = 400\ny_m = {y}\n" for y in (-400, -200, 200, 400))
GRID = """
[nodes]
layout = "grid"
columns = 5
rows = 5
spacing_m = 200
"""
# Network and flows of each case: those of scenarios/chain, scenarios/cross and scenarios/grid.
CASES = {f"chain-{hops}": (CHAIN.format(nodes=hops + 1), [(0, hops)]) for hops in range(1, 7)} | {
    "cross": (CROSS, [(0, 4), (5, 8)]),
    "grid": (GRID, [(0, 4), (10, 14), (20, 24), (0, 20), (2, 22), (4, 24)]),
}
TITLES = {f"chain-{hops}": f"chain, {hops} hop{'s'[:hops > 1]}" for hops in range(1, 7)} | {
    "cross": "cross, two flows of 4 hops", "grid": "grid, six flows of 4 hops"}


def scenario(case, control=None):
    network, flows = CASES[case]
    head = f'name = "agreement"\nduration_s = {DURATION_S}\n'
    if control:
        head += f'transport = "{TRANSPORTS[control]}"\ntcp.preset = "linux"\n'
    text = head + 'radio.preset = "ns2-wavelan"\n' + network
    return text + "".join(f'\n[[flow]]\nsrc = "n{a}"\ndst = "n{b}"\n' for a, b in flows if control)


def script(case, control):
    """Sinks, a wait until the kernels know their neighbours, sources."""
    _, flows = CASES[case]
    python = f"{sys.executable} {Path(__file__).resolve()}"
    # The simulated kernels know them from the start. Broadcasts collide, and a kernel gives up after three lost ones.
    lines = [f"until hopline exec n{a} -- ping -q -c 1 -W 3 10.0.0.{b + 1} > /dev/null; do :; done" for a, b in flows]
    wait_s = 2 + 0.5 * len(flows)  # for all interpreters to start
    lines.append(f"start=$({sys.executable} -c 'import time; print(time.monotonic() + {wait_s})')")
    for at, (a, b) in enumerate(flows):
        lines += [f"hopline exec n{b} -- {python} --sink {5201 + at} $start > flow-{at} & sinks=\"$sinks $!\"",
                  f"hopline exec n{a} -- {python} --source 10.0.0.{b + 1} {5201 + at} {control} $start &"]
    return "\n".join(lines + ["wait $sinks"])


def check_start(start):
    """Marks a run in which a program begins late: it is void."""
    if time.monotonic() > float(start):
        Path("late").touch()


def sink(port, start):
    """Counts what arrives at a port from `start` on, and prints it."""
    check_start(start)
    end, count = float(start) + DURATION_S, 0
    with socket.create_server(("", int(port))) as server:
        server.settimeout(end - time.monotonic())
        try:
            stream, _ = server.accept()
            while (left := end - time.monotonic()) > 0:
                stream.settimeout(left)
                count += len(stream.recv(65536))
        except TimeoutError:
            pass
    print(count)


def source(address, port, control, start):
    """Sends from `start` on, until it is ended."""
    check_start(start)
    with socket.socket() as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        time.sleep(max(0, float(start) - time.monotonic()))
        stream.connect((address, int(port)))
        while True:
            stream.sendall(bytes(65536))


def kernel(case, control, run):
    """Sum of the goodputs in b/s of one run of the kernel's TCP."""
    said = ""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "scenario.toml").write_text(scenario(case), encoding="ascii")
            words = [PROGRAM, "emulate", "scenario.toml", "--run", run, "--", "sh", "-c", script(case, control)]
            done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
            said = done.stderr
            if done.returncode == 0 and not (folder / "late").exists():
                return 8 * sum(int(path.read_text()) for path in folder.glob("flow-*")) / DURATION_S
    raise RuntimeError(f"{case}, {control}, run {run}: {said.strip()[-300:]}")


def simulated(case, control, run):
    """The same of a simulated run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(scenario(case, control), encoding="ascii")
        done = subprocess.run([PROGRAM, "run", path, "--json", "--run", str(run)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["aggregate_goodput_bps"]


@dataclass(frozen=True)
class Study:
    """Runs of kernels beside simulated ones, in a table of a page."""

    title: str  # of the column of kernels
    mark: str  # around the table
    reference: Path  # file with the runs of kernels
    cases: dict
    titles: dict
    runs: Callable  # of kernels, of a network
    at_once: int  # runs of kernels
    kernel: Callable  # goodput in b/s of a network, an algorithm and a run
    simulated: Callable  # the same of the simulator
    version: Callable  # of the kernel

    def stored(self):
        exists = self.reference.exists()
        return json.loads(self.reference.read_text(encoding="ascii")) if exists else {"kernel": {}, "goodput_bps": {}}

    def measure(self, cases, missing):
        """Makes the first run of all cases, then the second one, and so on. Each is stored at once."""
        document = self.stored()
        runs = document["goodput_bps"]
        for case in cases:
            if not missing:
                runs.pop(key(case), None)
            document["kernel"][key(case)] = self.version()
        most = max(self.runs(name) for name, _ in cases)
        jobs = [(*case, run) for run in range(1, most + 1) for case in cases
                if len(runs.get(key(case), [])) < run <= self.runs(case[0])]
        with ThreadPoolExecutor(self.at_once) as pool:
            for (*case, run), value in zip(jobs, pool.map(lambda job: self.kernel(*job), jobs)):
                runs.setdefault(key(case), []).append(round(value))
                self.reference.write_text(json.dumps(document, indent=1) + "\n", encoding="ascii")
                print(key(case), run, round(value), file=sys.stderr, flush=True)

    def table(self, cases):
        document = self.stored()
        theirs = {case: document["goodput_bps"][key(case)] for case in cases if key(case) in document["goodput_bps"]}
        jobs = [(*case, run) for case in theirs for run in range(1, SIMULATED_RUNS + 1)]
        own = {case: [] for case in theirs}
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for (*case, _), value in zip(jobs, pool.map(lambda job: self.simulated(*job), jobs)):
                own[tuple(case)].append(round(value))
        rows = [self.row(case, theirs[case], own[case]) for case in theirs]
        hits, unsure = (sum(verdict == which for _, verdict in rows) for which in ("yes", "within noise"))
        versions = ", ".join(sorted({document["kernel"][key(case)] for case in theirs}))
        lines = [f"Runs of {DURATION_S} s each, of Linux {versions}, and {SIMULATED_RUNS} of the simulator. Goodput of all flows in "
                 f"kb/s; ± is a 95 % half-width. Within {TARGET_PCT} %: {hits} of {len(rows)}, and {unsure} within noise.", "",
                 f"| network | control | runs | {self.title} | simulated | simulated beside it | within {TARGET_PCT} % |",
                 "|---|---|--:|--:|--:|--:|---|"]
        return "\n".join(lines + [text for text, _ in rows])

    def row(self, case, theirs, own):
        mean, reference = statistics.mean(own), statistics.mean(theirs)
        off = 100 * (mean / reference - 1)
        noise = 100 * (half_width(own) ** 2 + half_width(theirs) ** 2) ** 0.5 / reference
        verdict = "yes" if abs(off) <= TARGET_PCT else "within noise" if abs(off) - noise <= TARGET_PCT else "**no**"
        name, control = case
        kilobits = lambda values: f"{statistics.mean(values) / 1e3:.0f} ± {half_width(values) / 1e3:.0f}"
        return (f"| {self.titles[name]} | {control} | {len(theirs)} | {kilobits(theirs)} | {kilobits(own)} "
                f"| {off:+.1f} ± {noise:.1f} % | {verdict} |".replace("-", "−")), verdict

    def add_options(self, parser):
        parser.add_argument("--measure", action="store_true", help="run the kernel anew")
        parser.add_argument("--missing", action="store_true", help="with --measure: keep the runs that there are")
        parser.add_argument("--case", action="append", choices=self.cases, help="this network alone; may be repeated")
        parser.add_argument("--control", action="append", choices=TRANSPORTS, help="this algorithm alone; may be repeated")
        parser.add_argument("--write", type=Path, help="put the table into this page")

    def main(self, arguments):
        cases = list(product(arguments.case or self.cases, arguments.control or TRANSPORTS))
        if arguments.measure:
            self.measure(cases, arguments.missing)
        text = self.table(cases)
        if arguments.write:
            put_into(arguments.write, self.mark, text)
        print(text)


def key(case):
    return ",".join(case)


# Quantiles of Student's distribution for a 95 % interval, by degrees of freedom.
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201}


def half_width(values):
    return STUDENT.get(len(values) - 1, 2.045) * statistics.stdev(values) / len(values) ** 0.5


STUDY = Study(
    title="kernel, emulated", mark="<!-- emulate agreement -->", reference=HERE / "reference.json", cases=CASES, titles=TITLES,
    runs=lambda _: 6, at_once=3,  # None needs much of a processor.
    kernel=kernel, simulated=simulated, version=lambda: os.uname().release.partition("-")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    STUDY.add_options(parser)
    parser.add_argument("--sink", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--source", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sink:
        return sink(*arguments.sink)
    if arguments.source:
        return source(*arguments.source)
    return STUDY.main(arguments)


if __name__ == "__main__":
    main()
