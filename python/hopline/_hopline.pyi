"""What is written in Rust of the package: as little as can be.

Documents, plans and results cross as JSON text, tables as Arrow. What users meet, names, defaults and docstrings, is in the
modules beside; of this one they meet :class:`Table` and ``__version__`` only.
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
    """Rows and columns. Anything that takes Arrow takes it: ``polars.DataFrame(table)``."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""

    def to_dict(self) -> dict[str, list[Any]]:
        """A dict of columns, each a list."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dict: what ``pandas.DataFrame(table)`` reads."""

    @overload
    def __getitem__(self, key: str, /) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]:
        """Column `key` as a list if `key` is a name, row number `key` as a dict if it is a number."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""

    def __arrow_c_schema__(self) -> object:
        """The columns as an Arrow schema."""

@final
class Scenario:
    """A checked scenario: an immutable value."""

    @staticmethod
    def load(path: _Path) -> Scenario:
        """The scenario in the file `path`."""

    @staticmethod
    def parse(text: str, name: str, folder: _Path) -> Scenario:
        """The scenario that `text` describes, called `name` in messages; it names files relative to `folder`."""

    @staticmethod
    def document(json: str, name: str, folder: _Path) -> Scenario:
        """The same of a document in JSON."""

    def with_settings(self, origin: str, given: _Settings) -> Scenario:
        """The same scenario with settings over it. `origin` names who asked."""

    def with_machines(self, classes: list[tuple[str, Any]]) -> Scenario:
        """The same scenario, which knows these classes of :mod:`hopline.own` by name."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def duration_s(self) -> float:
        """Virtual time of a run, in seconds."""

    @property
    def written(self) -> str:
        """What was written, settings included, in JSON."""

    @property
    def parameters(self) -> str:
        """Every parameter in effect, defaults included, in JSON."""

    @property
    def settings(self) -> list[tuple[str, str]]:
        """What was put over the file, as the command line would have it: keys and values."""

    @property
    def file(self) -> str:
        """Path of the file, or what the text is called."""

    @property
    def folder(self) -> os.PathLike[str]:
        """Where the files lie that it names."""

    def map(self, run: int) -> str:
        """Names and places of the nodes of run `run`, in JSON, with who hears whom: as the map of a report draws it."""

@final
class Plan:
    """Points, and how often to run each."""

    @staticmethod
    def product(
        scenario: Scenario, vary: list[tuple[str, list[str]]] | None, metric: str | None, bound: str | None
    ) -> Plan:
        """The product of `vary`, keys with lists of values in JSON, over `scenario`; ``None``: what its ``[sweep]`` says."""

    @staticmethod
    def load(path: _Path, given: _Settings, effort: _Effort, metric: str | None, bound: str | None) -> Plan:
        """The plan in the file `path`, with settings over every point."""

    @staticmethod
    def parse(
        json: str,
        name: str,
        folder: _Path,
        given: _Settings,
        effort: _Effort,
        metric: str | None,
        bound: str | None,
    ) -> Plan:
        """The plan that `json` describes, called `name`; it names its scenario relative to `folder`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def labels(self) -> list[str]:
        """Labels of its points."""

@final
class Single:
    """What came of a run."""

    @property
    def json(self) -> str:
        """The run as ``hopline run --json`` prints it."""

    @property
    def text(self) -> str:
        """The run as ``hopline run`` prints it."""

    def table(self, name: _TableName) -> Table:
        """A table by name."""

    def html(self) -> str:
        """The page of ``hopline run --report``, for a notebook."""

    @property
    def distributions(self) -> str:
        """How delays and response times are distributed, in JSON."""

    @property
    def map(self) -> str:
        """The network, in JSON."""

    def report(self, path: _Path) -> None:
        """Writes the page."""

@final
class Comparison:
    """What the runs of an experiment say."""

    def json(self, with_runs: bool) -> str:
        """The comparison as ``hopline compare --json`` prints it; without every run, as ``hopline sweep --json`` does."""

    @property
    def text(self) -> str:
        """The table and the answer as the command prints them."""

    @property
    def answer(self) -> str:
        """The answer alone, a paragraph for each group of variants that are compared with each other."""

    def table(self, name: _TableName) -> Table:
        """A table by name."""

    def estimates(self) -> Table:
        """Means and gains with their intervals."""

    def html(self) -> str:
        """The answer, the table and the charts, for a notebook."""

    def report(self, path: _Path) -> None:
        """Writes the page."""

    def asking(self, metric: str | None, bound: str | None) -> Comparison:
        """The same runs, asked something else."""

    @property
    def asked(self) -> list[tuple[str, list[float]]]:
        """Names of the variants, and the values that the question's metric has in their runs; NaN where there is none."""

    @property
    def distributions(self) -> str:
        """How delays and response times are distributed in run 1 of each variant, in JSON."""

    @property
    def map(self) -> str:
        """The network of run 1 of the first variant, in JSON."""

    @property
    def failed(self) -> list[tuple[str, int, str]]:
        """Runs that failed: variant, number and why."""

    @property
    def directory(self) -> os.PathLike[str] | None:
        """Directory in which the records are kept, if they are."""

