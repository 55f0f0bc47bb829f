"""Results in Python equal the output of the command."""

from __future__ import annotations

import math

import pytest
from conftest import SCENARIOS, TWO_HOPS

import hopline as hl

TIMES = {"cpu_s", "wall_s"}


def timeless(value):
    """Returns `value` without the parts that differ between runs of a program."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in TIMES}
    return [timeless(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.parent.name)
def test_a_run_is_the_run_of_the_command(path, hopline):
    mine, theirs = hl.run(path), hopline("run", path, "--json")
    assert mine.fingerprint == theirs["fingerprint"]
    assert timeless(mine.to_dict()) == timeless(theirs)


def test_a_comparison_is_the_comparison_of_the_command(hopline):
    path = SCENARIOS[[p.parent.name for p in SCENARIOS].index("chain")]
    mine = hl.compare(path, vary={"tcp.window": [2, 8]}, runs=3, set={"duration_s": 20}, seed=7)
    options = ["--vary", "tcp.window=2,8", "--runs", 3, "--set", "duration_s=20", "--seed", 7, "--json"]
    assert timeless(mine.to_dict()) == timeless(hopline("compare", path, *options))


def test_a_question_is_asked_as_the_command_asks_it(hopline):
    path = SCENARIOS[[p.parent.name for p in SCENARIOS].index("web")]
    vary, bound = {"queue.discipline": ["drop-tail", "fq-codel"]}, "goodput of bulk > 300 kb/s"
    mine = hl.compare(path, vary, 3, metric="response_p95 of http", bound=bound, set={"duration_s": 30})
    options = ["--vary", "queue.discipline=drop-tail,fq-codel", "--runs", 3, "--set", "duration_s=30", "--json"]
    theirs = hopline("compare", path, *options, "--metric", "response_p95 of http", "--bound", bound)
    assert timeless(mine.to_dict()) == timeless(theirs)
    assert mine.question["metric"] == "response_p95_s"
    assert mine.estimates[0]["metric"] == "response_p95_s", "what is asked leads"


def test_sweep_of_the_scenario_is_compared_unless_something_else_is_varied():
    scenario = hl.Scenario(TWO_HOPS, sweep={"tcp.window": [2, 4]})
    assert hl.compare(scenario, runs=1).variants == ["tcp.window=2", "tcp.window=4"]
    assert hl.compare(scenario, vary={"seed": [1, 2]}, runs=1).variants == ["seed=1", "seed=2"]


def test_a_paper_is_reproduced_as_by_the_command(hopline):
    mine = hl.reproduce("tpa", "cross", quick=True, set={"duration_s": 20})
    theirs = hopline("reproduce", "tpa", "cross", "--quick", "--json", "--set", "duration_s=20")
    assert timeless(mine.to_dict()) == timeless(theirs)
    assert mine.claims and list(mine.figures) == ["cross"]
    assert "verdict" in str(mine)


def test_algorithms_are_evaluated_as_by_the_command(hopline):
    mine = hl.evaluate("reno", sections=["slow"], quick=True)
    theirs = hopline("evaluate", "reno", "--section", "slow", "--quick", "--json")
    assert mine.to_dict() == theirs
    assert mine.verdicts["slow"]["reno"] == "meets" and list(mine.networks) == ["slow"]
    assert "✓" in str(mine)


def test_what_the_command_stored_is_read_and_gone_on_with(hopline, plan, tmp_path):
    theirs = hopline("sweep", plan, "-o", tmp_path / "kept", "--set", "duration_s=2", "--json")
    mine = hl.sweep(plan, tmp_path / "kept", set={"duration_s": 2})
    assert timeless(hl.report(tmp_path / "kept").to_dict()["variants"][0]["goodput_bps"]) == timeless(
        theirs["variants"][0]["goodput_bps"]
    )
    assert mine.runs.shape[0] == 96
    assert (tmp_path / "kept" / "report.html").exists()


def test_a_single_run_is_of_the_number_that_is_asked_for():
    scenario = hl.Scenario(TWO_HOPS)
    first, second = hl.run(scenario), hl.run(scenario, 2)
    assert first.fingerprint != second.fingerprint
    assert second["run"] == 2
    assert math.isclose(sum(first.flows["goodput_bps"]), first["aggregate_goodput_bps"])
