"""papers/table.py: measurements go into the rows of a page, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT

HEADLINE = "Of the paper's 2 claims about its system 1 are tested: 1 of them hold."


def claim(name, mean, verdict, **more):
    measured = {"mean": mean, "interval": [mean - 3, mean + 3], "unit": "%", "point": "new", "against": "old"}
    return {
        "claim": name,
        "sentence": "",
        "statement": f"{name} gains",
        "claimed": "above +0 %",
        "counted": "bounds",
        "measured": measured,
        "mechanism_off": None,
        "readings": [],
        "why": None,
        "verdict": verdict,
        **more,
    }


@pytest.fixture
def fill(tmp_path):
    """Writes a page and results, and runs the program. Returns the page afterwards, and the output."""

    def run(page, *papers):
        (tmp_path / "page.md").write_text(page)
        names = []
        for number, claims in enumerate(papers):
            names.append(str(tmp_path / f"{number}.json"))
            standing = {"claims": 2, "tested": 1, "in_all": 1}
            result = {"claims": claims, "headline": HEADLINE, "standing": standing}
            (tmp_path / f"{number}.json").write_text(json.dumps(result))
        program = [sys.executable, str(ROOT / "papers" / "table.py"), str(tmp_path / "page.md"), *names]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        return (tmp_path / "page.md").read_text(), done

    return run


def test_rows_are_made_by_the_header_of_their_table(fill):
    page = """\
| claim | statement | measured | verdict |
|---|---|--:|---|
| A-1 | old words | +1 % | differs |

| claim | verdict |
|---|---|
| A-2 | |
"""
    new, _ = fill(page, [claim("A-1", 12.0, "agrees"), claim("A-2", -4.0, "differs")])
    assert "| A-1 | A-1 gains | +12.0 ± 3.0 % | agrees |" in new
    assert "| A-2 | differs |" in new


def test_a_headline_is_the_one_of_the_first_file(fill):
    new, _ = fill("Before.\n\nOf the paper's 9 claims all hold.\n\nAfter.\n", [claim("A-1", 1.0, "agrees")], [])
    assert new == f"Before.\n\n{HEADLINE}\n\nAfter.\n"


def test_readings_come_from_a_later_file_and_measurements_from_the_first(fill):
    read = [{"reading": "otherwise", "verdict": "differs"}]
    quick = claim("A-1", 99.0, "differs", readings=read)
    page = "| claim | measured | readings | verdict |\n|---|---|---|---|\n| A-1 | | | |\n"
    new, _ = fill(page, [claim("A-1", 12.0, "agrees")], [quick])
    assert "| A-1 | +12.0 ± 3.0 % | 1 of 2 | agrees |" in new


def test_a_sentence_counts_once_by_the_worst_of_its_verdicts(fill):
    page = "| counted | agree | direction only | cannot be judged | differ | of |\n|---|---|---|---|---|---|\n"
    page += "| signs and ranges of the paper | | | | | |\n"
    claims = [
        claim("A-1a", 1.0, "agrees", sentence="A-1"),
        claim("A-1b", 1.0, "differs", sentence="A-1"),
        claim("A-2", 1.0, "agrees"),
        claim("A-3", 1.0, "not-tested"),
    ]
    new, _ = fill(page, claims)
    assert "| signs and ranges of the paper | 1 | 0 | 0 | 1 | 2 |" in new


def test_missing_rows_are_printed_and_unknown_ones_named(fill):
    page = "| claim | verdict |\n|---|---|\n| Z-9 | agrees |\n"
    new, done = fill(page, [claim("A-1", 12.0, "agrees")])
    assert new == page
    assert "| A-1 |" in done.stdout
    assert "no such claim: Z-9" in done.stderr


def test_a_table_with_a_column_of_another_kind_is_left_alone(fill):
    page = "| claim | before | verdict |\n|---|---|---|\n| A-1 | differs | by hand |\n"
    new, _ = fill(page, [claim("A-1", 12.0, "agrees")])
    assert new == page
