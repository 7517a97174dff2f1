"""How long the planner page keeps a hand on a slider waiting for its figure.

    python benchmarks/planner_latency.py [--steps 15] [--json FILE]

Starts `dpcheckin ui` on a free port and plays drags: many slightly different plans, one after the
other, as a moving slider asks for them, each waited for until the first line (a certified figure)
is there. Nothing is asked twice, so nothing comes from the server's memory of answers. Beside the
clock stands the CPU time that the same takes without server and neighbours: of the preview, or of
the rougher figure (and the server's patience) if that is sooner. `rough` counts how often it was.
The page's promise is 150 ms, for populations up to 10^9.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import _timing  # noqa: F401  limits threads, before numpy is imported
import httpx

from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form
from dpcheckin.dashboard.server import PATIENCE

PROMISE = 150.0  # milliseconds
HEADS = ("clock", "95%", "max", "CPU", "95%", "max", "rough")
# what is dragged, from where to where, and what stands still
DRAGS: dict[str, tuple[str, float, float, dict[str, str]]] = {
    "rounds, n = 60,000": ("rounds", 1_000, 9_000, {}),
    "population to 10^9": ("population", 1e4, 1e9, {"rate": "0.01"}),
    "rate, n = 10^9": ("rate", 1e-4, 0.5, {"population": "1000000000"}),
    "local epsilon, n = 10^9": ("local_epsilon", 0.2, 8.0, {"population": "1000000000"}),
    "rounds to 10^6, n = 10^9": ("rounds", 1e3, 1e6, {"population": "1000000000"}),
    "colluding, n = 10^9": ("colluding", 0.01, 0.5, {"population": "1000000000"}),
    "rate, PrivUnit": ("rate", 1e-3, 0.5, {"randomizer": "privunit"}),
    "rate, Laplace, n = 10^9": (
        "rate", 1e-3, 0.5, {"randomizer": "laplace", "population": "1000000000"},
    ),
    "noise, Gaussian, n = 10^9": (
        "noise_multiplier", 1.0, 10.0, {"randomizer": "gaussian", "population": "1000000000"},
    ),
    "noise, Gaussian, n = 60,000": ("noise_multiplier", 1.0, 10.0, {"randomizer": "gaussian"}),
    "cohort, n = 10^9": (
        "cohort", 1e3, 1e7, {"protocol": "subsampled-shuffle", "population": "1000000000"},
    ),
    "rate, distributed, n = 10^9": (
        "rate", 1e-4, 0.5,
        {"protocol": "distributed-check-in", "randomizer": "gaussian", "population": "1000000000"},
    ),
    "slots of a window": ("slots", 10, 1e5, {"protocol": "random-check-in-fixed", "rounds": "10"}),
    "window to 10^9": (
        "population", 1e4, 1e9, {"protocol": "random-check-in-fixed", "randomizer": "gaussian"},
    ),
    "colluding, subsampled": ("colluding", 0.01, 0.5, {"protocol": "subsampled-shuffle"}),
    "full shuffle to 10^9": ("population", 1e4, 1e9, {"protocol": "shuffle", "rounds": "10"}),
}  # fmt: skip


def plans(drag: str, steps: int) -> list[dict[str, str]]:
    """The plans a drag passes through."""
    name, low, high, rest = DRAGS[drag]
    values = [low * (high / low) ** (i / (steps - 1)) for i in range(steps)]
    whole = name in ("rounds", "population", "cohort", "slots")
    return [{**rest, name: str(round(v)) if whole else f"{v:.6g}"} for v in values]


def waited(client: httpx.Client, plan: dict[str, str]) -> tuple[float, bool]:
    """Milliseconds until a figure is there, and whether it is a rough one.

    The preview that follows a rough one is waited for, so that it does not slow the next plan.
    """
    began = time.perf_counter()
    with client.stream("GET", "/api/preview", params=plan) as response:
        lines = response.iter_lines()
        first = json.loads(next(lines))
        took = 1e3 * (time.perf_counter() - began)
        assert "epsilon" in first, first
        if "rough" in first:
            next(lines)
    return took, "rough" in first


def computed(plan: dict[str, str]) -> float:
    """Milliseconds of CPU time for the same, here."""
    form = Form.read(plan)
    began = time.process_time()
    answers.quick(form)
    between = time.process_time()
    answers.rough(form)
    rough = 1e3 * (PATIENCE + time.process_time() - between)
    return min(1e3 * (between - began), rough)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=15, help="plans a drag passes through")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-c", "from dpcheckin.cli import main; main()", "ui", "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    answers.quick(Form(population=100, rounds=2))
    results = {}
    try:
        with httpx.Client(base_url=found[0], timeout=120) as client:
            waited(client, {"population": "100", "rounds": "2"})  # until the worker is up
            print(f"{'milliseconds':30}", *(f"{t:>7}" for t in HEADS))
            for drag in DRAGS:
                wanted = plans(drag, options.steps)
                found = [waited(client, plan) for plan in wanted]
                clock, rough = [took for took, _ in found], sum(was for _, was in found)
                cpu = [computed(plan) for plan in wanted]
                results[drag] = {"clock_ms": clock, "cpu_ms": cpu, "rough": rough}
                shown = [s(t) for t in (clock, cpu) for s in (statistics.median, late, max)]
                print(f"{drag:30}", *(f"{value:7.0f}" for value in [*shown, rough]), flush=True)
    finally:
        server.terminate()
        server.wait(timeout=30)
    load = os.getloadavg()[0]
    for unit in ("clock_ms", "cpu_ms"):
        every = [t for r in results.values() for t in r[unit]]
        within = sum(t <= PROMISE for t in every) / len(every)
        print(f"{unit}: {within:.0%} of {len(every)} figures within {PROMISE:.0f} ms")
    print(f"load of the machine at the end: {load:.1f} on {os.cpu_count()} cores")
    if options.json:
        options.json.write_text(json.dumps({"load": load, "drags": results}, indent=1))


def late(times: list[float]) -> float:
    """The 95th percentile."""
    return sorted(times)[min(int(0.95 * len(times)), len(times) - 1)]


if __name__ == "__main__":
    main()
