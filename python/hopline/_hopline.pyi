"""Part of the package that is written in Rust, as small as possible.

Documents, plans and results cross the boundary as JSON text, tables as Arrow. The public interface with its names, defaults
and docstrings is in the other modules; of this one only :class:`Table` and ``__version__`` are public.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, final, overload

_Path: TypeAlias = str | os.PathLike[str]
_Settings: TypeAlias = list[tuple[str, str]]
"""Dotted keys, and their values in JSON."""
_Progress: TypeAlias = Callable[[float, float, int, int], object]
"""Virtual seconds done and in all, runs done and in all."""
_Effort: TypeAlias = Literal["quick", "full"]
_Start: TypeAlias = Literal["anew", "resume"]
_TableName: TypeAlias = Literal["runs", "metrics", "flows", "series", "neighborhoods"]

__version__: str

@final
class Table:
    """Table of rows and columns, for any library that reads Arrow: ``polars.DataFrame(table)``."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns a dict of columns, each a list."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over the rows, each a dict, as ``pandas.DataFrame(table)`` reads them."""

    @overload
    def __getitem__(self, key: str, /) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]:
        """Returns column `key` as a list if `key` is a name, row number `key` as a dict if it is a number."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as an Arrow stream."""

    def __arrow_c_schema__(self) -> object:
        """Returns the columns as an Arrow schema."""

@final
class Scenario:
    """Checked scenario: an immutable value."""

    @staticmethod
    def load(path: _Path) -> Scenario:
        """Reads the scenario in the file `path`."""

    @staticmethod
    def parse(text: str, name: str, folder: _Path) -> Scenario:
        """Parses a scenario, called `name` in messages. Its files are relative to `folder`."""

    @staticmethod
    def document(json: str, name: str, folder: _Path) -> Scenario:
        """Parses a scenario from a document in JSON."""

    def with_settings(self, origin: str, given: _Settings) -> Scenario:
        """Returns the scenario with settings applied. `origin` names their source in messages."""

    def with_machines(self, classes: list[tuple[str, Any]]) -> Scenario:
        """Returns the scenario with more user-defined algorithms of :mod:`hopline.own`, classes by name."""

    @property
    def name(self) -> str:
        """Name."""

    @property
    def duration_s(self) -> float:
        """Virtual time of a run, seconds."""

    @property
    def written(self) -> str:
        """The scenario as written, settings included, in JSON."""

    @property
    def parameters(self) -> str:
        """Every parameter in effect, defaults included, in JSON."""

    @property
    def settings(self) -> list[tuple[str, str]]:
        """Settings applied to the file, as on the command line: keys and values."""

    @property
    def file(self) -> str:
        """Path of the file, or name of the text."""

    @property
    def folder(self) -> os.PathLike[str]:
        """Folder that its paths are relative to."""

    def map(self, run: int) -> str:
        """Returns the map of run `run` as a report draws it, in JSON: nodes, positions, and links."""

@final
class Plan:
    """Points, and the number of runs of each."""

    @staticmethod
    def product(
        scenario: Scenario, vary: list[tuple[str, list[str]]] | None, metric: str | None, bound: str | None
    ) -> Plan:
        """Returns the product of `vary`, keys with lists of values in JSON, over `scenario`; ``None``: its ``[sweep]``."""

    @staticmethod
    def load(
        path: _Path, given: _Settings, effort: _Effort, metric: str | None, bound: str | None, network: bool
    ) -> Plan:
        """Reads the plan in the file `path`, with settings for every point. `network`: its scenario may have programs."""

    @staticmethod
    def parse(
        json: str,
        folder: _Path,
        given: _Settings,
        effort: _Effort,
        metric: str | None,
        bound: str | None,
        network: bool,
    ) -> Plan:
        """Parses a plan without a file. The path of its scenario is relative to `folder`."""

    def with_kernels(self, command: _Path, kernel: _Path | None, syscall_cost_us: int | None, no_routes: bool) -> Plan:
        """Returns the plan with runs over Linux kernels, which the command ``hopline`` at `command` makes."""

    @property
    def name(self) -> str:
        """Name."""

    @property
    def without_routes(self) -> str | None:
        """A point whose kernels have no routes, although its scenario has a routing protocol."""

    @property
    def labels(self) -> list[str]:
        """Labels of its points."""

@final
class Single:
    """Result of a run."""

    @property
    def json(self) -> str:
        """Output of ``hopline run --json``."""

    @property
    def text(self) -> str:
        """Output of ``hopline run``."""

    def table(self, name: _TableName) -> Table:
        """Returns a table by name."""

    def html(self) -> str:
        """Returns the page of ``hopline run --report``, for a notebook."""

    @property
    def distributions(self) -> str:
        """Distributions of delays and response times, in JSON."""

    @property
    def map(self) -> str:
        """The network, in JSON."""

    def report(self, path: _Path) -> None:
        """Writes the report."""

