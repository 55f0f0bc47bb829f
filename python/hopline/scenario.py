"""Scenarios: a network, its traffic and its protocols."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hopline import _hopline, own

PathLike = str | os.PathLike[str]


class Scenario:
    """Network, traffic and protocols, checked at every change.

    Created from a file, a dict, or keywords; the keys are those of scenario files.

    >>> scenario = Scenario(
    ...     name="three hops",
    ...     duration_s=20,
    ...     radio={"preset": "ns2-wavelan"},
    ...     nodes={"layout": "chain", "count": 4, "spacing_m": 200},
    ...     flow=[{"src": "n0", "dst": "n3"}],
    ... )
    >>> scenario.tcp.window = 2
    >>> scenario["tcp.window"], scenario.seed
    (2, 1)
    >>> scenario.tcp.windw = 2
    Traceback (most recent call last):
        ...
    hopline.errors.ScenarioError: unknown key `windw` in `tcp`
      at tcp.windw:1:1
        tcp.windw = 2
        ^
      help: did you mean `window`?

    Assignments change a scenario in place; :meth:`set` returns a new one. Shells and notebooks complete the keys.
    """

    __slots__ = ("_core",)
    _core: _hopline.Scenario

    def __init__(self, source: PathLike | Mapping[str, Any] | Scenario | None = None, /, **keys: Any) -> None:
        """
        Args:
            source: path of a scenario file, a dict with its keys, or another scenario; by default an empty one.
            keys: keys that override it: ``duration_s=60``, ``tcp={"window": 2}``.

        Raises:
            ScenarioError: it is invalid.
        """
        if isinstance(source, Scenario):
            core = source._core
        elif isinstance(source, Mapping):
            core, keys = _document({**source, **keys}), {}
        elif source is None:
            core, keys = _document(keys), {}
        else:
            core = _hopline.Scenario.load(source)
        if keys:
            core = core.with_settings("Scenario", _settings(keys))
        object.__setattr__(self, "_core", core)

    @classmethod
    def parse(cls, text: str, *, name: str = "<text>", folder: PathLike = "") -> Scenario:
        """Parses a scenario in TOML.

        Args:
            text: content of a scenario file.
            name: its name in error messages.
            folder: folder that its paths are relative to.
        """
        return cls._of(_hopline.Scenario.parse(text, name, folder))

    @classmethod
    def _of(cls, core: _hopline.Scenario) -> Scenario:
        new = object.__new__(cls)
        object.__setattr__(new, "_core", core)
        return new

    def set(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """Returns a new scenario with settings applied; this one is not changed.

        >>> chain = Scenario(duration_s=5, radio={}, nodes={"layout": "chain", "count": 3, "spacing_m": 200},
        ...                  flow=[{"src": "n0", "dst": "n2"}])
        >>> chain.set({"tcp.window": 4}, seed=7)["seed"]
        7

        Args:
            settings: dotted keys, as for ``--set`` of the command: ``{"tcp.window": 4, "flow.0.start_s": 1}``. A class is a
                user-defined algorithm (:mod:`hopline.own`): ``{"tcp.congestion_control": MyLaw}``.
            keys: keys without a dot.
        """
        return self._of(self._with("set", {**(settings or {}), **keys}))

    def _with(self, origin: str, given: Mapping[str, Any]) -> _hopline.Scenario:
        classes: dict[str, Any] = {}
        values = own.named(given.values(), classes)
        core = self._core.with_machines(list(classes.items())) if classes else self._core
        named = [(path, to_json(value)) for path, value in zip(given, values, strict=True)]
        return core.with_settings(origin, named)

    def to_dict(self) -> dict[str, Any]:
        """Returns the scenario as written, settings included: the keys of a scenario file."""
        written: dict[str, Any] = json.loads(self._core.written)
        return written

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter in effect, defaults included."""
        parameters: dict[str, Any] = json.loads(self._core.parameters)
        return parameters

    @property
    def name(self) -> str:
        """Name from the scenario, or that of its file."""
        return self._core.name

    @name.setter
    def name(self, name: str) -> None:
        self["name"] = name

    @property
    def file(self) -> str:
        """Path of its file, or name of its text."""
        return self._core.file

    def __getitem__(self, path: str) -> Any:
        value: Any = self.parameters
        for part in path.split("."):
            try:
                value = value[int(part)] if isinstance(value, list) else value[part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise KeyError(f"{path!r} is not set, and has no default") from None
        return value

    def __setitem__(self, path: str, value: Any) -> None:
        object.__setattr__(self, "_core", self._with(path, {path: value}))

    def __getattr__(self, name: str) -> Any:
        return _at(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        else:
            self[name] = value

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *_keys("")]

    def _ipython_key_completions_(self) -> list[str]:
        return list(_dotted(""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._core.written, self.file, os.fspath(self._core.folder))

    def __copy__(self) -> Scenario:
        return self._of(self._core)

    def __deepcopy__(self, memo: dict[int, Any]) -> Scenario:
        return self._of(self._core)

    def __repr__(self) -> str:
        keys = json.dumps(self.to_dict())
        return f"<hopline.Scenario {self.name!r} {keys if len(keys) < 300 else keys[:300] + '…'}>"


class Section:
    """Table of a scenario, such as ``scenario.tcp``, with its keys as attributes."""

    __slots__ = ("_path", "_scenario")
    _path: str
    _scenario: Scenario

    def __init__(self, scenario: Scenario, path: str) -> None:
        object.__setattr__(self, "_scenario", scenario)
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        return _at(self._scenario, f"{self._path}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._scenario[f"{self._path}.{name}"] = value

    def __getitem__(self, key: str | int) -> Any:
        return _at(self._scenario, f"{self._path}.{key}")

    def __setitem__(self, key: str | int, value: Any) -> None:
        self._scenario[f"{self._path}.{key}"] = value

    def __len__(self) -> int:
        return len(self._scenario[self._path])

    def __iter__(self) -> Iterator[Any]:
        value = self._scenario[self._path]
        return (self[i] for i in range(len(value))) if isinstance(value, list) else iter(value)

    def __dir__(self) -> list[str]:
        return list(_keys(self._path))

    def _ipython_key_completions_(self) -> list[str]:
        return list(_dotted(self._path))

    def __repr__(self) -> str:
        try:
            value = self._scenario[self._path]
        except KeyError:
            value = {}
        return f"<hopline {self._path} {json.dumps(value)}>"


def _at(scenario: Scenario, path: str) -> Any:
    """Returns the section or value at `path`."""
    if path.split(".")[-1].startswith("_"):
        raise AttributeError(path)
    place = _schema_at(path)
    if place is None:
        below = path.rpartition(".")[0]
        raise AttributeError(f"there is no key {path!r}; there are {', '.join(_keys(below))}")
    if "properties" in place or "properties" in place.get("items", {}):
        return Section(scenario, path)
    try:
        return scenario[path]
    except KeyError:
        return None


def _restored(written: str, file: str, folder: str) -> Scenario:
    return Scenario._of(_hopline.Scenario.document(written, file, folder))


def _document(keys: Mapping[str, Any]) -> _hopline.Scenario:
    return _hopline.Scenario.document(to_json(dict(keys)), "Scenario", Path())


def _settings(keys: Mapping[str, Any], below: str = "") -> list[tuple[str, str]]:
    """Returns dotted paths and JSON of the keys of nested dicts: a dict is merged, and replaces nothing."""
    found = []
    for key, value in keys.items():
        if isinstance(value, Mapping):
            found += _settings(value, f"{below}{key}.")
        else:
            found.append((below + key, to_json(value)))
    return found


def to_json(value: Any) -> str:
    """Returns `value` in JSON, with numbers of numpy and paths converted."""
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Scenario):
        return value.to_dict()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"a scenario has no values of type {type(value).__name__}: {value!r}") from None


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_hopline.schema("scenario"))
    return schema


def _resolved(place: Any) -> dict[str, Any]:
    while isinstance(place, dict) and "$ref" in place:
        name = place["$ref"].rpartition("/")[2]
        place = _schema()["$defs"][name]
    return place if isinstance(place, dict) else {}


def _schema_at(path: str) -> dict[str, Any] | None:
    """Returns the schema of the key at `path`; ``None`` if there is no such key."""
    place = _resolved(_schema())
    for part in path.split(".") if path else ():
        if "items" in place and part.isdigit():
            place = _resolved(place["items"])
            continue
        keys = place.get("properties", {})
        if part not in keys:
            return None
        place = _resolved(keys[part])
    if "items" in place:
        place = {**place, "items": _resolved(place["items"])}
    return place


def _keys(path: str) -> list[str]:
    place = _schema_at(path) or {}
    return list(place.get("properties", place.get("items", {}).get("properties", {})))


def _dotted(path: str) -> Iterator[str]:
    for key in _keys(path):
        whole = f"{path}.{key}" if path else key
        below = _keys(whole)
        yield key
        if not path:
            yield from (f"{key}.{name}" for name in below)
