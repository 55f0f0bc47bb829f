"""Executors for clusters, for :func:`hopline.sweep`, in addition to those of :mod:`concurrent.futures`.

Workers need only the wheel of hopline, of the same version.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class DaskExecutor(Executor):
    """Runs on a Dask cluster: ``pip install hopline[dask]``.

    Args:
        client: a ``distributed.Client``, the address of a scheduler, or ``None`` for a cluster of processes on this machine.
        workers: number of those processes; by default the number of cores.

    >>> with DaskExecutor("tcp://head:8786") as executor:  # doctest: +SKIP
    ...     hopline.sweep("plan.toml", "results", executor=executor)
    """

    def __init__(self, client: Any = None, *, workers: int | None = None) -> None:
        import distributed

        self._own: list[Any] = []
        if client is None:
            cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            client = distributed.Client(cluster)
            self._own = [client, cluster]
        elif isinstance(client, str):
            client = distributed.Client(client)
            self._own = [client]
        self.client = client
        self._executor = client.get_executor(pure=False)

    @property
    def workers(self) -> int:
        """Number of threads of all present workers."""
        threads: int = sum(self.client.nthreads().values())
        return max(1, threads)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait)
        for own in self._own:
            own.close()


class RayExecutor(Executor):
    """Runs on a Ray cluster: ``pip install hopline[ray]``.

    Args:
        address: address of the cluster, as for ``ray.init``; by default the connected one, or one on this machine.
        workers: cores of a cluster on this machine; by default all.

    >>> with RayExecutor("auto") as executor:  # doctest: +SKIP
    ...     hopline.sweep("plan.toml", "results", executor=executor)
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        import ray

        self._ray = ray
        self._own = not ray.is_initialized()
        if self._own:
            here: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, **here)
        self._remote: dict[Callable[..., Any], Any] = {}

    @property
    def workers(self) -> int:
        """Number of cores of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if fn not in self._remote:
            self._remote[fn] = self._ray.remote(num_cpus=1, max_retries=3)(fn)
        future: Future[Any] = self._remote[fn].remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._own:
            self._ray.shutdown()
