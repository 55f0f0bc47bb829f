"""What goes wrong. Every error of hopline is an :class:`Error`."""

from __future__ import annotations

import os
from dataclasses import dataclass


class Error(Exception):
    """Anything that hopline refuses or that fails in it."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input.

    Line and column count from 1; they are ``None``, as `file` is, where there is no place.
    """

    message: str
    """What is wrong."""
    file: str | None = None
    """The file; or for values that came from Python, the function that took them."""
    line: int | None = None
    column: int | None = None
    text: str | None = None
    """The line of the file."""
    help: str | None = None
    """What would be right."""

    def __str__(self) -> str:
        lines = [self.message]
        if self.file is not None:
            lines.append(f"  at {self.file}:{self.line}:{self.column}")
        if self.text and self.column:
            lines += [f"    {self.text}", "    " + " " * (self.column - 1) + "^"]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class ScenarioError(Error, ValueError):
    """A scenario, plan, setting or question that makes no sense.

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
        """What is wrong."""
        return self._first.message

    @property
    def file(self) -> str | None:
        """Where: the file, or the function that took the value."""
        return self._first.file

    @property
    def line(self) -> int | None:
        """Where: the line, from 1."""
        return self._first.line

    @property
    def column(self) -> int | None:
        """Where: the column, from 1."""
        return self._first.column

    @property
    def help(self) -> str | None:
        """What would be right."""
        return self._first.help

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ResultsError(Error):
    """A directory that holds something else, or that somebody else writes."""

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
    """A run that did not come to its end: a machine of your own raised, or was not repeatable."""


class RemoteError(Error):
    """What came from another process is not what it should be."""


class WorkersError(Error):
    """Workers that die whatever they are given, or an executor that broke.

    What was run is kept if there is an `output`: the same call goes on.
    """


class FailedRunsWarning(UserWarning):
    """Some runs failed, and are not counted in. `result.failed` has them."""