@final
class Comparison:
    """Results of the runs of an experiment."""

    def json(self, with_runs: bool) -> str:
        """Returns the output of ``hopline compare --json``; without every run, that of ``hopline sweep --json``."""

    @property
    def text(self) -> str:
        """Table and conclusion as the command prints them."""

    @property
    def answer(self) -> str:
        """Conclusion, a paragraph for each group of variants that are compared with each other."""

    def table(self, name: _TableName) -> Table:
        """Returns a table by name."""

    def estimates(self) -> Table:
        """Returns means and gains with their confidence intervals."""

    def html(self) -> str:
        """Returns the conclusion, the table and the charts, for a notebook."""

    def report(self, path: _Path) -> None:
        """Writes the report."""

    def asking(self, metric: str | None, bound: str | None) -> Comparison:
        """Returns the comparison of the same runs by another metric or constraint."""

    @property
    def asked(self) -> list[tuple[str, list[float]]]:
        """Names of the variants, and values of the selected metric in their runs; NaN if there is none."""

    @property
    def distributions(self) -> str:
        """Distributions of delays and response times in run 1 of each variant, in JSON."""

    @property
    def map(self) -> str:
        """The network of run 1 of the first variant, in JSON."""

    @property
    def failed(self) -> list[tuple[str, int, str]]:
        """Failed runs: variant, number and reason."""

    @property
    def directory(self) -> os.PathLike[str] | None:
        """Directory of the stored records, if there is one."""

@final
class Reproduction:
    """Results of the reproduction of a paper."""

    @property
    def json(self) -> str:
        """Output of ``hopline reproduce --json``."""

    @property
    def text(self) -> str:
        """Output of ``hopline reproduce``."""

    @property
    def figures(self) -> list[tuple[str, Comparison]]:
        """Figures: names and comparisons."""

    def html(self) -> str:
        """Returns the claims, the conclusions and the charts, for a notebook."""

    def report(self, path: _Path) -> None:
        """Writes the report."""

@final
class Evaluation:
    """Results of an evaluation."""

    @property
    def json(self) -> str:
        """Output of ``hopline evaluate --json``."""

    @property
    def text(self) -> str:
        """Output of ``hopline evaluate``."""

    @property
    def failed(self) -> list[tuple[str, str, int, str]]:
        """Failed runs: network, algorithm, number and reason."""

    @property
    def networks(self) -> list[tuple[str, Comparison]]:
        """Networks: names and comparisons."""

    def report(self, path: _Path) -> None:
        """Writes the report."""

@final
class Bundle:
    """Parts of a plan that a worker needs."""

    @staticmethod
    def from_bytes(bytes: bytes, command: _Path) -> Bundle:
        """Decodes the bundle of another process. `command`: path of the command ``hopline`` here, if there is one."""

    def perform(self, id: int, runs: list[tuple[int, int]]) -> bytes:
        """Performs the runs of a batch, and returns their records as a Parquet file."""

@final
class Course:
    """Progress of a plan: gives out batches, and takes their results."""

    def __new__(cls, plan: Plan, output: _Path | None, start: _Start, command: list[str]) -> Course:
        """Begins `plan`, or resumes the results in `output`."""

    def bundle(self) -> bytes:
        """Returns the bundle of the plan."""

    def next(self, workers: int) -> tuple[int, list[tuple[int, int]]] | None:
        """Returns the next batch for one of `workers` workers: its number, points and runs.

        ``None``: all batches are given out, wait for results. An empty batch: all runs are done.
        """

    def take(self, id: int, result: bytes) -> int:
        """Stores the result of batch `id`. Returns the number of new runs in it."""

    def lost(self, id: int) -> None:
        """Reports that batch `id` was lost."""

    @property
    def progress(self) -> tuple[int, int]:
        """Number of finished runs, and of all runs known so far."""

    def complete(self) -> Comparison:
        """Returns the comparison, once all runs are done."""

@final
class WindowState:
    """Present state of the window. All sizes in bytes, all times in seconds of virtual time."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def cwnd_bytes(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow start threshold, bytes; 2**30 before the first loss."""

    @property
    def mss_bytes(self) -> int:
        """Data of a full segment, bytes."""

    @property
    def max_cwnd_bytes(self) -> int:
        """Largest window, bytes."""

    @property
    def flight_bytes(self) -> int:
        """Data in flight, bytes."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""

@final
class Ack:
    """Acknowledgment of new data."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def cwnd_bytes(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow start threshold, bytes; 2**30 before the first loss."""

    @property
    def mss_bytes(self) -> int:
        """Data of a full segment, bytes."""

    @property
    def max_cwnd_bytes(self) -> int:
        """Largest window, bytes."""

    @property
    def flight_bytes(self) -> int:
        """Data in flight after this acknowledgment, bytes."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""

    @property
    def acked_bytes(self) -> int:
        """Newly acknowledged data, bytes."""

    @property
    def rtt_s(self) -> float | None:
        """Round-trip time sample, s, in whole milliseconds if it is from timestamps; ``None`` without a sample."""

    @property
    def slow_start_bytes(self) -> float:
        """Window after slow start's reaction to this acknowledgment, bytes."""

    @property
    def window_was_full(self) -> bool:
        """True if the window limited the sender."""

    @property
    def marked(self) -> bool:
        """True if it reports an ECN mark: the window then does not grow, whatever the method returns."""

