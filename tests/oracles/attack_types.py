"""Attack the package's rounds with data sets whose clients all hold values of their own.

    python tests/oracles/attack_types.py --cases 100000 --seed 1 [--kinds 'truth/*' seats/circle]
                                         [--seconds 1500] [--start 0] [--ceiling 0.01]

Cases are numbered; a run that was cut short says with which `--start` it goes on. Every crossing
is printed with what reproduces it. `--ceiling`: for the kinds `theorem/*` also ask that the package
stays within this relative distance of the brute-force figure. Exit code 1 if anything crossed.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from math import exp, isinf, isnan
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "src")]

import dpcheckin.accounting as accounting  # noqa: E402
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Unreachable  # noqa: E402
from oracles.seat_types.cases import KINDS, Case, draw  # noqa: E402

# Rounding of the oracle itself: sums of a few thousand products of doubles.
RELATIVE, ABSOLUTE = 1e-9, 1e-14
# Below this a quotient of deltas is rounding.
SMALL = 1e-9
# Where a figure comes from a lattice: its error is relative down to here, then absolute.
SMALL_LATTICE = 1e-6
# With fewer check-ins every bound is the truth: the closest quotient is kept apart for more.
_CROWDED = 1.5
# Continuous reports take the package long: one in so many of their turns is played.
_RARE = {"gaussian": 25, "laplace": 5}
_REFUSALS = (InvalidParameter, OutsideTheorem, Unreachable)


@dataclass
class Finding:
    """What came of one case."""

    checks: int = 0
    closest: float = 0.0
    closest_at: float = 0.0  # epsilon
    crossings: list[str] = field(default_factory=list)
    refusal: str = ""
    oracle_seconds: float = 0.0


def examine(case: Case, ceiling: float | None = None, curves_only: bool = False) -> Finding:
    """Hold the package's answers about a case against its true delta."""
    found = Finding()
    try:
        run = accounting.compose(eval(case.text, dict(vars(accounting))))  # our own text
        if curves_only and run.total == 1:
            curve = run.rounds[0][0].curve(1e-12)
            claims = [(epsilon, curve.upper_at(epsilon)) for epsilon in _more(case.epsilons)]
        else:
            claims = [(epsilon, run.delta(epsilon).upper) for epsilon in case.epsilons]
            claims.append((run.epsilon(case.delta).upper, case.delta))
    except _REFUSALS as refusal:
        found.refusal = f"{type(refusal).__name__}: {refusal}"
        return found
    except Exception as fault:
        found.crossings.append(_text(case, f"{type(fault).__name__}: {fault}"))
        return found
    began = time.process_time()
    for line in _compared(case, claims, found):
        found.crossings.append(_text(case, line))
    if ceiling is not None and case.ceiling is not None:
        for epsilon, claimed in claims if curves_only else claims[:-1]:
            promised = case.ceiling(exp(epsilon))
            if claimed > promised * (1.0 + ceiling) + SMALL:
                line = f"delta({epsilon}) {claimed:.10g}, by brute force {promised:.10g}"
                found.crossings.append(_text(case, line))
    found.oracle_seconds = time.process_time() - began
    return found


def _more(epsilons: Sequence[float]) -> list[float]:
    """The epsilons of a case and places between and beside them."""
    top = max(epsilons)
    return sorted({*epsilons, *(top * part for part in (0.1, 0.25, 0.4, 0.6, 0.8, 1.2))})


def _compared(case: Case, claims: list[tuple[float, float]], found: Finding) -> Iterator[str]:
    for epsilon, delta in claims:
        if isnan(epsilon) or isnan(delta):
            yield f"not a number: epsilon {epsilon}, delta {delta}"
            continue
        if isinf(epsilon):
            continue  # nothing is claimed
        found.checks += 1
        true = case.true(exp(min(epsilon, 600.0)))
        if true > delta * (1.0 + RELATIVE + case.error) + ABSOLUTE + SMALL_LATTICE * case.error:
            yield f"said delta <= {delta:.12g} at epsilon {epsilon:.12g}; true {true:.12g}"
        elif delta > SMALL and true / delta > found.closest:
            found.closest, found.closest_at = true / delta, epsilon


def _text(case: Case, line: str) -> str:
    return (
        f"{case.kind}: {line}\n    from dpcheckin.accounting import *\n"
        f"    compose({case.text})\n    # {case.source}"
    )


