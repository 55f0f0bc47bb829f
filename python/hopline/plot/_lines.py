"""Line charts: distributions of times, and quantities over time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from hopline.plot import _legend, _style
from hopline.plot._taken import Labels, chosen, compared, literally, not_drawn, short_names
from hopline.results import Comparison, Run

PERCENT = (
    0.0, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0,
    80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 99.0, 99.9, 100.0,
)  # fmt: skip
"""Percentages of the quantiles in results: `crates/lab/src/record/distribution.rs`."""
_SHOWN_PERCENT = 99.0
"""Percentage of the values of the slowest line at which the axis ends: the last ones may be far off."""


@dataclass(frozen=True)
class _Quantity:
    column: str
    words: str
    unit: str
    factor: float


_QUANTITIES = {
    "goodput": _Quantity("goodput_bps", "goodput", "kb/s", 1e-3),
    "window": _Quantity("cwnd_bytes", "congestion window", "kB", 1e-3),
    "rtt": _Quantity("srtt_s", "smoothed RTT", "ms", 1e3),
    "queue": _Quantity("queue_packets", "queue", "packets", 1.0),
    "delay": _Quantity("delay_mean_s", "one-way delay", "ms", 1e3),
}
_TIMES = {"delay": "one-way delay", "response": "response time"}


def cdf(
    result: object,
    what: str = "delay",
    ax: Axes | None = None,
    *,
    of: str | None = None,
    variants: Sequence[str] | None = None,
    labels: Labels = None,
    size: str = "ieee-column",
) -> Axes:
    """Distribution function of packet delays or response times: a line for each variant, or for a run.

    The data are the quantiles of run 1 of each variant. The axis ends at 99 % of the slowest line.

    Args:
        result: a comparison or a run.
        what: ``"delay"`` or ``"response"``.
        ax: axes to draw on; by default those of a new figure.
        of: a flow, a kind or a class; by default that of the selected metric, or all flows.
        variants: names of the variants; by default all.
        labels: labels of the variants, by their names or in their order; by default as in the report.
        size: one of :data:`SIZES`, for a new figure.

    Raises:
        ValueError: there is no such distribution; the message lists the existing ones.
    """
    if what not in _TIMES:
        raise ValueError(f"there is no distribution of {what!r}; there are those of 'delay' and 'response'")
    lines = _distributed(result, what, of, variants, labels)
    ends = [1e3 * quantiles[PERCENT.index(_SHOWN_PERCENT)] for _, _, quantiles in lines]
    axes = _on(ax, [name for _, name, _ in lines], size)
    for number, name, quantiles in lines:
        _line(axes, number, name, [1e3 * value for value in quantiles], PERCENT, every=6)
    axes.set_xlim(0, max(ends) or 1)
    axes.set_ylim(0, 101)
    whose = f" of {literally(of)}" if of else ""
    axes.set_xlabel(f"{_TIMES[what]}{whose} (ms)")
    axes.set_ylabel("came within (%)")
    axes.grid()
    _legend.above(axes)
    return axes


def series(
    result: object,
    what: str = "goodput",
    ax: Axes | None = None,
    *,
    flow: str | None = None,
    variants: Sequence[str] | None = None,
    labels: Labels = None,
    size: str = "ieee-column",
) -> Axes:
    """Goodput, window, RTT, queue or delay over time, one value for each second: ``result.series``.

    For a comparison, a line for each variant, of one flow in the first stored run; for a run, a line for each flow.

    Args:
        result: a comparison or a run.
        what: ``"goodput"``, ``"window"`` (of congestion), ``"rtt"`` (smoothed), ``"queue"`` (at the source) or ``"delay"``
            (one way).
        ax: axes to draw on; by default those of a new figure.
        flow: name of the flow; by default the first of a comparison, and all of a run.
        variants: names of the variants; by default all.
        labels: labels of the variants, by their names or in their order; by default as in the report.
        size: one of :data:`SIZES`, for a new figure.

    Raises:
        ValueError: no series were kept, or there is no such flow or quantity.
    """
    if what not in _QUANTITIES:
        raise ValueError(f"there is no series of {what!r}; there are {', '.join(map(repr, _QUANTITIES))}")
    quantity = _QUANTITIES[what]
    lines, whose = _kept(result, quantity, flow, variants, labels)
    axes = _on(ax, [name for _, name, _, _ in lines], size)
    for number, name, times, values in lines:
        _line(axes, number, name, times, values, every=max(1, len(times) // 6))
    axes.set_xlim(0, max(times[-1] for _, _, times, _ in lines))
    highest = max(value for _, _, _, values in lines for value in values if math.isfinite(value))
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"{quantity.words}{whose} ({quantity.unit})")
    axes.grid()
    _legend.above(axes)
    return axes


def _on(ax: Axes | None, names: list[str], size: str) -> Axes:
    if ax is not None or size not in _style.SIZES:
        return _style.on(ax, size)
    plain = min(_style.SIZES[size], 5.5) * 0.6
    return _style.on(None, size, plain + (_legend.height_in(names, size) if len(names) > 1 else 0))


def _line(axes: Axes, number: int, name: str, x: Sequence[float], y: Sequence[float], every: int) -> None:
    look, scale = _style.look(number), _style.scale(axes)
    axes.plot(
        x, y, color=look.colour, linestyle=look.dashes, linewidth=1.1 * scale, label=name, clip_on=True,
        # A few markers at different places of each line distinguish lines in grey.
        marker=look.marker, markersize=3.2 * scale, markevery=(number % every, every),
    )  # fmt: skip


def _distributed(
    result: object, what: str, of: str | None, variants: Sequence[str] | None, labels: Labels
) -> list[tuple[int, str, list[float]]]:
    asked: dict[str, Any]
    if isinstance(result, Run):
        all, names, asked = [["this run", json.loads(result._core.distributions)]], ["run"], {"of": "", "level": "run"}
    else:
        comparison = _comparison(result, "hl.plot.cdf")
        all, names = json.loads(comparison._core.distributions), short_names(comparison, labels)
        asked = comparison.question
    lines = []
    for number in chosen([name for name, _ in all], variants):
        there = [one for one in all[number][1] if one["times"] == what]
        if (one := _whose(there, of, asked)) is not None:
            lines.append((number, names[number], one["quantiles_s"]))
    if not lines:
        found = sorted({f"{one['times']} of {one['of'] or 'all flows'}" for _, each in all for one in each})
        kept = (
            f"there are {', '.join(found)}" if found else "none were kept: all of these runs failed, or nothing arrived"
        )
        raise ValueError(f"there is no distribution of {what} of {of or asked['of'] or 'all flows'}; {kept}")
    return lines


def _whose(there: list[dict[str, Any]], of: str | None, asked: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the distribution of a flow, kind or class; a single flow counts as all flows."""
    if of is not None:
        return next((one for one in there if one["of"] == of), None)
    is_flow = asked["level"] == "flow"
    exact = (one for one in there if one["of"] == asked["of"] and one["of_flow"] == is_flow)
    return next(exact, next((one for one in there if not one["of"]), None))


