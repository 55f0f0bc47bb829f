"""User-defined algorithms in the simulator: TCP congestion control, or a queue discipline, as a Python class.

Each instance controls one end of one flow, or one queue. Its methods are called for each event, and return the reaction.
Runs have to be repeatable: every run with such a class is made twice, and fails if the two differ. So take random numbers
from ``self.random``, which is seeded from the scenario's seed, the run, and the place of the instance; keep all state on
``self``; do not read the clock. An exception ends its run, with the traceback as the reason, and no other run.
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
    """TCP congestion control algorithm: growth of the congestion window, and reduction after a loss, in bytes.

    hopline detects losses and retransmits, as the ``transport`` of :class:`hopline.Scenario` says. Use the window of each
    call: hopline changes it too, for instance after a timeout, or when it undoes a spurious reduction.

    Additive increase, multiplicative decrease, with one segment for each round trip:

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
            seed: 64 bits, different for every instance and run. A class may omit this argument.
        """
        self.random = random.Random(seed)

    def on_ack(self, ack: Ack) -> float:
        """Handles an acknowledgment of new data, outside fast recovery. Returns the new congestion window."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack")

    def on_loss(self, loss: Loss) -> float:
        """Handles the first loss or ECN mark in a window. Returns the new ``ssthresh``."""
        raise NotImplementedError(f"{type(self).__name__} has no on_loss")

    def on_timeout(self, timeout: Timeout) -> float:
        """Handles a retransmission timeout; the window is one segment. Returns the new ``ssthresh``."""
        raise NotImplementedError(f"{type(self).__name__} has no on_timeout")

    def on_undo(self, state: WindowState) -> None:
        """Handles the undoing of spurious reductions. Optional."""


class QueueDiscipline:
    """Queue discipline: admission, order and dropping of packets.

    hopline stores the packets and enforces the capacity: a full queue accepts a packet only if its last one has a higher
    rank.

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
            seed: 64 bits, different for every instance and run. A class may omit this argument.
        """
        self.random = random.Random(seed)

    def enqueue(self, packet: Packet, queue: Queue) -> str | tuple[str, float]:
        """Handles an arriving packet. Returns ``"accept"``, ``"mark"`` or ``"drop"``.

        ``"mark"`` sets an ECN mark, and drops a packet that cannot be marked.
        With a rank, ``("accept", rank)``, packets of lower rank are served first. The default rank is 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no enqueue")

    def dequeue(self, head: Head, queue: Queue) -> str:
        """Handles a free interface. Returns ``"serve"``, ``"mark"`` or ``"drop"`` for the packet at the head.

        ``"mark"`` also serves it. After ``"drop"`` the next packet is at the head.
        """
        raise NotImplementedError(f"{type(self).__name__} has no dequeue")

    def on_lost(self, packet: Packet, reason: str, queue: Queue) -> None:
        """Handles another loss of a packet. Optional.

        Args:
            packet: the lost packet.
            reason: the queue was ``"full"``, a packet of lower rank ``"displaced"`` it, or it was ``"removed"`` because its
                next hop is gone.
            queue: the queue without it.
        """


#: By kind: its name for users, its required methods, and the base class that declares them.
_KINDS: dict[str, tuple[str, tuple[str, ...], type]] = {
    "law": ("a congestion law", ("on_ack", "on_loss", "on_timeout"), CongestionLaw),
    "discipline": ("a queue discipline", ("enqueue", "dequeue"), QueueDiscipline),
}


def named(values: Iterable[Any], classes: dict[str, Any]) -> list[Any]:
    """Returns the values of a key, with classes replaced by their names. Adds the classes to `classes` by name.

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
    """Returns the kind of a class, whether it takes a seed, and a digest of its program, for the extension.

    Raises:
        TypeError: it is not such a class, or lacks a method.
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
    """Returns the SHA-256 of the source of a class and its bases, or of the bytecode if there is no source.

    Functions of other modules are not included.
    """
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
    """Returns a text that depends only on the program, not on the process that loads it."""
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
