"""Results of runs."""

from __future__ import annotations

import json
import os
from typing import Any

from hopline import _hopline
from hopline._hopline import Table

PathLike = str | os.PathLike[str]


class Run:
    """Result of a single run, from :func:`hopline.run`.

    Tables are Arrow: ``polars.DataFrame(run.flows)``, ``pandas.DataFrame(run.flows)`` and DuckDB's ``from flows`` read them.
    """

    __slots__ = ("_core", "_json")

    def __init__(self, core: _hopline.Single) -> None:
        self._core = core
        self._json: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of ``hopline run --json``."""
        if self._json is None:
            self._json = json.loads(self._core.json)
        return self._json

    @property
    def fingerprint(self) -> str:
        """Hash of all events of the run, 16 hexadecimal digits; equal on every machine."""
        return str(self.to_dict()["fingerprint"])

    @property
    def flows(self) -> Table:
        """One row for each flow: its ends, and all its measurements."""
        return self._core.table("flows")

    @property
    def series(self) -> Table:
        """One row for each second of each flow.

        Columns: ``time_s``, ``goodput_bps``, ``cwnd_bytes``, ``srtt_s``, ``queue_packets``, ``delay_mean_s``.
        """
        return self._core.table("series")

    @property
    def metrics(self) -> Table:
        """One row for each metric of the run, of a group, of a flow or of a node."""
        return self._core.table("metrics")

    @property
    def neighborhoods(self) -> Table:
        """One row for each 100 ms of a node with an observed neighbourhood; mostly empty."""
        return self._core.table("neighborhoods")

    def __getitem__(self, metric: str) -> Any:
        """Returns a metric of the whole run: ``run["aggregate_goodput_bps"]``."""
        return self.to_dict()[metric]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.to_dict())

    def report(self, path: PathLike) -> None:
        """Writes the report, one HTML file that works offline. Replaces an earlier report, but no other file."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Run fingerprint={self.fingerprint}>"


class Comparison:
    """Comparison of variants over paired runs.

    The result of :func:`hopline.compare`, :func:`hopline.sweep` and :func:`hopline.report`.

    ``print(result)`` shows the table and the conclusion as the command does; a notebook shows them with charts.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _hopline.Comparison) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of ``hopline compare --json``."""
        said: dict[str, Any] = json.loads(self._core.json(True))
        return said

    @property
    def answer(self) -> str:
        """Conclusion: the best variant, its gain, the confidence, and the cost."""
        return self._core.answer

    @property
    def variants(self) -> list[str]:
        """Names of the variants; the first is the baseline."""
        return [label for label, _ in self._core.asked]

    @property
    def question(self) -> dict[str, Any]:
        """Selected metric: its name, unit, direction that is better, and the constraint."""
        question: dict[str, Any] = json.loads(self._core.json(False))["question"]
        return question

    @property
    def estimates(self) -> Table:
        """One row for each metric of each variant, the selected metric first: means, intervals, and gains over the baseline.

        Columns: ``point``, ``variant``, a column for each key that was varied, ``metric``, ``of`` (a flow, kind or class),
        ``unit``, ``n``, ``mean``, ``deviation``, ``low``, ``high``; ``gain_pct``, ``gain_low_pct`` and ``gain_high_pct`` in
        percent of the baseline's mean, within pairs of runs; ``gain_p``, corrected for the number of variants.
        """
        return self._core.estimates()

    @property
    def runs(self) -> Table:
        """One row for each run: ``fingerprint``, ``events``, ``sim_s``, and ``error`` if it failed."""
        return self._core.table("runs")

    @property
    def flows(self) -> Table:
        """One row for each flow of each run: its ends, and all its measurements."""
        return self._core.table("flows")

    @property
    def metrics(self) -> Table:
        """One row for each metric of a run, group, flow or node: the content of ``metrics.parquet`` of a sweep."""
        return self._core.table("metrics")

    @property
    def series(self) -> Table:
        """One row for each second of each flow, of runs with stored series; by default run 1 of each variant."""
        return self._core.table("series")

    @property
    def neighborhoods(self) -> Table:
        """One row for each 100 ms of a node with an observed neighbourhood; mostly empty."""
        return self._core.table("neighborhoods")

    @property
    def failed(self) -> list[tuple[str, int, str]]:
        """Failed runs, which are not included: variant, number of the run, and reason."""
        return self._core.failed

    @property
    def directory(self) -> os.PathLike[str] | None:
        """Directory of the stored results, if there is one."""
        return self._core.directory

    def asking(self, metric: str | None = None, bound: str | None = None) -> Comparison:
        """Returns the comparison of the same runs by another metric: ``asking("delay_p95", "goodput > 300 kb/s")``."""
        return Comparison(self._core.asking(metric, bound))

    def report(self, path: PathLike) -> None:
        """Writes the report, one HTML file that works offline. Replaces an earlier report, but no other file."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Comparison of {', '.join(self.variants)}>"


class Evaluation:
    """Verdicts on congestion control algorithms, from :func:`hopline.evaluate`."""

    __slots__ = ("_core",)

    def __init__(self, core: _hopline.Evaluation) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of ``hopline evaluate --json``."""
        said: dict[str, Any] = json.loads(self._core.json)
        return said

    @property
    def verdicts(self) -> dict[str, dict[str, str]]:
        """Verdict on each algorithm, by network: ``meets``, ``varies``, ``misses`` or ``no-value``."""
        return {network["id"]: network["verdicts"] for network in self.to_dict()["networks"]}

    @property
    def failed(self) -> list[tuple[str, str, int, str]]:
        """Failed runs, which have no value: network, algorithm, number of the run, and reason."""
        return self._core.failed

    @property
    def networks(self) -> dict[str, Comparison]:
        """Comparisons of the algorithms by network. Single runs are not kept."""
        return {name: Comparison(core) for name, core in self._core.networks}

    def report(self, path: PathLike) -> None:
        """Writes the report, one HTML file that works offline."""
        self._core.report(path)

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Evaluation on {len(self._core.networks)} networks>"


class Reproduction:
    """Verdicts about a paper's claims, from :func:`hopline.reproduce`."""

    __slots__ = ("_core",)

    def __init__(self, core: _hopline.Reproduction) -> None:
        self._core = core

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of ``hopline reproduce --json``."""
        said: dict[str, Any] = json.loads(self._core.json)
        return said

    @property
    def claims(self) -> list[dict[str, Any]]:
        """Every claim, with the paper's statement, the measurement, and the verdict."""
        claims: list[dict[str, Any]] = self.to_dict()["claims"]
        return claims

    @property
    def figures(self) -> dict[str, Comparison]:
        """Reproduced figures by name. Their single runs are not kept."""
        return {name: Comparison(core) for name, core in self._core.figures}

    def report(self, path: PathLike) -> None:
        """Writes the report, one HTML file that works offline."""
        self._core.report(path)

    def _repr_html_(self) -> str:
        return self._core.html()

    def __str__(self) -> str:
        return self._core.text

    def __repr__(self) -> str:
        return f"<hopline.Reproduction of {self.to_dict()['paper']!r}>"
