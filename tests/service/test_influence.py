"""What clients that lie can do: bounds that hold, and attacks that come close to them."""

import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    DiscreteGaussianVector,
    Gaussian,
    IntegerVector,
    SeededSource,
    SkellamVector,
    VectorRandomizer,
)
from dpcheckin.service.analyzer.batches import _VectorSum
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.reports import influence
from dpcheckin.service.wire.payloads import FALSE_ALARM, SumOfShares, longest_sum, payload_head
from dpcheckin.service.wire.problems import Malformed
from service.plans import DARY, GAUSSIAN, PRIVUNIT, plan

FIFTY = {"name": "skellam", "noise_multiplier": 4.0, "steps": 1024, "dimension": 50}
FIFTY |= {"clip": 1.0, "encoding": 3}


def honest_sum(noise: IntegerVector, reports: int, seed: int) -> np.ndarray:
    """Integers of a sum in which every client sends the same vector at its bound."""
    values = np.zeros((reports, noise.dimension))
    values[:, 0] = noise.clip
    return noise.randomize(values, SeededSource(seed)).sum(axis=0)


def total_of(noise: IntegerVector, reports: int, integers: np.ndarray) -> np.ndarray:
    """What the analyzer makes of it: here all of the sum is the shuffler's part."""
    shares = SumOfShares(noise, (integers % 2**32).astype("<u4").tobytes())
    shares._reports = reports
    return shares.total()


@pytest.mark.parametrize("kind", [SkellamVector, DiscreteGaussianVector])
@pytest.mark.parametrize(("noise_multiplier", "reports"), [(4.0, 20), (1.0, 5), (0.2, 40)])
def test_honest_sums_are_not_mistaken_even_when_all_clients_agree(
    noise_multiplier: float, reports: int, kind: type[IntegerVector]
) -> None:
    noise = kind(noise_multiplier, 50, 1.0, 256)
    longest = longest_sum(noise, reports)
    lengths = [np.linalg.norm(total_of(noise, reports, honest_sum(noise, reports, seed))) for seed in range(40)]
    assert max(lengths) < longest
    # and the bound is no idle one: clips, and noise with a few deviations to spare
    spread = noise_multiplier * math.sqrt(reports)
    assert longest < 1.1 * reports + spread * (math.sqrt(50) + math.sqrt(-2 * math.log(FALSE_ALARM)) + 1)


@pytest.mark.parametrize("noise_multiplier", [0.001, 0.1, 0.5])
def test_with_hardly_any_noise_the_bound_still_holds(noise_multiplier: float) -> None:
    noise = SkellamVector(noise_multiplier, 50, 1.0, 16)
    assert longest_sum(noise, 0) == 0.0
    for seed in range(40):
        total = noise.estimate(honest_sum(noise, 3, seed))
        assert np.linalg.norm(total) < longest_sum(noise, 3)


@pytest.mark.parametrize("reports", [4, 20, 100])
def test_one_client_of_distributed_check_in_is_bounded_by_the_length_of_the_sum(reports: int) -> None:
    noise = randomizer_of(plan("distributed-check-in", randomizer=FIFTY))
    assert isinstance(noise, SkellamVector)
    said = influence(plan("distributed-check-in", randomizer=FIFTY), reports)
    honest = honest_sum(noise, reports, 1)
    straight = noise.estimate(honest)
    away = -straight / np.linalg.norm(straight)  # an attacker who even knows the sum
    room = longest_sum(noise, reports)

    def moved(clips: float) -> np.ndarray:
        return np.round(away * clips * noise.steps).astype(np.int64)

    most = room + float(np.linalg.norm(straight))
    unnoticed = total_of(noise, reports, honest + moved(most - 0.1))
    assert np.linalg.norm(unnoticed - straight) > room  # what the statement warns of is possible
    assert most - 0.1 <= said.moved
    with pytest.raises(Malformed, match="longer than honest shares"):
        total_of(noise, reports, honest + moved(most + 0.1))
    with pytest.raises(Malformed):
        total_of(noise, reports, honest + moved(said.moved + 0.1))


def test_the_statement_of_shares_says_that_one_can_do_what_all_can() -> None:
    document = plan("distributed-check-in", randomizer=FIFTY)
    one, ten = influence(document, 20), influence(document, 20, hostile=10)
    assert one.moved == ten.moved
    assert "false alarms: at most 9.1e-13 a round" in one.sentence
    assert influence(document, 100).moved > one.moved


@pytest.mark.parametrize("kind", [PRIVUNIT, GAUSSIAN])
def test_a_report_that_passes_moves_the_sum_no_further_than_stated(kind: dict) -> None:
    document = plan(randomizer=kind)
    randomizer = randomizer_of(document)
    assert isinstance(randomizer, VectorRandomizer)
    said = influence(document, 50, hostile=3)
    assert said.moved == pytest.approx(3 * influence(document, 50).moved)
    head = payload_head(1, 20)

    def total(lengths: list[float]) -> np.ndarray:
        adding = _VectorSum(randomizer, 20)
        for length in lengths:
            row = np.zeros(20, "<f4")
            row[3] = length
            adding.take(head + row.tobytes())
        return adding.total()

    longest = 1.0005 if not isinstance(randomizer, Gaussian) else 1 + 2 * (math.sqrt(20) + 8.9)
    moved = np.linalg.norm(total([longest] * 3) - total([-longest] * 3))
    assert 0.97 * said.moved < moved <= said.moved
    with pytest.raises(Malformed):
        total([longest * 1.1])


def test_a_symbol_moves_two_counts() -> None:
    document = plan(randomizer=DARY)
    randomizer = randomizer_of(document)
    flipped = randomizer.estimate(np.array([0] * 7)) - randomizer.estimate(np.array([1] * 7))
    said = influence(document, 40, hostile=7)
    assert said.moved == pytest.approx(float(np.linalg.norm(flipped)))
    assert said.honest == 1.0


def test_a_number_of_liars_that_cannot_be_is_refused() -> None:
    for hostile in (0, 41):
        with pytest.raises(InvalidParameter, match="hostile"):
            influence(plan(), 40, hostile)
