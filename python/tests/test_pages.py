"""Pages about the package: their programs run, with the printed output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import hopline as hl

PAGES = [
    "python/README.md",
    "docs/python.md",
    "docs/recipes/figure.md",
    "docs/recipes/from-other-simulators.md",
    "docs/recipes/tcp-and-queue.md",
    "docs/cluster.md",
    "docs/own-machines.md",
]
MARK = re.compile(r"^<!-- (\S[^:>]*?)(?:: (.*?))? -->$")


def blocks(page):
    """Returns marks and blocks of a page in order: kind, name, and text."""
    found, marks, lines = [], [], iter((ROOT / page).read_text().split("\n"))
    for line in lines:
        if mark := MARK.match(line):
            marks.append((mark[1], mark[2] or ""))
        elif line.startswith("```"):
            text = []
            for inner in lines:
                if inner.startswith("```"):
                    break
                text.append(inner)
            found.append((line[3:], dict(marks), "\n".join(text) + "\n"))
            marks = []
        elif line.strip():
            marks = []
    return found


def programs():
    for page in PAGES:
        if (ROOT / page).exists():
            all = blocks(page)
            for number, (language, marks, text) in enumerate(all):
                if language == "python" and "hopline" in text and "not run" not in marks:
                    yield pytest.param(page, number, id=f"{page}:{number}")


def test_there_are_programs():
    assert len(list(programs())) >= 6


@pytest.mark.parametrize(("page", "number"), list(programs()))
def test_a_program_of_a_page_runs_and_prints_what_stands_below(page, number, tmp_path):
    for module in ("matplotlib", "pandas", "polars", "duckdb"):
        pytest.importorskip(module)
    all = blocks(page)
    (tmp_path / "chain.toml").write_text((ROOT / "scenarios/chain/scenario.toml").read_text())
    for _, marks, text in all[:number]:
        for kind in ("scenario", "plan", "file"):
            if kind in marks:
                (tmp_path / marks[kind]).write_text(text)
    (tmp_path / "program.py").write_text(all[number][2])
    home = str(Path(hl.__file__).parents[1])
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([home, *sys.path]), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "program.py"], check=False, cwd=tmp_path, env=own, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    below = all[number + 1] if number + 1 < len(all) else ("", {}, "")
    if below[1].get("not run") == "what the program above prints":
        assert done.stdout.split() == below[2].split()
