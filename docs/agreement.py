#!/usr/bin/env python3
"""Draw docs/agreement.svg from docs/validation-tables.md, the tables that `make versus-ns2` writes.

    python3 docs/agreement.py [TABLES [PICTURE]]

Left: goodput of one flow over a chain, ours as lines and ns-2's as rings. Right: how far every case of
every table is from ns-2, in per cent of ns-2's goodput, over the target of that table.
"""

import math
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 900, 396
TOP, BOTTOM = 74, 340
WINDOWS = {2: "a", 3: "b", 32: "c"}  # drawn on the left, with the class of their line
LIMIT = 20.0  # right panel, per cent to either side

STYLE = """
.card { fill: #ffffff } text { fill: #1f2328; font: 13px sans-serif }
.title { font-weight: bold; font-size: 14px } .small { fill: #59636e; font-size: 12px }
.grid { stroke: #d8dee4; fill: none } .axis { stroke: #59636e; fill: none }
.band { fill: #dcebdd } .dot { fill: #0550ae; fill-opacity: .65 } .miss { fill: #cf222e }
.line { stroke-width: 2; fill: none } .ring { stroke-width: 2; fill: none }
.line.a, .ring.a { stroke: #0550ae } .line.b, .ring.b { stroke: #bc4c00 }
.line.c, .ring.c { stroke: #6639ba }
@media (prefers-color-scheme: dark) {
.card { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9198a1 }
.grid { stroke: #2b323b } .axis { stroke: #9198a1 }
.band { fill: #17301f } .dot { fill: #6cb6ff } .miss { fill: #ff7b72 }
.line.a, .ring.a { stroke: #6cb6ff } .line.b, .ring.b { stroke: #f0883e }
.line.c, .ring.c { stroke: #c297ff }
}"""


def tables(text):
    """{name of the table: [row as {column: cell}]}."""
    found, head = {}, None
    for line in text.splitlines():
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head is None:
            head = cells
        elif not cells[0].startswith(":-") and "difference" in head:
            found.setdefault(head[0], []).append(dict(zip(["case", *head[1:]], cells)))
    return found


def per_cent(cell):
    return float(cell.split()[0]) if cell.endswith("%") else None


def series(rows, window):
    """[(hops, ns-2, ours)] of chains with this window and delayed ACKs."""
    pattern = re.compile(rf"(\d+) hops, window {window}, delack")
    hits = ((pattern.fullmatch(row["case"]), row) for row in rows)
    return [(int(hit[1]), float(row["ns-2 kb/s"]), float(row["ours kb/s"])) for hit, row in hits if hit]


def strips(found):
    """[(label, target or None, [difference])], a strip a group."""
    def of(label, table, keep=lambda case: True):
        rows = [row for row in found.get(table, []) if keep(row["case"]) and per_cent(row["difference"]) is not None]
        if rows:
            yield label, per_cent(rows[0]["target"]), [per_cent(row["difference"]) for row in rows]

    def two(case):
        return "window 2," in case

    def today(case):
        return case.endswith(", linux")

    yield from of("chain, window 2", "chain", two)
    yield from of("chain, windows 3, 8, 32", "chain", lambda case: not two(case))
    yield from of("chain over AODV", "chain-aodv")
    yield from of("two chains that cross", "cross")
    yield from of("two chains in parallel", "parallel")
    yield from of("grid, six flows", "grid")
    yield from of("three lanes of one hop", "three-parallel")
    yield from of("hidden and exposed pairs", "pairs")
    yield from of("the same and lanes, 350 m", "neighbours", lambda case: not case.endswith("papers/nred"))
    yield from of("wired link with bit errors", "wired", lambda case: not today(case))
    yield from of("the same, CUBIC as of today", "wired", today)
    yield from of("long wired link, CUBIC", "wired-long", lambda case: not today(case))
    yield from of("the same, CUBIC as of today", "wired-long", today)
    yield from of("lossy last hop, Snoop or not", "last-hop")
    yield from of("20 nodes walking, AODV", "walk")
    yield from of("20 nodes walking, DSR", "door")


