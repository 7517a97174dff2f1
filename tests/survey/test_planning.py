"""The planner: certified, better than what it left out, monotone, honest about what it cannot."""

import pytest

from dpcheckin.errors import InvalidParameter, Unreachable
from dpcheckin.protocols import FullShuffle
from dpcheckin.survey import Distribution, HeavyHitters, Histogram, Mean, Survey, VectorMean, Wish, plan_survey


@pytest.mark.parametrize(
    "query",
    [Histogram(40), Mean(0, 10), Distribution(0, 1, 32), VectorMean(8), HeavyHitters(16, 10)],
    ids=lambda query: query.kind,
)
def test_a_plan_keeps_to_its_epsilon_and_says_what_it_costs(query):
    found = plan_survey(Wish(query, 20_000, 1e-6, epsilon=1.0, rounds=query.stages))
    facts = found.as_document()
    assert 0.9 < facts["epsilon"] <= 1.0
    assert facts["colluding_epsilon"] >= facts["epsilon"]
    assert facts["error"] > 0 and facts["half_width"] == pytest.approx(1.96 * facts["error"], 1e-3)
    assert facts["report_bytes"] == found.survey.report_bytes > 0
    assert Survey.from_document({k: facts[k] for k in found.survey.as_document()}) == found.survey


def test_the_census_plan_is_what_the_accountant_allows():
    """One full round of d-ary response: 8.22, 9.28 and 10.13 at epsilon 0.5, 1 and 2."""
    from dpcheckin.survey.estimates import gaussian_mu

    most = {0.5: 1.9, 1.0: 2.3, 2.0: 3.5}
    for epsilon, local in ((0.5, 8.22), (1.0, 9.28), (2.0, 10.13)):
        found = plan_survey(Wish(Histogram(915), 602_156, 1e-8, epsilon=epsilon, rounds=1))
        assert found.survey.mechanism == "dary"
        assert found.survey.local_epsilon == pytest.approx(local, abs=0.01)
        central = 2 / gaussian_mu(epsilon, 1e-8) ** 2
        assert found.error**2 <= most[epsilon] * central


@pytest.mark.slow
def test_no_mechanism_that_was_left_out_would_have_been_better():
    wish = Wish(Histogram(200), 3000, 1e-6, epsilon=0.3, rounds=1)
    chosen = plan_survey(wish)
    for mechanism in Histogram(200).mechanisms():
        rival = plan_survey(Wish(Histogram(200), 3000, 1e-6, epsilon=0.3, rounds=1, mechanism=mechanism))
        assert chosen.error <= rival.error * 1.02, mechanism


def test_small_local_epsilon_calls_for_sets():
    wish = Wish(Histogram(200), 50_000, 1e-6, epsilon=1.0, rounds=1, largest_local_epsilon=2.0)
    found = plan_survey(wish)
    assert found.survey.mechanism.startswith("subset")
    assert found.guarantee.local.epsilon <= 2.0
    assert isinstance(found.survey.plan, FullShuffle)


def test_the_cap_holds_over_all_rounds():
    wish = Wish(Mean(0, 1), 20_000, 1e-6, epsilon=1.0, rounds=4, largest_local_epsilon=3.0)
    found = plan_survey(wish)
    assert found.guarantee.local.epsilon <= 3.0 * (1 + 1e-9)


def test_more_people_and_more_epsilon_never_hurt():
    shares = []
    for people, epsilon in ((2000, 0.5), (2000, 1.0), (8000, 1.0)):
        wish = Wish(Histogram(20), people, 1e-6, epsilon=epsilon, rounds=1)
        shares.append(plan_survey(wish).error / people)
    assert shares[0] > shares[1] > shares[2]


def test_a_wanted_error_is_met_at_the_least_epsilon():
    wish = Wish(Histogram(20), 5000, 1e-6, error=60.0, rounds=1)
    found = plan_survey(wish)
    assert found.error <= 60.0
    back = plan_survey(Wish(Histogram(20), 5000, 1e-6, epsilon=found.guarantee.epsilon.upper, rounds=1))
    assert back.error == pytest.approx(60.0, rel=0.02)


def test_more_rounds_are_taken_only_where_they_are_worth_it():
    few = plan_survey(Wish(Mean(0, 1), 20_000, 1e-6, epsilon=1.0))
    scores = {one.rounds: score for one, score in few.rivals}
    scores[few.survey.rounds] = few.error
    assert few.survey.rounds == 1 or few.error < 0.9 * scores[1]


def test_what_cannot_be_reached_is_said():
    with pytest.raises(Unreachable, match="error"):
        plan_survey(Wish(Histogram(20), 100, 1e-6, error=1e-4, rounds=1, largest_local_epsilon=1.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1.0, "error": 2.0},
        {},
        {"epsilon": -1.0},
        {"error": float("nan")},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "confidence": 1.0},
        {"epsilon": 1.0, "largest_local_epsilon": 0.0},
    ],
)
def test_bad_wishes_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        Wish(**{"query": Histogram(3), "population": 100, "delta": 1e-6, **wrong})


def test_bad_rates_are_refused():
    with pytest.raises(InvalidParameter, match="rate"):
        plan_survey(Wish(Histogram(3), 100, 1e-6, epsilon=1.0, rate=0.0))
