"""Map of the network."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from hopline.plot import _style
from hopline.plot._taken import literally, not_drawn
from hopline.results import Comparison, Run
from hopline.scenario import Scenario

_NAMED_NODES, _NAMED_FLOWS = 40, 8
"""Most nodes and flows that are drawn with their names."""
_SMALL = 12
"""Most nodes for which the map leaves room for ranges."""
_MOST_FLOWS = 200
_BEND = 0.2
"""Bend of arrows, so that they do not hide nodes in between."""
_SHARES = (0.5, 0.62, 0.38, 0.74, 0.26, 0.86, 0.14)
"""Positions of the name on an arrow, the best first."""
_SIDES = ((0, -1), (0, 1), (1, 0), (-1, 0))
"""Positions of the name beside a node, the best first: below, above, right, left."""
_REACH, _SENSE, _WIRE, _ROUTE, _FLOW, _NODE = "#0072b2", "#56b4e9", "#7f7f7f", "#bfd9ea", "#d55e00", "#262626"


def map(
    result: object,
    ax: Axes | None = None,
    *,
    time_s: float = 0.0,
    ranges: bool = True,
    names: bool | None = None,
    size: str = "ieee-column",
) -> Axes:
    """Map of nodes, wired links, flows and radio ranges as in the report, in metres.

    Wide lines are static routes, arrows flows, dashed lines wires, thin grey lines the paths of moving nodes. The circles
    around the source of the first flow are its transmission range and its carrier-sense range.

    Args:
        result: a comparison (the network of run 1 of the first variant is drawn), a run, or a scenario.
        ax: axes to draw on; by default those of a new figure.
        time_s: virtual time of the shown positions.
        ranges: draw the circles.
        names: draw names of nodes; by default for up to 40 nodes.
        size: one of :data:`SIZES`, for a new figure.
    """
    network = _network(result)
    nodes = [_at(node["path"], time_s) for node in network["nodes"]]
    if not nodes:
        raise ValueError("the network has no nodes")
    if not 0 <= time_s <= network["duration_s"]:
        raise ValueError(f"time_s is {time_s:g}, and the run goes from 0 to {network['duration_s']:g} s")
    box = _box(network, nodes, ranges)
    width_in = _style.SIZES.get(size, 3.5)
    aspect = (box[3] - box[2]) / (box[1] - box[0])
    by = 2.25 if size == "slide" else 1.0
    axes = _style.on(ax, size, min(max((width_in - 0.5 * by) * aspect, 0.6 * by), 0.9 * width_in) + 0.4 * by)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(box[0], box[1])
    axes.set_ylim(box[2], box[3])
    if ranges:
        _ranges(axes, network, nodes)
    _paths(axes, network)
    _wires(axes, network, nodes)
    named = len(nodes) <= _NAMED_NODES if names is None else names
    taken = _Places((box[1] - box[0]) / 72 / (_style.width_in(axes) - 0.5) / _style.scale(axes), _style.small(axes))
    _nodes(axes, network, nodes)
    for place in nodes:
        taken.take(place, "o")
    if named:
        _names(axes, [node["name"] for node in network["nodes"]], nodes, taken)
    _flows(axes, network["flows"][:_MOST_FLOWS], nodes, taken)
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.locator_params(nbins=6)
    return axes


def _network(result: object) -> dict[str, Any]:
    network: dict[str, Any]
    if isinstance(result, Comparison | Run):
        network = json.loads(result._core.map)
    elif isinstance(result, Scenario):
        network = json.loads(result._core.map(1))
    else:
        raise not_drawn(result, "hl.plot.map")
    return network


def _at(path: list[dict[str, float]], time_s: float) -> tuple[float, float]:
    """Returns the position of a node, which moves in straight lines between the corners of its path."""
    after = bisect_right([corner["at_s"] for corner in path], time_s)
    before = path[max(after - 1, 0)]
    if after == 0 or after == len(path):
        return before["x_m"], before["y_m"]
    then = path[after]
    share = (time_s - before["at_s"]) / (then["at_s"] - before["at_s"])
    x, y = (before[axis] + share * (then[axis] - before[axis]) for axis in ("x_m", "y_m"))
    return x, y


def _box(network: dict[str, Any], nodes: list[tuple[float, float]], ranges: bool) -> tuple[float, float, float, float]:
    """Returns the shown area: left, right, bottom, top, in metres. Small networks leave room for their ranges."""
    x = [corner["x_m"] for node in network["nodes"] for corner in node["path"]]
    y = [corner["y_m"] for node in network["nodes"] for corner in node["path"]]
    tops = [_on_arrow(nodes[flow["src"]], nodes[flow["dst"]], 0.5) for flow in network["flows"][:_MOST_FLOWS]]
    x, y = [*x, *(top[0] for top in tops)], [*y, *(top[1] for top in tops)]
    extent = max(max(x) - min(x), max(y) - min(y))
    reach = (network["transmission_m"] or 0.0) if ranges else 0.0
    room = 0.45 if len(network["nodes"]) <= _SMALL else 0.1
    pad = max(min(room * extent, 1.05 * reach), 0.1 * extent, 1.0)
    left, right, bottom, top = min(x) - pad, max(x) + pad, min(y) - pad, max(y) + pad
    # A line of nodes leaves room for its arrows and names.
    flat = max(0.36 * (right - left) - (top - bottom), 0.0) / 2
    narrow = max(0.36 * (top - bottom) - (right - left), 0.0) / 2
    return left - narrow, right + narrow, bottom - flat, top + flat


def _ranges(axes: Axes, network: dict[str, Any], nodes: list[tuple[float, float]]) -> None:
    scale = _style.scale(axes)
    centre = nodes[_first_radio(network)]
    for key, colour, dashes in (("carrier_sense_m", _SENSE, (0, (1, 1.5))), ("transmission_m", _REACH, "-")):
        if network[key] is not None:
            circle = Circle(centre, network[key], facecolor=colour, alpha=0.07, linewidth=0, zorder=0.5)
            edge = Circle(
                centre, network[key], fill=False, edgecolor=colour, linewidth=0.8 * scale, linestyle=dashes, zorder=0.6
            )
            for patch in (circle, edge):
                axes.add_patch(patch)
                patch.set_in_layout(False)


def _first_radio(network: dict[str, Any]) -> int:
    """Returns the radio node at an end of the first flow; else the first radio node."""
    ends = [flow[end] for flow in network["flows"] for end in ("src", "dst")]
    candidates = [*ends, *range(len(network["nodes"]))]
    return next((node for node in candidates if network["nodes"][node]["interface"] == "wireless"), 0)


def _paths(axes: Axes, network: dict[str, Any]) -> None:
    for node in network["nodes"]:
        if len(node["path"]) > 1:
            x, y = ([corner[axis] for corner in node["path"]] for axis in ("x_m", "y_m"))
            axes.plot(x, y, color="#c8c8c8", linewidth=0.5 * _style.scale(axes), zorder=0.8)


def _wires(axes: Axes, network: dict[str, Any], nodes: list[tuple[float, float]]) -> None:
    for link in network["links"]:
        x, y = zip(nodes[link["a"]], nodes[link["b"]], strict=True)
        axes.plot(x, y, color=_WIRE, linewidth=1.2 * _style.scale(axes), linestyle=(0, (4, 1.5)), zorder=1.2)


def _flows(axes: Axes, flows: list[dict[str, Any]], nodes: list[tuple[float, float]], taken: _Places) -> None:
    scale = _style.scale(axes)
    for flow in flows:
        if flow["route"]:
            x, y = zip(*(nodes[node] for node in flow["route"]), strict=True)
            axes.plot(
                x, y, color=_ROUTE, linewidth=4 * scale, solid_capstyle="round", solid_joinstyle="round", zorder=1
            )
    for (src, dst), names in _between(flows).items():
        arrow = FancyArrowPatch(
            nodes[src], nodes[dst], arrowstyle="-|>", connectionstyle=f"arc3,rad={-_BEND}", mutation_scale=6 * scale,
            shrinkA=3 * scale, shrinkB=3 * scale, linewidth=1.0 * scale, color=_FLOW, zorder=2,
        )  # fmt: skip
        axes.add_patch(arrow)
        if len(flows) <= _NAMED_FLOWS:
            text = _short(", ".join(names), 24)
            on_arrow = [_on_arrow(nodes[src], nodes[dst], share) for share in _SHARES]
            place = next((place for place in on_arrow if taken.free(place, text)), on_arrow[0])
            taken.take(place, text)
            axes.annotate(
                text, place, ha="center", va="center", fontsize=_style.small(axes), color=_FLOW, zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6 * scale},
            ).set_in_layout(False)  # fmt: skip


def _between(flows: list[dict[str, Any]]) -> dict[tuple[int, int], list[str]]:
    """Returns the names of the flows, by their pairs of nodes."""
    all: dict[tuple[int, int], list[str]] = {}
    for flow in flows:
        all.setdefault((flow["src"], flow["dst"]), []).append(flow["name"])
    return all


def _on_arrow(begin: tuple[float, float], end: tuple[float, float], share: float) -> tuple[float, float]:
    """Returns a point of the arrow, which is a parabola bent to the left."""
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    aside = 2 * share * (1 - share) * _BEND
    return begin[0] + share * dx - aside * dy, begin[1] + share * dy + aside * dx


def _nodes(axes: Axes, network: dict[str, Any], nodes: list[tuple[float, float]]) -> None:
    scale = _style.scale(axes)
    size = (4.5 if len(nodes) <= _NAMED_NODES else 2.5) * scale
    for kind, marker in (("wireless", "o"), ("wired", "s")):
        of_kind = [place for place, node in zip(nodes, network["nodes"], strict=True) if node["interface"] == kind]
        if of_kind:
            x, y = zip(*of_kind, strict=True)
            axes.plot(
                x, y, linestyle="none", marker=marker, markersize=size, color=_NODE, markeredgecolor="white",
                markeredgewidth=0.4 * scale, zorder=3, gid=kind,
            )  # fmt: skip


def _names(axes: Axes, names: list[str], nodes: list[tuple[float, float]], taken: _Places) -> None:
    """Draws the names of nodes: below them, or at another position with room."""
    for name, node in zip(names, nodes, strict=True):
        text = _short(name, 16)
        free = (side for side in _SIDES if taken.free(taken.beside(node, text, side), text))
        side = next(free, _SIDES[0])
        taken.take(taken.beside(node, text, side), text)
        offset = 4 * _style.scale(axes)
        axes.annotate(
            text, node, (side[0] * offset, side[1] * offset), textcoords="offset points", fontsize=_style.small(axes),
            ha=("right", "center", "left")[side[0] + 1], va=("top", "center", "bottom")[side[1] + 1], color=_NODE, zorder=4,
        ).set_in_layout(False)  # fmt: skip


def _short(name: str, characters: int) -> str:
    return literally(name if len(name) <= characters else f"{name[: characters - 1]}…")


class _Places:
    """Boxes of names and nodes drawn so far, in metres."""

    def __init__(self, metres_a_point: float, small_pt: float) -> None:
        self._character_m = 0.6 * small_pt * metres_a_point
        self._line_m = 1.2 * small_pt * metres_a_point
        self._taken: list[tuple[float, float, float, float]] = []

    def _box(self, place: tuple[float, float], text: str) -> tuple[float, float, float, float]:
        half = self._character_m * len(text) / 2
        return place[0] - half, place[0] + half, place[1] - self._line_m / 2, place[1] + self._line_m / 2

    def take(self, place: tuple[float, float], text: str) -> None:
        self._taken.append(self._box(place, text))

    def beside(self, node: tuple[float, float], text: str, side: tuple[int, int]) -> tuple[float, float]:
        """Returns the centre of `text` on a side of `node`."""
        aside_m = self._character_m * (len(text) / 2 + 1)
        return node[0] + side[0] * aside_m, node[1] + side[1] * 1.15 * self._line_m

    def free(self, place: tuple[float, float], text: str) -> bool:
        left, right, bottom, top = self._box(place, text)
        return not any(left < r and right > l and bottom < t and top > b for l, r, b, t in self._taken)
