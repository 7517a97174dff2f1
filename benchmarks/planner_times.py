"""How long the planner takes to its certified figure and to all of its curves, and what it leaves.

    python benchmarks/planner_times.py [--json FILE]

Starts `dpcheckin ui` on a free port and asks as the page does: the statement of a plan, then all of
its lines; a hand that edits fast and turns away from every answer but the last; a reader that
leaves in the middle. Beside the clock stands the CPU time of the server and its workers, which says
the same on a busy machine: a statement is computed by one process, lines by as many as there are
cores, so that on an idle machine the clock is about CPU time, or CPU time over cores.

Goals on an idle machine: certified within 1 s (pure reports) or 2 s (Gaussian reports, 10^9
clients); all curves within 8 s; no CPU time from 2 s after the last reader left.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import _timing  # noqa: F401  limits threads, before numpy is imported
import httpx

REST = 0.3  # seconds that the page waits for a hand to rest
PLANS = {
    "pure, n = 60,000": {"randomizer": "any"},
    "Gaussian, n = 60,000": {"randomizer": "gaussian"},
    "pure, n = 10^9": {"randomizer": "any", "population": "1000000000"},
    "Gaussian, n = 10^9": {"randomizer": "gaussian", "population": "1000000000"},
    "window, n = 60,000": {"protocol": "random-check-in-fixed", "rounds": "10"},
}
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def cpu_seconds(root: int) -> float:
    """CPU time of a process and of everything it has started (Linux)."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(entry.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(int(ticks) for ticks in fields[11:15]) / _TICKS
    family = {root}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used.get(pid, 0.0) for pid in family)


class Planner:
    """A server and a reader of its answers."""

    def __init__(self) -> None:
        program = "from dpcheckin.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, "ui", "--no-browser"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self._process.stdout is not None
        found = re.search(r"http://\S+", self._process.stdout.readline())
        assert found is not None
        self.client = httpx.Client(base_url=found[0], timeout=600)
        self.client.get("/api/statement", params={"population": "100", "rounds": "2"})
        bounds = self.client.get("/api/describe").json()["bounds"]
        self._bounds = {name: [b["key"] for b in some] for name, some in bounds.items()}

    def cpu(self) -> float:
        return cpu_seconds(self._process.pid)

    def certified(self, plan: dict[str, str]) -> str:
        return str(self.client.get("/api/statement", params=plan).json()["epsilon"]["text"])

    def curves(self, plan: dict[str, str]) -> int:
        """Ask for every line; the number of answers."""
        keys = self._bounds[plan.get("protocol", "shuffled-check-in")]
        query = [*plan.items(), ("over", "rounds"), *(("bound", key) for key in keys)]
        with self.client.stream("GET", "/api/lines", params=query) as answer:
            return sum(1 for _ in answer.iter_lines())

    def abandoned(self, path: str, plan: dict[str, str], after: float) -> None:
        """Ask, and leave before the answer is there."""
        try:
            self.client.get(path, params=plan, timeout=after)
        except httpx.TimeoutException:
            return

    def close(self) -> None:
        self.client.close()
        self._process.terminate()
        self._process.wait(timeout=30)


def measured(planner: Planner, plan: dict[str, str]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    began, used = time.perf_counter(), planner.cpu()
    found["epsilon"] = planner.certified(plan)
    found["certified_clock"] = time.perf_counter() - began
    found["certified_cpu"] = planner.cpu() - used
    began, used = time.perf_counter(), planner.cpu()
    planner.curves(plan)
    found["curves_clock"] = time.perf_counter() - began
    found["curves_cpu"] = planner.cpu() - used
    return found


def fast_editing(planner: Planner) -> tuple[float, float]:
    """Seconds from the last of twenty edits of a Gaussian plan to its figure: clock and CPU."""
    plan = {"randomizer": "gaussian"}
    for step in range(20):
        edited = plan | {"noise_multiplier": f"{2 + 0.1 * step:.1f}"}
        planner.abandoned("/api/statement", edited, 0.1)
    began, used = time.perf_counter(), planner.cpu()
    planner.certified(plan | {"noise_multiplier": "1.5"})
    return time.perf_counter() - began, planner.cpu() - used


def after_leaving(planner: Planner) -> float:
    """CPU seconds of the five seconds that begin two seconds after the last reader has left."""
    planner.abandoned("/api/lines", {"randomizer": "gaussian", "rounds": "5000"}, 1.5)
    time.sleep(2.0)
    used = planner.cpu()
    time.sleep(5.0)
    return planner.cpu() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    options = parser.parse_args()
    planner = Planner()
    results: dict[str, object] = {}
    try:
        print(f"{'seconds':24}{'certified':>10}{'CPU':>7}{'curves':>9}{'CPU':>7}   epsilon")
        for name, plan in PLANS.items():
            found = results[name] = measured(planner, plan)
            times = [found[f"{what}_{how}"] for what in ("certified", "curves")
                     for how in ("clock", "cpu")]  # fmt: skip
            print("{:24}{:10.2f}{:7.2f}{:9.2f}{:7.2f}   ≤ {}".format(name, *times, found["epsilon"]))
        clock, cpu = fast_editing(planner)
        idle = after_leaving(planner)
    finally:
        planner.close()
    load = os.getloadavg()[0]
    results |= {"fast_editing_clock": clock, "fast_editing_cpu": cpu, "idle_cpu": idle, "load": load}
    print(f"after twenty edits that nobody waited for: {clock:.2f} s, {cpu:.2f} s of CPU time")
    print(f"CPU time of the five seconds from 2 s after the last reader left: {idle:.2f} s")
    print(f"the page asks {REST} s after the last edit; load of the machine: {load:.1f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
