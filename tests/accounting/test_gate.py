"""The gate: faults planted in the shipped arithmetic are refused, and no true figure is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.accounting import (
    CheckInRound,
    DistributedRound,
    LocalRound,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    binary_response,
    compose,
    gaussian,
    guarantee,
    laplace,
    lower_bound,
)
from dpcheckin.accounting.composition import guarantees, lower_bounds
from dpcheckin.accounting.composition.account import epsilon_by_rounds
from dpcheckin.accounting.composition.gate import _bit, counted, loud_arithmetic, passed
from dpcheckin.accounting.composition.lower_bounds import lower_by_rounds
from dpcheckin.accounting.composition.preview import coarse_epsilon
from dpcheckin.accounting.engine.loss import Tail
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.accounting.statements import Bracket, LocalGuarantee
from dpcheckin.errors import NumericalFailure
from dpcheckin.special.normal import ndtr, ndtri

COMPOSED = "dpcheckin.accounting.composition."
ENGINE = "dpcheckin.accounting.engine."
PURE = CheckInRound(1000, 0.5, any_pure(2.0))
NOISY = CheckInRound(1000, 0.5, gaussian(2.0))
RUN, DELTA = [(PURE, 20_000)], 1e-6


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    guarantees.clear_cache()
    lower_bounds.clear_cache()
    yield
    guarantees.clear_cache()
    lower_bounds.clear_cache()


QUESTIONS: dict[str, Callable[[], object]] = {
    "guarantee": lambda: guarantee(RUN, DELTA),
    "delta": lambda: compose(RUN).delta(5.0),
    "profile": lambda: compose(RUN).profile(DELTA),
    "noisy": lambda: guarantee([(NOISY, 20_000)], DELTA),
    "local": lambda: compose([(LocalRound(gaussian(1.0)), 100)]).epsilon(DELTA),
    "sum": lambda: compose([(DistributedRound(1000, 0.1, 1.0), 10)]).epsilon(DELTA),
    "preview": lambda: coarse_epsilon(PURE, 20_000, DELTA),
    "sweep": lambda: epsilon_by_rounds(PURE, [10_000, 20_000], DELTA),
    "lower bound": lambda: lower_bound(RUN, DELTA),
    "lower sweep": lambda: lower_by_rounds(PURE, [10_000, 20_000], DELTA),
}


def _nan(*_: Any, **__: Any) -> Any:
    return math.nan


def _overflowing(*_: Any, **__: Any) -> Any:
    return np.exp(np.full(3, 1000.0))


def _nothing(*_: Any, **__: Any) -> Any:
    return Tail.without_loss(0.0)


def _empty(*_: Any, **__: Any) -> Any:
    return Tail(np.zeros(0), np.zeros(0), np.zeros(0), 0.0)


def _spoiled(factor: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What the function returns, its (first) array multiplied: by NaN, or by nothing."""

    def planted(shipped: Callable[..., Any]) -> Callable[..., Any]:
        def broken(*args: Any, **kwargs: Any) -> Any:
            found = shipped(*args, **kwargs)
            return (found[0] * factor, *found[1:]) if isinstance(found, tuple) else found * factor

        return broken

    return planted


