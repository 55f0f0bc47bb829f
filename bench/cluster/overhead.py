#!/usr/bin/env python3
"""What it costs to have runs made by others: measured here, and what follows for clusters that are not here.

    python3 bench/cluster/overhead.py --command hopline [--write docs/cluster-tables.md]

Needs the wheel with its extras dask and ray. Everything runs on this machine.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from pathlib import Path

import hopline as hl

SCENARIO = """name = "chain"
duration_s = 30
[radio]
[nodes]
layout = "chain"
count = 5
spacing_m = 200
[[flow]]
src = "n0"
dst = "n4"
"""
PLAN = 'scenario = "scenario.toml"\nruns = 250\nseries = "none"\n[grid]\n"tcp.window" = [2, 4, 8, "unclamped"]\n'
BATCH_S = 2.0
"""What a batch costs: see `AIM_S` in crates/lab/src/remote/scheduler.rs."""
RESULT_BYTES = 100_000
"""About what a batch of a hundred runs returns."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="hopline", help="the hopline command to compare with")
    parser.add_argument("--write", type=Path, help="file that gets the tables")
    parser.add_argument("--repeat", type=int, default=3, help="times each is measured; the median counts")
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scenario.toml").write_text(SCENARIO)
        plan = Path(folder, "plan.toml")
        plan.write_text(PLAN)
        sections = [sweeps(given, plan, Path(folder)), tasks(plan)]
    text = HEAD + "\n\n".join(sections) + "\n"
    print(text)
    if given.write:
        given.write.write_text(text)


HEAD = "Made by `make cluster-overhead`; do not edit.\n\n"


def sweeps(given: argparse.Namespace, plan: Path, folder: Path) -> str:
    """A thousand short runs, by the command and by executors."""
    lines = [
        (
            "A thousand runs of 30 s over four hops, in seconds; medians of "
            f"{given.repeat}. With two workers each, what it takes beyond the command on two threads:"
        ),
        "",
        "| placement of the runs | 1 worker | 2 workers | beyond the command | to start | driver's memory at 10 % and at the end |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    times = {}
    for name, make in [("the command", None), ("Dask", hl.executors.DaskExecutor), ("Ray", hl.executors.RayExecutor)]:
        cells = []
        for workers in (1, 2):
            made = [one(given.command, make, workers, plan, folder) for _ in range(given.repeat)]
            times[name, workers] = statistics.median(seconds for seconds, _, _ in made)
            cells.append(f"{times[name, workers]:.1f}")
        start = statistics.median(start for _, start, _ in made)
        more = times[name, 2] / times["the command", 2] - 1
        memory = " and ".join(f"{megabytes:.0f} MB" for megabytes in made[-1][2]) or "–"
        beyond = "–" if make is None else f"{more:+.1%}"
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {beyond} | {start:.1f} | {memory} |")
    return "\n".join(lines)


def one(command: str, make, workers: int, plan: Path, folder: Path) -> tuple[float, float, list[float]]:
    """Seconds of the sweep, seconds to start the workers, memory of the driver."""
    output = Path(tempfile.mkdtemp(dir=folder))
    begun = time.monotonic()
    if make is None:
        subprocess.run(
            [command, "sweep", plan, "-o", output, "--jobs", str(workers), "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.monotonic() - begun, 0.0, []
    memory: list[float] = []

    def told(_done: float, _total: float, runs: int, of: int) -> None:
        if runs >= of / 10 and not memory:
            memory.append(resident_mb())

    with make(workers=workers) as executor:
        ready(executor, workers)
        started = time.monotonic()
        hl.sweep(plan, output, executor=executor, progress=told)
        ended = time.monotonic()
    return ended - started, started - begun, [*memory, resident_mb()]


def ready(executor: Executor, workers: int) -> None:
    """Waits until every worker has begun, hopline imported."""
    wait([executor.submit(warm, n) for n in range(2 * workers)])


def warm(_number: int) -> int:
    import hopline

    time.sleep(0.3)
    return len(hopline.__version__)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def tasks(plan: Path) -> str:
    """What a batch costs those who carry it, and what that means for many workers."""
    take_s = taking_s(plan)
    lines = [
        (
            f"What carrying a batch takes besides making it, in milliseconds, with two workers that do nothing and return "
            f"{RESULT_BYTES // 1000} kB; to it come {take_s * 1e3:.2f} ms in which the driver keeps its records. What follows for more "
            "workers is **simulated**, not measured: batches of 2 s (exponentially spread around it), each of which takes that "
            "time of the one driver, while two batches are with each worker:"
        ),
        "",
        "| carried by | ms a batch | 1 worker | 2 workers | 16 workers (simulated) | 256 workers (simulated) |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, make in [("Dask", hl.executors.DaskExecutor), ("Ray", hl.executors.RayExecutor)]:
        with make(workers=2) as executor:
            ready(executor, 2)
            carry_s = carrying_s(executor)
        cells = [f"{busy(workers, carry_s + take_s):.1%}" for workers in (1, 2, 16, 256)]
        lines.append(f"| {name} | {carry_s * 1e3:.1f} | {' | '.join(cells)} |")
    lines += ["", "Per cent: of the time, a worker makes runs."]
    return "\n".join(lines)


def nothing(_bundle: bytes, _number: int) -> bytes:
    return bytes(RESULT_BYTES)


def carrying_s(executor: Executor, batches: int = 400) -> float:
    """Seconds a batch that costs nothing, as many in flight as a sweep has."""
    bundle = bytes(5_000)
    away, given, begun = set(), 0, time.monotonic()
    while given < batches or away:
        while len(away) < 4 and given < batches:
            away.add(executor.submit(nothing, bundle, given))
            given += 1
        done, away = wait(away, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
    return (time.monotonic() - begun) / batches


def taking_s(plan: Path) -> float:
    """Seconds in which the driver keeps a batch of two CPU seconds."""
    from hopline import _hopline, _worker

    course = _hopline.Course(
        _hopline.Plan.load(plan, [], "full", None, None), tempfile.mkdtemp(), "resume", ["hopline"]
    )
    bundle, took, made_s = course.bundle(), 0.0, 0.0
    while made_s < 5.0:
        number, runs = course.next(1)
        begun = time.monotonic()
        result = _worker.perform(bundle, number, runs)
        made = time.monotonic()
        course.take(number, result)
        took, made_s = took + time.monotonic() - made, made_s + made - begun
    return took / made_s * BATCH_S


def busy(workers: int, serial_s: float, batches_each: int = 400) -> float:
    """The share of time in which workers make runs, if the driver gives `serial_s` to each batch, one after the other."""
    draw = random.Random(1)
    made_s = free_s = now = 0.0
    # Ends of the batches that are being made, and when the next one of each worker is there.
    ends = [(draw.expovariate(1 / BATCH_S), worker) for worker in range(workers)]
    heapq.heapify(ends)
    there = [0.0] * workers
    for _ in range(workers * batches_each):
        now, worker = heapq.heappop(ends)
        begins, takes = max(now, there[worker]), draw.expovariate(1 / BATCH_S)
        free_s = max(free_s, now) + serial_s
        there[worker] = free_s
        made_s += takes
        heapq.heappush(ends, (begins + takes, worker))
    return min(1.0, made_s / (workers * now))


if __name__ == "__main__":
    main()
