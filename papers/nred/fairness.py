#!/usr/bin/env python3
"""Tables of which queue shares how well under which transport, and of what it costs.

    hopline reproduce nred -o results/nred --json > nred.json
    python3 papers/nred/fairness.py nred.json            # all scenarios in one table
    python3 papers/nred/fairness.py nred.json --each     # a table for each scenario, with intervals

It takes the figures `beyond-…` of all files that it is given. A point of fairness is a hundredth of Jain's index; its price
is the part of the aggregate that went for it, in percent of what there is with drop tail under the same transport. Queues
with which run for run the very same happened share a row. Bold: nothing else is clearly better in one of fairness and
aggregate (the intervals do not meet) and not clearly worse in the other; over all scenarios, clearly is more than 0.005 in
the mean of Jain's indices, or 1 % in that of the aggregates.
"""

import json
import statistics
import sys
from pathlib import Path

BASELINE = "drop tail"
REFERENCE = ("tcp-newreno", BASELINE)
FIGURES = "beyond-"
# Fewer points than this are not told from none.
LEAST_POINTS = 1.0
# What is a clear difference of means over all scenarios.
A_BIT_OF_JAIN, A_BIT_OF_SHARE = 0.005, 1.0


class Measured:
    """A mean with its interval."""

    def __init__(self, metric, factor=1.0):
        self.mean = metric["mean"] * factor
        self.low, self.high = (end * factor for end in metric["interval"] or (metric["mean"],) * 2)

    def is_clearly_below(self, other):
        return self.high < other.low

    def text(self, digits):
        return f"{self.mean:.{digits}f} ± {(self.high - self.low) / 2:.{digits}f}"


class Point:
    """One queue under one transport in one scenario."""

    def __init__(self, variant):
        self.queue = " ".join(word for word in variant["variant"].split() if "=" not in word)
        self.fingerprint = variant["fingerprint"]
        self.transport = variant["settings"]["transport"]
        metrics = variant["metrics"]
        self.jain, self.jain_2s = Measured(metrics["jain"]), Measured(metrics["jain_2s"])
        self.aggregate = Measured(metrics["aggregate_goodput_bps"], 1e-3)

    def gained(self, baseline):
        """Points of fairness, and percent of the aggregate that went for them."""
        return 100 * (self.jain.mean - baseline.jain.mean), 100 * (1 - self.aggregate.mean / baseline.aggregate.mean)

    def is_beaten_by(self, other):
        fairer, more = self.jain.is_clearly_below(other.jain), self.aggregate.is_clearly_below(other.aggregate)
        worse = other.jain.is_clearly_below(self.jain) or other.aggregate.is_clearly_below(self.aggregate)
        return (fairer or more) and not worse


class Combination:
    """One transport with queues that do the same everywhere."""

    def __init__(self, key, points):
        self.transport, queue = key
        self.queues, self.points = [queue], points

    @property
    def fingerprints(self):
        return [point.fingerprint for point in self.points]

    def least_jain(self):
        return min(point.jain.mean for point in self.points)

    def mean_jain(self):
        return statistics.mean(point.jain.mean for point in self.points)

    def share_of(self, reference):
        """Percent of the aggregate of `reference`, mean over the scenarios."""
        ratios = (a.aggregate.mean / b.aggregate.mean for a, b in zip(self.points, reference))
        return 100 * statistics.mean(ratios)


def price(gains):
    """What a point costs where (points, percent lost) were gained; a dash if none were."""
    points, lost = map(sum, zip(*gains))
    return f"{lost / points:.2f}".replace("-", "−") if points >= LEAST_POINTS * len(gains) else "–"


def lines(header, rows):
    """A Markdown table; the first two columns are words."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join("---" if at < 2 else "--:" for at in range(len(header))) + "|"
    for is_best, cells in rows:
        yield "| " + " | ".join(f"**{cell}**" if is_best else cell for cell in cells) + " |"


def same(combinations):
    """Those of one transport with which everywhere the same happens, as one."""
    merged = {}
    for combination in combinations:
        first = merged.setdefault((combination.transport, *combination.fingerprints), combination)
        if first is not combination:
            first.queues += combination.queues
    return list(merged.values())


def each(figure):
    """One scenario."""
    combinations = same(Combination(key, [point]) for key, point in figure.items())
    everything = [combination.points[0] for combination in combinations]

    def row(combination):
        point = combination.points[0]
        is_best = not any(point.is_beaten_by(other) for other in everything)
        gained = point.gained(figure[point.transport, BASELINE])
        cells = [point.transport, "; ".join(combination.queues), point.jain.text(3), point.jain_2s.text(3)]
        return is_best, [*cells, point.aggregate.text(0), price([gained])]

    header = ["transport", "queue", "Jain", "Jain, 2 s", "aggregate kb/s", "price of a point, %"]
    return lines(header, map(row, combinations))


def overall(figures):
    """All scenarios."""
    keys = next(iter(figures.values()))
    combinations = same(Combination(key, [figure[key] for figure in figures.values()]) for key in keys)
    reference = [figure[REFERENCE] for figure in figures.values()]

    def is_beaten(one):
        leads = ((o.mean_jain() - one.mean_jain(), o.share_of(reference) - one.share_of(reference)) for o in combinations)
        leads = ((jain / A_BIT_OF_JAIN, share / A_BIT_OF_SHARE) for jain, share in leads)
        return any(max(lead) > 1 and min(lead) >= -1 for lead in leads)

    def row(combination):
        baselines = (figure[combination.transport, BASELINE] for figure in figures.values())
        gains = [point.gained(baseline) for point, baseline in zip(combination.points, baselines)]
        cells = [f"{point.jain.mean:.3f} / {point.aggregate.mean:.0f}" for point in combination.points]
        cells += [f"{combination.mean_jain():.3f}", f"{combination.least_jain():.3f}"]
        cells += [f"{combination.share_of(reference):.0f}", price(gains)]
        return not is_beaten(combination), [combination.transport, "; ".join(combination.queues), *cells]

    names = [name.removeprefix(FIGURES) for name in figures]
    header = ["transport", "queue", *names, "Jain, mean", "least", "aggregate %", "price of a point, %"]
    return lines(header, map(row, combinations))


def main(*arguments):
    figures = {}
    for file in arguments:
        if file != "--each":
            for name, figure in json.loads(Path(file).read_text(encoding="utf-8"))["figures"]:
                if name.startswith(FIGURES):
                    points = map(Point, figure["variants"])
                    figures[name] = {(point.transport, point.queue): point for point in points}
    if "--each" in arguments:
        for name, figure in figures.items():
            print(f"\n### {name}\n\n" + "\n".join(each(figure)))
    else:
        print("\n".join(overall(figures)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
