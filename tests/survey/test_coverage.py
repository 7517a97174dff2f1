"""95% intervals contain the truth in 93 to 97% of 1,000 seeded repetitions; all at once in 94%.

Every kind of query, asked of everybody and of a part of a finite population.
"""

import numpy as np
import pytest

from dpcheckin.survey import (
    Count,
    Distribution,
    HeavyHitters,
    Histogram,
    Mean,
    Quantiles,
    Sum,
    Survey,
    VectorMean,
    one_round,
)

PEOPLE, REPETITIONS = 3000, 1000
_draw = np.random.default_rng(1)
SYMBOLS = np.minimum(_draw.geometric(0.15, PEOPLE) - 1, 19)
BITS = (_draw.random(PEOPLE) < 0.3).astype(np.int64)
NUMBERS = _draw.beta(2, 5, PEOPLE) * 10
VECTORS = _draw.standard_normal((PEOPLE, 5)) / 4 + 0.2
WORDS = np.concatenate([np.repeat([5, 77, 200], [600, 500, 400]), _draw.integers(256, size=1500)])
PARTLY, FULLY = {"rate": 0.2, "rounds": 2}, {"rate": 1.0, "rounds": 1}

CASES = {
    "count, everybody": (Survey(Count(), PEOPLE, 3.0, **FULLY), BITS),
    "count": (Survey(Count(), PEOPLE, 3.0, **PARTLY), BITS),
    "dary, everybody": (Survey(Histogram(20), PEOPLE, 5.0, **FULLY), SYMBOLS),
    "dary": (Survey(Histogram(20), PEOPLE, 5.0, **PARTLY), SYMBOLS),
    "subsets": (Survey(Histogram(20), PEOPLE, 3.0, "subset:3", **PARTLY), SYMBOLS),
    "unary": (Survey(Histogram(20), PEOPLE, 3.0, "unary", **PARTLY), SYMBOLS),
    "hadamard": (Survey(Histogram(20), PEOPLE, 2.0, "hadamard", **PARTLY), SYMBOLS),
    "mean, everybody": (Survey(Mean(0, 10), PEOPLE, 4.0, "levels:8", **FULLY), NUMBERS),
    "mean": (Survey(Mean(0, 10), PEOPLE, 4.0, "levels:8", **PARTLY), NUMBERS),
    "sum": (Survey(Sum(0, 10), PEOPLE, 4.0, "levels:4", **PARTLY), NUMBERS),
    "vectors": (Survey(VectorMean(5), PEOPLE, 4.0, **PARTLY), VECTORS),
    "distribution": (Survey(Distribution(0, 10, 48), PEOPLE, 5.0, **FULLY), NUMBERS),
    "tree": (Survey(Distribution(0, 10, 48), PEOPLE, 3.0, "tree:4", **PARTLY), NUMBERS),
    "heavy hitters": (Survey(HeavyHitters(8, 3), PEOPLE, 5.0, "hash:7", **PARTLY), WORDS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_as_often_as_they_say(name):
    survey, values = CASES[name]
    encoded = survey.query.encode(values)
    single, together = [], []
    for seed in range(10**6, 10**6 + REPETITIONS):
        reports = [one_round(survey, encoded, seed, r) for r in range(survey.rounds)]
        for simultaneous, kept in ((False, single), (True, together)):
            found = survey.estimate(reports, simultaneous=simultaneous)
            truth = survey.query.truth(values, found)
            inside = found.contains(truth)[: len(truth) - (survey.query.kind == "distribution")]
            kept.append(inside.mean() if not simultaneous else inside.all())
    assert 0.93 <= np.mean(single) <= 0.97, np.mean(single)
    assert np.mean(together) >= 0.94, np.mean(together)


# Bins wider and narrower than the noise; atoms on edges and off them; gaps; a tail that is cut.
SPREAD = {
    "skewed": (Quantiles(0, 300_000, 20), np.exp(10 + _draw.standard_normal(PEOPLE))),
    "skewed, fifty bins": (Quantiles(0, 300_000, 50), np.exp(10 + _draw.standard_normal(PEOPLE))),
    "discrete, on edges": (Quantiles(0, 1, 10), _draw.integers(11, size=PEOPLE) / 10),
    "discrete, off edges": (Quantiles(0, 10, 16), _draw.poisson(3, PEOPLE)),
    "one value": (Quantiles(0, 10, 16), np.full(PEOPLE, 7.3)),
    "heavy tail": (Quantiles(0, 100, 64, (0.1, 0.5, 0.9)), _draw.pareto(1.1, PEOPLE)),
    "smooth": (Quantiles(0, 10, 48), NUMBERS),
}


@pytest.mark.parametrize("part", [PARTLY, FULLY], ids=["partly", "everybody"])
@pytest.mark.parametrize("name", SPREAD)
def test_intervals_of_quantiles_contain_the_real_ones(name, part):
    """The quantiles of the numbers, not of their bins; at least as often as is said."""
    query, values = SPREAD[name]
    survey = Survey(query, PEOPLE, 5.0, **part)
    encoded = query.encode(values)
    real = np.sort(np.clip(values, query.low, query.high))
    real = real[np.ceil(np.array(query.probabilities) * PEOPLE).astype(int) - 1]
    single, together = [], []
    for seed in range(120):
        reports = [one_round(survey, encoded, seed, r) for r in range(survey.rounds)]
        for simultaneous, kept in ((False, single), (True, together)):
            found = survey.estimate(reports, simultaneous=simultaneous)
            assert np.array_equal(query.truth(values, found), real)
            inside = found.contains(real)
            kept.append(inside.mean() if not simultaneous else inside.all())
    # 0.95 less three standard deviations of 120 repetitions
    assert np.mean(single) >= 0.95 - 3 * (0.95 * 0.05 / 120) ** 0.5, np.mean(single)
    assert np.mean(together) >= 0.95 - 3 * (0.95 * 0.05 / 120) ** 0.5, np.mean(together)


@pytest.mark.slow
def test_what_nobody_holds_is_listed_no_more_often_than_stated():
    """Two values hold half of all people; everything else that is listed should be held."""
    values = np.concatenate([np.repeat([3, 90_000], [700, 600]), np.arange(500) * 97 + 11])
    query = HeavyHitters(17, 10, false_positives=0.1)
    survey = Survey(query, len(values), 5.0, "hash:7", rounds=query.stages)
    encoded = query.encode(values)
    wrong = 0
    for seed in range(150):
        reports = [one_round(survey, encoded, seed, r) for r in range(survey.rounds)]
        found = survey.estimate(reports)
        wrong += bool((query.truth_of(encoded, found) == 0).any())
    assert wrong <= 150 * 0.1 + 3 * (150 * 0.1 * 0.9) ** 0.5
