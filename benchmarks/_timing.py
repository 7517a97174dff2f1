"""CPU time of a call, and the rows benchmarks print. Import this before numpy.

Importing it limits every numerical library to one thread, which only works while none of them has
started its own. Nothing here knows what is measured.
"""

from __future__ import annotations

import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

for _name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
if "numpy" in sys.modules:
    raise ImportError("_timing must be imported before numpy, or threads are not limited")


@dataclass
class Row:
    """One measured case. Times are CPU seconds unless a name says otherwise."""

    group: str
    case: str
    lower: float | None
    upper: float | None
    times: list[float]
    target: float | None = None
    target_width: float | None = None
    numerical: bool = True  # False: the two ends are different bounds, not one number's digits
    beside: str | None = None  # the case of ours that a peer's row is compared with
    who: str = "dpcheckin"
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The median, which one run disturbed by a neighbour does not move."""
        return statistics.median(self.times)

    @property
    def width(self) -> float | None:
        """(upper - lower) / upper of a certified number."""
        if self.lower is None or self.upper is None or not self.numerical or self.upper == 0.0:
            return None
        return (self.upper - self.lower) / self.upper

    @property
    def met(self) -> bool | None:
        """Are all targets of this row met? None if it has none."""
        if self.target is None:
            return None
        narrow = self.target_width is None or (self.width is not None and self.width <= self.target_width)
        return self.seconds <= self.target and narrow

    def to_json(self) -> dict[str, object]:
        """Everything, with what follows from it."""
        derived = {"seconds": self.seconds, "width": self.width, "met": self.met}
        return asdict(self) | derived


def cpu_times(run: Callable[[], object], repeats: int) -> tuple[object, list[float]]:
    """The last result and the CPU seconds of every call; `run` must build all it uses."""
    result: object = None
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return result, times


@dataclass(frozen=True)
class Started:
    """A child process from start to end."""

    wall: float
    cpu: float


def started(command: Sequence[str], repeats: int) -> list[Started]:
    """Wall and CPU seconds of a command, every time in a new process."""
    found = []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
        found.append(Started(wall, used))
    return found


def machine() -> dict[str, object]:
    """What the numbers depend on, including how busy the machine was."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else ""
    packages = ("dpcheckin", "numpy", "scipy", "dp-accounting", "prv-accountant", "opacus", "torch")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": sys.version.split()[0],
        "versions": {name: found for name in packages if (found := installed(name))},
    }


def installed(package: str) -> str | None:
    """Its version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Exponent b of the best fit time = a * size^b: 0 is flat, 1 is linear."""
    x, y = [math.log(s) for s in sizes], [math.log(t) for t in times]
    return statistics.linear_regression(x, y).slope
