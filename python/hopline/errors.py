"""Errors. Every error of hopline is an :class:`Error`."""

from __future__ import annotations

import os
from dataclasses import dataclass


class Error(Exception):
    """Base class of all errors of hopline."""


@dataclass(frozen=True)
class Problem:
    """Problem of an input.

    Line and column count from 1. `file`, line and column are ``None`` if the problem has no position.
    """

    message: str
    """Description of the problem."""
    file: str | None = None
    """The file; for values from Python, the function that they were passed to."""
    line: int | None = None
    column: int | None = None
    text: str | None = None
    """The line of the file."""
    help: str | None = None
    """Advice on what would be valid."""

    def __str__(self) -> str:
        lines = [self.message]
        if self.file is not None:
            lines.append(f"  at {self.file}:{self.line}:{self.column}")
        if self.text and self.column:
            lines += [f"    {self.text}", "    " + " " * (self.column - 1) + "^"]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class EmulationError(Error, RuntimeError):
    """Emulation that could not run: the command or the kernel is missing, or a kernel has failed."""


class ScenarioError(Error, ValueError):
    """Invalid scenario, plan, setting or metric.

    `message`, `file`, `line`, `column` and `help` are those of the first of its `problems`.
    """

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = list(problems)

    @property
    def _first(self) -> Problem:
        return self.problems[0] if self.problems else Problem("nothing is said")

    @property
    def message(self) -> str:
        """Description of the first problem."""
        return self._first.message

    @property
    def file(self) -> str | None:
        """File of the first problem, or the function that the value was passed to."""
        return self._first.file

    @property
    def line(self) -> int | None:
        """Line of the first problem, from 1."""
        return self._first.line

    @property
    def column(self) -> int | None:
        """Column of the first problem, from 1."""
        return self._first.column

    @property
    def help(self) -> str | None:
        """Advice on what would be valid."""
        return self._first.help

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ResultsError(Error):
    """Directory with other content, or one that another process writes."""

    def __init__(self, message: str, path: str | os.PathLike[str]) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path
        """The directory or file."""

    def __str__(self) -> str:
        return self.message


class VersionError(Error):
    """Results or a worker of another version of hopline."""

    def __init__(self, message: str, theirs: str, ours: str) -> None:
        super().__init__(message, theirs, ours)
        self.message = message
        self.theirs = theirs
        """Version of the other side."""
        self.ours = ours
        """Version of this side."""

    def __str__(self) -> str:
        return self.message


class RunError(Error, RuntimeError):
    """Run that did not finish: a user-defined algorithm raised an exception, or was not repeatable."""


class RemoteError(Error):
    """Invalid data from another process."""


class WorkersError(Error):
    """Workers that always die, or a broken executor.

    Finished runs are kept if there is an `output`: the same call resumes them.
    """


class FailedRunsWarning(UserWarning):
    """Some runs failed, and are not included in the result. `result.failed` lists them."""
