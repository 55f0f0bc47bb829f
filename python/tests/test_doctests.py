"""Examples in docstrings have the shown results."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import hopline as hl

MODULES = sorted(name for _, name, _ in pkgutil.walk_packages(hl.__path__, "hopline.") if not name.endswith("_hopline"))


@pytest.mark.parametrize("name", ["hopline", *MODULES])
def test_examples_of_a_module(name):
    if name.startswith("hopline.plot"):
        pytest.importorskip("matplotlib").use("Agg")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, verbose=False)
    assert not failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in ("hopline", "hopline._api", "hopline.scenario")]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 10
