"""Charts with a row for each variant: mean, interval, single runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from hopline.plot import _style
from hopline.plot._taken import Labels, Variant, chosen, taken

_ROW_IN, _FOOT_IN = 0.2, 0.42
"""Height of a row, and of the axis below, inches."""
_HIGHEST_IN = 9.0
"""Largest height of a figure: that of a column of text, inches."""
_MOST_ROWS = 60
_CHARACTERS_AN_INCH, _MOST_CHARACTERS = 8, 48
"""Length of names, by the width of the figure: they take less than half of it."""


@dataclass(frozen=True)
class Row:
    """Row of a variant."""

    variant: Variant
    mean: float
    interval: tuple[float, float] | None
    singles: list[float]


def gain(
    result: object,
    ax: Axes | None = None,
    *,
    metric: str | None = None,
    variants: Sequence[str] | None = None,
    labels: Labels = None,
    singles: bool = True,
    size: str = "ieee-column",
) -> Axes:
    """Gain of each variant over the baseline, in percent of the baseline's mean, with its interval.

    The numbers are ``gain_pct``, ``gain_low_pct`` and ``gain_high_pct`` of ``result.estimates``: computed within pairs of
    runs, and corrected for the number of variants. An interval excludes zero exactly when the difference is measurable.

    Args:
        result: result of :func:`hopline.compare`, :func:`hopline.sweep` or :func:`hopline.report`.
        ax: axes to draw on; by default those of a new figure.
        metric: such as ``"delay_p95"``; by default the selected metric of the result.
        variants: names of the variants; by default all. Intervals stay those of the whole comparison.
        labels: labels of the variants, by their names or in their order; by default as in the report.
        singles: draw single pairs of runs, faintly.
        size: one of :data:`SIZES`, for a new figure.

    Raises:
        ValueError: nothing was compared, or no gain can be given in percent.
    """
    all = taken(result, "hl.plot.gain", metric, labels)
    others = [variant for variant in all.variants if variant.baseline != variant.point]
    if not others:
        raise ValueError(
            f"there is only {all.variants[0].full}, and nothing that it could gain over: compare it with other variants, "
            "or draw hl.plot.means"
        )
    shown = set(chosen([variant.full for variant in all.variants], variants))
    others = [variant for variant in others if variant.point in shown]
    if not others:
        raise ValueError(f"of {', '.join(variants or ())} none has a baseline other than itself")
    rows = [row for variant in others if (row := _gain_row(variant, all.variants[variant.baseline], singles))]
    if not rows:
        raise ValueError(
            f"no variant has a gain in {all.words}: it is not in percent of a baseline of 0, nor without runs that both have it; "
            "draw hl.plot.means"
        )
    baselines = {variant.baseline for variant in others}
    over = all.variants[baselines.pop()].label if len(baselines) == 1 else "each baseline"
    kind = "gain in" if all.better == "more" else "change of"
    axes = _rows(ax, rows, size)
    axes.axvline(0, color="black", linewidth=0.6 * _style.scale(axes), zorder=0.5)
    preposition = "over" if all.better == "more" else "against"
    _name_axis(axes, f"{kind} {all.words} {preposition} {over} (%)")
    return axes


def means(
    result: object,
    ax: Axes | None = None,
    *,
    metric: str | None = None,
    variants: Sequence[str] | None = None,
    labels: Labels = None,
    singles: bool = True,
    size: str = "ieee-column",
) -> Axes:
    """Mean of each variant over its runs, with its interval: ``mean``, ``low`` and ``high`` of ``result.estimates``.

    Args:
        result, ax, metric, variants, labels, size: as for :func:`gain`.
        singles: draw single runs, faintly.

    Raises:
        ValueError: no run has the metric.
    """
    all = taken(result, "hl.plot.means", metric, labels)
    shown = [all.variants[number] for number in chosen([variant.full for variant in all.variants], variants)]
    rows = [row for variant in shown if (row := _mean_row(variant, all.factor, singles))]
    if not rows:
        raise ValueError(f"no run has {all.words}; result.metrics has what they have")
    axes = _rows(ax, rows, size)
    _name_axis(axes, all.with_unit)
    return axes


def _gain_row(variant: Variant, baseline: Variant, singles: bool) -> Row | None:
    row = variant.row
    if row is None or row["gain_pct"] is None:
        return None
    pairs = [
        (own, theirs)
        for own, theirs in zip(variant.values, baseline.values)
        if math.isfinite(own) and math.isfinite(theirs)
    ]
    mean = sum(theirs for _, theirs in pairs) / len(pairs)
    each = [100 * (own - theirs) / mean for own, theirs in pairs] if singles else []
    return Row(variant, row["gain_pct"], _interval(row["gain_low_pct"], row["gain_high_pct"]), each)


def _mean_row(variant: Variant, factor: float, singles: bool) -> Row | None:
    row = variant.row
    if row is None:
        return None
    each = [factor * value for value in variant.values if math.isfinite(value)] if singles else []
    return Row(variant, factor * row["mean"], _interval(row["low"], row["high"], factor), each)


def _interval(low: float | None, high: float | None, factor: float = 1.0) -> tuple[float, float] | None:
    # A single run has no interval. An end is infinite if the baseline is not distinguishable from zero.
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return factor * low, factor * high


def _rows(ax: Axes | None, rows: list[Row], size: str) -> Axes:
    if len(rows) > _MOST_ROWS:
        raise ValueError(
            f"there are {len(rows)} variants, and a figure has room for {_MOST_ROWS}: variants=[…] chooses some"
        )
    by = 2.25 if size == "slide" else 1.0
    width_in = _style.width_in(ax) if ax else _style.SIZES.get(size, 3.5) / by
    characters = min(int(_CHARACTERS_AN_INCH * width_in), _MOST_CHARACTERS)
    lines = 2 if len(rows) <= _MOST_ROWS / 2 else 1
    labels = [_wrapped(row.variant.label, characters, lines) for row in rows]
    row_in = _ROW_IN * (1.3 if any("\n" in label for label in labels) else 1.0)
    axes = _style.on(ax, size, by * min(_FOOT_IN + row_in * len(rows) + 0.06, _HIGHEST_IN))
    scale = _style.scale(axes)
    for place, row in enumerate(rows):
        look = _style.look(row.variant.point)
        # Spread over several heights, because equal runs would hide each other.
        heights = [place + ((7 * number) % 11 - 5) * 0.05 for number in range(len(row.singles))]
        axes.plot(
            row.singles, heights, linestyle="none", marker="o", markersize=2 * scale, markeredgewidth=0,
            color=look.colour, alpha=0.35, zorder=1.5, gid="singles",
        )  # fmt: skip
        low, high = row.interval or (row.mean, row.mean)
        axes.errorbar(
            [row.mean], [place], xerr=[[row.mean - low], [high - row.mean]], color=look.colour, marker=look.marker,
            markersize=4.5 * scale, markeredgecolor="white", markeredgewidth=0.4 * scale, elinewidth=1.2 * scale,
            capsize=2.2 * scale if row.interval else 0, capthick=1.2 * scale, zorder=2.5, label=row.variant.label,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    return axes


def _name_axis(axes: Axes, name: str) -> None:
    """Writes the name of the axis below the rows, aligned to the right if it is longer than the axis."""
    characters = int(_style.width_in(axes) / 0.066)
    axes.set_xlabel(_wrapped(name, characters, 3), loc="center" if len(name) < 0.55 * characters else "right")


def _wrapped(text: str, characters: int, lines: int = 2) -> str:
    """Returns `text` in at most `lines` lines; the middle of a longer one is left out."""
    split = textwrap.wrap(text, characters, break_long_words=False, break_on_hyphens=False) or [""]
    if len(split) > lines:
        split = textwrap.wrap(_cut(text, characters * lines - 4), characters)
    return "\n".join(_cut(line, characters) for line in split[:lines])


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    tail = (characters - 1) // 2
    return f"{text[: characters - 1 - tail]}…{text[-tail:]}"
