#!/usr/bin/env python3
"""Put what `hopline reproduce` measured into the pages on papers.

    hopline reproduce tpa --readings --json > tpa.json
    python3 papers/table.py papers/tpa/verdicts.md tpa.json
    python3 papers/table.py papers/README.md tpa.json nred.json door.json snoop.json dproxy.json

Rows are made anew, in their places, by the header of their table. Columns of claims are named in CELLS; a table with
another column is left alone. A table of counts has the header of COUNTS, a table of papers that of STANDING. A paragraph
that begins with "Of the paper's" becomes the headline of the first file. Claims that have no row are printed, to be put
where they belong, and so are rows that have no claim.

A claim in several files has the measurement of the first, and the readings of the last that has some: a second file may
come from `--quick --readings`.
"""

import json
import math
import re
import sys
from pathlib import Path

VERDICTS = {
    "agrees": "agrees",
    "direction-only": "direction only",
    "differs": "differs",
    "cannot-be-judged": "cannot be judged",
    "not-tested": "not tested",
}
# From the best to what weighs most in a sentence that says several things.
WORSE = ["agrees", "direction-only", "not-tested", "cannot-be-judged", "differs"]
COUNTS = ["counted", "agree", "direction only", "cannot be judged", "differ", "of"]
SHOWN = ["agrees", "direction-only", "cannot-be-judged", "differs"]
COUNTED = {
    "exact values of the paper": "values",
    "signs and ranges of the paper": "bounds",
    "the paper's on what its system is compared with": "baselines",
    "values that parameters were fitted to": "fitted",
    "the same, read otherwise": "readings",
    "not the paper's": "ours",
}
STANDING = {
    "claims": "claims",
    "tested": "tested",
    "hold in every reading": "in_all",
    "in some": "in_some",
    "in none": "in_none",
    "undecided": "undecided",
    "not testable": "not_testable",
    "readings": "readings",
}
HEADLINE = "Of the paper's "


def main(page, *files):
    papers = {Path(file).stem: json.loads(Path(file).read_text(encoding="utf-8")) for file in files}
    claims = merged(papers.values())
    lines = Path(page).read_text(encoding="utf-8").splitlines()
    known, header = set(), []
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            header = []
            if line.startswith(HEADLINE):
                lines[at] = next(iter(papers.values()))["headline"]
            continue
        cells = cells_of(line)
        if not header:
            header = cells
            continue
        new = row(header, cells, claims, papers)
        if new:
            lines[at] = "| " + " | ".join(new) + " |"
        if header[0] == "claim":
            known.add(cells[0])
    Path(page).write_text("\n".join(lines) + "\n", encoding="utf-8")
    report(claims, known)


def merged(papers):
    """Returns claims by name: measurements of the first file, readings of the last that has some."""
    claims = {}
    for paper in papers:
        for claim in paper["claims"]:
            first = claims.setdefault(claim["claim"], claim)
            first["readings"] = claim["readings"] or first["readings"]
    return claims


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def row(header, cells, claims, papers):
    """Returns the cells of a row as they are now; nothing where a row is not made of results."""
    name = cells[0]
    if header[0] == "claim" and name in claims and set(header) <= set(CELLS):
        return [cell_of(claims[name], column) for column in header]
    if header[1:] == COUNTS[1:] and name in COUNTED:
        counted = counts(claims.values())[COUNTED[name]]
        return [name, *map(str, [*(counted[verdict] for verdict in SHOWN), sum(counted.values())])]
    paper = re.search(r"\(.*?(\w+)(?:/README\.md)?\)", name)
    if paper and paper[1] in papers and set(header[1:]) <= set(STANDING):
        return [name, *(str(papers[paper[1]]["standing"][STANDING[column]]) for column in header[1:])]
    return None


def cell_of(claim, column):
    """Returns a cell of the row of a claim."""
    return CELLS[column](claim).replace("*", "\\*").replace("|", "\\|")


