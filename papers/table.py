#!/usr/bin/env python3
"""Put what `hopline reproduce` measured into the tables of a paper's verdicts.

    hopline reproduce tpa -o results/tpa --json > tpa.json
    python3 papers/table.py papers/tpa/verdicts.md tpa.json...

A row is `| claim | statement | claimed | measured on | measured | verdict |`, or, in a table with the header
`| claim | claimed | VALUE | VALUE |`, what becomes of the claim at these values of the register's `along`. Rows of the
claims in the files are made anew, in their places; claims that have no row yet are printed, to be put where they belong.
A row `| counted as | … |` under the header `| counted | agree | direction only | cannot be judged | differ | of |` has how
many there are: the paper's exact values, its signs and ranges, other readings, and what is ours.
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
COUNTED = {
    "exact values of the paper": "values",
    "signs and ranges of the paper": "bounds",
    "the paper's on what its system is compared with": "baselines",
    "values that parameters were fitted to": "fitted",
    "the same, read otherwise": "readings",
    "not the paper's": "ours",
}
SYMBOLS = {"agrees": "✓", "direction-only": "↗", "differs": "✗", "cannot-be-judged": "?", "not-tested": "∅"}


def variant(label):
    """The first word of a label: the name of the variant; what follows are its settings."""
    words = label.split()
    named = [word for word in words if "=" not in word]
    place = re.search(r" in (\S+)$", label)
    return " ".join(named[: -2 if place else None]) + (f" in {place[1]}" if place else "")


def for_people(unit):
    return {"bit/s": (1e-3, " kb/s"), "1": (1, ""), "%": (1, " %")}.get(unit, (1, f" {unit}"))


def number(measured):
    mean, unit = measured["mean"], measured["unit"]
    low, high = measured["interval"] or (mean, mean)
    # An interval without an end: a ratio whose denominator may be next to nothing.
    low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
    factor, unit = for_people(unit)
    mean, low, high = mean * factor, low * factor, high * factor
    half = (high - low) / 2
    digits = 3 if measured["unit"] == "1" else 1 if abs(mean) >= 20 or half >= 2 else 2
    sign = "+" if measured["against"] else ""
    # A skewed interval has no half-width.
    spread = f" ± {half:.{digits}f}"
    if math.isinf(half) or abs((high - mean) - (mean - low)) > 0.1 * half:
        spread = f" [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
    return f"{mean:{sign}.{digits}f}{spread}{unit}".replace("-", "−").replace("inf", "∞")


def row(claim):
    measured = claim["measured"]
    verdict = VERDICTS[claim["verdict"]]
    if claim["why"] and "too wide" not in claim["why"]:
        verdict += f": {claim['why']}"
    where, value = "–", "–"
    if measured:
        where = " / ".join(variant(label) for label in (measured["point"], measured["against"]) if label)
        value = number(measured)
    cells = [claim["claim"], claim["statement"], claim["claimed"], where, value, verdict]
    return "| " + " | ".join(cells).replace("*", "\\*") + " |"


def row_along(claim, values):
    """What becomes of a claim at each of the values of a header."""
    at = {str(along["value"]): along for along in claim["along"]}

    def cell(value):
        along = at.get(value)
        if not along or along["mean"] is None:
            return "–"
        mean = along["mean"] * for_people(claim["measured"]["unit"])[0]
        digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 20 else 3 if claim["measured"]["unit"] == "1" else 2
        sign = "+" if claim["measured"]["against"] else ""
        return f"{mean:{sign}.{digits}f} {SYMBOLS[along['verdict']]}".replace("-", "−")

    return "| " + " | ".join([claim["claim"], claim["claimed"], *map(cell, values)]) + " |"


def row_of_counts(claims, values):
    """How many claims agree at each of the values."""

    def cell(value):
        there = [a for claim in claims for a in claim["along"] if str(a["value"]) == value]
        return f"{sum(a['verdict'] == 'agrees' for a in there)} of {len(there)}"

    return "| agree | | " + " | ".join(map(cell, values)) + " |"


def counts(claims):
    """How many have each verdict, by heading: claims of one sentence count once, with the worst of their verdicts."""
    sentences = {}
    for claim in claims:
        if claim["counted"]:
            key = claim["counted"], claim["sentence"] or claim["claim"]
            sentences[key] = max(sentences.get(key, 0), WORSE.index(claim["verdict"]))
    headings = {heading: [0] * len(WORSE) for heading in COUNTED.values()}
    for (heading, _), verdict in sentences.items():
        headings[heading][verdict] += 1
    return headings


def main(readme, *files):
    claims = {}
    for file in files:
        for claim in json.loads(Path(file).read_text(encoding="utf-8"))["claims"]:
            claims[claim["claim"]] = claim
    lines = Path(readme).read_text(encoding="utf-8").splitlines()
    seen, counted, values = set(), counts(claims.values()), None
    for at, line in enumerate(lines):
        match = re.match(r"\| (\S+) \|", line)
        heading = COUNTED.get(line.strip("|").split("|")[0].strip())
        if match and match[1] == "claim":
            header = [cell.strip() for cell in line.strip("|").split("|")]
            values = header[2:] if header[1:2] == ["claimed"] else None
        elif heading:
            cells = [*counted[heading], sum(counted[heading])]
            lines[at] = "|".join(line.split("|")[:2]) + "| " + " | ".join(map(str, cells)) + " |"
        elif match and match[1] == "agree" and values:
            lines[at] = row_of_counts(claims.values(), values)
        elif match and match[1] in claims and values:
            lines[at] = row_along(claims[match[1]], values)
        elif match and match[1] in claims:
            seen.add(match[1])
            lines[at] = row(claims[match[1]])
    Path(readme).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, claim in claims.items():
        if name not in seen:
            print(row(claim))
    for name, heading in COUNTED.items():
        print(f"{name}: {counted[heading][0]} of {sum(counted[heading])} agree", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
