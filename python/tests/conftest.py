"""Shared fixtures: the scenarios of the repository, and the command in the wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*/scenario.toml"))

TWO_HOPS = {
    "name": "two hops",
    "duration_s": 5,
    "runs": 4,
    "radio": {"preset": "ns2-wavelan"},
    "nodes": {"layout": "chain", "count": 3, "spacing_m": 200},
    "flow": [{"src": "n0", "dst": "n2"}],
}


@pytest.fixture(scope="session")
def command() -> str:
    """Path of the `hopline` command: beside the interpreter, or from HOPLINE."""
    beside = Path(sys.executable).with_name("hopline")
    found = os.environ.get("HOPLINE") or (str(beside) if beside.exists() else shutil.which("hopline"))
    if not found:
        pytest.skip("there is no hopline command beside this Python: install the wheel of `make wheel`")
    return found


@pytest.fixture
def hopline(command, tmp_path):
    """Function that runs the command in a folder of its own, and returns its JSON output."""

    def call(*words: object) -> dict:
        done = subprocess.run([command, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return call


@pytest.fixture
def plan(tmp_path) -> Path:
    """Plan of eight short points."""
    (tmp_path / "scenario.toml").write_text(
        'name = "two hops"\nduration_s = 5\n[radio]\n[nodes]\nlayout = "chain"\ncount = 3\nspacing_m = 200\n'
        '[[flow]]\nsrc = "n0"\ndst = "n2"\n'
    )
    path = tmp_path / "plan.toml"
    path.write_text(
        'scenario = "scenario.toml"\nruns = 12\n[grid]\n"tcp.window" = [2, 4, 8, "unclamped"]\ntransport = ["tcp-newreno", "tcp-sack"]\n'
    )
    return path


def tables(folder: Path) -> dict[str, bytes]:
    """Returns the files that must not depend on the executor of the runs."""
    names = [f"{table}.{kind}" for table in ("runs", "metrics", "series") for kind in ("csv", "parquet")]
    return {name: (folder / name).read_bytes() for name in names}