CELLS = {
    "claim": lambda claim: claim["claim"],
    "": lambda claim: claim["statement"],
    "statement": lambda claim: claim["statement"],
    "claimed": lambda claim: claim["claimed"] if claim["measured"] else "",
    "measured on": lambda claim: places(claim["measured"]),
    "measured": lambda claim: number(claim["measured"]),
    "mechanism off": lambda claim: switched_off(claim["mechanism_off"]),
    "readings": lambda claim: holds_in(claim),
    "verdict": lambda claim: verdict(claim),
}


def places(measured):
    if not measured:
        return ""
    return " / ".join(variant(label) for label in (measured["point"], measured["against"]) if label)


def variant(label):
    """The first words of a label: the name of the variant; what follows are its settings."""
    words = label.split()
    named = [word for word in words if "=" not in word]
    place = re.search(r" in (\S+)$", label)
    return " ".join(named[: -2 if place else None]) + (f" in {place[1]}" if place else "")


def number(measured):
    """Returns a mean with its interval and unit."""
    if not measured or measured["mean"] is None:
        return ""
    factor, unit = for_people(measured["unit"])
    if measured["unit"] == "s" and abs(measured["mean"]) < 1:
        factor, unit = 1e3, " ms"
    mean = measured["mean"] * factor
    # An interval without an end: a ratio with a denominator that may be close to zero.
    low, high = measured["interval"] or (measured["mean"], measured["mean"])
    low, high = (-math.inf if low is None else low * factor), (math.inf if high is None else high * factor)
    half = (high - low) / 2
    digits = 3 if measured["unit"] == "1" else 1 if abs(mean) >= 20 or half >= 2 else 2
    sign = "+" if measured["against"] else ""
    spread = f" ± {half:.{digits}f}"
    # A skewed interval has no half-width.
    if math.isinf(half) or abs((high - mean) - (mean - low)) > 0.1 * half:
        spread = f" [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
    return f"{mean:{sign}.{digits}f}{spread}{unit}".replace("-", "−").replace("inf", "∞")


def for_people(unit):
    return {"bit/s": (1e-3, " kb/s"), "1": (1, ""), "%": (1, " %")}.get(unit, (1, f" {unit}"))


def switched_off(mechanism):
    """Returns the outcome with the stand-in; nothing where there is none."""
    if not isinstance(mechanism, dict):
        return ""
    return ": ".join(filter(None, [number(mechanism["measured"]), VERDICTS[mechanism["verdict"]]]))


def holds_in(claim):
    if not claim["readings"]:
        return ""
    verdicts = [claim["verdict"], *(read["verdict"] for read in claim["readings"])]
    return f"{verdicts.count('agrees')} of {len(verdicts)}"


def verdict(claim):
    why = claim["why"] if claim["why"] and "too wide" not in claim["why"] else ""
    return ": ".join(filter(None, [VERDICTS[claim["verdict"]], why]))


def counts(claims):
    """Returns how many have each verdict, by heading: a sentence of several claims counts once, by the worst of them."""
    sentences = {}
    for claim in claims:
        if claim["counted"]:
            key = claim["counted"], claim["sentence"] or claim["claim"]
            sentences[key] = max(sentences.get(key, 0), WORSE.index(claim["verdict"]))
    headings = {heading: dict.fromkeys(SHOWN, 0) for heading in COUNTED.values()}
    for (heading, _), worst in sentences.items():
        if WORSE[worst] in SHOWN:
            headings[heading][WORSE[worst]] += 1
    return headings


def report(claims, known):
    """Prints rows that the page lacks, names those that have no claim, and counts."""
    for name, claim in claims.items():
        if known and name not in known:
            print("| " + " | ".join(cell_of(claim, column) for column in CELLS if column) + " |")
    for name in sorted(known - claims.keys()):
        if not set(name) <= set(":-"):
            print(f"no such claim: {name}", file=sys.stderr)
    for name, heading in COUNTED.items():
        counted = counts(claims.values())[heading]
        if sum(counted.values()):
            print(f"{name}: {counted['agrees']} of {sum(counted.values())} agree", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
