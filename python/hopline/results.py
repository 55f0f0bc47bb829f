"""What runs come to."""

from __future__ import annotations

import json
import os
from typing import Any

from hopline import _hopline
from hopline._hopline import Table

PathLike = str | os.PathLike[str]


class Run:
    """What came of a single run: :func:`hopline.run`.

    Tables are Arrow: ``polars.DataFrame(run.flows)``, ``pandas.DataFrame(run.flows)``, DuckDB's ``from flows`` take them.
    """

    __slots__ = ("_core", "_json")

    def __init__(self, core: _hopline.Single) -> None:
        self._core = core
        self._json: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The run as ``hopline run --json`` prints it."""
        if self._json is None:
            self._json = json.loads(self._core.json)
        return self._json

    @property
    def fingerprint(self) -> str:
        """Hash of everything that happened, 16 hexadecimal digits: equal on every machine."""
        return str(self.to_dict()["fingerprint"])

    @property
    def flows(self) -> Table:
        """A row a flow: its ends, and everything that was measured of it."""
        return self._core.table("flows")

    @property
    def series(self) -> Table:
        """A row a second of each flow: ``time_s``, ``goodput_bps``, ``cwnd_bytes``, ``srtt_s``, ``queue_packets``, ``delay_mean_s``."""
        return self._core.table("series")

    @property
    def metrics(self) -> Table:
        """A row a metric of the run, of a group, of a flow or of a node."""
        return self._core.table("metrics")

    @property
    def neighborhoods(self) -> Table:
        """A row each 100 ms of a node whose neighbourhood is observed; mostly none."""
        return self._core.table("neighborhoods")

    def __getitem__(self, metric: str) -> Any:
        """A metric of the whole run: ``run["aggregate_goodput_bps"]``."""
        return self.to_dict()[metric]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.to_dict())

    def report(self, path: PathLike) -> None:
        """Writes the report: one HTML file that works offline. An earlier report is replaced, nothing else is."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Run fingerprint={self.fingerprint}>"


class Comparison:
    """Variants over paired runs: :func:`hopline.compare`, :func:`hopline.sweep`, :func:`hopline.report`.

    ``print(result)`` shows the table and the answer as the command does; a notebook shows them with charts.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _hopline.Comparison) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """The comparison as ``hopline compare --json`` prints it."""
        said: dict[str, Any] = json.loads(self._core.json(True))
        return said

    @property
    def answer(self) -> str:
        """Which variant wins, by how much, how surely, and at what cost."""
        return self._core.answer

    @property
    def variants(self) -> list[str]:
        """What the variants are called; the first is the baseline."""
        return [label for label, _ in self._core.asked]

    @property
    def question(self) -> dict[str, Any]:
        """What is asked: metric, unit, which direction is better, and the bound."""
        question: dict[str, Any] = json.loads(self._core.json(False))["question"]
        return question

    @property
    def estimates(self) -> Table:
        """A row a metric of each variant: what is asked first. Means, their intervals, and gains over the baseline.

        Columns: ``point``, ``variant``, a column for each key that was varied, ``metric``, ``of`` (a flow, kind or class),
        ``unit``, ``n``, ``mean``, ``deviation``, ``low``, ``high``; ``gain_pct``, ``gain_low_pct`` and ``gain_high_pct`` in
        percent of the baseline's mean, within pairs of runs; ``gain_p``, corrected for the number of variants.
        """
        return self._core.estimates()

    @property
    def runs(self) -> Table:
        """A row a run: ``fingerprint``, ``events``, ``sim_s``, and ``error`` if it failed."""
        return self._core.table("runs")

    @property
    def flows(self) -> Table:
        """A row a flow of each run: its ends, and everything that was measured of it."""
        return self._core.table("flows")

    @property
    def metrics(self) -> Table:
        """A row a metric of each run, of a group, of a flow or of a node: as ``metrics.parquet`` of a sweep has it."""
        return self._core.table("metrics")

    @property
    def series(self) -> Table:
        """A row a second of each flow, of runs whose series are kept: by default run 1 of each variant."""
        return self._core.table("series")

    @property
    def neighborhoods(self) -> Table:
        """A row each 100 ms of a node whose neighbourhood is observed; mostly none."""
        return self._core.table("neighborhoods")

    @property
    def failed(self) -> list[tuple[str, int, str]]:
        """Runs that failed and are not counted in: variant, number of the run, and why."""
        return self._core.failed

    @property
    def directory(self) -> os.PathLike[str] | None:
        """Where the results are kept, if they are."""
        return self._core.directory

    def asking(self, metric: str | None = None, bound: str | None = None) -> Comparison:
        """The same runs, asked something else: ``asking("delay_p95", "goodput > 300 kb/s")``."""
        return Comparison(self._core.asking(metric, bound))

    def report(self, path: PathLike) -> None:
        """Writes the report: one HTML file that works offline. An earlier report is replaced, nothing else is."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Comparison of {', '.join(self.variants)}>"


class Reproduction:
    """What became of a paper's claims: :func:`hopline.reproduce`."""

    __slots__ = ("_core",)

    def __init__(self, core: _hopline.Reproduction) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """As ``hopline reproduce --json`` prints it."""
        said: dict[str, Any] = json.loads(self._core.json)
        return said

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Every claim: what is said, what was measured, and the verdict."""
        claims: list[dict[str, Any]] = self.to_dict()["claims"]
        return claims

    @property
    def figures(self) -> dict[str, Comparison]:
        """The figures that were made, by name. Their single runs are not kept."""
        return {name: Comparison(core) for name, core in self._core.figures}

    def report(self, path: PathLike) -> None:
        """Writes the report: one HTML file that works offline."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Reproduction of {self.to_dict()['paper']!r}>"
