"""What worker processes and Ray clusters need, whatever they work on.

`follow_parent` ends a worker whose starter was killed; `connect_ray` gives a Ray cluster, the one
there is or a local one, with everything off that would report to somebody. Who does what on them
is in `simulation.backends` (the chunks of a round) and `sweeps.runners` (whole runs).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from threading import Thread
from typing import Any

from dpcheckin.errors import DpCheckinError, InvalidParameter


def follow_parent() -> None:
    """End this process when its parent does: a trainer killed without warning leaves nobody."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


def import_ray() -> Any:
    """The ray package, told not to report its use."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise DpCheckinError("backend 'ray' needs the ray package: pip install ray") from None
    return ray


def start_ray(workers: int, address: str | None = None) -> bool:
    """Connect to the cluster at `address`, or start a local one; False if connected already.

    Without an address the one in RAY_ADDRESS counts, as everywhere in Ray.

    Args:
        workers: size of a local cluster, in processes.
        address: of a running cluster; None counts RAY_ADDRESS, or starts one.
    """
    if workers < 1:
        raise InvalidParameter("workers", workers, "at least 1")
    ray = import_ray()
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS")
    if address is not None:
        try:
            ray.init(address=address, logging_level=logging.ERROR)
        except (ConnectionError, ValueError) as problem:
            reason = str(problem).splitlines()[0]
            raise InvalidParameter("ray_address", address, f"a Ray cluster ({reason})") from None
        return True
    ray.init(
        address="local",  # not one that happens to run on this machine
        num_cpus=workers,
        include_dashboard=False,
        logging_level=logging.ERROR,
        _system_config={"metrics_report_interval_ms": 10**9},
    )
    return True


@contextmanager
def connect_ray(workers: int, address: str | None = None) -> Iterator[Any]:
    """The ray package, connected; what was started here is stopped at the end."""
    started = start_ray(workers, address)
    ray = import_ray()
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
