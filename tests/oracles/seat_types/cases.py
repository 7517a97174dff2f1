"""Numbered cases for the attack program: a run as the package spells it, and its true delta.

Kinds: `truth/*` enumerate what the analyzer sees, one round or two; `seats/*` compute the labelled
view, which is above the truth and below every bound that rests on seats; `many/*` are
the truth for up to hundreds of clients, all others at one value; `theorem/*` compute the largest
figure over all counts of types by brute force, which a bound by the theorem can approach but not
undercut.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracles.seat_types import many, seats, theorem, views
from oracles.seat_types.drawing import (
    CONTINUOUS,
    SOURCES,
    Random,
    Source,
    inscribed_triangle,
    local_epsilon,
)
from oracles.seat_types.laws import (
    Array,
    Law,
    local_profile,
    pure_ratio,
    seat_of,
    star,
    type_a,
    type_b,
    type_c,
)
from oracles.seat_types.randomizers import dary_rows

_SEATED = ("binary", "dary", "circle", "sphere", "designed", "vertex", "inner", *CONTINUOUS)
_MANY = ("binary", "hemisphere", "any", "dary", "laplace", "gaussian")
KINDS = (
    *(f"truth/{name}" for name in SOURCES),
    *(f"seats/{name}" for name in _SEATED),
    *(f"many/{name}" for name in _MANY),
    "theorem/binary",
    "theorem/any",
)

_WIDEST = {1: 4000, 2: 500}  # histograms told apart, by number of rounds
_DATA_SETS = {1: 2, 2: 2}
_ATOMS = 1500  # of a sum of seats; more are merged, which only lowers the figure


@dataclass(frozen=True)
class Case:
    """A run and the questions about it.

    `text`: the list of (round, times) with the package's names. `true(alpha)`: what no guarantee
    may undercut. `ceiling(alpha)`: what the theorem promises, where it is known.
    """

    kind: str
    seed: int
    index: int
    text: str
    true: Callable[[float], float]
    epsilons: tuple[float, ...]
    delta: float
    ceiling: Callable[[float], float] | None = None
    expected: float = 0.0  # check-ins of honest clients a round
    error: float = 0.0  # relative, of `true` where it is not exact

    @property
    def source(self) -> str:
        """How to get this very case again."""
        return (
            "from oracles.seat_types import cases; "
            f"case = cases.draw({self.kind!r}, {self.seed}, {self.index})"
        )


def _rate(rng: Random) -> float:
    if rng.random() < 0.06:
        return float(rng.choice([0.001, 0.01, 0.99]))
    return round(float(rng.uniform(0.02, 0.95)), 2)


def _clients(rng: Random, source: Source, widest: int) -> int:
    """At least two clients, as many as the enumeration can take; small numbers more often."""
    possible = [
        n for n in range(2, source.largest + 1) if views.size(n, source.symbols(n)) <= widest
    ] or [2]
    if rng.random() < 0.2:
        return possible[-1]
    weights = np.array([1.0 / n for n in possible])
    return int(rng.choice(possible, p=weights / weights.sum()))


@dataclass(frozen=True)
class _Round:
    text: str
    pairs: list[views.Pair]
    expected: float


def _round(rng: Random, source: Source, widest: int, data_sets: int) -> _Round:
    """A round of a random protocol, with the views of a few data sets in both orders."""
    n, rate, protocol = _clients(rng, source, widest), _rate(rng), rng.random()
    crowds = [source.rows(n) for _ in range(data_sets)]
    expected = n * rate
    if protocol < 0.62:
        text = f"CheckInRound({n}, {rate}, {source.text})"
        pairs = [views.check_in(rows, rate) for rows in crowds]
    elif protocol < 0.72:
        lowest = float(f"{rng.uniform(0.1 * rate, rate):.3g}")
        text = f"CheckInRound({n}, {rate}, {source.text}, lowest_rate={lowest})"
        pairs = [views.check_in(rows, rng.choice([lowest, rate], n)) for rows in crowds]
    elif protocol < 0.8:
        more = int(rng.integers(1, 4))
        text = f"CheckInRound({n + more}, {rate}, {source.text}, colluding={more / (n + more)})"
        pairs = [views.check_in(rows, rate) for rows in crowds]
    elif protocol < 0.94:
        size = expected = int(rng.integers(1, n))
        text = f"SubsampleRound({n}, {size}, {source.text})"
        pairs = [views.cohort(rows, size) for rows in crowds]
    else:
        more = int(rng.integers(1, 4))
        size = int(rng.integers(1, n + more))
        expected = size * n / (n + more)
        text = f"SubsampleRound({n + more}, {size}, {source.text}, colluding={more / (n + more)})"
        pairs = [views.cohort(rows, size, more) for rows in crowds]
    return _Round(text, [end for pair in pairs for end in (pair, pair.swapped)], float(expected))


@dataclass(frozen=True)
class _Question:
    """A run, what no guarantee about it may undercut, and the scale of its epsilons."""

    text: str
    true: Callable[[float], float]
    scale: float
    expected: float
    ceiling: Callable[[float], float] | None = None
    error: float = 0.0


def _truth(rng: Random, name: str) -> _Question:
    source = SOURCES[name](rng)
    slow = name in CONTINUOUS
    if rng.random() > (0.1 if slow else 0.3):
        one = _round(rng, source, _WIDEST[1], 12 if slow else _DATA_SETS[1])
        return _Question(
            f"[({one.text}, 1)]",
            lambda alpha: max(pair.delta(alpha) for pair in one.pairs),
            source.local_epsilon,
            one.expected,
        )
    first = second = _round(rng, source, _WIDEST[2], _DATA_SETS[2])
    text = f"[({first.text}, 2)]"
    if rng.random() < 0.5 and not slow:
        second = _round(rng, SOURCES[name](rng), _WIDEST[2], _DATA_SETS[2])
        text = f"[({first.text}, 1), ({second.text}, 1)]"
    return _Question(
        text,
        lambda alpha: views.two_rounds(first.pairs, second.pairs, alpha),
        2 * source.local_epsilon,
        min(first.expected, second.expected),
    )


def _labelled(rows: Array, alpha: float, rate: float, size: int) -> float:
    """The larger of both orders; for check-in (size 0) plus the truth when everybody reports."""
    n = len(rows) - 1
    worst = 0.0
    whole = None  # what is seen when everybody reports; left out where it would take long
    if not size and views.size(n, rows.shape[1]) <= _WIDEST[1]:
        whole = views.cohort(rows, n)
    for ends, pair in ((rows, whole), (rows[[1, 0, *range(2, n + 1)]], whole and whole.swapped)):
        laws = [seat_of(ends[0], ends[1], x, alpha) for x in ends[2:]]
        if size:
            worst = max(worst, seats.cohort(laws, size, alpha, most=_ATOMS))
        else:
            all_present = rate**n * pair.delta(alpha) if pair else 0.0
            worst = max(worst, seats.check_in(laws, rate, alpha, most=_ATOMS) + all_present)
    return worst


def _seats(rng: Random, name: str) -> _Question:
    source = SOURCES[name](rng)
    n, rate = int(rng.integers(2, min(source.largest, 6) + 1)), _rate(rng)
    size = int(rng.integers(1, n)) if rng.random() < 0.3 else 0
    crowds = [views.essential(source.rows(n)) for _ in range(6 if name in CONTINUOUS else 1)]
    return _Question(
        f"[({_spelled(n, rate, size, source.text)}, 1)]",
        lambda alpha: max(_labelled(rows, alpha, rate, size) for rows in crowds),
        source.local_epsilon,
        float(size or rate * n),
    )


def _spelled(n: int, rate: float, size: int, pair: str) -> str:
    return f"SubsampleRound({n}, {size}, {pair})" if size else f"CheckInRound({n}, {rate}, {pair})"


def _theorem(rng: Random, name: str) -> _Question:
    """Floor: the part k < n alone (everybody reporting may be bounded by less than h)."""
    e0, n, rate = local_epsilon(rng), int(rng.integers(2, 8)), _rate(rng)
    e = float(np.exp(e0))
    makers = (type_a, type_b) if name == "binary" else (type_a, type_b, type_c)
    pair = f"binary_response({e0})" if name == "binary" else f"any_pure({e0})"
    size = int(rng.integers(1, n)) if rng.random() < 0.3 else 0

    def floor(alpha: float) -> float:
        types = [maker(e, alpha) for maker in makers]
        seating = theorem.Seating(n, types, star(pure_ratio(e), alpha), alpha)
        return seating.largest(size=size).value if size else seating.largest(rate=rate).value

    def ceiling(alpha: float) -> float:
        return floor(alpha) + (0.0 if size else rate**n * local_profile(pure_ratio(e), alpha))

    text = f"[({_spelled(n, rate, size, pair)}, 1)]"
    return _Question(text, floor, e0, float(size or rate * n), ceiling)


def _common_seat(rng: Random, name: str) -> tuple[str, Callable[[float], Law], float]:
    """A local pair, the seat of all others at one value, and the scale of epsilons."""
    if name == "gaussian":
        noise = round(float(np.exp(rng.uniform(np.log(1.0), np.log(8.0)))), 2)
        a, b = inscribed_triangle(rng, 2.0 / noise)
        return f"gaussian({noise})", lambda alpha: many.gram_seat(a, b, alpha), 2.0 / noise
    if name == "laplace":
        source = SOURCES[name](rng)
        a, b, x = source.rows(2)
        return source.text, lambda alpha: seat_of(a, b, x, alpha), source.local_epsilon
    e0, d = local_epsilon(rng), int(rng.integers(3, 8))
    e, pick = float(np.exp(e0)), int(rng.integers(0, 3))
    if name == "dary":
        a, b, x = dary_rows(e, d, [0, 1, pick])
        return f"dary_response({e0}, {d})", lambda alpha: seat_of(a, b, x, alpha), e0
    makers = (type_a, type_b, type_c) if name == "any" else (type_a, type_b, type_a)
    pair = {"any": "any_pure", "binary": "binary_response", "hemisphere": "hemisphere"}[name]
    return f"{pair}({e0})", lambda alpha: makers[pick](e, alpha), e0


def _many(rng: Random, name: str) -> _Question:
    pair, seat, scale = _common_seat(rng, name)
    most = many.MOST_EXACT if name in ("any", "dary") else 400
    n, rate = int(np.exp(rng.uniform(np.log(5.0), np.log(most)))), _rate(rng)
    size = int(rng.integers(1, n)) if rng.random() < 0.25 else 0

    def true(alpha: float) -> float:
        if size:
            return many.cohort(seat(alpha), n, size, alpha)
        return many.check_in(seat(alpha), n, rate, alpha)

    check_ins = float(size or rate * n)
    return _Question(
        f"[({_spelled(n, rate, size, pair)}, 1)]",
        true,
        min(scale, 3.0 * scale / np.sqrt(check_ins)),  # where delta is not yet negligible
        check_ins,
        error=many.LATTICE_ERROR if name in CONTINUOUS else 0.0,
    )


_SORTS = {"truth": _truth, "seats": _seats, "theorem": _theorem, "many": _many}


def draw(kind: str, seed: int, index: int) -> Case:
    """Case number `index` of this kind."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), index])
    sort, _, name = kind.partition("/")
    asked = _SORTS[sort](rng, name)
    near, far = asked.scale * rng.uniform(0.0, 0.4), asked.scale * rng.uniform()
    return Case(
        kind=kind,
        seed=seed,
        index=index,
        text=asked.text,
        true=asked.true,
        epsilons=tuple(sorted({0.0, round(near, 4), round(far, 4)})),
        delta=float(f"{10 ** rng.uniform(-5.0, -0.4):.2g}"),
        ceiling=asked.ceiling,
        expected=asked.expected,
        error=asked.error,
    )
