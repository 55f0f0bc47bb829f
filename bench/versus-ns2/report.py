"""Means over runs, and tables in Markdown."""

import dataclasses
import datetime
import itertools
import statistics
import subprocess

import hopline_side
import ns2_side


@dataclasses.dataclass(frozen=True)
class Summary:
    """Means over the runs of one case in one program."""

    aggregate: float  # kb/s
    deviation: float  # standard deviation of the aggregate, kb/s
    flows: tuple  # kb/s
    retransmissions: float
    timeouts: float
    jain: float
    runs: tuple  # kb/s, of each flow of each run

    @property
    def totals(self):
        return [sum(run) for run in self.runs]

    @staticmethod
    def of(runs):
        def mean(key):
            return statistics.mean(sum(flow[key] for flow in run) for run in runs)

        rates = tuple(tuple(flow["goodput_bps"] / 1000 for flow in run) for run in runs)
        totals = [sum(run) for run in rates]
        flows = tuple(statistics.mean(run[i] for run in rates) for i in range(len(rates[0])))
        return Summary(
            statistics.mean(totals), statistics.stdev(totals) if len(totals) > 1 else 0.0, flows,
            mean("retransmissions"), mean("timeouts"),
            statistics.mean(jain(run) for run in rates), rates)


def jain(rates):
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else 1.0


def difference(theirs, ours):
    return 100 * (ours.aggregate / theirs.aggregate - 1)


def misses(rows):
    """What misses its target, as a list; empty when all is met or nothing can be compared."""
    rows = [row for row in rows if row[2]]
    found = [f"{case.name}: {difference(theirs, ours):+.1f} %, target {case.target_pct:g} %"
             for case, theirs, ours in rows
             if case.target_pct is not None
             and abs(difference(theirs, ours)) > case.target_pct]
    found += out_of_order(rows)
    # where chance picks the winner, the means of flows say nothing
    found += [f"{case.name}: flows {starving(theirs)} starve in ns-2, {starving(ours)} in ours"
              for case, theirs, ours in rows
              if case.group in ("grid", "three-parallel", "cross", "parallel")
              and starving(theirs) != starving(ours)]
    return "".join(f"\n- missed: {line}" for line in found) + ("\n" if found else "")


def out_of_order(rows):
    """Pairs of windows that ns-2 tells apart by more than 5 % and we order otherwise."""
    for (a, theirs_a, ours_a), (b, theirs_b, ours_b) in itertools.combinations(rows, 2):
        if dataclasses.replace(a, window=0, name="", target_pct=None) != dataclasses.replace(
                b, window=0, name="", target_pct=None):
            continue
        low, high = sorted((theirs_a.aggregate, theirs_b.aggregate))
        if high > 1.05 * low and (theirs_a.aggregate < theirs_b.aggregate) != (
                ours_a.aggregate < ours_b.aggregate):
            yield f"{a.name} and {b.name}: the other order than in ns-2"


def starving(summary):
    """Flows with less than a twentieth of the best."""
    return [i for i, rate in enumerate(summary.flows) if rate < max(summary.flows) / 20]


def markdown(head, rows):
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]

    def line(cells):
        left, *right = cells
        return "| " + " | ".join([left.ljust(widths[0]),
                                  *(cell.rjust(width)
                                    for cell, width in zip(right, widths[1:]))]) + " |"

    rule = "|" + "|".join([":" + "-" * (widths[0] + 1),
                           *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([line(head), rule, *(line(row) for row in rows[1:])]) + "\n"


def pair(theirs, ours, form):
    return form.format(theirs) + " / " + ("–" if ours is None else form.format(ours))


def per_flow(summary):
    return "–" if summary is None else " ".join(f"{rate:.0f}" for rate in summary.flows)


def table(group, rows):
    several = any(len(theirs.flows) > 1 for _, theirs, _ in rows)
    head = [group, "ns-2 kb/s", "± sd", "ours kb/s", "± sd", "difference", "target",
            "retransmissions", "timeouts"]
    if several:
        head += ["Jain", "flows, ns-2", "flows, ours"]
    lines = []
    for case, theirs, ours in rows:
        cells = [case.name, f"{theirs.aggregate:.1f}", f"{theirs.deviation:.1f}"]
        if ours:
            cells += [f"{ours.aggregate:.1f}", f"{ours.deviation:.1f}",
                      f"{difference(theirs, ours):+.1f} %"]
        else:
            cells += ["–", "–", "–"]
        cells.append("" if case.target_pct is None else f"{case.target_pct:g} %")
        cells += [pair(theirs.retransmissions, ours and ours.retransmissions, "{:.1f}"),
                  pair(theirs.timeouts, ours and ours.timeouts, "{:.1f}")]
        if several:
            cells += [pair(theirs.jain, ours and ours.jain, "{:.2f}"), per_flow(theirs),
                      per_flow(ours)]
        lines.append(cells)
    return markdown(head, lines)


def speed_table(rows):
    head = ["CPU s, median of 3", "ns-2", "ours", "ratio", "MiB ns-2", "MiB ours"]
    lines = []
    for case, theirs, ours in rows:
        name = f"{case.group}, {case.name}"
        if ours:
            lines.append([name, f"{theirs[0]:.2f}", f"{ours[0]:.2f}",
                          f"{theirs[0] / max(ours[0], 0.001):.1f}", f"{theirs[1]:.0f}",
                          f"{ours[1]:.0f}"])
        else:
            lines.append([name, f"{theirs[0]:.2f}", "–", "–", f"{theirs[1]:.0f}", "–"])
    return markdown(head, lines)


def heading(seeds):
    ours = "not built"
    if hopline_side.PROGRAM.exists():
        ours = subprocess.run([hopline_side.PROGRAM, "--version"], capture_output=True, text=True,
                              check=False).stdout.strip()
    return (f"Measured on {datetime.date.today()}: ns-2 {ns2_side.version()}, {ours}; "
            f"mean of at least {seeds} runs each; a pair is ns-2 / ours.\n")
