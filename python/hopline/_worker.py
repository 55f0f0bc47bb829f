"""Work of a worker: the runs of a batch. The input is plain data, the result a Parquet file."""

from __future__ import annotations

from functools import lru_cache

from hopline import _hopline
from hopline.emulation import command_path


@lru_cache(maxsize=2)
def _bundle(bundle: bytes, command: str) -> _hopline.Bundle:
    return _hopline.Bundle.from_bytes(bundle, command)


def perform(bundle: bytes, batch: int, runs: list[tuple[int, int]]) -> bytes:
    """Performs `runs`, pairs of a point and a run, of the plan in `bundle`. Returns their records.

    Raises:
        VersionError: the bundle is from another version of hopline.
        EmulationError: the runs are over Linux kernels, which this machine does not have.
    """
    return _bundle(bundle, command_path()).perform(batch, runs)
