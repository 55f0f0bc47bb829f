#!/usr/bin/env python3
"""User CPU time that one build of hopline takes over another for the same work.

    python3 bench/profile_cost.py target/release/hopline target/dist/hopline 10

Each round runs both programs, one after the other, in alternating order. The work is the comparison of `make demo`, a network of
400 moving nodes, and a report with an animation. It prints the median of the ratios within rounds, with the quartiles. Runs of `compare` also write a report. Both
programs must give the same results: a difference ends the measurement.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = {
    "comparison of make demo": ["compare", "scenarios/chain/scenario.toml", "--jobs", "1"],
    "400 moving nodes": ["run", "scenarios/random-400/scenario.toml"],
    "report with an animation": ["compare", "scenarios/hidden/scenario.toml", "--jobs", "1", "--animate", "0s..60s"],
}


def fingerprints(value):
    """Yields every fingerprint in a result."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ([inner] if key == "fingerprint" else fingerprints(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from fingerprints(inner)


def seconds(program, words):
    """Returns user CPU seconds and fingerprints of one run."""
    with tempfile.TemporaryDirectory() as folder:
        report = ["--report", Path(folder) / "report.html"] if words[0] == "compare" else []
        command = [program, *words, *report, "--quiet", "--json"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return taken, list(fingerprints(json.loads(done.stdout)))


def main(first, second, rounds):
    programs = [Path(first).resolve(), Path(second).resolve()]
    for name, words in WORK.items():
        taken = {program: [] for program in programs}
        order = list(programs)
        seen = []
        for _ in range(int(rounds)):
            for program in order:
                time, found = seconds(program, words)
                taken[program].append(time)
                seen.append(found)
            order.reverse()
        if any(found != seen[0] for found in seen):
            sys.exit(f"{name}: the programs have different fingerprints")
        ratios = [a / b for a, b in zip(*taken.values(), strict=True)]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        times = " and ".join(f"{statistics.median(taken[program]):.2f} s" for program in programs)
        print(f"{name:26}{times}, ratio {ratio:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
