"""Metric over a varied key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from hopline.plot import _legend, _style
from hopline.plot._taken import Taken, Variant, literally, short, taken


@dataclass(order=True)
class _Point:
    x: float
    mean: float
    low: float
    high: float


def over(
    result: object,
    key: str,
    ax: Axes | None = None,
    *,
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    size: str = "ieee-column",
) -> Axes:
    """Means over the values of `key`, with a band of their intervals: a line for each combination of the other varied keys.

    Keys that vary together with `key`, as in ``[zip]`` of a plan, make no lines of their own. If not all values are numbers,
    they are placed in order, with bars instead of a band.

    Args:
        result: result of :func:`hopline.compare`, :func:`hopline.sweep` or :func:`hopline.report`.
        key: a varied key, such as ``"nodes.count"``.
        ax: axes to draw on; by default those of a new figure.
        metric: such as ``"delay_p95"``; by default the selected metric of the result.
        labels: labels of the lines, by their default names.
        size: one of :data:`SIZES`, for a new figure.

    Raises:
        ValueError: `key` was not varied; the message lists the varied keys.
    """
    all = taken(result, "hl.plot.over", metric)
    there = [variant for variant in all.variants if key in variant.keys]
    if not there:
        keys = ", ".join(dict.fromkeys(name for variant in all.variants for name in variant.keys))
        raise ValueError(f"{key!r} was not varied; {f'there are {keys}' if keys else 'nothing was'}")
    values = list(dict.fromkeys(variant.keys[key] for variant in there))
    numeric = {type(value) for value in values} <= {int, float}
    places = {value: float(value) if numeric else float(place) for place, value in enumerate(values)}
    lines = _lines(all, there, key, places)
    names = [(labels or {}).get(name, literally(name)) for name in lines]
    axes = ax
    if axes is None:
        width = _style.SIZES.get(size, 3.5)
        extra = _legend.height_in(names, size) if len(names) > 1 else 0.0
        axes = _style.on(None, size, min(width, 5.5) * 0.6 + extra)
    for number, (name, line) in enumerate(zip(names, lines.values(), strict=True)):
        _draw(axes, number, name, line, len(lines), banded=numeric)
    if not numeric:
        axes.set_xticks(range(len(values)), [str(value) for value in values])
        axes.margins(x=0.1)
    axes.set_xlabel(key)
    axes.set_ylabel(all.with_unit)
    axes.grid(axis="y")
    _legend.above(axes)
    return axes


def _lines(all: Taken, there: list[Variant], key: str, places: dict[Any, float]) -> dict[str, list[_Point]]:
    lines: dict[str, list[_Point]] = {}
    for variant, name in zip(there, _names(there, key), strict=True):
        if (row := variant.row) is not None:
            mean, low, high = (
                all.factor * row[end] if row[end] is not None else None for end in ("mean", "low", "high")
            )
            assert mean is not None, "an estimate has a mean"
            # A single run has no interval.
            point = _Point(
                places[variant.keys[key]], mean, mean if low is None else low, mean if high is None else high
            )
            lines.setdefault(name, []).append(point)
    if not lines:
        raise ValueError(f"no run has {all.words}; result.metrics has what they have")
    return {name: sorted(points) for name, points in lines.items()}


def _names(there: list[Variant], key: str) -> list[str]:
    """Returns the line of each variant: its name in the plan, else the values of the other varied keys."""
    rows = [variant.row["variant"] if variant.row else variant.full for variant in there]
    if len(set(rows)) < len(rows):
        return rows
    others = [name for name in dict.fromkeys(name for v in there for name in v.keys) if name != key]
    apart = [name for name in others if _differs_beside(there, key, name)]
    settings = [{name: v.keys[name] for name in apart if name in v.keys} for v in there]
    full = [" ".join(f"{name}={value}" for name, value in one.items()) for one in settings]
    unique = list(dict.fromkeys(full))
    shortened = short(unique, [settings[full.index(name)] for name in unique])
    return [shortened[unique.index(name)] for name in full]


def _differs_beside(there: list[Variant], key: str, other: str) -> bool:
    """Returns whether `other` has several values at the same value of `key`."""
    values: dict[Any, set[Any]] = {}
    for variant in there:
        values.setdefault(variant.keys[key], set()).add(variant.keys.get(other))
    return any(len(each) > 1 for each in values.values())


def _draw(axes: Axes, number: int, name: str, points: list[_Point], lines: int, *, banded: bool) -> None:
    look, scale = _style.look(number), _style.scale(axes)
    mean, low, high = ([getattr(point, end) for point in points] for end in ("mean", "low", "high"))
    markers: dict[str, Any] = {
        "marker": look.marker,
        "markersize": 4 * scale,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4 * scale,
    }
    if banded:
        x = [point.x for point in points]
        axes.fill_between(x, low, high, color=look.colour, alpha=0.2, linewidth=0)
        axes.plot(x, mean, color=look.colour, linestyle=look.dashes, linewidth=1.1 * scale, label=name, **markers)
        return
    aside = (number - (lines - 1) / 2) * min(0.12, 0.6 / lines)
    bars = [[m - end for m, end in zip(mean, low, strict=True)], [end - m for m, end in zip(mean, high, strict=True)]]
    axes.errorbar(
        [point.x + aside for point in points], mean, yerr=bars, color=look.colour, linestyle="none", label=name,
        elinewidth=1.2 * scale, capsize=2.2 * scale, capthick=1.2 * scale, **markers,
    )  # fmt: skip
