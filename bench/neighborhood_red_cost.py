#!/usr/bin/env python3
"""What Neighborhood RED adds to the processor time of the 5×5 grid of its paper.

    python3 bench/neighborhood_red_cost.py target/release/hopline 14

Runs by turns: without it, with nodes that only watch (the very same run), with nodes that send notices and drop next to
nothing, and as published. The ratios are of runs beside each other, so that a machine that slows down slows both.
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
    for _ in range(int(rounds)):
        for kind, settings in KINDS.items():
            result = run(program, settings)
            seconds[kind].append(result["cpu_s"])
            events[kind] = result["events"]
    for kind, taken in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(taken, seconds["without"]))
        print(f"{kind:27}{events[kind]:>9} events, median {statistics.median(taken):.3f} s, {ratio:.3f} of without")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
