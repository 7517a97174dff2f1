"""The lower bound holds with the stated confidence, whatever the system, and is worth something."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dpcheckin.audit.choice import choose
from dpcheckin.audit.evidence import Counts, Stakes, clopper_pearson_epsilon, log_evidence, log_growth, lower_epsilon
from dpcheckin.errors import InvalidParameter

counts = st.builds(Counts.plain, *[st.integers(0, 5000)] * 4)


@settings(max_examples=60, deadline=None)
@given(counts, st.floats(1e-6, 0.1), st.floats(1e-4, 0.4), st.floats(0, 4), st.floats(0, 4))
def test_the_capital_falls_as_the_claimed_epsilon_grows(
    seen: Counts, delta: float, stake: float, one: float, more: float
) -> None:
    """So refuting one epsilon refutes all smaller ones, and the bound needs no union over them."""
    stakes = Stakes.around(stake)
    assert log_evidence(seen, one + more, delta, stakes) <= log_evidence(seen, one, delta, stakes) + 1e-9


@settings(max_examples=60, deadline=None)
@given(counts, st.floats(1e-6, 0.1), st.floats(1e-4, 0.4))
def test_just_below_the_bound_is_refuted_and_just_above_is_not(seen: Counts, delta: float, stake: float) -> None:
    stakes, wanted = Stakes.around(stake), math.log(100)
    bound = lower_epsilon(seen, delta, 0.99, stakes)
    if bound > 0:
        assert log_evidence(seen, bound - 1e-6, delta, stakes) >= wanted - 1e-3
    assert log_evidence(seen, bound + 1e-6, delta, stakes) < wanted + 1e-3


@pytest.mark.parametrize("coupled", [False, True], ids=["independent runs", "coupled runs"])
def test_false_alarms_stay_below_one_per_cent_when_the_claim_is_exactly_true(coupled: bool) -> None:
    """The worst honest system: P(S) - e^ε Q(S) equals δ, and we look after every 50 pairs."""
    generator = np.random.default_rng(5)
    epsilon, delta, q = 0.7, 0.02, 0.1
    p = math.exp(epsilon) * q + delta
    repetitions, looks, each = 4000, 60, 50
    uniform = generator.random((2, repetitions, looks, each))
    first = uniform[0] < p
    second = uniform[0 if coupled else 1] < q
    both = (first & second).sum(axis=2)
    one, other = first.sum(axis=2) - both, second.sum(axis=2) - both
    seen = np.stack([each - both - one - other, other, one, both], axis=2).cumsum(axis=1)
    stakes = Stakes.around(0.03)
    capital = sum(
        share * np.exp(log_growth(epsilon, delta, size, seen.astype(float)))
        for size, share in zip(stakes.sizes, stakes.shares, strict=True)
    )
    none, second_only, first_only, both_ways = map(int, seen[0, -1])
    one_run = Counts.plain(both_ways, first_only, second_only, none)
    assert log_evidence(one_run, epsilon, delta, stakes) == pytest.approx(np.log(capital[0, -1]))
    alarms = (capital >= 100).any(axis=1)
    # 1% of 4000 is 40; ten more would still happen by chance once in twenty
    assert alarms.sum() <= 50


def test_the_bet_beats_clopper_and_pearson_on_coupled_runs_and_stays_below_the_truth() -> None:
    generator = np.random.default_rng(6)
    noise, delta = generator.standard_normal(400_000), 1e-3
    first, second = noise + 0.1, noise  # the Gaussian mechanism with mu = 0.1
    pilot = {"score": (first[:100_000], second[:100_000])}
    chosen = choose(pilot, 300_000, delta, 0.99)
    seen = chosen.event.count(first[100_000:], second[100_000:])
    bound = lower_epsilon(seen, delta, 0.99, chosen.stakes)

    def excess(epsilon: float) -> float:
        up, down = norm.cdf(0.05 - epsilon / 0.1), norm.cdf(-0.05 - epsilon / 0.1)
        return float(up - math.exp(epsilon) * down - delta)

    truth = brentq(excess, 0, 1)
    assert 0.7 * truth < bound < truth
    assert clopper_pearson_epsilon(seen, delta, 0.99) < 0.85 * bound


def test_an_event_that_never_happens_on_one_side_gives_the_logarithm_of_the_runs() -> None:
    seen = Counts.plain(0, 9000, 0, 1000)
    bound = lower_epsilon(seen, 1e-5, 0.99, Stakes.around(5.0 / 9000))
    assert math.log(9000 / math.log(100)) - 0.3 < bound < math.log(9000)


def test_nothing_seen_shows_nothing() -> None:
    assert lower_epsilon(Counts.plain(), 1e-3, 0.99, Stakes.around(0.01)) == 0.0
    assert clopper_pearson_epsilon(Counts.plain(), 1e-3, 0.99) == 0.0


def test_the_choice_takes_the_statistic_that_tells_and_ignores_the_one_that_does_not() -> None:
    generator = np.random.default_rng(7)
    noise = generator.standard_normal((4, 20_000))
    scores = {"noise": (noise[0], noise[1]), "signal": (noise[2] + 1, noise[3])}
    assert choose(scores, 20_000, 1e-2, 0.99).event.statistic == "signal"


@pytest.mark.parametrize("confidence", [0.0, 0.3, 1.0, math.nan])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(InvalidParameter, match="confidence"):
        lower_epsilon(Counts.plain(1, 1, 1, 1), 0.1, confidence, Stakes.around(0.1))
