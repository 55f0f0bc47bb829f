"""Scenarios from files, dicts and keywords, changes of them, and errors with a position."""

from __future__ import annotations

import copy
import pickle

import pytest
from conftest import SCENARIOS, TWO_HOPS

import hopline as hl


def test_a_scenario_from_a_dict_runs_as_one_from_text():
    text = (
        'name = "two hops"\nduration_s = 5\nruns = 4\n[radio]\npreset = "ns2-wavelan"\n'
        '[nodes]\nlayout = "chain"\ncount = 3\nspacing_m = 200\n[[flow]]\nsrc = "n0"\ndst = "n2"\n'
    )
    dicts, keywords = hl.Scenario(TWO_HOPS), hl.Scenario(**TWO_HOPS)
    assert dicts == keywords == hl.Scenario.parse(text)
    assert hl.run(dicts).fingerprint == hl.run(hl.Scenario.parse(text)).fingerprint
    assert hl.run(TWO_HOPS).fingerprint == hl.run(dicts).fingerprint


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.parent.name)
def test_every_scenario_survives_being_a_dict(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    scenario = hl.Scenario(path)
    assert hl.Scenario(scenario.to_dict()).parameters == scenario.parameters


def test_keys_are_attributes_and_edited_in_place():
    scenario = hl.Scenario(TWO_HOPS)
    before = hl.run(scenario).fingerprint
    scenario.tcp.window = 2
    scenario.flow[0].start_s = 0.5
    scenario["queue.capacity_packets"] = 7
    scenario.name = "other"
    assert (scenario.tcp.window, scenario["tcp.window"], scenario.flow[0].start_s) == (2, 2, 0.5)
    assert scenario.queue.capacity_packets == 7 and scenario.name == "other"
    assert hl.run(scenario).fingerprint != before


def test_set_leaves_the_scenario_as_it_is():
    scenario = hl.Scenario(TWO_HOPS)
    other = scenario.set({"tcp.window": 2}, seed=9)
    assert (other["tcp.window"], other.seed, scenario.seed) == (2, 9, 1)
    assert scenario == hl.Scenario(TWO_HOPS) != other


def test_tables_that_are_given_are_put_over_those_that_are_there():
    scenario = hl.Scenario(hl.Scenario(TWO_HOPS), nodes={"count": 5})
    assert (scenario.nodes.count, scenario.nodes.spacing_m) == (5, 200)


def test_completion_knows_the_keys():
    scenario = hl.Scenario(TWO_HOPS)
    assert {"tcp", "radio", "flow", "run"} - set(dir(scenario)) == {"run"}
    assert "window" in dir(scenario.tcp) and "src" in dir(scenario.flow[0])
    assert "tcp.window" in scenario._ipython_key_completions_()
    for key in dir(scenario.tcp):
        getattr(scenario.tcp, key)


def test_copies_are_independent():
    scenario = hl.Scenario(TWO_HOPS)
    for other in (copy.copy(scenario), copy.deepcopy(scenario), pickle.loads(pickle.dumps(scenario))):
        assert other == scenario
        other.tcp.window = 3
        assert other != scenario


def test_errors_have_a_place_and_say_what_would_be_right(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(
        'duration_s = 5\n[radio]\n[nodes]\nlayout = "chain"\ncount = 3\nspacing_m = 200\n[tcp]\nwindw = 3\n'
    )
    with pytest.raises(hl.ScenarioError) as raised:
        hl.Scenario(path)
    error = raised.value
    assert (error.file, error.line, error.column) == (str(path), 8, 1)
    assert error.message == "unknown key `windw` in `tcp`" and error.help == "did you mean `window`?"
    assert "windw = 3" in str(error) and f"{path}:8:1" in str(error)
    assert isinstance(error, ValueError) and isinstance(error, hl.Error)


def test_every_problem_is_said_at_once():
    with pytest.raises(hl.ScenarioError) as raised:
        hl.Scenario(TWO_HOPS, tcp={"windw": 3}, mac={"retris": 1})
    assert len(raised.value.problems) >= 2


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda s: setattr(s.tcp, "window", -1), "window"),
        (lambda s: setattr(s.tcp, "window", None), "no value"),
        (lambda s: setattr(s, "seed", 2**64), "seed"),
        (lambda s: setattr(s, "nonsense", 1), "nonsense"),
        (lambda s: s.set({"flow.9.src": "n0"}), "flow"),
        (lambda s: s.set({"": 1}), "unknown key"),
        (lambda s: setattr(s.nodes, "count", 0), "count"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(edit, words):
    scenario = hl.Scenario(TWO_HOPS)
    with pytest.raises(hl.ScenarioError, match=words):
        edit(scenario)
    assert scenario == hl.Scenario(TWO_HOPS)


def test_values_that_no_file_has_are_refused():
    with pytest.raises(TypeError, match="object"):
        hl.Scenario(TWO_HOPS, seed=object())
    with pytest.raises(ValueError):
        hl.Scenario(TWO_HOPS, duration_s=float("nan"))
    with pytest.raises(AttributeError, match="there is no key 'windows'"):
        print(hl.Scenario(TWO_HOPS).windows)
    with pytest.raises(KeyError):
        hl.Scenario(TWO_HOPS)["tcp.windows"]


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    scenario = hl.Scenario(TWO_HOPS, seed=numpy.int64(3))
    scenario.tcp.window = numpy.uint8(4)
    assert (scenario.seed, scenario.tcp.window) == (3, 4)
    assert hl.compare(scenario, vary={"tcp.window": numpy.arange(2, 4)}, runs=1).variants[1] == "tcp.window=3"


def test_files_are_named_relative_to_the_scenario(tmp_path, monkeypatch):
    (tmp_path / "nodes.csv").write_text("x_m,y_m\n0,0\n200,0\n400,0\n")
    nodes = {"nodes": {"layout": "file", "file": "nodes.csv"}}
    monkeypatch.chdir(tmp_path)
    assert hl.run({**TWO_HOPS, **nodes}).fingerprint == hl.run(TWO_HOPS).fingerprint
    monkeypatch.chdir("/")
    with pytest.raises(hl.ScenarioError, match=r"nodes\.csv"):
        hl.Scenario({**TWO_HOPS, **nodes})
