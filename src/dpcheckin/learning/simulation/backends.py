"""Who runs the chunks of a round: this process, several processes, or a Ray cluster.

Every backend yields the results in the order of the chunks, and a chunk's result depends only on the parameters, its
clients and its seed, so all of them give the same sum, bit for bit, as long as each worker uses the same number of
threads. Work is shipped in groups of thousands of clients, never one client at a time; the data travels once.
`sweeps.grid` plays whole runs by the same means.
"""

from __future__ import annotations

import logging
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import torch
from torch import Tensor

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.learning.options import BACKENDS
from dpcheckin.learning.simulation.client_work import Chunk, ChunkResult, ClientWork, set_parameters
from dpcheckin.numerals import at_least
from dpcheckin.options import listed

_GROUP = 8
"""Most chunks per shipment: 4,000 clients a call, enough to hide its cost."""


def _grouped(chunks: list[Chunk], workers: int) -> list[list[Chunk]]:
    """Shipments as large as they may be while every worker gets one."""
    size = max(1, min(_GROUP, -(-len(chunks) // workers)))
    return [chunks[i : i + size] for i in range(0, len(chunks), size)]


def follow_parent() -> None:
    """End this process when its parent does: a trainer killed without warning leaves nobody."""
    parent = parent_process()

    def follow() -> None:
        assert parent is not None
        parent.join()
        os._exit(1)

    if parent is not None:
        Thread(target=follow, daemon=True).start()


@contextmanager
def connect_ray(workers: int, address: str | None = None) -> Iterator[Any]:
    """The ray package, connected; what was started here is stopped at the end.

    Without an address the one in RAY_ADDRESS counts, as everywhere in Ray, and without that a local cluster of so many
    processes (workers) is started.
    """
    at_least("workers", workers, 1)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise DpCheckinError("backend 'ray' needs the ray package: pip install ray") from None
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        ray.init(
            address="local",  # not one that happens to run on this machine
            num_cpus=workers,
            include_dashboard=False,
            logging_level=logging.ERROR,
            _system_config={"metrics_report_interval_ms": 10**9},
        )
    else:
        try:
            ray.init(address=address, logging_level=logging.ERROR)
        except (ConnectionError, ValueError) as problem:
            reason = str(problem).splitlines()[0]
            raise InvalidParameter("ray_address", address, f"a Ray cluster ({reason})") from None
    try:
        yield ray
    finally:
        ray.shutdown()


class Backend(ABC):
    """Runs chunks of client work at given parameters."""

    @abstractmethod
    def run(self, parameters: Tensor, chunks: list[Chunk]) -> Iterator[ChunkResult]:
        """Results of chunks at these parameters of the model, in the order of the chunks."""

    def close(self) -> None:
        """Let workers go."""
        return


class InProcess(Backend):
    """One process; torch uses its threads within each chunk."""

    def __init__(self, work: ClientWork) -> None:
        self._work = work

    def run(self, parameters: Tensor, chunks: list[Chunk]) -> Iterator[ChunkResult]:
        set_parameters(self._work.module, parameters)
        for chunk in chunks:
            yield self._work.chunk(chunk)


_worker_work: ClientWork | None = None


def _start_worker(work: ClientWork, threads: int) -> None:
    global _worker_work
    torch.set_num_threads(threads)
    _worker_work = work
    follow_parent()


def _start_process(work: ClientWork, threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's, which finishes its round
    _start_worker(work, threads)


def _run_group(parameters: Tensor, group: list[Chunk]) -> list[ChunkResult]:
    assert _worker_work is not None
    set_parameters(_worker_work.module, parameters)
    return [_worker_work.chunk(chunk) for chunk in group]


class Processes(Backend):
    """Several worker processes on this machine."""

    def __init__(self, work: ClientWork, workers: int, threads: int = 1) -> None:
        at_least("workers", workers, 1)
        self._count = workers
        self._pool = ProcessPoolExecutor(
            workers, get_context("spawn"), initializer=_start_process, initargs=(work, threads)
        )

    def run(self, parameters: Tensor, chunks: list[Chunk]) -> Iterator[ChunkResult]:
        groups = _grouped(chunks, self._count)
        for results in self._pool.map(_run_group, [parameters] * len(groups), groups):
            yield from results

    def close(self) -> None:
        self._pool.shutdown()


class _RayWorker:
    def __init__(self, work: ClientWork, threads: int) -> None:
        _start_worker(work, threads)

    def run(self, parameters: Tensor, group: list[Chunk]) -> list[ChunkResult]:
        return _run_group(parameters, group)


class RayCluster(Backend):
    """Workers on a Ray cluster (a local one is started when there is none)."""

    def __init__(self, work: ClientWork, workers: int, threads: int = 1) -> None:
        self._connection = ExitStack()
        ray = self._ray = self._connection.enter_context(connect_ray(workers))
        remote: Any = ray.remote(num_cpus=1)(_RayWorker)
        shipped = ray.put(work)
        self._workers: list[Any] = [remote.remote(shipped, threads) for _ in range(workers)]

    def run(self, parameters: Tensor, chunks: list[Chunk]) -> Iterator[ChunkResult]:
        at, groups = self._ray.put(parameters), _grouped(chunks, len(self._workers))
        pairs = zip(cycle(self._workers), groups, strict=False)
        pending = [worker.run.remote(at, group) for worker, group in pairs]
        for answer in pending:
            yield from self._ray.get(answer)

    def close(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker)
        self._connection.close()


def make_backend(name: str, work: ClientWork, workers: int, threads: int = 1) -> Backend:
    """A backend by name, one of `options.BACKENDS`, for the work of clients: so many workers, with so many threads."""
    if name not in BACKENDS:
        raise InvalidParameter("backend", name, listed(BACKENDS))
    if name == "local":
        return InProcess(work)
    return (Processes if name == "processes" else RayCluster)(work, workers, threads)
