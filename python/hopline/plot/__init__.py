"""Figures for papers: the charts of the report, as vector graphics of a column's width.

Requires matplotlib: ``pip install hopline[plot]``.

>>> import hopline as hl
>>> chain = hl.Scenario(duration_s=10, radio={}, nodes={"layout": "chain", "count": 4, "spacing_m": 200},
...                     flow=[{"src": "n0", "dst": "n3"}])
>>> result = hl.compare(chain, vary={"tcp.window": [2, 8]}, runs=3)
>>> axes = hl.plot.gain(result, size="acm-column")
>>> axes.get_xlabel()
'gain in goodput over window=2 (%)'
>>> hl.plot.save(axes, "gain.pdf")  # doctest: +SKIP

Every function takes a result and optional axes to draw on, and returns the axes, which matplotlib can change further.
Without axes it creates a new figure in one of :data:`~hopline.plot.SIZES`.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hopline.plot draws with matplotlib, which is not installed: pip install hopline[plot]"
    ) from error

from hopline.plot._lines import cdf, series
from hopline.plot._map import map
from hopline.plot._over import over
from hopline.plot._rows import gain, means
from hopline.plot._style import SIZES, figure, save, style

__all__ = ["SIZES", "cdf", "figure", "gain", "map", "means", "over", "save", "series", "style"]
