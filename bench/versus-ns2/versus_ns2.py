#!/usr/bin/env python3
"""Run ns-2.35 and hopline side by side and print what each measured.

    python3 versus_ns2.py                       everything
    python3 versus_ns2.py --only chain,grid     some tables
    python3 versus_ns2.py --only door,speed     one table, and CPU time and memory of its cases
    python3 versus_ns2.py --quick               3 seeds, a few cases of each table, no speed table
    python3 versus_ns2.py --stored              take ns-2's results from reference/ where they exist

Results go to stdout (and to --write FILE as Markdown), progress to stderr. What misses its target is
listed below its table. Exit code 1 when a program failed, 2 for bad usage.
"""

import argparse
import dataclasses
import statistics
import sys
from pathlib import Path

import flows
import hopline_side
import ns2_side
import ns3
import reference
import report
import scale
from cases import CASES, GROUPS, SPEED

QUICK_WORDS = ("4 hops, window 2,", "4 hops, window 32,", "window 32", "lanes 400 m", "hidden", "653 m",
               "Newreno, bit errors 3e-06", "Cubic, bit errors 3e-0", "20 nodes")


# Tables that are not a group of cases.
EXTRA = ("chain-ns3", "speed", "scale")


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TABLE,...",
                        help="tables: " + ", ".join((*GROUPS, *EXTRA)))
    parser.add_argument("--seeds", type=int, default=10, help="runs of each case (default 10)")
    parser.add_argument("--quick", action="store_true", help="3 seeds, a few cases, no speed")
    parser.add_argument("--stored", action="store_true",
                        help="take ns-2's results from reference/ where they exist")
    parser.add_argument("--ns2-only", action="store_true", help="leave hopline out")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write Markdown")
    options = parser.parse_args(words)
    options.only = tuple(filter(None, options.only.split(",")))
    unknown = set(options.only) - {*GROUPS, *EXTRA}
    if unknown:
        parser.error(f"no table named {', '.join(sorted(unknown))}")
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    if options.quick:
        options.seeds = min(options.seeds, 3)
    return options


def selected(options):
    for case in CASES:
        if case.group == "random":
            continue  # compared by speed only
        if options.only and case.group not in options.only:
            continue
        if options.quick and not any(word in case.name for word in QUICK_WORDS):
            continue
        yield case


def seeds(case, options):
    return range(1, options.seeds * case.repeat + 1)


def ns2_runs(case, options):
    count = len(seeds(case, options))
    if options.stored:
        stored = reference.load(case.group)["cases"].get(case.peer or case.name, [])
        if len(stored) >= count:
            return [run["flows"] for run in stored[:count]]
    return [ns2_side.run(case, seed)[0] for seed in seeds(case, options)]


def compare(options, failures):
    """Yield (group, rows), a row for each case."""
    cases = list(selected(options))
    for group in dict.fromkeys(case.group for case in cases):
        rows = []
        for case in (case for case in cases if case.group == group):
            print(f"{group}: {case.name}", file=sys.stderr, flush=True)
            theirs = report.Summary.of(ns2_runs(case, options))
            ours = None
            reason = "--ns2-only" if options.ns2_only else hopline_side.why_not(case)
            if reason is None:
                try:
                    ours = report.Summary.of(
                        [hopline_side.run(case, seed)[0] for seed in seeds(case, options)])
                except (RuntimeError, ValueError, KeyError) as error:
                    failures.append(f"{group}: {case.name}: {error}")
            elif not options.ns2_only:
                failures.append(f"{group}: {case.name}: {reason}")
            rows.append((case, theirs, ours))
        yield group, rows


def ns2_cost(case):
    """CPU seconds, median of 3, and MiB, of the whole program.

    Freezing routes is our need, not ns-2's: what it takes until the flows start is left out, but for
    what ns-2 takes to start at all.
    """
    def median(runs):
        return statistics.median(run.cpu_s for run in runs)

    runs = [ns2_side.run(case, seed)[1] for seed in (1, 2, 3)]
    cpu_s, peak_mib = median(runs), max(run.peak_mib for run in runs)
    if case.routing == "frozen":
        settling = dataclasses.replace(case, duration=0.001)
        cpu_s -= median([ns2_side.run(settling, seed)[1] for seed in (1, 2, 3)])
        cpu_s += median([ns2_side.start() for _ in range(3)])
    return cpu_s, peak_mib


def timed(options):
    """Cases of the table of CPU time: of the groups named beside it, else all."""
    groups = set(options.only) & set(GROUPS)
    return [case for case in SPEED if not groups or case.group in groups]


def speed(options, failures):
    rows = []
    for case in timed(options):
        print(f"speed: {case.group}: {case.name}", file=sys.stderr, flush=True)
        theirs, ours = ns2_cost(case), None
        reason = "--ns2-only" if options.ns2_only else hopline_side.why_not(case)
        if reason is None:
            try:
                runs = [hopline_side.run(case, seed)[1] for seed in (1, 2, 3)]
                ours = (statistics.median(run.cpu_s for run in runs),
                        max(run.peak_mib for run in runs))
            except (RuntimeError, ValueError, KeyError) as error:
                failures.append(f"speed: {case.group}: {case.name}: {error}")
        elif not options.ns2_only:
            failures.append(f"speed: {case.group}: {case.name}: {reason}")
        rows.append((case, theirs, ours))
    return rows


def main(words):
    options = parse(words)
    if not options.stored:
        ns2_side.ensure_installed()
    failures, parts = [], [report.heading(options.seeds)]
    if not options.stored:
        failures += ns2_side.contradictions()
    for group, rows in compare(options, failures):
        by_flow = any(case.flow_target_pct for case, _, _ in rows)
        parts.append((flows if by_flow else report).table(group, rows) + report.misses(rows))
        print(parts[-1], flush=True)
    if not options.ns2_only and (not options.only or "chain-ns3" in options.only):
        parts.append(ns3.table(options.seeds))
        print(parts[-1], flush=True)
    if not options.quick and (not options.only or "speed" in options.only):
        parts.append(report.speed_table(speed(options, failures)))
        print(parts[-1], flush=True)
    if not (options.quick or options.ns2_only) and (not options.only or "scale" in options.only):
        parts.append(scale.table())
        print(parts[-1], flush=True)
    if options.write:
        options.write.write_text("\n".join(parts), encoding="utf-8")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