@final
class Loss:
    """Loss or ECN mark."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def cwnd_bytes(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow start threshold, bytes; 2**30 before the first loss."""

    @property
    def mss_bytes(self) -> int:
        """Data of a full segment, bytes."""

    @property
    def max_cwnd_bytes(self) -> int:
        """Largest window, bytes."""

    @property
    def flight_bytes(self) -> int:
        """Data in flight, bytes."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""

    @property
    def reduced_bytes(self) -> int:
        """Base of a reduction, bytes: data in flight, or the window with presets of ns-2."""

    @property
    def sign(self) -> Literal["loss", "mark"]:
        """Signal of congestion."""

@final
class Timeout:
    """Retransmission timeout, with the state before it."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def cwnd_bytes(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh_bytes(self) -> int:
        """Slow start threshold, bytes; 2**30 before the first loss."""

    @property
    def mss_bytes(self) -> int:
        """Data of a full segment, bytes."""

    @property
    def max_cwnd_bytes(self) -> int:
        """Largest window, bytes."""

    @property
    def flight_bytes(self) -> int:
        """Data in flight, bytes."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""

    @property
    def reduced_bytes(self) -> int:
        """Base of a reduction, bytes: data in flight, or the window with presets of ns-2."""

    @property
    def answer_counts(self) -> bool:
        """True if the returned value is used: not if ssthresh was reduced for this loss before."""

@final
class Packet:
    """A packet."""

    @property
    def len_bytes(self) -> int:
        """Length, bytes."""

    @property
    def flow(self) -> int:
        """Number of the flow and direction. Packets of other flows hardly ever have the same."""

    @property
    def is_routing(self) -> bool:
        """True if it is a message of the routing protocol."""

    @property
    def markable(self) -> bool:
        """True if it can be marked: its flow has tcp.ecn."""

@final
class Head:
    """Packet at the head of the queue."""

    @property
    def len_bytes(self) -> int:
        """Length, bytes."""

    @property
    def flow(self) -> int:
        """Number of the flow and direction. Packets of other flows hardly ever have the same."""

    @property
    def is_routing(self) -> bool:
        """True if it is a message of the routing protocol."""

    @property
    def markable(self) -> bool:
        """True if it can be marked: its flow has tcp.ecn."""

    @property
    def waited_s(self) -> float:
        """Queueing delay so far, s."""

    @property
    def rank(self) -> float:
        """Rank with which it was enqueued."""

@final
class Queue:
    """State of the queue, without the packet in question."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def packets(self) -> int:
        """Number of packets."""

    @property
    def bytes(self) -> int:
        """Number of bytes."""

    @property
    def capacity_packets(self) -> int:
        """Capacity, packets."""

def run(scenario: Scenario, number: int, command: list[str], progress: _Progress | None) -> Single:
    """Performs run number `number` of `scenario`."""

def compare(
    plan: Plan,
    output: _Path | None,
    start: _Start,
    jobs: int | None,
    command: list[str],
    progress: _Progress | None,
) -> Comparison:
    """Runs `plan` on `jobs` threads, in memory or in the directory `output`, which is replaced or resumed."""

def stored(path: _Path, metric: str | None, bound: str | None) -> Comparison:
    """Returns the comparison of the results stored in `path`, and writes its page again."""

def papers(folder: _Path | None) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Returns every paper, its title, and names and titles of the figures that can be reproduced."""

def reproduce(
    paper: str,
    figure: str | None,
    effort: _Effort,
    folder: _Path | None,
    output: _Path | None,
    given: _Settings,
    jobs: int | None,
    command: list[str],
    progress: _Progress | None,
) -> Reproduction:
    """Runs the plans of a paper, of one figure or of all, and evaluates its claims."""

def evaluate(
    laws: list[str],
    classes: list[tuple[str, Any]],
    sections: list[str],
    runs: int | None,
    effort: _Effort,
    plan: _Path | None,
    given: _Settings,
    jobs: int | None,
    command: list[str],
    progress: _Progress | None,
) -> Evaluation:
    """Runs algorithms on the networks of an evaluation, and judges the runs."""

def schema(kind: Literal["scenario", "plan", "claims", "evaluation"]) -> str:
    """Returns the JSON Schema of a kind of file."""
