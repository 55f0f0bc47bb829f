"""Dask and Ray, with workers that die in the middle, produce the same files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import tables

import hopline as hl

LONG = {"duration_s": 60}


@pytest.fixture
def expected(plan, tmp_path):
    hl.sweep(plan, tmp_path / "expected", set=LONG)
    return tables(tmp_path / "expected")


def kill_soon(processes, kept, records: int):
    """Starts and returns a thread that kills one of `processes` once the journal in `kept` has enough records."""

    def watch():
        for _ in range(2000):
            time.sleep(0.01)
            journal = kept / "records.jsonl"
            if journal.exists() and journal.read_bytes().count(b"\n") >= records:
                victims = processes()
                if victims:
                    os.kill(victims[0], signal.SIGKILL)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.fixture
def dask():
    distributed = pytest.importorskip("distributed", reason="pip install hopline[dask]")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    client = distributed.Client(cluster)
    yield client
    client.close()
    cluster.close()


def test_dask_makes_the_same_files_though_a_worker_is_killed(dask, plan, tmp_path, expected):
    kept = tmp_path / "kept"
    pids = list(dask.run(os.getpid).values())
    killer = kill_soon(lambda: pids, kept, records=10)
    with hl.executors.DaskExecutor(dask) as executor:
        assert executor.workers == 2
        hl.sweep(plan, kept, executor=executor, set=LONG)
    killer.join()
    assert tables(kept) == expected
    assert list(dask.run(os.getpid).values()) != pids, "a worker was killed, and another came"


def test_dask_makes_the_same_files_though_the_client_is_killed(dask, plan, tmp_path, expected):
    kept = tmp_path / "kept"
    program = f"""
import hopline as hl
with hl.executors.DaskExecutor({dask.scheduler.address!r}) as executor:
    hl.sweep({str(plan)!r}, {str(kept)!r}, executor=executor, set={LONG!r})
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    kill_soon(lambda: [process.pid], kept, records=10).join()
    assert process.wait(60) == -signal.SIGKILL
    begun = (kept / "records.jsonl").read_bytes().count(b"\n")
    with hl.executors.DaskExecutor(dask) as executor:
        hl.sweep(plan, kept, executor=executor, set=LONG)
    assert 10 <= begun < 96 and tables(kept) == expected


def test_dask_refuses_a_worker_of_another_version(dask, plan, tmp_path):
    def pretend():
        from hopline import _worker

        class Bundle:
            @staticmethod
            def from_bytes(*_):
                raise hl.VersionError("the sweep was begun by another", "0.2.0", "0.1.0")

        _worker._hopline = type("old", (), {"Bundle": Bundle})
        _worker._bundle.cache_clear()

    dask.run(pretend)
    with hl.executors.DaskExecutor(dask) as executor, pytest.raises(hl.VersionError) as raised:
        hl.sweep(plan, tmp_path / "kept", executor=executor)
    assert (raised.value.theirs, raised.value.ours) == ("0.2.0", "0.1.0")


@pytest.fixture
def ray(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray = pytest.importorskip("ray", reason="pip install hopline[ray]")
    with hl.executors.RayExecutor(workers=2):
        yield ray
    assert not ray.is_initialized()


def test_ray_makes_the_same_files_though_a_worker_is_killed(ray, plan, tmp_path, expected):
    kept = tmp_path / "kept"

    @ray.remote
    def pid():
        time.sleep(0.2)
        return os.getpid()

    pids = ray.get([pid.remote() for _ in range(2)])
    killer = kill_soon(lambda: pids, kept, records=10)
    with hl.executors.RayExecutor() as executor:
        assert executor.workers == 2
        hl.sweep(plan, kept, executor=executor, set=LONG)
    killer.join()
    assert tables(kept) == expected
