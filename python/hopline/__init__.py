"""hopline: which TCP settings work best over *your* multi-hop wireless network?

Describe a network in a file or a dict. hopline simulates it packet by packet, with paired runs on all cores, and reports
with confidence intervals. The same inputs give the same fingerprint, here, by the ``hopline`` command, and on every machine.

>>> import hopline as hl
>>> scenario = hl.Scenario(
...     duration_s=20,
...     radio={"preset": "ns2-wavelan"},
...     nodes={"layout": "chain", "count": 5, "spacing_m": 200},
...     flow=[{"src": "n0", "dst": "n4"}],
... )
>>> result = hl.compare(scenario, vary={"tcp.window": [2, 8, "unclamped"]}, runs=5)
>>> result.variants[0]
'tcp.window=2'
"""

from typing import TYPE_CHECKING

from hopline import errors, executors, own
from hopline._api import compare, evaluate, papers, report, reproduce, run, sweep
from hopline._hopline import Table, __version__
from hopline.emulation import Emulation, emulate
from hopline.errors import (
    EmulationError,
    Error,
    FailedRunsWarning,
    Problem,
    RemoteError,
    ResultsError,
    RunError,
    ScenarioError,
    VersionError,
    WorkersError,
)
from hopline.results import Comparison, Evaluation, Reproduction, Run
from hopline.scenario import Scenario

if TYPE_CHECKING:
    from hopline import plot

__all__ = [
    "Comparison",
    "Emulation",
    "EmulationError",
    "Error",
    "Evaluation",
    "FailedRunsWarning",
    "Problem",
    "RemoteError",
    "Reproduction",
    "ResultsError",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Table",
    "VersionError",
    "WorkersError",
    "__version__",
    "compare",
    "emulate",
    "errors",
    "evaluate",
    "executors",
    "own",
    "papers",
    "plot",
    "report",
    "reproduce",
    "run",
    "sweep",
]


def __getattr__(name: str) -> object:
    # matplotlib is loaded only when it is used.
    if name == "plot":
        import importlib

        return importlib.import_module("hopline.plot")
    raise AttributeError(f"module 'hopline' has no attribute {name!r}")
