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
from dpcheckin.randomizers.base import at_least


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

    Without an address the one in RAY_ADDRESS counts, as everywhere in Ray, and without that a local
    cluster of so many processes is started.
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
