"""Look for crossings between the package and the exact enumeration, for as long as one likes.

    python tests/oracles/explore.py --cases 100000 --seed 1 [--kinds 'check-in/*' mixed]
                                    [--seconds 1500] [--start 0]

Cases are numbered; a run that was cut short says with which `--start` it goes on. Every crossing
is printed with what reproduces it. Exit code 1 if there was any.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from fnmatch import fnmatch
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "src")]

from oracles.standing.cases import KINDS, draw  # noqa: E402
from oracles.standing.checks import examine  # noqa: E402

# Gaussian reports take seconds a case: one in so many of their turns is played.
_RARE = {"gaussian": 25, "laplace": 3}


class Tally:
    """Counts by kind."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.crossings: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.sorts: Counter[tuple[str, str, str]] = Counter()
        self.empty: Counter[str] = Counter()
        self.closest: dict[str, float] = defaultdict(float)
        self.seconds: dict[str, float] = defaultdict(float)

    def table(self) -> str:
        """One line a kind, then the sums and the refusals."""
        lines = [
            f"{'kind':32s} {'cases':>7} {'checks':>8} {'crossed':>8} {'empty':>6} "
            f"{'closest':>9} {'s/case':>7}"
        ]
        for kind in sorted(self.cases):
            n = self.cases[kind]
            lines.append(
                f"{kind:32s} {n:7d} {self.checked[kind]:8d} {self.crossings[kind]:8d} "
                f"{self.empty[kind]:6d} {self.closest[kind]:9.6f} {self.seconds[kind] / n:7.3f}"
            )
        lines.append(
            f"{'all':32s} {self.cases.total():7d} {self.checked.total():8d} "
            f"{self.crossings.total():8d} {self.empty.total():6d}"
        )
        lines.append("crossings by question, finding and randomizer:")
        lines += [f"{n:8d}  {' | '.join(sort)}" for sort, n in sorted(self.sorts.items())]
        lines.append("refusals:")
        lines += [f"{count:8d}  {what}" for what, count in self.refusals.most_common()]
        return "\n".join(lines)


def _refusal(text: str) -> str:
    """A refusal without its arguments and numbers, so that equal ones are counted together."""
    question, _, reason = text.partition(": ")
    return (
        f"{question.partition('(')[0]}: {re.sub(r'[-+]?[0-9.]+(e[-+]?[0-9]+)?', '#', reason)[:80]}"
    )


def main() -> int:
    """Run the exploration."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="up to this case number")
    parser.add_argument("--start", type=int, default=0, help="from this case number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=["*"], help="patterns such as 'window*/any'")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after so much processor time"
    )
    parser.add_argument("--no-bridge", action="store_true")
    parser.add_argument("--no-renyi", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="no reproductions, counts only")
    options = parser.parse_args()
    kinds = [k for k in KINDS if any(fnmatch(k, pattern) for pattern in options.kinds)]
    if not kinds:
        parser.error(f"no kind matches {options.kinds}; there are: {', '.join(KINDS)}")
    tally, told = Tally(), time.monotonic()
    number = options.start
    stopped: list[int] = []  # told to stop, it still says what it found so far
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, lambda which, _: stopped.append(which))
    while number < options.cases and time.process_time() < options.seconds and not stopped:
        kind, index = kinds[number % len(kinds)], number // len(kinds)
        number += 1
        rare = _RARE.get(kind.rpartition("/")[2], 1) if len(kinds) > 20 else 1
        if index % rare != rare - 1:
            continue
        start = time.perf_counter()
        report = examine(
            draw(kind, options.seed, index), not options.no_bridge, not options.no_renyi
        )
        tally.seconds[kind] += time.perf_counter() - start
        tally.cases[kind] += 1
        tally.checked[kind] += report.checked
        tally.crossings[kind] += len(report.crossings)
        tally.empty[kind] += report.empty_lower
        tally.closest[kind] = max(tally.closest[kind], report.closest)
        tally.refusals.update(_refusal(r) for r in report.refusals)
        for crossing in report.crossings:
            tally.sorts[(*crossing.sort, kind.rpartition("/")[2])] += 1
            if not options.quiet:
                print(crossing, flush=True)
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(
                f"# case {number} of {options.cases}, {tally.cases.total()} examined, "
                f"{tally.crossings.total()} crossings, {time.process_time():.0f} s; "
                f"go on with --start {number}",
                file=sys.stderr,
                flush=True,
            )
    print(tally.table())
    print(f"next: --seed {options.seed} --start {number}")
    return 1 if tally.crossings.total() else 0


if __name__ == "__main__":
    raise SystemExit(main())