@final
class Reproduction:
    """What became of a paper's claims."""

    @property
    def json(self) -> str:
        """As ``hopline reproduce --json`` prints it."""

    @property
    def text(self) -> str:
        """As ``hopline reproduce`` prints it."""

    @property
    def figures(self) -> list[tuple[str, Comparison]]:
        """The figures: names, and what was compared."""

    def html(self) -> str:
        """The claims, the answers and the charts, for a notebook."""

    def report(self, path: _Path) -> None:
        """Writes the page."""

@final
class Bundle:
    """What a worker needs of a plan."""

    @staticmethod
    def from_bytes(bytes: bytes) -> Bundle:
        """The bundle that another process made."""

    def perform(self, id: int, runs: list[tuple[int, int]]) -> bytes:
        """Makes the runs of a batch, and returns their records as a Parquet file."""

@final
class Course:
    """Gives out batches of a plan, and takes their results."""

    def __new__(cls, plan: Plan, output: _Path | None, start: _Start, command: list[str]) -> Course:
        """Begins `plan`, or goes on with what is in `output`."""

    def bundle(self) -> bytes:
        """The bundle of its plan."""

    def next(self, workers: int) -> tuple[int, list[tuple[int, int]]] | None:
        """The next batch for one of so many workers: its number, points and runs.

        ``None``: wait for what is away. An empty batch: it is all done.
        """

    def take(self, id: int, result: bytes) -> int:
        """Keeps the result of batch `id`; how many runs of it are new."""

    def lost(self, id: int) -> None:
        """Batch `id` was lost."""

    @property
    def progress(self) -> tuple[int, int]:
        """Runs that are there, and all of them as far as is known."""

    def complete(self) -> Comparison:
        """The comparison, once all is done."""

@final
class WindowState:
    """The window as it stands. All sizes in bytes, all times in seconds of virtual time."""

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
    """An acknowledgment of new data."""

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
        """Data in flight after it, bytes."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""

    @property
    def acked_bytes(self) -> int:
        """Data newly acknowledged, bytes."""

    @property
    def rtt_s(self) -> float | None:
        """The round trip that it ends, s, in whole milliseconds where timestamps tell it; ``None`` if it cannot be told."""

    @property
    def slow_start_bytes(self) -> float:
        """What slow start makes of the window with this acknowledgment, bytes."""

    @property
    def window_was_full(self) -> bool:
        """Whether the window was what kept the sender from sending more."""

    @property
    def marked(self) -> bool:
        """Whether it reports a mark of the network: the window then does not grow, whatever the answer."""

@final
class Loss:
    """Something was lost or marked."""

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
        """What a reduction is taken of, bytes: data in flight, or the window with presets of ns-2."""

    @property
    def sign(self) -> Literal["loss", "mark"]:
        """What shows it."""

@final
class Timeout:
    """The retransmission timer expired. As things stood before."""

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
        """What a reduction is taken of, bytes: data in flight, or the window with presets of ns-2."""

    @property
    def answer_counts(self) -> bool:
        """Whether the answer counts: not if ssthresh was reduced for this before."""

@final
class Packet:
    """A packet."""

    @property
    def len_bytes(self) -> int:
        """Its length, bytes."""

    @property
    def flow(self) -> int:
        """A number that packets of one flow and direction share, and those of others hardly ever."""

    @property
    def is_routing(self) -> bool:
        """Whether it is a message of the routing protocol."""

    @property
    def markable(self) -> bool:
        """Whether it can be marked: its flow has tcp.ecn."""

@final
class Head:
    """The packet that is next."""

    @property
    def len_bytes(self) -> int:
        """Its length, bytes."""

    @property
    def flow(self) -> int:
        """A number that packets of one flow and direction share, and those of others hardly ever."""

    @property
    def is_routing(self) -> bool:
        """Whether it is a message of the routing protocol."""

    @property
    def markable(self) -> bool:
        """Whether it can be marked: its flow has tcp.ecn."""

    @property
    def waited_s(self) -> float:
        """How long it has waited, s."""

    @property
    def rank(self) -> float:
        """The rank with which it entered."""

@final
class Queue:
    """The queue, without the packet in question."""

    @property
    def now_s(self) -> float:
        """Virtual time, s."""

    @property
    def packets(self) -> int:
        """Packets in it."""

    @property
    def bytes(self) -> int:
        """Bytes in it."""

    @property
    def capacity_packets(self) -> int:
        """Most packets that fit."""

def run(scenario: Scenario, number: int, command: list[str], progress: _Progress | None) -> Single:
    """Run number `number` of `scenario`."""

def compare(
    plan: Plan,
    output: _Path | None,
    start: _Start,
    jobs: int | None,
    command: list[str],
    progress: _Progress | None,
) -> Comparison:
    """Runs `plan` on `jobs` threads, in memory or in the directory `output`, anew or going on with what is there."""

def stored(path: _Path, metric: str | None, bound: str | None) -> Comparison:
    """The comparison of what is stored in `path`, and its page anew."""

def papers(folder: _Path | None) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Every paper, its title, and the figures of it that can be reproduced: names and titles."""

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
    """Runs the plans of a paper, of one figure or of all, and judges its claims."""

def schema(kind: Literal["scenario", "plan", "claims"]) -> str:
    """The JSON Schema of a kind of file."""
