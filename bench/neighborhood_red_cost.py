#!/usr/bin/env python3
"""What Neighborhood RED adds to the processor time of the 5×5 grid of its paper.

    python3 bench/neighborhood_red_cost.py target/release/hopline 14

Runs by turns: without it, with nodes that only watch (the very same run), with nodes that send notices and drop next to
nothing, and as published; each round begins with another. The ratios are of runs of the same round, so that a machine that
slows down slows both; what is printed is their median, with the quartiles.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

GRID = Path(__file__).resolve().parents[1] / "papers/nred/scenarios/grid.toml"
EVERYWHERE = "neighborhood_red.share=1"
KINDS = {
    "without": [],
    "watches": [EVERYWHERE, "neighborhood_red.delivery=none"],
    "notices, next to no drops": [EVERYWHERE, "neighborhood_red.max_probability=0.000001"],
    "as published": [EVERYWHERE],
}


def run(program, settings):
    words = [word for setting in settings for word in ("--set", setting)]
    command = [program, "run", GRID, "-q", "--json", *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(program, rounds):
    seconds = {kind: [] for kind in KINDS}
    events = {}
    kinds = list(KINDS)
    for _ in range(int(rounds)):
        for kind in kinds:
            result = run(program, KINDS[kind])
            seconds[kind].append(result["cpu_s"])
            events[kind] = result["events"]
        kinds.append(kinds.pop(0))
    for kind, taken in seconds.items():
        low, ratio, high = statistics.quantiles((a / b for a, b in zip(taken, seconds["without"])), n=4)
        middle = statistics.median(taken)
        print(f"{kind:27}{events[kind]:>9} events, {middle:.3f} s, {ratio:.3f} of without [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
