"""Sizes, fonts and colours, and files that are the same for the same figure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_TEX_POINT_IN = 1 / 72.27

SIZES: Mapping[str, float] = {
    "ieee-column": 3.5,
    "ieee-page": 7.16,
    "acm-column": 241.14749 * _TEX_POINT_IN,
    "acm-page": 506.295 * _TEX_POINT_IN,
    "slide": 10.0,
}
"""Widths of figures in inches.

Those of IEEE are from its author center: 3.5 in for one column, 7.16 in for two. Those of ACM are from the class ``acmart``
with ``sigconf``: 241.14749 pt and 506.295 pt of TeX.
"""

_SHAPE = 0.62
"""Default ratio of the height of a figure to its width."""

# The palette of Okabe and Ito (Color Universal Design, 2008) without its yellow, which is invisible on white paper.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1.2, 1, 1.2, 1, 1.2)))


@dataclass(frozen=True)
class Look:
    """Appearance of a variant, distinct by shape as well as by colour."""

    colour: str
    marker: str
    dashes: Any


def look(number: int) -> Look:
    """Returns the look of variant `number`, from 0: distinct for the first 35 as lines and the first 56 as markers."""
    return Look(_COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)], _DASHES[number % len(_DASHES)])


def style(size: str = "ieee-column", **settings: Any) -> AbstractContextManager[None]:
    """Context in which matplotlib uses the fonts, lines and ticks of `size`.

    >>> with style("acm-column"):
    ...     mpl.rcParams["font.size"], mpl.rcParams["pdf.fonttype"]
    (8.0, 42)

    Args:
        size: one of :data:`SIZES`.
        settings: settings of matplotlib that override it, with ``_`` for each dot: ``font_family="Times New Roman"``.
    """
    _width_in(size)
    known = {name.replace(".", "_"): name for name in mpl.rcParams}
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(
            f"matplotlib has no setting {unknown[0]!r}; write its name with _ for each dot, such as font_family"
        )
    parameters = _parameters(2.25 if size == "slide" else 1.0)
    return _drawing({**parameters, **{known[name]: value for name, value in settings.items()}})


def figure(
    size: str = "ieee-column", height: float | None = None, *, rows: int = 1, columns: int = 1, **settings: Any
) -> tuple[Figure, Any]:
    """Creates a figure of a publisher's width. Returns it and its axes: one, or an array of them.

    >>> fig, axes = figure("ieee-page", 2.5, columns=2)
    >>> fig.get_size_inches().tolist(), len(axes)
    ([7.16, 2.5], 2)

    Args:
        size: one of :data:`SIZES`.
        height: height in inches; by default 0.62 of the width of each column.
        rows, columns: numbers of rows and columns of axes.
        settings: settings of matplotlib, as for :func:`style`.
    """
    width = _width_in(size)
    height = width / columns * _SHAPE * rows if height is None else height
    with style(size, **settings):
        return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def save(figure: Figure | Axes, path: str | os.PathLike[str], *, dpi: float = 600) -> None:
    """Writes a figure, or that of some axes, in its size, as PDF, SVG or PNG according to the suffix of the path.

    Fonts are embedded as TrueType, as IEEE and ACM require. The same figure gives the same bytes: no date is written.

    Args:
        figure: the figure, or axes of it.
        path: path of the file; an existing one is replaced.
        dpi: resolution of PNG.
    """
    whole = figure if isinstance(figure, Figure) else _figure_of(figure)
    kind = Path(path).suffix.lower()
    undated: dict[str, dict[str, Any]] = {
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
        ".png": {},
    }
    if kind not in undated:
        raise ValueError(f"{os.fspath(path)} ends in none of {', '.join(undated)}: figures are written as one of these")
    fonts: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "hopline", "savefig.bbox": None}
    with mpl.rc_context(fonts):
        whole.savefig(path, dpi=dpi, metadata=undated[kind])


def on(axes: Axes | None, size: str, height: float | None = None) -> Axes:
    """Returns `axes`, or those of a new figure."""
    if axes is not None:
        return axes
    new: Axes = figure(size, height)[1]
    return new


def small(axes: Axes) -> float:
    """Returns the size of the small text of `axes` in points: ticks, legends, names."""
    return float(axes.xaxis.label.get_fontsize()) * 7 / 8


def scale(axes: Axes) -> float:
    """Returns the scale of `axes` relative to a column."""
    return float(axes.xaxis.label.get_fontsize()) / 8


def width_in(axes: Axes) -> float:
    """Returns the width of `axes` with their labels, in inches at the scale of a column; slides have a larger scale."""
    place = axes.get_subplotspec()
    beside = place.get_gridspec().ncols if place else 1
    return float(_figure_of(axes).get_size_inches()[0]) / beside / scale(axes)


def _figure_of(axes: Axes) -> Figure:
    figure = axes.figure
    # For a subfigure, the whole figure.
    return figure if isinstance(figure, Figure) else figure.figure


def _width_in(size: str) -> float:
    if size not in SIZES:
        raise ValueError(f"there is no size {size!r}; there are {', '.join(SIZES)}")
    return SIZES[size]


@contextmanager
def _drawing(parameters: dict[Any, Any]) -> Iterator[None]:
    with mpl.rc_context(parameters):
        yield
        interactive = mpl.is_interactive()
    # A notebook backend sets this when it is loaded, perhaps within the context; the setting is kept.
    mpl.interactive(interactive)


def _parameters(by: float) -> dict[Any, Any]:
    thin, small_pt, plain_pt = 0.6 * by, 7.0 * by, 8.0 * by
    ticks = {
        f"{axis}.{name}": value
        for axis in ("xtick", "ytick")
        for name, value in {
            "labelsize": small_pt,
            "major.width": thin,
            "minor.width": 0.7 * thin,
            "major.size": 2.5 * by,
            "minor.size": 1.5 * by,
            "major.pad": 2.0 * by,
            "direction": "out",
        }.items()
    }
    return {
        **ticks,
        "font.family": "sans-serif",
        "font.size": plain_pt,
        "axes.labelsize": plain_pt,
        "axes.titlesize": plain_pt,
        "axes.labelpad": 2.5 * by,
        "axes.linewidth": thin,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.unicode_minus": True,
        "axes.formatter.use_mathtext": True,
        "grid.color": "#d9d9d9",
        "grid.linewidth": 0.7 * thin,
        "legend.fontsize": small_pt,
        "legend.frameon": False,
        "lines.linewidth": 1.1 * by,
        "lines.markersize": 4.0 * by,
        "patch.linewidth": thin,
        "figure.dpi": 150,
        "figure.constrained_layout.h_pad": 0.02,
        "figure.constrained_layout.w_pad": 0.02,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "savefig.bbox": None,
    }
