"""Look for crossings between the package and the exact enumeration, for as long as one likes.

    python tests/oracles/explore.py --cases 100000 --seed 1 [--kinds 'check-in/*' mixed]
                                    [--seconds 1500] [--start 0] [--all-questions]

A case is a run and one group of questions about it (composition, guarantee, lower bound, bridge or
Renyi), chosen at random but always the same for a seed and number; `--all-questions` asks all of
them about every run. Runs of Gaussian and Laplace reports are played in a part of their turns only.
A turn that is passed over is no case, nor is one in which everything was refused, so that nothing
was compared; those are counted apart. Turns are numbered; an exploration that was cut short
says with which `--start` it goes on. Every crossing is printed with what reproduces it. Exit code 1
if there was any.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from fnmatch import fnmatch
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "src")]

from oracles.standing.cases import KINDS, Case, draw  # noqa: E402
from oracles.standing.checks import QUESTIONS, Report, examine, questions  # noqa: E402

# Gaussian reports take seconds a case: one in so many of their turns is played.
_RARE = {"gaussian": 25, "laplace": 3}


class Tally:
    """Counts by kind of run and by group of questions; a case is one of each."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.crossings: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.sorts: Counter[tuple[str, str, str]] = Counter()
        self.empty: Counter[str] = Counter()
        self.closest: dict[str, float] = defaultdict(float)
        self.seconds: dict[str, float] = defaultdict(float)

    def add(self, kind: str, group: str, report: Report) -> None:
        """Count what came of a case."""
        if report.checked or report.crossings:
            self.cases[kind] += 1
            self.asked[group] += 1
        else:
            self.refused[kind] += 1
        self.checked[kind] += report.checked
        self.crossings[kind] += len(report.crossings)
        self.empty[kind] += report.empty_lower
        self.closest[kind] = max(self.closest[kind], report.closest)
        self.refusals.update(_refusal(r) for r in report.refusals)
        self.sorts.update((*c.sort, kind.rpartition("/")[2]) for c in report.crossings)

    def table(self) -> str:
        """One line a kind, then the sums and the refusals."""
        lines = [
            f"{'kind of run':32s} {'cases':>7} {'refused':>8} {'checks':>8} {'crossed':>8} "
            f"{'empty':>6} {'closest':>9} {'s/case':>7}"
        ]
        for kind in sorted(self.seconds):
            n, refused = self.cases[kind], self.refused[kind]
            lines.append(
                f"{kind:32s} {n:7d} {refused:8d} {self.checked[kind]:8d} "
                f"{self.crossings[kind]:8d} {self.empty[kind]:6d} {self.closest[kind]:9.6f} "
                f"{self.seconds[kind] / (n + refused):7.3f}"
            )
        lines.append(
            f"{'all':32s} {self.cases.total():7d} {self.refused.total():8d} "
            f"{self.checked.total():8d} "
            f"{self.crossings.total():8d} {self.empty.total():6d}"
        )
        lines.append("cases by group of questions:")
        lines += [f"{self.asked[name]:8d}  {name}" for name in QUESTIONS]
        lines.append("crossings by question, finding and randomizer:")
        lines += [f"{n:8d}  {' | '.join(sort)}" for sort, n in sorted(self.sorts.items())]
        lines.append("refusals:")
        lines += [f"{count:8d}  {what}" for what, count in self.refusals.most_common()]
        return "\n".join(lines)


def _one_group(case: Case) -> str:
    """The group of questions that this case asks."""
    rng = random.Random(f"{case.seed} {case.kind} {case.index}")
    return rng.choice(questions(case))


def _refusal(text: str) -> str:
    """A refusal without its arguments and numbers, so that equal ones are counted together."""
    question, _, reason = text.partition(": ")
    return f"{question.partition('(')[0]}: {re.sub(r'[-+]?[0-9.]+(e[-+]?[0-9]+)?', '#', reason)[:80]}"


def main() -> int:
    """Run the exploration."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="up to this turn")
    parser.add_argument("--start", type=int, default=0, help="from this turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=["*"], help="patterns such as 'window*/any'")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so much processor time")
    parser.add_argument("--all-questions", action="store_true", help="of every run")
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
        case = draw(kind, options.seed, index)
        for group in questions(case) if options.all_questions else [_one_group(case)]:
            report = examine(case, [group])
            tally.add(kind, group, report)
            for crossing in () if options.quiet else report.crossings:
                print(crossing, flush=True)
        tally.seconds[kind] += time.perf_counter() - start
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(
                f"# turn {number} of {options.cases}, {tally.cases.total()} cases examined, "
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
