"""Submission of batches of a plan to an executor, and collection of their results."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any

from hopline import _hopline
from hopline._progress import Bar, Teller
from hopline._worker import perform
from hopline.errors import Error, WorkersError

_AHEAD = 2
"""Batches of each worker: one in progress, and one in its queue."""
_PATIENCE = 20
"""Batches that may be lost in a row, without a result in between, before the executor is considered broken."""


def drive(course: _hopline.Course, executor: Executor, progress: Bar | Teller | None) -> _hopline.Comparison:
    """Performs all runs of `course` on `executor`.

    If a worker dies, its batch is submitted again.

    Raises:
        WorkersError: the executor is broken, or returns no results.
    """
    bundle, workers = course.bundle(), workers_of(executor)
    away: dict[Future[bytes], int] = {}
    lost_in_a_row = 0
    try:
        while True:
            while len(away) < _AHEAD * workers:
                batch = course.next(workers)
                if batch is None:
                    break
                number, runs = batch
                if not runs:
                    return course.complete()
                away[_submit(executor, bundle, number, runs)] = number
            # Signals are handled within this time.
            done, _ = wait(away, timeout=0.05, return_when=FIRST_COMPLETED)
            for future in done:
                number = away.pop(future)
                if (lost := _lost(future)) is None:
                    course.take(number, future.result())
                    lost_in_a_row = 0
                    continue
                course.lost(number)
                lost_in_a_row += 1
                if lost_in_a_row >= _PATIENCE:
                    raise WorkersError(f"{lost_in_a_row} batches in a row were lost; the last: {lost!r}") from lost
            if progress and done:
                there, runs_of_all = course.progress
                progress(there, runs_of_all, there, runs_of_all)
    finally:
        for future in away:
            future.cancel()


def workers_of(executor: Executor) -> int:
    """Returns the number of workers of an executor, or of cores if it does not say."""
    for name in ("workers", "_max_workers"):
        number: Any = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 1


def _submit(executor: Executor, bundle: bytes, number: int, runs: list[tuple[int, int]]) -> Future[bytes]:
    try:
        return executor.submit(perform, bundle, number, runs)
    except BrokenExecutor as error:
        raise WorkersError(f"the executor is broken: {error}") from error


def _lost(future: Future[bytes]) -> BaseException | None:
    """Returns the reason why a batch has to be repeated, if there is one.

    Raises:
        Error: repeating the batch would fail again.
    """
    if future.cancelled():
        return WorkersError("a batch was cancelled")
    error = future.exception()
    if isinstance(error, BrokenExecutor):
        raise WorkersError(f"the executor is broken: {error}") from error
    if isinstance(error, Error | ImportError | AttributeError | TypeError):
        raise error
    return error
