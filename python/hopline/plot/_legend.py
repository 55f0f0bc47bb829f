"""Legends outside the plot."""

from __future__ import annotations

from matplotlib.axes import Axes

from hopline.plot import _style

_LINE_IN = 0.14
"""Height of a line of the legend, inches."""
_HANDLE_IN = 0.36
"""Width of an entry without its text, inches."""
_CHARACTER_IN = 0.058
"""Mean width of a character of 7 points, inches."""


def columns_of(names: list[str], width_in: float) -> int:
    """Returns the number of columns of entries."""
    widest = max((len(name) for name in names), default=0)
    return max(1, min(len(names), int(width_in / (_HANDLE_IN + _CHARACTER_IN * widest))))


def height_in(names: list[str], size: str) -> float:
    """Returns the height of a legend of `names` above a plot of `size`, inches."""
    by = 2.25 if size == "slide" else 1.0
    columns = columns_of(names, (_style.SIZES.get(size, 3.5) - 0.3) / by)
    return by * (_LINE_IN * -(-len(names) // columns) + 0.05)


def above(axes: Axes) -> None:
    """Draws the legend above the plot, in as many columns as there is room for."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) < 2:
        return
    axes.legend(
        handles,
        names,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns_of(names, _style.width_in(axes) - 0.3),
        fontsize=_style.small(axes),
        frameon=False,
        borderaxespad=0.2,
        handlelength=2.4,
        handletextpad=0.5,
        columnspacing=1.0,
        labelspacing=0.25,
    )
