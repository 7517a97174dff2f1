"""What Ray adds to a round of the simulator, beside one process and plain worker processes.

    python benchmarks/ray_overhead.py [--clients 6000] [--rounds 15] [--workers 2] [--json FILE]

One run, side by side: every round is played in turn by this process (one thread), by worker
processes, and by a Ray cluster of as many workers, all with one thread each. Each is given the same
parameters and the same cohort, and must return the same sum. Two figures for each: wall seconds of
a round, and CPU seconds of a round of every process involved (this one, its workers, Ray's own
daemons), which a busy machine disturbs less. The overhead of Ray is stated against the worker
processes (what Ray replaces) in wall time, and against one process in CPU time; medians over rounds
of the ratio within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from dpcheckin.learning import Backend, ClientWork, InProcess, OneRecordEach, Processes, RayCluster, papers_cnn
from dpcheckin.learning.models import cross_entropy
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.randomizers import PrivUnit

TICK = os.sysconf("SC_CLK_TCK")


def family() -> Iterator[tuple[int, float]]:
    """This process and all its descendants, with the CPU seconds they have used."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = (int(fields[11]) + int(fields[12])) / TICK
    for process in parents:
        ancestor = process
        while ancestor > 1 and ancestor != os.getpid():
            ancestor = parents.get(ancestor, 0)
        if ancestor == os.getpid():
            yield process, used[process]


def cpu_now() -> float:
    """CPU seconds of the whole family so far."""
    return sum(seconds for _, seconds in family())


def play(backend: Backend, work: ClientWork, parameters: torch.Tensor, clients: int, seed: int):
    """One round: wall and CPU seconds, and the sum."""
    chunks = work.chunks(np.arange(clients), (seed,))
    wall, cpu = time.perf_counter(), cpu_now()
    total = torch.zeros_like(parameters)
    for result in backend.run(parameters, chunks):
        total += result.estimate_sum
    return time.perf_counter() - wall, cpu_now() - cpu, total


def main() -> None:
    """Play the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs = torch.randn(options.clients, 1, 28, 28)
    fleet = OneRecordEach(inputs, torch.randint(0, 10, (options.clients,)))
    module = papers_cnn()
    parameters = get_parameters(module)
    work = ClientWork(module, cross_entropy, fleet, PrivUnit(4.0, len(parameters)))
    backends: dict[str, Backend] = {
        "one process": InProcess(work),
        "processes": Processes(work, options.workers),
        "ray": RayCluster(work, options.workers),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in backends}
    try:
        for index in range(-2, options.rounds):  # the first two warm up
            sums = {}
            for name, backend in backends.items():
                wall, cpu, sums[name] = play(backend, work, parameters, options.clients, index + 2)
                if index >= 0:
                    times[name].append((wall, cpu))
            if not all(torch.equal(total, sums["one process"]) for total in sums.values()):
                raise SystemExit("the backends disagree")
    finally:
        for backend in backends.values():
            backend.close()

    def overhead(one: str, other: str, what: int) -> float:
        pairs = zip(times[one], times[other], strict=True)
        return statistics.median(a[what] / b[what] for a, b in pairs) - 1

    found = {
        "clients": options.clients,
        "workers": options.workers,
        "rounds": options.rounds,
        "load": os.getloadavg()[0],
        "seconds": {
            name: {
                "wall": statistics.median(wall for wall, _ in rows),
                "cpu": statistics.median(cpu for _, cpu in rows),
            }
            for name, rows in times.items()
        },
        "ray_over_processes_wall": overhead("ray", "processes", 0),
        "ray_over_one_process_cpu": overhead("ray", "one process", 1),
        "processes_over_one_process_cpu": overhead("processes", "one process", 1),
    }
    print(f"{options.clients} clients a round, {options.workers} workers, load {found['load']:.1f}")
    for name, row in found["seconds"].items():
        print(f"{name:12s} {row['wall']:7.3f} s wall {row['cpu']:7.3f} s of CPU time")
    print(f"Ray against processes, wall time:    {100 * found['ray_over_processes_wall']:+.1f} %")
    print(f"Ray against one process, CPU time:   {100 * found['ray_over_one_process_cpu']:+.1f} %")
    print(f"processes against one, CPU time:     {100 * found['processes_over_one_process_cpu']:+.1f} %")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