def text(x, y, words, anchor="start", kind=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{words}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def goodput_panel(rows):
    left, right, low, high = 64, 352, 185, 1600

    def x(hops):
        return left + 12 + (hops - 1) / 7 * (right - left - 24)

    def y(rate):
        return BOTTOM - math.log(rate / low) / math.log(high / low) * (BOTTOM - TOP)

    yield text(20, 32, "Goodput of one TCP flow over a chain", kind="title")
    yield text(20, 52, "kb/s; lines hopline, rings ns-2.35", kind="small")
    for rate in (200, 300, 500, 800, 1400):
        yield line(left, y(rate), right, y(rate), "grid")
        yield text(left - 8, y(rate) + 4, rate, "end", "small")
    for hops in (1, 2, 3, 4, 6, 8):
        yield text(x(hops), BOTTOM + 18, hops, "middle", "small")
    yield text((left + right) / 2, BOTTOM + 38, "hops of 200 m, fixed routes, delayed ACKs", "middle", "small")
    yield line(left, BOTTOM, right, BOTTOM, "axis")
    highest = math.inf  # label so far: windows come in the order of their goodput
    for window, kind in WINDOWS.items():
        points = series(rows, window)
        path = "L".join(f"{x(hops):.1f} {y(ours):.1f}" for hops, _, ours in points)
        yield f'<path class="line {kind}" d="M{path}"/>'
        yield from (f'<circle class="ring {kind}" cx="{x(hops):.1f}" cy="{y(theirs):.1f}" r="5"/>'
                    for hops, theirs, _ in points)
        hops, _, ours = points[-1]
        highest = min(highest - 14, y(ours) + 4)
        yield text(x(hops) + 14, highest, f"window {window}", kind="small")


def difference_panel(groups):
    left, right = 650, 880

    def x(value):
        value = max(-LIMIT, min(LIMIT, value))
        return (left + right) / 2 + value / LIMIT * (right - left) / 2

    step = (BOTTOM - TOP) / len(groups)
    yield text(470, 32, "Difference from ns-2.35, every case", kind="title")
    yield text(470, 52, "% of ns-2's goodput, means of runs; green: the target", kind="small")
    for i, (label, target, differences) in enumerate(groups):
        y = TOP + (i + 0.5) * step
        if target is not None:
            yield (f'<rect class="band" x="{x(-target):.1f}" y="{y - step / 2 + 2:.1f}" '
                   f'width="{x(target) - x(-target):.1f}" height="{step - 4:.1f}"/>')
        yield text(left - 12, y + 4, f"{label} ({len(differences)})", "end", "small")
        for value in differences:
            kind = "miss" if target is not None and abs(value) > target else "dot"
            yield f'<circle class="{kind}" cx="{x(value):.1f}" cy="{y:.1f}" r="4.5"/>'
    for value in (-20, -10, 0, 10, 20):
        yield line(x(value), TOP, x(value), BOTTOM, "axis" if value == 0 else "grid")
        yield text(x(value), BOTTOM + 18, f"{value:+d}" if value else "0", "middle", "small")
    yield text((left + right) / 2, BOTTOM + 38, "% (a dot at the edge lies beyond it)", "middle", "small")


def draw(found):
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             'aria-label="Goodput of hopline and ns-2.35 over chains, and their difference in every case">',
             f"<style>{STYLE}</style>",
             f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
             *goodput_panel(found["chain"]), *difference_panel(list(strips(found))), "</svg>"]
    return "\n".join(parts) + "\n"


def main(words):
    source, target = [*map(Path, words), *(HERE / "validation-tables.md", HERE / "agreement.svg")[len(words):]]
    target.write_text(draw(tables(source.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