class Tally:
    """Counts by kind."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()
        self.crossed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.closest: dict[str, float] = defaultdict(float)
        self.crowded: dict[str, float] = defaultdict(float)
        self.where: dict[str, str] = {}
        self.oracle: dict[str, float] = defaultdict(float)
        self.seconds: dict[str, float] = defaultdict(float)

    def add(self, case: Case, found: Finding, oracle: float, whole: float) -> None:
        """Count one case."""
        kind = case.kind
        self.cases[kind] += 1
        self.checks[kind] += found.checks
        self.crossed[kind] += len(found.crossings)
        self.closest[kind] = max(self.closest[kind], found.closest)
        if case.expected >= _CROWDED and found.closest > self.crowded[kind]:
            self.crowded[kind] = found.closest
            self.where[kind] = f"epsilon {found.closest_at:.6g} of {case.text}"
        self.oracle[kind] += oracle
        self.seconds[kind] += whole
        if found.refusal:
            self.refused[kind] += 1
            self.refusals[re.sub(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", "#", found.refusal)[:90]] += 1

    def table(self) -> str:
        """One line a kind, then the sums and the refusals."""
        lines = [
            f"{'kind':20s} {'cases':>7} {'checks':>8} {'crossed':>8} {'refused':>8} {'closest':>9} "
            f"{'crowded':>9} {'oracle s':>9} {'all s':>7}"
        ]
        for kind in sorted(self.cases):
            n = self.cases[kind]
            lines.append(
                f"{kind:20s} {n:7d} {self.checks[kind]:8d} {self.crossed[kind]:8d} "
                f"{self.refused[kind]:8d} {self.closest[kind]:9.6f} "
                f"{self.crowded[kind]:9.6f} {self.oracle[kind] / n:9.4f} "
                f"{self.seconds[kind] / n:7.3f}"
            )
        lines.append(
            f"{'all':20s} {self.cases.total():7d} {self.checks.total():8d} "
            f"{self.crossed.total():8d} {self.refused.total():8d}"
        )
        lines += [f"closest {kind}: {where}" for kind, where in sorted(self.where.items())]
        lines += [f"{count:8d}  {what}" for what, count in self.refusals.most_common()]
        return "\n".join(lines)


def main() -> int:
    """Run the attack."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="up to this case number")
    parser.add_argument("--start", type=int, default=0, help="from this case number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=["*"], help="patterns such as 'truth/*'")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--ceiling", type=float, help="relative distance from brute force")
    parser.add_argument(
        "--curves-only",
        action="store_true",
        help="single rounds: more places of the curve, no epsilon (quicker)",
    )
    parser.add_argument("--quiet", action="store_true", help="no reproductions, counts only")
    options = parser.parse_args()
    kinds = [k for k in KINDS if any(fnmatch(k, pattern) for pattern in options.kinds)]
    if not kinds:
        parser.error(f"no kind matches {options.kinds}; there are: {', '.join(KINDS)}")
    tally, number, told = Tally(), options.start, time.monotonic()
    stopped: list[int] = []  # asked to stop, it still says what it found so far
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, lambda which, _: stopped.append(which))
    while number < options.cases and time.process_time() < options.seconds and not stopped:
        kind, index = kinds[number % len(kinds)], number // len(kinds)
        number += 1
        rare = _RARE.get(kind.rpartition("/")[2], 1) if len(kinds) > len(_RARE) * 2 else 1
        if index % rare != rare - 1:
            continue
        began = time.process_time()
        case = draw(kind, options.seed, index)
        drawn = time.process_time()
        found = examine(case, options.ceiling, options.curves_only)
        ended = time.process_time()
        tally.add(case, found, drawn - began + found.oracle_seconds, ended - began)
        if not options.quiet:
            for crossing in found.crossings:
                print(crossing, flush=True)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(
                f"# case {number} of {options.cases}, {tally.checks.total()} checks, "
                f"{tally.crossed.total()} crossed; go on with --start {number}",
                file=sys.stderr,
                flush=True,
            )
    print(tally.table())
    print(f"next: --seed {options.seed} --start {number}")
    return 1 if tally.crossed.total() else 0


if __name__ == "__main__":
    raise SystemExit(main())
