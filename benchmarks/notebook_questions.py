"""CPU time of the questions that a notebook asks, beside their goals.

    python benchmarks/notebook_questions.py [--repeats 3] [--check] [--json FILE]

The run is 60,000 clients at rate 1/30 with local epsilon 2. Times are medians of CPU time on one
thread, each with an empty memory but for the second question of a pair. Importing is measured in
new processes. With --check the exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import _timing  # first: it limits the threads
import numpy as np

import dpcheckin as dp

RUN = {"population": 60_000, "rate": 1 / 30, "local_epsilon": 2.0, "delta": 1e-5}
ROUNDS = 6_000


def cold(question: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds, nothing remembered."""
    times = []
    for _ in range(repeats):
        dp.clear_cache()
        times += _timing.cpu_times(question, 1)[1]
    return statistics.median(times)


def measured(repeats: int) -> list[tuple[str, float, float | None]]:
    """Every question, its CPU seconds and its goal."""
    one = dp.CheckInRound(RUN["population"], RUN["rate"], dp.any_pure(RUN["local_epsilon"]))
    run = [(one, ROUNDS)]

    def stated() -> object:
        return dp.guarantee(run, RUN["delta"])

    first = cold(stated, repeats)
    stated()
    again = statistics.median(_timing.cpu_times(stated, 25)[1])
    counts = list(range(100, 8_300, 100))
    deltas = np.geomspace(1e-9, 1e-3, 100)
    composition = dp.compose(run)
    composition.epsilon(RUN["delta"])

    def many_deltas() -> object:
        composition._answers.clear()
        return composition.epsilon(deltas)

    code = "import dpcheckin.accounting"
    bare = _timing.started([sys.executable, "-c", ""], repeats)
    loaded = _timing.started([sys.executable, "-c", code], repeats)
    imports = statistics.median(x.cpu for x in loaded) - statistics.median(x.cpu for x in bare)
    return [
        ("guarantee of 6,000 rounds, first time", first, None),
        ("the same again", again, 1e-3),
        (f"{len(counts)} round counts", cold(lambda: dp.epsilon(**RUN, rounds=counts), repeats), 3.0),
        (
            f"{deltas.size} deltas of one composition, six decades",
            statistics.median(_timing.cpu_times(many_deltas, repeats)[1]),
            0.5,
        ),
        ("trade-off curve with Gaussian mu", cold(lambda: dp.tradeoff(run), repeats), None),
        ("import dpcheckin.accounting", imports, 0.4),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = measured(options.repeats)
    missed = []
    for name, seconds, goal in rows:
        met = "" if goal is None else ("met" if seconds <= goal else "MISSED")
        if met == "MISSED":
            missed.append(name)
        target = "" if goal is None else f"goal {goal:g} s"
        print(f"{name:52s} {seconds:9.4f} s   {target:14s} {met}")
    print(f"load of the machine: {_timing.machine()['load']}")
    if options.json:
        content = [{"question": n, "seconds": s, "goal": g} for n, s, g in rows]
        options.json.write_text(json.dumps({"rows": content, **_timing.machine()}, indent=1))
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
