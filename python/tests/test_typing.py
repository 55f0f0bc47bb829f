"""Types: the stubs agree with the extension, and detect errors."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hopline as hl
from hopline import _hopline

PROJECT = Path(__file__).parents[1]
STUBS = Path(hl.__file__).with_name("_hopline.pyi")


def stubbed():
    """Returns the names of the stubs: functions and constants with their node, classes with their members."""
    functions, classes = {}, {}
    for node in ast.parse(STUBS.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
    return functions, classes


def parameters(node):
    return [one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]


def of_extension():
    """Returns the names of the extension, and one class that only its functions return."""
    found = {name: value for name, value in vars(_hopline).items() if not name.startswith("_")}
    found.setdefault(
        "Reproduction", type(hl.reproduce("snoop", "errors", quick=True, set={"duration_s": 1}, progress=False)._core)
    )
    return found


def test_stubs_and_extension_have_the_same_names():
    functions, classes = stubbed()
    assert set(functions) | set(classes) == set(of_extension())
    assert isinstance(_hopline.__version__, str)
    for name, members in classes.items():
        real = {member for member in vars(of_extension()[name]) if member not in ("__doc__", "__module__", "__repr__")}
        assert set(members) == real, name


def test_stubs_and_extension_have_the_same_parameters():
    functions, classes = stubbed()
    extension = of_extension()
    compared = 0
    pairs = [(node, extension[name]) for name, node in functions.items()]
    pairs += [
        (node, getattr(extension[of], name))
        for of, members in classes.items()
        for name, node in members.items()
        if not name.startswith("__")
    ]
    for node, real in pairs:
        if callable(real):
            assert parameters(node) == [name for name in inspect.signature(real).parameters if name != "self"], (
                node.name
            )
            compared += 1
        else:
            assert [one.id for one in node.decorator_list] == ["property"], node.name
    assert compared > 25


def test_everything_that_users_meet_has_a_docstring_and_types():
    for name in hl.__all__:
        value = getattr(hl, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert value.__doc__, name
        if inspect.isfunction(value):
            assert set(inspect.signature(value).parameters) < set(value.__annotations__), name
    for name in hl.plot.__all__:
        value = getattr(hl.plot, name)
        assert value.__doc__, name
    for of in (hl.Scenario, hl.Run, hl.Comparison, hl.Reproduction):
        for name, value in vars(of).items():
            if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert value.__doc__, f"{of.__name__}.{name}"


def mypy(cache, *words):
    """Returns the output of mypy for a program that uses this package."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not there")
    home = Path(hl.__file__).parents[1]
    # mypy finds installed packages itself.
    where = {} if home.name == "site-packages" else {"MYPYPATH": str(home)}
    command = [sys.executable, "-m", "mypy", "--config-file", PROJECT / "pyproject.toml", "--cache-dir", cache, *words]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cache.parent, env={**os.environ, **where}
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy") / "cache"


def checked(program, cache, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(program)
    return mypy(cache, file)


RIGHT = """
import hopline as hl
from concurrent.futures import ThreadPoolExecutor

scenario = hl.Scenario("chain.toml").set({"tcp.window": 4}, seed=7)
scenario.tcp.window = 8
result: hl.Comparison = hl.compare(scenario, vary={"tcp.window": [2, "unclamped"]}, runs=5, output="results")
with ThreadPoolExecutor(2) as executor:
    hl.sweep({"scenario": "chain.toml"}, executor=executor)
rows: int = len(result.estimates)
means: list[object] = result.estimates["mean"]
first: dict[str, object] = result.flows[0]
run = hl.run(scenario)
print(run.fingerprint.upper(), result.answer.splitlines(), result.failed[0][1] + 1)
"""


def test_a_right_program_has_the_right_types(cache, tmp_path):
    said = checked(RIGHT, cache, tmp_path)
    assert said.returncode == 0, said.stdout


def test_figures_have_types_though_they_are_loaded_late(cache, tmp_path):
    pytest.importorskip("matplotlib")
    assert checked(RIGHT + 'hl.plot.save(hl.plot.gain(result), "gain.pdf")\n', cache, tmp_path).returncode == 0
    said = checked(RIGHT + "hl.plot.gane(result)\n", cache, tmp_path)
    assert 'has no attribute "gane"' in said.stdout


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("hl.run(scenario, 'two')", 'incompatible type "str"; expected "int"'),
        ("hl.compare(scenario, run=5)", 'Unexpected keyword argument "run"'),
        ("result.estimate", 'has no attribute "estimate"'),
        ("result.estimates[0].append(1)", 'has no attribute "append"'),
        ("run.fingerprint + 1", "Unsupported operand types"),
        ("result.report()", 'Missing positional argument "path"'),
    ],
)
def test_a_wrong_one_is_found(cache, tmp_path, mistake, says):
    said = checked(RIGHT + mistake + "\n", cache, tmp_path)
    assert said.returncode == 1
    assert says in said.stdout, said.stdout


def test_the_package_itself_passes(cache):
    pytest.importorskip("matplotlib")
    said = mypy(cache, "-p", "hopline")
    assert said.returncode == 0, said.stdout
