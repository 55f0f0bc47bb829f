"""Data of figures from results: variants with short names, and the estimates of a metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopline._hopline import Table
from hopline.results import Comparison, Reproduction, Run

Labels = Mapping[str, str] | Sequence[str] | None
"""Labels of variants in a figure, by their names or in their order; by default the short names of the report."""


@dataclass(frozen=True)
class Variant:
    """Variant, with its values of the selected metric."""

    point: int
    label: str
    """Name in a figure."""
    full: str
    """Name in `result.variants`."""
    baseline: int
    keys: dict[str, Any]
    """Varied keys, and their values here."""
    row: dict[str, Any] | None
    """Row of `result.estimates`; ``None`` if no run has the metric."""
    values: list[float]
    """Value of the metric in each run; NaN in runs that lack it."""


@dataclass(frozen=True)
class Taken:
    """Comparison by the selected metric."""

    variants: list[Variant]
    words: str
    """The metric in words: `delay p95 of web`."""
    unit: str
    """Unit for people."""
    factor: float
    """Factor from the values to that unit."""
    better: str
    """Better direction: `more`, `less` or `neither`."""

    @property
    def with_unit(self) -> str:
        """The metric with its unit: `goodput (kb/s)`."""
        return f"{self.words} ({self.unit})" if self.unit else self.words


def taken(result: object, what_for: str, metric: str | None = None, labels: Labels = None) -> Taken:
    """Returns the comparison `result` by `metric`.

    Raises:
        TypeError: it is no comparison.
        ScenarioError: there is no such metric.
    """
    comparison = compared(result, what_for)
    if metric is not None:
        comparison = comparison.asking(metric)
    said = json.loads(comparison._core.json(False))
    question, table = said["question"], comparison.estimates
    rows: dict[int, dict[str, Any]] = {}
    for number in range(len(table)):
        row = table[number]
        # If a flow and a kind have the same name, the selected one is the first.
        if row["metric"] == question["metric"] and (row["of"] or "") == question["of"]:
            rows.setdefault(row["point"], row)
    full, settings = _varied(said, table)
    names = _called(labels, full, short(full, settings))
    baselines = {name: point for point, name in reversed(list(enumerate(full)))}
    values = [values for _, values in comparison._core.asked]
    factor, unit = for_people(question["unit"])
    variants = [
        Variant(point, names[point], name, baselines[v["baseline"]], settings[point], rows.get(point), values[point])
        for point, (name, v) in enumerate(zip(full, said["variants"], strict=True))
    ]
    words = in_words(question["metric"]) + (f" of {literally(question['of'])}" if question["of"] else "")
    return Taken(variants, words, unit, factor, question["better"])


def compared(result: object, what_for: str) -> Comparison:
    """Returns `result`, if it is a comparison.

    Raises:
        TypeError: it is another object; the message has advice.
    """
    if isinstance(result, Comparison):
        return result
    if isinstance(result, Run):
        raise TypeError(
            f"{what_for} draws variants over paired runs, and this is a single run: hl.compare(scenario, …) makes them"
        )
    raise not_drawn(result, what_for)


def not_drawn(result: object, what_for: str) -> TypeError:
    """Returns the error for a `result` that cannot be drawn."""
    if isinstance(result, Reproduction):
        names = ", ".join(repr(name) for name in result.figures)
        return TypeError(
            f"{what_for} draws one comparison, and a reproduction has several: take result.figures[…], of {names}"
        )
    return TypeError(f"{what_for} draws what hl.compare, hl.sweep or hl.report return, not {type(result).__name__}")


def short_names(comparison: Comparison, labels: Labels = None) -> list[str]:
    """Returns the names of the variants of `comparison` in a figure."""
    full, settings = _varied(json.loads(comparison._core.json(False)), comparison.estimates)
    return _called(labels, full, short(full, settings))


def short(full: list[str], settings: list[dict[str, Any]]) -> list[str]:
    """Returns the shortest distinct names, as in the report: `newreno` for `transport=tcp-newreno`."""
    keys = list(dict.fromkeys(key for one in settings for key in one))
    named = any(f"{key}=" not in name for name, one in zip(full, settings, strict=True) for key in one)
    lasts = {key.rpartition(".")[2] for key in keys}
    if named or len(lasts) < len(keys):
        return full
    names = [" ".join(_part(key, value, len(keys) == 1) for key, value in one.items()) for one in settings]
    return names if len(set(names)) == len(names) and all(names) else full


def chosen(full: list[str], variants: Sequence[str] | None) -> list[int]:
    """Returns the numbers of `variants`; by default of all.

    Raises:
        ValueError: there is no such variant.
    """
    if variants is None:
        return list(range(len(full)))
    wanted = [variants] if isinstance(variants, str) else list(variants)
    if unknown := [name for name in wanted if name not in full]:
        raise ValueError(f"there is no variant {unknown[0]!r}; there are {', '.join(full)}")
    return [full.index(name) for name in wanted]


def literally(name: str) -> str:
    """Returns `name` escaped for matplotlib: `$` would begin a formula, and a leading `_` would hide it from legends."""
    escaped = name.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def for_people(unit: str) -> tuple[float, str]:
    """Returns factor and unit of a value for people, as in the report."""
    return {"bit/s": (1e-3, "kb/s"), "s": (1e3, "ms"), "1": (1.0, "")}.get(unit, (1.0, unit))


def in_words(metric: str) -> str:
    """Returns a metric in words, without its unit: `response p95`."""
    if metric == "aggregate_goodput_bps":
        return "goodput"
    if metric == "jain":
        return "Jain’s index"
    for ending in ("_bps", "_pct", "_j", "_s"):
        if metric.endswith(ending):
            metric = metric.removesuffix(ending)
            break
    return metric.replace("_", " ")


def _varied(said: dict[str, Any], estimates: Table) -> tuple[list[str], list[dict[str, Any]]]:
    """Returns the full names of the variants, and the varied settings of each."""
    keys = estimates.columns[2 : estimates.columns.index("metric")]
    settings = [variant["settings"] for variant in said["variants"]]
    return [variant["variant"] for variant in said["variants"]], [
        {k: one[k] for k in keys if k in one} for one in settings
    ]


def _called(labels: Labels, full: list[str], short: list[str]) -> list[str]:
    if labels is None:
        return [literally(name) for name in short]
    if isinstance(labels, str):
        raise TypeError("labels are a dict by variant, or a list with one for each variant, not a text")
    if isinstance(labels, Mapping):
        if unknown := [name for name in labels if name not in full]:
            raise ValueError(f"labels name {unknown[0]!r}, and there is no such variant; there are {', '.join(full)}")
        return [labels.get(name, literally(otherwise)) for name, otherwise in zip(full, short, strict=True)]
    if len(labels) != len(full):
        raise ValueError(f"there are {len(labels)} labels for {len(full)} variants: {', '.join(full)}")
    return [str(label) for label in labels]


def _part(key: str, value: Any, alone: bool) -> str:
    """Returns the text of a setting. A word needs no key if it is the only varied one; a number does."""
    last = key.rpartition(".")[2]
    if isinstance(value, str):
        if last == "transport":
            return value.removeprefix("tcp-")
        if alone and any(letter.isalpha() for letter in value) and value not in ("unclamped", "never"):
            return value
    return f"{last}={_plain(value)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
