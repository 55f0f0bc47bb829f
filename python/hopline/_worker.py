"""Work of a worker: the runs of a batch. The input is plain data, the result a Parquet file."""

from __future__ import annotations

from functools import lru_cache

from hopline import _hopline


@lru_cache(maxsize=2)
def _bundle(bundle: bytes) -> _hopline.Bundle:
    return _hopline.Bundle.from_bytes(bundle)


def perform(bundle: bytes, batch: int, runs: list[tuple[int, int]]) -> bytes:
    """Performs `runs`, pairs of a point and a run, of the plan in `bundle`. Returns their records.

    Raises:
        VersionError: the bundle is from another version of hopline.
    """
    return _bundle(bundle).perform(batch, runs)
