"""A machine of your own in the simulator: a law of TCP's congestion window, or a queue discipline, as a Python class.

Each instance governs one end of one flow, or one queue. It is told what happens, and says what is to be done. Runs have to be
repeatable: every run with such a machine is made twice, and fails if the two differ. So take random numbers from ``self.random``,
which is seeded from the scenario's seed, the run, and the place of the instance; keep everything on ``self``; do not look at
the clock. An exception ends its run, with the traceback as the reason, and no other run.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
import types
from collections.abc import Callable, Iterable
from typing import Any

from hopline import _hopline

Ack = _hopline.Ack
Loss = _hopline.Loss
Timeout = _hopline.Timeout
WindowState = _hopline.WindowState
Packet = _hopline.Packet
Head = _hopline.Head
Queue = _hopline.Queue

__all__ = ["Ack", "CongestionLaw", "Head", "Loss", "Packet", "Queue", "QueueDiscipline", "Timeout", "WindowState"]


class CongestionLaw:
    """How TCP's congestion window grows, and what a loss leaves of it. All windows are bytes.

    What is lost and when it is sent again stays hopline's, as :class:`hopline.Scenario` says with ``transport``. Go by the window that
    you are told: hopline changes it too, as after a time-out, or when a reduction turns out to have been wrong.

    Additive increase, multiplicative decrease, a segment more each round trip:

    >>> class AIMD(CongestionLaw):
    ...     def on_ack(self, ack):
    ...         if ack.cwnd_bytes < ack.ssthresh_bytes:
    ...             return ack.slow_start_bytes
    ...         return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes / ack.cwnd_bytes
    ...
    ...     def on_loss(self, loss):
    ...         return loss.reduced_bytes / 2
    ...
    ...     def on_timeout(self, timeout):
    ...         return timeout.reduced_bytes / 2
    """

    def __init__(self, *, seed: int = 0) -> None:
        """
        Args:
            seed: 64 bits, another one for every instance and run. A class may do without this argument.
        """
        self.random = random.Random(seed)

    def on_ack(self, ack: Ack) -> float:
        """New data was acknowledged, outside fast recovery. Returns the congestion window from now on."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack")

    def on_loss(self, loss: Loss) -> float:
        """A segment was lost or marked, for the first time in this window. Returns what is left of the window (``ssthresh``)."""
        raise NotImplementedError(f"{type(self).__name__} has no on_loss")

    def on_timeout(self, timeout: Timeout) -> float:
        """The retransmission timer expired; the window is one segment. Returns ``ssthresh``."""
        raise NotImplementedError(f"{type(self).__name__} has no on_timeout")

    def on_undo(self, state: WindowState) -> None:
        """The last reductions were wrong and are undone. May be left out."""