FAULTS: list[tuple[str, str, Callable[..., Any]]] = [
    # NaN
    (f"{ENGINE}loss._halves", "guarantee", _spoiled(math.nan)),
    (f"{ENGINE}compose.inverted", "guarantee", _spoiled(math.nan)),
    (f"{ENGINE}compose.inverted", "sweep", _spoiled(math.nan)),
    (f"{ENGINE}seen.LocalCurve.upper", "guarantee", _spoiled(math.nan)),
    (f"{COMPOSED}account.refined", "sum", lambda _: lambda *_: (math.nan, 1.0)),
    (f"{COMPOSED}lower_bounds.in_either_order", "lower bound", lambda _: _nan),
    (f"{COMPOSED}lower_bounds.in_either_order", "lower sweep", lambda _: _nan),
    # overflow
    (f"{ENGINE}loss.convex_minorant", "guarantee", lambda _: _overflowing),
    (f"{ENGINE}compose.curve_of_masses", "delta", lambda _: _overflowing),
    (f"{ENGINE}typed.curve.typed_upper", "guarantee", lambda _: _overflowing),
    (f"{ENGINE}curves.dominating", "preview", lambda _: _overflowing),
    # emptiness: a figure that looks like one, and is too small
    (f"{ENGINE}compose.untilted", "guarantee", lambda _: _empty),
    (f"{ENGINE}compose.untilted", "delta", lambda _: _nothing),
    (f"{ENGINE}compose.untilted", "profile", lambda _: _nothing),
    (f"{ENGINE}compose.untilted", "sweep", lambda _: _nothing),
    (f"{ENGINE}curves.compose", "preview", lambda _: _nothing),
    (f"{ENGINE}loss._halves", "guarantee", _spoiled(0.0)),
    ("dpcheckin.accounting.pairs.local.LocalPair.every_report_seen", "local", lambda _: lambda *_: 1.0),
    ("dpcheckin.accounting.pairs.local.LocalPair.every_report_seen", "noisy", lambda _: lambda *_: 1.0),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_a_fault_every_question_has_an_answer(question: str) -> None:
    QUESTIONS[question]()


@pytest.mark.parametrize(("place", "question", "planted"), FAULTS)
def test_a_planted_fault_is_refused(
    place: str, question: str, planted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = place.rpartition(".")
    owner, _, cls = module.rpartition(".")
    holder = __import__(module if cls[0].islower() else owner, fromlist=["_"])
    holder = holder if cls[0].islower() else getattr(holder, cls)
    monkeypatch.setattr(holder, name, planted(getattr(holder, name)))
    with pytest.raises(NumericalFailure) as refusal:
        QUESTIONS[question]()
    assert "\n" not in str(refusal.value)


def test_values_refuse_what_is_no_figure() -> None:
    for ends in ((math.nan, 1.0), (0.0, math.nan), (2.0, 1.0), (-2.0, -1.0), (math.inf, math.inf)):
        with pytest.raises(NumericalFailure):
            Bracket(*ends)
    for epsilon in (math.nan, -1.0):
        with pytest.raises(NumericalFailure):
            LocalGuarantee(1.0, 0.0, epsilon, 1)
        with pytest.raises(NumericalFailure):
            passed(epsilon, RUN, DELTA)
    places = np.array([0.0, 1.0])
    for broken in (np.array([1.0, math.nan]), np.array([math.inf, 0.0]), np.array([-1.0, 0.0])):
        with pytest.raises(NumericalFailure):
            Tail(places, broken, np.zeros(2), 0.0)
    for empty in (np.zeros(0), np.zeros(1), np.zeros(2), np.array([0.0, math.nan])):
        with pytest.raises(NumericalFailure):
            Tail(empty, np.zeros(empty.size), np.zeros(empty.size), 0.0)
    with pytest.raises(NumericalFailure):
        Tail(places, np.zeros(2), np.zeros(2), math.nan)


def test_arithmetic_is_loud_in_numpy_and_in_python() -> None:
    for broken in (
        lambda: np.exp(np.array([1e4])),
        lambda: np.array([1.0]) / 0.0,
        lambda: np.log(np.array([-1.0])),
        lambda: math.exp(1e4),
        lambda: 1.0 / math.fsum([]),
    ):
        with pytest.raises(NumericalFailure, match="no figure"), loud_arithmetic():
            broken()
    with loud_arithmetic():
        assert np.exp(np.array([-1e4]))[0] == 0.0  # vanishing is not an error


def _exact(one: Round, rounds: int, delta: float) -> float:
    """Epsilon of the counted bits, their two laws convolved term by term."""
    assert one.pair is not None
    seats, bit = one.lower_seats(one.pair), _bit(one.pair)
    assert seats is not None and bit is not None
    usual = seats.participation * bit[0]
    share = seats.count * seats.participation / seats.population
    changed = usual + share * (bit[1] - bit[0])
    without, with_other = np.ones(1), np.ones(1)
    for _ in range(rounds):
        for seat in range(seats.count):
            without = np.convolve(without, [1 - usual, usual])
            chance = usual if seat else changed
            with_other = np.convolve(with_other, [1 - chance, chance])
    low, high = 0.0, 500.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        above = np.maximum(with_other - math.exp(middle) * without, 0.0).sum() > delta
        low, high = (middle, high) if above else (low, middle)
    return high


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 12),
    share=st.floats(0.05, 0.95),
    e0=st.floats(0.1, 8.0),
    rounds=st.integers(1, 60),
    delta=st.sampled_from([1e-9, 1e-6, 1e-3, 0.1, 0.4, 0.6]),
    kind=st.integers(0, 4),
)
def test_counting_shows_no_more_than_the_counts_tell(
    n: int, share: float, e0: float, rounds: int, delta: float, kind: int
) -> None:
    """Against both laws of the count, convolved: the bound never exceeds what they are worth."""
    pair = binary_response(e0)
    one: Round = (
        CheckInRound(n, share, pair),
        ShuffleRound(n, pair),
        LocalRound(pair, share),
        SubsampleRound(n, max(1, int(share * n)), pair),
        WindowRound(n, pair, others=n),
    )[kind]
    assert counted([(one, rounds)], delta) <= _exact(one, rounds, delta) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("s", [0.01, 0.5, 1.0, 2.0, 5.0])
def test_bits_are_no_better_than_the_best_test(s: float) -> None:
    """Neyman and Pearson: at level q no test of a normal report has a power above this."""
    bit = _bit(gaussian(2.0 / s))
    assert bit is not None
    q, p = bit
    assert q < p <= float(ndtr(ndtri(q) + s)) * (1 + 1e-9)


def test_counting_is_close_where_runs_are_long() -> None:
    """The stated factor, (1 - 1/mu)^2 of mu^2 / 2 for one bit, where binary reports are one."""
    one = ShuffleRound(10**6, binary_response(1.0))
    q, p = _bit(one.pair) or (0.0, 0.0)
    for rounds in (10**8, 10**9):
        mu = (p - q) * math.sqrt(rounds / (one.honest * q))
        found = counted([(one, rounds)], DELTA)
        assert 0.5 * (mu - 1) ** 2 + math.log(0.5 - 2 * DELTA) < found < 0.5 * mu**2


@pytest.mark.parametrize(
    ("one", "rounds"),
    [
        (CheckInRound(10_000, 0.01, any_pure(2.0)), 100),
        (CheckInRound(2, 0.5, laplace(1.0)), 1),
        (CheckInRound(40, 0.3, gaussian(1.4)), 50),
        (ShuffleRound(100, binary_response(1.0)), 1),
        (LocalRound(gaussian(1.0), 0.2), 300),
        (WindowRound(100, any_pure(2.0), others=999), 50),
        (SubsampleRound(1000, 100, any_pure(3.0)), 1000),
    ],
)
def test_counting_shows_less_than_the_best_known_attack(one: Round, rounds: int) -> None:
    for delta in (1e-3, 1e-6):
        known = lower_bound([(one, rounds)], delta).epsilon.lower
        assert counted([(one, rounds)], delta) <= known * (1 + 1e-6)
