"""Flow by flow, where some starve: intervals, and differences as shares of the aggregate.

A flow that gets 2 kb/s in one program and 4 in the other differs by 100 % and by nothing that matters.
So a flow is compared in per cent of what all flows of ns-2 get together. Where chance picks the winner
(`by_rank`) the flow that has most in a run is compared with the one that has most.
"""

import math
import statistics

import report

CONFIDENCE = 0.95


def interval(values):
    """Mean, and half the width of its confidence interval."""
    spread = statistics.variance(values) / len(values) if len(values) > 1 else 0.0
    return statistics.mean(values), student(len(values) - 1) * math.sqrt(spread)


def difference(theirs, ours):
    """Ours less theirs, and half the width of its interval (Welch)."""
    squares = [statistics.variance(values) / len(values) if len(values) > 1 else 0.0
               for values in (theirs, ours)]
    total = sum(squares)
    freedom = total**2 / sum(square**2 / (len(values) - 1) for square, values
                             in zip(squares, (theirs, ours))) if total > 0 else math.inf
    return statistics.mean(ours) - statistics.mean(theirs), student(freedom) * math.sqrt(total)


def student(freedom):
    """The two-sided quantile of Student's t: Cornish-Fisher, within 0.5 % from 5 degrees of freedom."""
    z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    if freedom <= 0:
        return math.inf
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def columns(case, summary):
    """What each flow got, kb/s: a list over runs for each."""
    runs = [sorted(run, reverse=True) if case.by_rank else run for run in summary.runs]
    return list(zip(*runs))


def farthest(case, theirs, ours):
    """The flow with the largest difference, from 0; this in per cent of ns-2's aggregate; half its interval."""
    found = []
    for i, pair in enumerate(zip(columns(case, theirs), columns(case, ours))):
        off, half = (100 * value / theirs.aggregate for value in difference(*pair))
        found.append((i, off, half))
    return max(found, key=lambda entry: abs(entry[1]))


def judgements(case, theirs, ours):
    """What is not settled, or settled against us: a line for each flow."""
    for i, pair in enumerate(zip(columns(case, theirs), columns(case, ours))):
        off, half = (100 * value / theirs.aggregate for value in difference(*pair))
        word = verdict(off, half, case.flow_target_pct)
        if word != "agrees":
            yield (f"{word}: {case.name}: {name(case, i)} {off:+.1f} ± {half:.1f} % of the aggregate, "
                   f"target {case.flow_target_pct:g} %")


def verdict(off, half, target):
    """An interval within the target agrees, one beyond it misses; one across leaves it open."""
    if abs(off) + half <= target:
        return "agrees"
    return "missed" if abs(off) - half > target else "open"


def name(case, i):
    return f"rank {i + 1}" if case.by_rank else f"flow {i + 1}"


def table(group, rows):
    head = [group, "ns-2 kb/s", "ours kb/s", "difference", "target", "Jain", "flows, ns-2",
            "flows, ours", "farthest flow, of the aggregate", "its target"]
    lines = []
    for case, theirs, ours in rows:
        cells = [case.name, "{:.1f} ± {:.1f}".format(*interval(theirs.totals))]
        if ours:
            i, off, half = farthest(case, theirs, ours)
            cells += ["{:.1f} ± {:.1f}".format(*interval(ours.totals)),
                      f"{report.difference(theirs, ours):+.1f} %", per_cent(case.target_pct),
                      report.pair(theirs.jain, ours.jain, "{:.2f}"), each(case, theirs),
                      each(case, ours), f"{name(case, i)}: {off:+.1f} ± {half:.1f} %",
                      per_cent(case.flow_target_pct)]
        else:
            cells += ["–", "–", per_cent(case.target_pct), f"{theirs.jain:.2f} / –",
                      each(case, theirs), "–", "–", per_cent(case.flow_target_pct)]
        lines.append(cells)
    found = [line for case, theirs, ours in rows if ours and case.flow_target_pct
             for line in judgements(case, theirs, ours)]
    return report.markdown(head, lines) + "".join(f"\n- {line}" for line in found) + (
        "\n" if found else "")


def each(case, summary):
    return ", ".join("{:.0f} ± {:.0f}".format(*interval(values))
                     for values in columns(case, summary))


def per_cent(target):
    return "" if target is None else f"{target:g} %"