class QueueDiscipline:
    """Which packets enter a queue, in which order they are served, and which are dropped on the way.

    What waits is hopline's, and so is the bound: a full queue takes nothing, unless its last packet has a higher rank.

    Random early detection (Floyd and Jacobson 1993):

    >>> class RED(QueueDiscipline):
    ...     least, most, weight, probability = 5, 15, 0.002, 0.1
    ...
    ...     def __init__(self, *, seed=0):
    ...         super().__init__(seed=seed)
    ...         self.average = 0.0
    ...
    ...     def enqueue(self, packet, queue):
    ...         self.average += self.weight * (queue.packets - self.average)
    ...         if packet.is_routing or self.average < self.least:
    ...             return "accept"
    ...         if self.average >= self.most:
    ...             return "drop"
    ...         share = (self.average - self.least) / (self.most - self.least)
    ...         return "mark" if self.random.random() < self.probability * share else "accept"
    ...
    ...     def dequeue(self, head, queue):
    ...         return "serve"
    """

    def __init__(self, *, seed: int = 0) -> None:
        """
        Args:
            seed: 64 bits, another one for every instance and run. A class may do without this argument.
        """
        self.random = random.Random(seed)

    def enqueue(self, packet: Packet, queue: Queue) -> str | tuple[str, float]:
        """A packet has come: ``"accept"``, ``"mark"`` (accept, and tell of congestion; dropped if it cannot be marked) or ``"drop"``.

        With a rank, ``("accept", rank)``, packets of lower rank go first; without, the rank is 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no enqueue")

    def dequeue(self, head: Head, queue: Queue) -> str:
        """The interface is free: ``"serve"`` the head, ``"mark"`` and serve it, or ``"drop"`` it and look at the next."""
        raise NotImplementedError(f"{type(self).__name__} has no dequeue")

    def on_lost(self, packet: Packet, reason: str, queue: Queue) -> None:
        """A packet was lost otherwise: the queue was ``"full"``, it was ``"displaced"`` by one of lower rank, or ``"removed"`` because
        its next hop is gone. May be left out."""


#: By kind: what its users call it, the methods that it must have, and the base class that only says which.
_KINDS: dict[str, tuple[str, tuple[str, ...], type]] = {
    "law": ("a congestion law", ("on_ack", "on_loss", "on_timeout"), CongestionLaw),
    "discipline": ("a queue discipline", ("enqueue", "dequeue"), QueueDiscipline),
}


def named(values: Iterable[Any], classes: dict[str, Any]) -> list[Any]:
    """Values of a key, with the names of classes in place of them; `classes` gets those by name.

    Raises:
        ValueError: two classes of one name.
    """

    def name(value: Any) -> Any:
        if isinstance(value, functools.partial):
            given = [repr(arg) for arg in value.args] + [f"{key}={arg!r}" for key, arg in value.keywords.items()]
            called = f"{value.func.__name__}({', '.join(given)})"
        elif isinstance(value, type):
            called = value.__name__
        else:
            return value
        if classes.setdefault(called, value) is not value:
            raise ValueError(f"two own machines are called {called}: give one another name")
        return f"own:{called}"

    return [name(value) for value in values]


def _described(machine: Any) -> tuple[str, bool, str]:
    """What the extension has to know of a class: its kind, whether it takes a seed, and a digest of its program.

    Raises:
        TypeError: what is no such class, or lacks a method.
    """
    cls = machine.func if isinstance(machine, functools.partial) else machine
    if not isinstance(cls, type):
        raise TypeError(
            f"{machine!r} is not a class: an own machine is one, with the methods of hopline.CongestionLaw or "
            "hopline.QueueDiscipline; instances are made for every flow or queue"
        )
    kind = _kind(cls)
    noun, methods, base = _KINDS[kind]
    for method in methods:
        found = getattr(cls, method, None)
        if found is None or found is getattr(base, method):
            raise TypeError(f"{cls.__name__} has no method `{method}`: {noun} has {', '.join(methods)}")
        if not callable(found):
            raise TypeError(f"`{method}` of {cls.__name__} is not a method")
    return kind, _takes_seed(machine), _digest(machine, cls)


def _kind(cls: type) -> str:
    for kind, (_, _, base) in _KINDS.items():
        if issubclass(cls, base):
            return kind
    has = {kind: [m for m in methods if hasattr(cls, m)] for kind, (_, methods, _) in _KINDS.items()}
    best = max(has, key=lambda kind: len(has[kind]))
    if has[best]:
        return best
    ways = " or ".join(f"{noun} ({', '.join(methods)})" for noun, methods, _ in _KINDS.values())
    raise TypeError(f"{cls.__name__} has none of the methods of {ways}")


def _takes_seed(machine: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(machine).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters)


def _digest(machine: Any, cls: type) -> str:
    """SHA-256 of the text of a class and of those that it builds on; of the bytecode where there is no text. What it calls elsewhere is
    not part of it."""
    digest = hashlib.sha256()
    if isinstance(machine, functools.partial):
        digest.update(repr((machine.args, sorted(machine.keywords.items()))).encode())
    for base in cls.__mro__:
        if base is object or base.__module__ == __name__:
            continue
        digest.update(base.__qualname__.encode())
        try:
            digest.update(inspect.getsource(base).encode())
        except (OSError, TypeError):
            for name, value in sorted(vars(base).items()):
                digest.update(name.encode())
                digest.update(_shape(value).encode())
    return digest.hexdigest()


def _shape(value: Any) -> str:
    """Something that is the same wherever the same program is loaded."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if isinstance(value, types.FunctionType):
        return f"{_shape(value.__code__)} {_shape(value.__defaults__)} {_shape(value.__kwdefaults__)}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[_shape(const) for const in value.co_consts]}"
    if isinstance(value, (int, float, complex, str, bytes, bool, type(None))):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_shape(item) for item in value)}]"
    return type(value).__qualname__
