"""Flower's accountant protocol with check-in rounds: figures, limits, state."""

from __future__ import annotations

import inspect
import json

import pytest

pytest.importorskip("flwr")
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyAccountant, PrivacyConfig, SamplingMethod

from dpcheckin.accounting import CheckInRound, SubsampleRound, gaussian, guarantee
from dpcheckin.errors import InvalidParameter
from dpcheckin.flower.accountant import METHOD, CheckInAccountant
from dpcheckin.protocols.questions import RunQuestion

N = 2_000
EVENT = GaussianPrivacyEvent(noise_multiplier=3.0, sample_size=100, population_size=N)


def config(limit: float | None = None) -> PrivacyConfig:
    relation, sampling = NeighboringRelation.REPLACE_ONE, SamplingMethod.WITHOUT_REPLACEMENT
    return PrivacyConfig(1e-5, N, relation, sampling, limit)


def central(sampling: SamplingMethod) -> CheckInAccountant:
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    return CheckInAccountant(PrivacyConfig(1e-5, N, relation, sampling, 2.0), "central")


def test_it_has_every_method_of_the_protocol_with_its_parameters() -> None:
    for name, member in vars(PrivacyAccountant).items():
        if name.startswith("_"):
            continue
        ours = getattr(CheckInAccountant, name)
        if isinstance(member, property):
            assert isinstance(ours, property), name
        else:
            theirs = list(inspect.signature(member).parameters)
            assert list(inspect.signature(ours).parameters) == theirs, name


def test_an_event_costs_what_the_round_costs() -> None:
    accountant = CheckInAccountant(config())
    assert accountant.get_epsilon(1e-5) == 0.0 == accountant.get_delta(0.1)
    accountant.compose(EVENT, count=5)
    stated = guarantee([(CheckInRound(N, 0.05, gaussian(3.0)), 5)], 1e-5)
    assert accountant.get_epsilon(1e-5) == stated.epsilon.upper
    assert accountant.guarantee() == stated
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta) == (stated.epsilon.upper, 1e-5)
    assert (spent.num_releases, spent.accounting_method) == (5, METHOD)
    assert accountant.get_delta(spent.epsilon) == pytest.approx(1e-5, rel=0.1)


def test_a_cohort_of_fixed_size_is_another_round() -> None:
    accountant = CheckInAccountant(config(), "cohort")
    accountant.compose(EVENT)
    stated = guarantee([(SubsampleRound(N, 100, gaussian(3.0)), 1)], 1e-5)
    assert accountant.get_epsilon(1e-5) == stated.epsilon.upper


def test_rounds_in_plain_names_mix_with_events() -> None:
    accountant = CheckInAccountant(config())
    accountant.compose(EVENT)
    alone = accountant.get_epsilon(1e-5)
    accountant.compose(RunQuestion("shuffled-check-in", N, rate=0.05, local_epsilon=1.0), 3)
    assert accountant.num_releases == 4
    assert accountant.get_epsilon(1e-5) > alone


def test_the_limit_is_seen_before_it_is_passed_and_nothing_is_added() -> None:
    accountant = CheckInAccountant(config(limit=0.05))
    accountant.compose(EVENT)
    before = accountant.state_dict()
    assert not accountant.would_exceed(EVENT, max_epsilon=5.0)
    assert accountant.would_exceed(EVENT, count=50)
    assert accountant.would_exceed(EVENT, max_epsilon=1e-9)
    assert accountant.state_dict() == before
    with pytest.raises(InvalidParameter, match="max_epsilon"):
        CheckInAccountant(config()).would_exceed(EVENT)


def test_the_state_is_json_and_is_gone_on_with() -> None:
    first = CheckInAccountant(config())
    first.compose(EVENT, 2)
    first.compose(RunQuestion("shuffled-check-in", N, rate=0.05, local_epsilon=1.0), 3)
    second = CheckInAccountant(config())
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.num_releases == 5
    assert second.get_epsilon(1e-5) == first.get_epsilon(1e-5)
    for other in (CheckInAccountant(config(1.0)), CheckInAccountant(config(), "cohort")):
        with pytest.raises(InvalidParameter, match=r"state\."):
            other.load_state_dict(first.state_dict())
    broken = {**first.state_dict(), "compositions": [{"count": 1}]}
    with pytest.raises(InvalidParameter, match="state_dict"):
        second.load_state_dict(broken)
    assert second.num_releases == 5


def test_central_rounds_are_those_of_flowers_own_accountant_and_tighter() -> None:
    flowers = pytest.importorskip("flwr.supercore.privacy_accounting.rdp_accountant")
    event = GaussianPrivacyEvent(2.0, 100, N)
    for sampling in (SamplingMethod.POISSON, SamplingMethod.NO_AMPLIFICATION):
        ours = central(sampling)
        theirs = flowers.RdpAccountant(ours.config)
        for accountant in (ours, theirs):
            accountant.compose(event, 4)
        assert 0.6 * theirs.get_epsilon(1e-5) < ours.get_epsilon(1e-5) < theirs.get_epsilon(1e-5)


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (GaussianPrivacyEvent(3.0, 10, 100), "population_size"),
        (RunQuestion("shuffled-check-in", N, rounds=3, rate=0.05, local_epsilon=1.0), "rounds"),
        (RunQuestion("central", N, rate=0.1, noise_multiplier=1.0), "neighboring_relation"),
    ],
)
def test_what_does_not_fit_is_refused(event: object, named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        CheckInAccountant(config()).compose(event)  # type: ignore[arg-type]


def test_bad_arguments_get_one_line() -> None:
    with pytest.raises(InvalidParameter, match="rounds = 'pigeon'"):
        CheckInAccountant(config(), "pigeon")
    with pytest.raises(InvalidParameter, match="count = 0"):
        CheckInAccountant(config()).compose(EVENT, 0)
    with pytest.raises(InvalidParameter, match="at least one round"):
        CheckInAccountant(config()).guarantee()