def _kept(
    result: object, quantity: _Quantity, flow: str | None, variants: Sequence[str] | None, labels: Labels
) -> tuple[list[tuple[int, str, list[float], list[float]]], str]:
    """Returns the lines, numbered by variant or flow, and a description of their flow."""
    if isinstance(result, Run):
        rows = result.series.to_dict()
        flows = list(dict.fromkeys(rows["flow"]))
        wanted_flows = [(number, name) for number, name in enumerate(flows) if flow is None or name == flow]
        lines = [(number, literally(name), *_values(rows, quantity, flow=name)) for number, name in wanted_flows]
        whose = f" of {lines[0][1]}" if len(lines) == 1 and len(flows) > 1 else ""
    else:
        comparison = _comparison(result, "hl.plot.series")
        rows, names = comparison.series.to_dict(), short_names(comparison, labels)
        flows = list(dict.fromkeys(rows["flow"]))
        wanted = flow if flow is not None else next(iter(flows), "")
        run = min(rows["run"], default=0)
        points = chosen(comparison.variants, variants)
        found = ((point, names[point], *_values(rows, quantity, flow=wanted, point=point, run=run)) for point in points)
        lines = [line for line in found if line[2]]
        whose = f" of {literally(wanted)}" if len(flows) > 1 else ""
    if flow is not None and flows and flow not in flows:
        raise ValueError(f"there is no flow {flow!r}; there are {', '.join(flows)}")
    if not lines:
        raise ValueError(_why_no_series(result))
    if not any(math.isfinite(value) for _, _, _, values in lines for value in values):
        raise ValueError(
            f"no flow here has a {quantity.words}: only transports with a window have one, and only while they send"
        )
    return lines, whose


def _values(rows: dict[str, list[Any]], quantity: _Quantity, **where: object) -> tuple[list[float], list[float]]:
    which = [n for n in range(len(rows["time_s"])) if all(rows[key][n] == value for key, value in where.items())]
    value = (rows[quantity.column][n] for n in which)
    return [rows["time_s"][n] for n in which], [math.nan if x is None else quantity.factor * x for x in value]


def _why_no_series(result: object) -> str:
    if isinstance(result, Comparison) and not len(result.runs):
        return "single runs of a reproduced figure are not kept, nor are their series: hl.reproduce(…, output=…) and hl.report have them"
    return 'these runs kept no series: a plan says series = "first-run" or "all" for that, and runs shorter than a second have none'


def _comparison(result: object, what_for: str) -> Comparison:
    if isinstance(result, Comparison):
        return compared(result, what_for)
    raise not_drawn(result, what_for)
