#!/usr/bin/env python3
"""Tables of which queue shares how well under which transport, and of what it costs.

    hopline reproduce nred beyond-exposed -o results/nred --json > beyond-exposed.json
    python3 papers/nred/fairness.py beyond-exposed.json...

A point of fairness is a hundredth of Jain's index. Its price is the part of the aggregate that went for it, in percent of
what there is with drop tail under the same transport. Queues with which run for run the very same happened share a row. Bold: nothing else has both more fairness and more in total.
"""

import json
import sys
from pathlib import Path

BASELINE = "drop tail"
# Fewer points than this are not told from none.
LEAST_POINTS = 1.0


class Point:
    """One queue under one transport."""

    def __init__(self, variant):
        self.queues = [" ".join(word for word in variant["variant"].split() if "=" not in word)]
        self.fingerprint = variant["fingerprint"]
        self.transport = variant["settings"]["transport"]
        metrics = variant["metrics"]
        self.jain, self.jain_2s, self.aggregate = (
            Measured(metrics[name]) for name in ("jain", "jain_2s", "aggregate_goodput_bps")
        )

    def price(self, baseline):
        """What a point of fairness costs, percent of the aggregate; `None` where none is gained."""
        points = 100 * (self.jain.mean - baseline.jain.mean)
        lost = 100 * (1 - self.aggregate.mean / baseline.aggregate.mean)
        return lost / points if points >= LEAST_POINTS else None

    def is_beaten_by(self, other):
        return other.jain.mean > self.jain.mean and other.aggregate.mean > self.aggregate.mean


class Measured:
    """A mean and half of its interval."""

    def __init__(self, metric):
        self.mean = metric["mean"]
        low, high = metric["interval"] or (self.mean, self.mean)
        self.half = (high - low) / 2

    def text(self, digits, factor=1.0):
        return f"{self.mean * factor:.{digits}f} ± {self.half * factor:.{digits}f}"


def points_of(figure):
    """Its points; queues with which the very same happens are one."""
    points = {}
    for point in map(Point, figure["variants"]):
        same = points.setdefault((point.transport, point.fingerprint), point)
        if same is not point:
            same.queues += point.queues
    return list(points.values())


def table(figure):
    points = points_of(figure)
    baselines = {point.transport: point for point in points if BASELINE in point.queues}
    yield "| transport | queue | Jain | Jain, 2 s | aggregate kb/s | price of a point, % |"
    yield "|---|---|--:|--:|--:|--:|"
    for point in points:
        price = point.price(baselines[point.transport])
        is_best = not any(point.is_beaten_by(other) for other in points)
        cells = [point.transport, "; ".join(point.queues), point.jain.text(3), point.jain_2s.text(3)]
        cells += [point.aggregate.text(0, 1e-3), "–" if price is None else f"{price:.2f}".replace("-", "−")]
        yield "| " + " | ".join(f"**{cell}**" if is_best else cell for cell in cells) + " |"


def main(*files):
    for file in files:
        for name, figure in json.loads(Path(file).read_text(encoding="utf-8"))["figures"]:
            print(f"\n### {name}, {figure['runs']} runs\n")
            print("\n".join(table(figure)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
