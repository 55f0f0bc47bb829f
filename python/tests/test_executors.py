"""All executors produce the same files, byte for byte, also if workers die."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from conftest import tables

import hopline as hl
from hopline import _hopline
from hopline._worker import perform


@pytest.fixture
def expected(plan, tmp_path):
    """Returns the tables from runs on threads of this process."""
    hl.sweep(plan, tmp_path / "expected")
    return tables(tmp_path / "expected")


def test_threads_make_the_same_files(plan, tmp_path, expected):
    with ThreadPoolExecutor(3) as executor:
        result = hl.sweep(plan, tmp_path / "kept", executor=executor)
    assert tables(tmp_path / "kept") == expected
    assert result.variants == hl.report(tmp_path / "expected").variants


def test_processes_make_the_same_files(plan, tmp_path, expected):
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        hl.sweep(plan, tmp_path / "kept", executor=executor)
    assert tables(tmp_path / "kept") == expected


def test_a_comparison_in_memory_takes_an_executor():
    from conftest import TWO_HOPS

    with ThreadPoolExecutor(2) as executor:
        elsewhere = hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 3, executor=executor)
    assert elsewhere.runs.to_dict() == hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 3).runs.to_dict()


class Unreliable(Executor):
    """Loses every third batch, and returns the others three at a time, the last first."""

    workers = 4

    def __init__(self) -> None:
        self.given, self.held, self.lock = 0, [], threading.Lock()

    def submit(self, fn, /, *args):
        self.given += 1
        future: Future = Future()
        if self.given % 3 == 0:
            future.set_exception(OSError("the worker went away"))
            return future
        result = fn(*args)
        with self.lock:
            self.held.append((future, result))
            enough = len(self.held) > 2
        # The last batches of a round are fewer than three.
        threading.Timer(0 if enough else 0.2, self.release).start()
        return future

    def release(self):
        with self.lock:
            held, self.held = self.held, []
        for future, result in reversed(held):
            future.set_result(result)


def test_batches_that_are_lost_are_made_again(plan, tmp_path, expected):
    executor = Unreliable()
    hl.sweep(plan, tmp_path / "kept", executor=executor)
    assert tables(tmp_path / "kept") == expected
    assert executor.given > 10


class Dead(Executor):
    workers = 2

    def submit(self, fn, /, *args):
        future: Future = Future()
        future.set_exception(OSError("no route to worker"))
        return future


def test_workers_that_never_answer_are_given_up(plan, tmp_path):
    with pytest.raises(hl.WorkersError, match="no route to worker"):
        hl.sweep(plan, tmp_path / "kept", executor=Dead())
    assert len(hl.sweep(plan, tmp_path / "kept").runs) == 96, "the directory is free again"


def test_what_one_executor_began_another_goes_on_with(plan, tmp_path, expected, command):
    class Tired(Executor):
        workers = 1

        def __init__(self):
            self.given = 0

        def submit(self, fn, /, *args):
            self.given += 1
            if self.given > 5:
                raise KeyboardInterrupt
            future: Future = Future()
            future.set_result(fn(*args))
            return future

    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        hl.sweep(plan, kept, executor=Tired())
    begun = (kept / "records.jsonl").read_bytes().count(b"\n")
    assert 0 < begun < 96
    subprocess.run([command, "sweep", plan, "-o", kept, "--quiet"], check=True, stdout=subprocess.DEVNULL, cwd=tmp_path)
    assert tables(kept) == expected


def test_a_driver_that_is_killed_is_gone_on_with(plan, tmp_path, expected):
    kept = tmp_path / "kept"
    program = textwrap.dedent(f"""
        import multiprocessing, hopline as hl
        from concurrent.futures import ThreadPoolExecutor
        hl.sweep({str(plan)!r}, {str(kept)!r}, executor=ThreadPoolExecutor(2), set={{}})
    """)
    for seconds in (0.15, 0.3, 0.6):
        process = subprocess.Popen([sys.executable, "-c", program])
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    hl.sweep(plan, kept)
    assert tables(kept) == expected


def test_a_worker_of_another_version_is_refused_with_both(plan):
    course = _hopline.Course(_hopline.Plan.load(plan, [], "full", None, None, False), None, "resume", ["test"])
    bundle = json.loads(course.bundle())
    bundle["version"] = "0.0.1"
    with pytest.raises(hl.VersionError) as raised:
        perform(json.dumps(bundle).encode(), 0, [(0, 1)])
    assert (raised.value.theirs, raised.value.ours) == ("0.0.1", hl.__version__)
    assert "0.0.1" in str(raised.value) and hl.__version__ in str(raised.value)


def test_errors_of_workers_travel():
    import pickle

    errors = [
        hl.VersionError("no", "1", "2"),
        hl.ResultsError("no", "/tmp/x"),
        hl.RemoteError("no"),
        hl.ScenarioError([hl.Problem("no", file="f", line=1, column=2)]),
    ]
    for error in errors:
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error) and str(back) == str(error) and vars(back) == vars(error)


def test_a_worker_that_refuses_ends_the_sweep(plan, tmp_path):
    class Old(Executor):
        workers = 1

        def submit(self, fn, /, *args):
            future: Future = Future()
            future.set_exception(hl.VersionError("other", "0.0.1", hl.__version__))
            return future

    with pytest.raises(hl.VersionError):
        hl.sweep(plan, tmp_path / "kept", executor=Old())


def test_a_pool_whose_worker_is_killed_says_so_and_keeps_what_there_is(plan, tmp_path, expected):
    kept = tmp_path / "kept"
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        executor.submit(os.getpid).result()
        victim = next(iter(executor._processes))
        threading.Timer(0.1, os.kill, (victim, signal.SIGKILL)).start()
        try:
            hl.sweep(plan, kept, executor=executor, set={})
        except hl.WorkersError as error:
            assert "broken" in str(error)
    hl.sweep(plan, kept)
    assert tables(kept) == expected
