"""Programs over Linux kernels in virtual time: the command ``hopline emulate --virtual-time``, and its results."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hopline.errors import EmulationError, Problem, ScenarioError
from hopline.scenario import PathLike, Scenario, to_json

Row = dict[str, str | float | None]


class Emulation:
    """Result of an emulation, from :func:`hopline.emulate`.

    ``emulation["duration_s"]`` is a field of :meth:`to_dict`. ``pandas.DataFrame(emulation.flows)`` reads the rows.
    """

    __slots__ = ("_files", "_said", "exit_code", "output", "text")

    exit_code: int
    """Exit code of the command: 0, or 1 if a program has failed, or that of the command at the first node."""
    output: str
    """Output of the command at the first node."""
    text: str
    """Summary, as the command prints it."""

    def __init__(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        files = (path for path in folder.rglob("*") if path.suffix not in (".pcapng", ".toml") and path.is_file())
        self._files = {path.name: path.read_bytes().decode("utf-8", "replace") for path in files}
        self._said: dict[str, Any] = json.loads(self._files["summary.json"])
        self.exit_code, self.output = done.returncode, done.stdout
        # The files of the command are in this object, and no longer in that folder.
        said = (line for line in done.stderr.splitlines(keepends=True) if str(folder) not in line)
        self.text = "".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of ``hopline emulate --json``."""
        return self._said

    @property
    def fingerprint(self) -> str:
        """Hash of all events of the network, 16 hexadecimal digits."""
        return str(self._said["fingerprint"])

    @property
    def flows(self) -> list[Row]:
        """One row for each flow: its ends, and all its measurements."""
        return _rows(self._files["flows.csv"])

    @property
    def series(self) -> list[Row]:
        """One row for each second of each flow."""
        return _rows(self._files["series.csv"])

    @property
    def programs(self) -> list[dict[str, Any]]:
        """One row for each ``[[program]]``: its times and its end as in :meth:`to_dict`, and ``stdout`` and ``stderr``."""
        streams = ("stdout", "stderr")
        return [
            {**program, **{stream: self._files.get(f"{program['name']}.{stream}", "") for stream in streams}}
            for program in self._said["programs"]
        ]

    def __getitem__(self, field: str) -> Any:
        """Returns a field of :meth:`to_dict`."""
        return self._said[field]

    def report(self, path: PathLike) -> None:
        """Writes the report, one HTML file that works offline."""
        Path(path).write_text(self._files["report.html"], encoding="utf-8")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<hopline.Emulation fingerprint={self.fingerprint}>"


def emulate(
    scenario: Scenario | PathLike | Mapping[str, Any],
    run: int = 1,
    *,
    command: Sequence[str] | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    pcap: PathLike | None = None,
    kernel: PathLike | None = None,
    program: PathLike | None = None,
) -> Emulation:
    """Runs the programs of a scenario over Linux kernels, in virtual time: the same result each time, without root.

    It runs the command ``hopline emulate --virtual-time``, and needs the kernel of ``make uml``. Calls in several threads run
    at the same time. For many runs, there is ``hopline.sweep(..., virtual_time=True)``.

    >>> result = emulate("transfer.toml", set={"mac.data_rate_mbps": 11})  # doctest: +SKIP
    >>> result.programs[1]["stdout"]  # doctest: +SKIP

    Args:
        scenario: path of a scenario file with ``[[program]]`` tables, or a dict with its keys. With a command also a
            :class:`Scenario`, which has no such tables.
        run: number of the run, from 1.
        command: a program and its arguments, which run at the first node; the emulation ends with it. By default it lasts
            for ``duration_s``.
        set: dotted keys and values that override the scenario.
        seed: seed of the experiment.
        pcap: file for a capture of all frames.
        kernel: folder with the kernel; by default that of ``make uml``.
        program: path of the command; by default the variable ``HOPLINE``, else ``hopline`` beside Python or in ``PATH``.

    Raises:
        ScenarioError: the scenario is invalid, or cannot be emulated.
        EmulationError: there is no command or no kernel, or the emulation failed.
    """
    found = os.fspath(program) if program else existing_command()
    with tempfile.TemporaryDirectory(prefix="hopline-emulate-") as name:
        folder = Path(name)
        words = [found, "emulate", "--virtual-time", _file(scenario, folder), f"--run={run}"]
        words += [] if seed is None else [f"--seed={seed}"]
        for key, value in json.loads(to_json(dict(set or {}))).items():
            words += ["--set", f"{key}={value if isinstance(value, str) else _toml(value)}"]
        words += [f"--json={folder}/summary.json", f"--output={folder}/results", f"--report={folder}/report.html"]
        words += ["--pcap"] * (pcap is not None) + ([] if kernel is None else [f"--kernel={os.fspath(kernel)}"])
        words += [] if command is None else ["--", *command]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
            )
        except OSError as error:
            raise EmulationError(f"{found}: {error.strerror}") from error
        if not (folder / "summary.json").exists():
            message = done.stderr.strip().removeprefix("× ").removeprefix("error: ")
            if done.returncode == 2 and "kernel" not in message.partition("\n")[0]:
                raise ScenarioError([Problem(message)])
            raise EmulationError(message or f"`{found} emulate` ended with exit code {done.returncode}")
        if pcap is not None:
            shutil.move(folder / "results" / "run.pcapng", pcap)
        return Emulation(done, folder)


def command_path() -> str:
    """Returns the path of the command ``hopline``, or an empty one: ``HOPLINE``, that beside Python, or that in ``PATH``."""
    # The one beside Python is of the same package. An embedded Python has no executable.
    beside = shutil.which("hopline", path=os.fspath(Path(sys.executable).parent)) if sys.executable else None
    return os.environ.get("HOPLINE") or beside or shutil.which("hopline") or ""


def existing_command() -> str:
    """Returns the path of the command ``hopline``.

    Raises:
        EmulationError: there is none.
    """
    if path := command_path():
        return path
    raise EmulationError("there is no command `hopline` in PATH: build it with `cargo build --release`")


def _file(scenario: Scenario | PathLike | Mapping[str, Any], folder: Path) -> str:
    """Returns the path of a scenario: its own, or that of a new file."""
    if not isinstance(scenario, (Scenario, Mapping)):
        return os.fspath(scenario)
    written = scenario.to_dict() if isinstance(scenario, Scenario) else json.loads(to_json(dict(scenario)))
    path = folder / "scenario.toml"
    path.write_text("".join(f"{_key(key)} = {_toml(value)}\n" for key, value in written.items()), encoding="utf-8")
    return str(path)


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _toml(value: Any) -> str:
    """Returns a value of JSON in TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _rows(text: str) -> list[Row]:
    return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(text.splitlines())]


def _number(text: str) -> str | float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text
