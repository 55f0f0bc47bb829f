"""The functions of the package."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Literal

from hopline import _hopline, _progress, own
from hopline._course import drive
from hopline._progress import Told
from hopline.emulation import existing_command
from hopline.errors import FailedRunsWarning
from hopline.results import Comparison, Evaluation, Reproduction, Run
from hopline.scenario import PathLike, Scenario, to_json

ScenarioLike = Scenario | PathLike | Mapping[str, Any]
Vary = Mapping[str, Iterable[Any]]


def run(
    scenario: ScenarioLike,
    run: int = 1,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    progress: bool | Told | None = None,
) -> Run:
    """Runs a scenario once.

    >>> scenario = Scenario(duration_s=10, radio={}, nodes={"layout": "chain", "count": 3, "spacing_m": 200},
    ...                     flow=[{"src": "n0", "dst": "n2"}])
    >>> run(scenario).fingerprint == run(scenario).fingerprint
    True

    Args:
        scenario: a scenario, a dict with its keys, or the path of its file.
        run: number of the run, from 1: each has its own random numbers, and its own positions if nodes are random.
        set: dotted keys and values that override the scenario, as ``--set`` of the command.
        seed: seed of the experiment.
        progress: ``False``: none; a function of four numbers (virtual seconds done and in all, runs done and in all) is
            called from time to time; by default a bar of tqdm, in a terminal or notebook.

    Raises:
        ScenarioError: the scenario is invalid.
    """
    scenario = _scenario(scenario, set, seed)
    command = _command("run", scenario, [f"--run={run}"] if run != 1 else [])
    with _Shown(progress) as shown:
        return Run(_hopline.run(scenario._core, run, command, shown))


def compare(
    scenario: ScenarioLike,
    vary: Vary | None = None,
    runs: int | None = None,
    *,
    metric: str | None = None,
    bound: str | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    output: PathLike | None = None,
    force: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool | Told | None = None,
) -> Comparison:
    """Compares variants of a scenario over paired runs: run 3 of every variant has the same random numbers.

    >>> scenario = Scenario(duration_s=10, radio={}, nodes={"layout": "chain", "count": 5, "spacing_m": 200},
    ...                     flow=[{"src": "n0", "dst": "n4"}])
    >>> result = compare(scenario, vary={"tcp.window": [2, 8]}, runs=5)
    >>> result.variants
    ['tcp.window=2', 'tcp.window=8']

    Args:
        scenario: a scenario, a dict with its keys, or the path of its file.
        vary: keys and their values; all combinations are compared, and the first is the baseline. By default ``[sweep]`` of
            the scenario. A class is a user-defined algorithm (:mod:`hopline.own`), as in ``{"tcp.congestion_control": ["cubic", MyLaw]}``.
        runs: runs of each variant; by default as the scenario says.
        metric: metric of the comparison, such as ``"response_p95 of http"``; by default goodput.
        bound: constraint that a variant must meet as well, such as ``"goodput of bulk > 300 kb/s"``.
        set: dotted keys and values that override the scenario.
        seed: seed of the experiment.
        output: directory for all runs, their tables and the report; an interrupted call is resumed from there.
        force: replace existing results.
        jobs: number of threads; by default the number of cores.
        executor: performs the runs instead of threads here: any :class:`concurrent.futures.Executor`, or one of
            :mod:`hopline.executors`.
        progress: as for :func:`run`.

    Raises:
        ScenarioError: the scenario, the variation or the metric is invalid.
        ResultsError: `output` has other content.
    """
    scenario = _scenario(scenario, set, seed, {} if runs is None else {"runs": runs})
    if vary is not None:
        classes: dict[str, Any] = {}
        vary = {key: own.named(values, classes) for key, values in vary.items()}
        if classes and executor is not None:
            raise ValueError("own machines run on threads here: the workers of an executor do not know them")
        scenario = Scenario._of(scenario._core.with_machines(list(classes.items())))
    axes = None if vary is None else [(key, [to_json(value) for value in values]) for key, values in vary.items()]
    words = [word for key, values in (vary or {}).items() for word in ("--vary", f"{key}={','.join(map(str, values))}")]
    command = _command("compare", scenario, words + _asked(metric, bound))
    plan = _hopline.Plan.product(scenario._core, axes, metric, bound)
    return _experiment(plan, output, force, jobs, executor, progress, command)


def sweep(
    plan: PathLike | Mapping[str, Any],
    output: PathLike | None = None,
    *,
    executor: Executor | None = None,
    quick: bool = False,
    metric: str | None = None,
    bound: str | None = None,
    set: Mapping[str, Any] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: bool | Told | None = None,
    virtual_time: bool = False,
    kernel: PathLike | None = None,
    syscall_cost_us: int | None = None,
    no_routes: bool = False,
    program: PathLike | None = None,
) -> Comparison:
    """Runs a plan of many points and runs, which can be interrupted and resumed at any time.

    It resumes the results of ``hopline sweep``, and the command resumes those of this function. The tables in `output` are
    the same, byte for byte, for any executor and order of the runs, and if workers die meanwhile.

    Args:
        plan: path of a plan file, or a dict with its keys.
        output: directory for all runs; by default they are kept in memory.
        executor: performs the runs instead of threads here: any :class:`concurrent.futures.Executor`, or one of
            :mod:`hopline.executors`.
        quick: only the plan's ``quick_runs`` runs of each point.
        metric, bound: metric and constraint, as for :func:`compare`.
        set: dotted keys and values that override every point.
        force: replace existing results.
        jobs: number of threads, without an executor; by default the number of cores.
        progress: as for :func:`run`.
        virtual_time: run the ``[[program]]`` tables of the scenario over Linux kernels, as :func:`emulate` does. All flows of
            programs are one kind in results: ``metric="goodput of program"``.
        kernel, syscall_cost_us, no_routes: in virtual time: folder of the kernel, here and at workers; microseconds that a
            system call takes; no routes over several hops.
        program: in virtual time: path of the command, as for :func:`emulate`; workers have their own.

    Raises:
        ScenarioError: the plan is invalid.
        EmulationError: this machine or a worker has no command or no kernel, or the plan cannot be emulated.
        ValueError: options of virtual time without it.
        ResultsError: `output` has results of another plan, or other content.
        VersionError: `output` or a worker is of another version of hopline.
        WorkersError: the executor is broken. Finished runs are kept, and the same call resumes them.
    """
    if not virtual_time and (kernel or program or no_routes or syscall_cost_us is not None):
        raise ValueError("kernel, program, no_routes and syscall_cost_us are for virtual_time=True")
    effort: Literal["quick", "full"] = "quick" if quick else "full"
    given = _pairs(set)
    if isinstance(plan, Mapping):
        read = _hopline.Plan.parse(to_json(dict(plan)), Path(), given, effort, metric, bound, virtual_time)
        command = ["hopline", "sweep", "plan.toml"]
    else:
        read = _hopline.Plan.load(plan, given, effort, metric, bound, virtual_time)
        command = ["hopline", "sweep", os.fspath(plan)]
    if virtual_time:
        found = program or existing_command()
        read = read.with_kernels(found, kernel, syscall_cost_us, no_routes)
        if point := read.without_routes:
            message = (
                f"{point}: kernels have no routes over several hops, since nodes run no simulated routing protocol; "
            )
            warnings.warn(message + "no_routes=True silences this", stacklevel=2)
        command += ["--virtual-time"] + ["--no-routes"] * no_routes
        command += [] if syscall_cost_us is None else [f"--syscall-cost-us={syscall_cost_us}"]
        command += [] if kernel is None else [f"--kernel={os.fspath(kernel)}"]
    command += ["--quick"] * quick + _set_words(set) + _asked(metric, bound)
    if output is not None:
        command += ["-o", os.fspath(output)]
    return _experiment(read, output, force, jobs, executor, progress, command)


def report(directory: PathLike, *, metric: str | None = None, bound: str | None = None) -> Comparison:
    """Reads the results in a directory of :func:`sweep` or :func:`compare`, complete or not. Rebuilds its tables and report.

    Args:
        directory: directory of the results.
        metric, bound: metric and constraint, as for :func:`compare`; by default those used before.

    Raises:
        ResultsError: there are no results.
    """
    return Comparison(_hopline.stored(directory, metric, bound))


def reproduce(
    paper: str,
    figure: str | None = None,
    *,
    quick: bool = False,
    output: PathLike | None = None,
    papers: PathLike | None = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    progress: bool | Told | None = None,
) -> Reproduction:
    """Runs the plans of a paper, and compares its claims with the measurements.

    Args:
        paper: name of the paper; :func:`papers` lists them.
        figure: one of its figures; by default all.
        quick: fewer runs than the plans say; a verdict may change with all of them.
        output: directory for the runs, with a folder for each figure.
        papers: folder of papers, instead of those in hopline.
        set: dotted keys and values that override every point.
        jobs: number of threads; by default the number of cores.
        progress: as for :func:`run`.
    """
    command = ["hopline", "reproduce", paper, *([figure] if figure else []), *(["--quick"] * quick)]
    with _Shown(progress) as shown:
        core = _hopline.reproduce(
            paper, figure, "quick" if quick else "full", papers, output, _pairs(set), jobs, command, shown
        )
    return Reproduction(core)


def evaluate(
    *laws: Any,
    sections: str | Sequence[str] = (),
    runs: int | None = None,
    quick: bool = False,
    plan: PathLike | None = None,
    set: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    progress: bool | Told | None = None,
) -> Evaluation:
    """Evaluates congestion control algorithms by RFC 9743, beside CUBIC, BBR and BBRv3.

    >>> result = evaluate("reno", sections=["slow"], quick=True)
    >>> result.verdicts["slow"]["reno"]
    'meets'

    Args:
        laws: algorithms: names as of ``hopline evaluate``, or classes (:class:`hopline.own.CongestionLaw`).
        sections: names of networks, or numbers of sections such as ``"5.1"``; by default all.
        runs: runs of each network and algorithm; by default as the evaluation says.
        quick: one run of each; not with `runs`.
        plan: file of networks and requirements, instead of those in hopline.
        set: dotted keys and values that override every network, such as ``{"seed": 7}``.
        jobs: number of threads; by default the number of cores.
        progress: as for :func:`run`.

    Raises:
        ScenarioError: an algorithm, a section or the plan is invalid.
        ValueError: `runs` and `quick` are both given.

    A failed run, such as one with an exception of your class, warns with :class:`~hopline.FailedRunsWarning`.
    """
    if quick and runs is not None:
        raise ValueError("runs and quick exclude each other")
    sections = [sections] if isinstance(sections, str) else list(sections)
    classes: dict[str, Any] = {}
    names = [str(name) for name in own.named(laws, classes)]
    command = ["hopline", "evaluate", *names, *(["--quick"] * quick)]
    with _Shown(progress) as shown:
        core = _hopline.evaluate(
            names,
            list(classes.items()),
            sections,
            runs,
            "quick" if quick else "full",
            plan,
            _pairs(set),
            jobs,
            command,
            shown,
        )
    if failed := core.failed:
        network, law, number, why = failed[0]
        message = f"{len(failed)} of the runs failed and have no value; {law} on {network}, run {number}: {why}"
        warnings.warn(message, FailedRunsWarning, stacklevel=2)
    return Evaluation(core)


def papers(folder: PathLike | None = None) -> dict[str, dict[str, str]]:
    """Returns the papers that can be reproduced, and the figures of each with their titles.

    >>> "chain" in papers()["tpa"]
    True
    """
    return {name: dict(figures) for name, _title, figures in _hopline.papers(folder)}


class _Shown:
    """Context manager that shows progress."""

    def __init__(self, progress: bool | Told | None) -> None:
        self._shown = _progress.chosen(progress)

    def __enter__(self) -> _progress.Bar | _progress.Teller | None:
        return self._shown

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.close()


def _experiment(
    plan: _hopline.Plan,
    output: PathLike | None,
    force: bool,
    jobs: int | None,
    executor: Executor | None,
    progress: bool | Told | None,
    command: list[str],
) -> Comparison:
    start: Literal["anew", "resume"] = "anew" if force else "resume"
    with _Shown(progress) as shown:
        if executor is None:
            core = _hopline.compare(plan, output, start, jobs, command, shown)
        else:
            core = drive(_hopline.Course(plan, output, start, command), executor, shown)
    result = Comparison(core)
    if failed := result.failed:
        first, number, why = failed[0]
        message = f"{len(failed)} of the runs failed and are not counted in; {first}, run {number}: {why}"
        warnings.warn(message, FailedRunsWarning, stacklevel=3)
    return result


def _scenario(
    scenario: ScenarioLike, set: Mapping[str, Any] | None, seed: int | None, more: Mapping[str, Any] | None = None
) -> Scenario:
    scenario = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    over = {**(set or {}), **({} if seed is None else {"seed": seed}), **(more or {})}
    return scenario.set(over) if over else scenario


def _pairs(settings: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(key, to_json(value)) for key, value in (settings or {}).items()]


def _set_words(settings: Mapping[str, Any] | None) -> list[str]:
    return [word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")]


def _asked(metric: str | None, bound: str | None) -> list[str]:
    return [word for option, text in (("--metric", metric), ("--bound", bound)) if text for word in (option, text)]


def _command(name: str, scenario: Scenario, words: list[str]) -> list[str]:
    """Returns the equivalent command; for a scenario without a file, that of this program."""
    if not os.path.exists(scenario.file):
        return [shlex.quote(word) for word in (Path(sys.executable).name, *sys.argv) if word]
    settings = [word for key, value in scenario._core.settings for word in ("--set", f"{key}={value}")]
    return ["hopline", name, scenario.file, *settings, *words]
