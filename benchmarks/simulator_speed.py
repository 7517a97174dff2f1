"""Clients per second of the simulator on the papers' CNN, beside the floor of plain batches.

    python benchmarks/simulator_speed.py [--threads 2] [--seconds 10] [--json out.json]

One run, side by side: plain mini-batch training (no per-client gradient, the floor, in torch's
default layout and in channels-last), the simulator with only the sum of the reports, with one
PrivUnit report per client, with one Gaussian report per client (one process with all threads, and
as many worker processes of one thread each), and per-client gradients by vmap alone. The best
of many repetitions is kept, because the machine may be shared. Other packages
are timed by `simulator_rivals.py`, in an environment of their own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from dpcheckin.learning import (
    ClientWork,
    OneRecordEach,
    Processes,
    Reports,
    VmapGradients,
    papers_cnn,
)
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.work import get_parameters
from dpcheckin.randomizers import Gaussian, PrivUnit

COHORT = 2000
CLOCK = time.perf_counter


def data() -> OneRecordEach:
    """Random images of MNIST's shape: speed does not depend on what they show."""
    torch.manual_seed(0)
    return OneRecordEach(torch.randn(COHORT, 1, 28, 28), torch.randint(0, 10, (COHORT,)))


def plain(fleet: OneRecordEach, channels_last: bool) -> Callable[[], None]:
    """Ordinary training on batches of 500: forward, backward, no privacy."""
    module = papers_cnn()
    if channels_last:
        module = module.to(memory_format=torch.channels_last)

    def run() -> None:
        for start in range(0, COHORT, 500):
            x, y = fleet.inputs[start : start + 500], fleet.targets[start : start + 500]
            functional.cross_entropy(module(x), y, reduction="sum").backward()

    return run


def simulated(work: ClientWork) -> Callable[[], None]:
    """One cohort through the simulator's client work."""
    clients = np.arange(COHORT)

    def run() -> None:
        for chunk in work.chunks(clients, (1, 2)):
            work.chunk(chunk)

    return run


def spread(work: ClientWork, workers: int) -> Callable[[], None]:
    """One cohort over worker processes of one thread each."""
    backend, clients = Processes(work, workers), np.arange(COHORT)
    parameters = get_parameters(work.module)
    chunks = work.chunks(clients, (1, 2))

    def run() -> None:
        for _ in backend.run(parameters, chunks):
            pass

    return run


def vmapped(fleet: OneRecordEach) -> Callable[[], None]:
    """The general engine: vmap(grad) in chunks of 200, norms and a weighted sum."""
    engine = VmapGradients(papers_cnn(), cross_entropy)

    def run() -> None:
        for start in range(0, COHORT, 200):
            x, y = fleet.inputs[start : start + 200], fleet.targets[start : start + 200]
            chunk = engine.chunk(x, y, None)
            chunk.weighted_sum(torch.ones_like(chunk.squared_norms))

    return run


def speed(run: Callable[[], None], seconds: float) -> float:
    """Best clients per second over repeated cohorts (the machine may be shared)."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = CLOCK()
        run()
        best = min(best, CLOCK() - start)
    return COHORT / best


def main() -> None:
    """Time everything and print a table."""
    global CLOCK
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", default=None)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread, clients per second of CPU time: comparable on a busy machine",
    )
    options = parser.parse_args()
    if options.cpu_time:
        CLOCK, options.threads = time.process_time, 1
    torch.set_num_threads(options.threads)
    fleet = data()
    size = sum(p.numel() for p in papers_cnn().parameters())
    privunit, gaussian = PrivUnit(4.0, size), Gaussian(1.0)

    def job(randomizer: PrivUnit | Gaussian, reports: Reports) -> Callable[[], None]:
        return simulated(ClientWork(papers_cnn(), cross_entropy, fleet, randomizer, reports))

    def jobs(randomizer: PrivUnit | Gaussian, reports: Reports) -> Callable[[], None]:
        work = ClientWork(papers_cnn(), cross_entropy, fleet, randomizer, reports)
        return spread(work, options.threads)

    rows = {
        "plain batches, default layout (floor)": plain(fleet, False),
        "plain batches, channels-last (floor)": plain(fleet, True),
        "simulator, sum only, PrivUnit": job(privunit, Reports.SUM),
        "simulator, sum only, Gaussian": job(gaussian, Reports.SUM),
        "simulator, one PrivUnit report each": job(privunit, Reports.EACH),
        "simulator, one Gaussian report each": job(gaussian, Reports.EACH),
        "simulator, sum only, PrivUnit, processes": jobs(privunit, Reports.SUM),
        "simulator, one PrivUnit report each, processes": jobs(privunit, Reports.EACH),
        "simulator, one Gaussian report each, processes": jobs(gaussian, Reports.EACH),
        "vmap(grad), clip and sum": vmapped(fleet),
    }
    if options.cpu_time:  # workers' time is not this process's
        rows = {name: run for name, run in rows.items() if not name.endswith("processes")}
    results: dict[str, int] = {}
    for name, run in rows.items():
        value = results[name] = round(speed(run, options.seconds))
        print(f"{name:48s} {value:8,d} clients/s", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"threads": options.threads, "clients_per_second": results}, file, indent=1)


if __name__ == "__main__":
    main()
