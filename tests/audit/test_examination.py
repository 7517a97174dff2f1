"""An audit keeps its budget, can be repeated and taken up, and never claims more than is true."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.accounting import lower_bound
from dpcheckin.audit import BlackBox, Budget, Check, Neighbours, check_plan, examine
from dpcheckin.audit.finding import ENOUGH, Verdict
from dpcheckin.audit.plans import judged, needed_pairs, plan_named
from dpcheckin.audit.requests import Request
from dpcheckin.audit.statistics import Place, standard_statistics
from dpcheckin.audit.tables import Cell, audit_cells, cells_markdown, composed_cells, draw, one_round_cells
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.claims import claim_names, claimed, forecast
from dpcheckin.protocols import FullShuffle, ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, registry

PLAN = ShuffledCheckIn(30, 0.2, 1, DaryResponse(3.0, 3))


def test_one_round_of_three_ary_response_is_audited_to_seven_tenths_of_its_certified_epsilon() -> None:
    found = examine(check_plan(PLAN, 0.01), Budget(pairs=40_000), seed=1)
    assert 0.7 <= found.ratio <= 1.0
    assert found.lower <= found.claimed
    assert found.clopper_pearson <= found.lower  # paired runs: the bet sees more


def test_composed_rounds_are_audited_to_half_of_their_certified_epsilon() -> None:
    plan = ShuffledCheckIn(30, 0.1, 10, DaryResponse(2.0, 3))
    found = examine(check_plan(plan, 0.01), Budget(pairs=5_000), seed=1)
    assert 0.5 <= found.ratio <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cell", [c for c in one_round_cells() if c.local_epsilon in (2.0, 4.0)])
def test_must_show_one_round(cell: Cell) -> None:
    """Lower bound ≥ 0.7 of the certified epsilon, in a tenth of ten minutes on two cores."""
    (result,) = audit_cells([cell], Budget.parse("2m-cpu"))
    assert 0.7 <= result["lower_bound"] / result["claimed_epsilon"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("cell", composed_cells())
def test_must_show_a_hundred_rounds(cell: Cell) -> None:
    """Lower bound ≥ 0.5 of the certified epsilon after a hundred rounds.

    In a full shuffle a play has 100,000 reports, and a large epsilon takes many plays.
    """
    long = (cell.population, cell.rate, cell.local_epsilon) == (1000, 1.0, 4.0)
    (result,) = audit_cells([cell], Budget.parse("8m-cpu" if long else "2m-cpu"))
    assert 0.5 <= result["lower_bound"] / result["claimed_epsilon"] <= 1.0


def test_the_same_seed_gives_the_same_finding_and_another_one_does_not() -> None:
    one, again, other = (examine(check_plan(PLAN, 0.01), Budget(pairs=2_000), seed=s) for s in (1, 1, 2))
    assert (one.counts, one.event, one.lower) == (again.counts, again.event, again.lower)
    assert one.counts != other.counts


def test_an_audit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    check, state = check_plan(PLAN, 0.01), tmp_path / "state.json"
    first = examine(check, Budget(pairs=2_000), seed=3, state_path=state)
    longer = examine(check, Budget(pairs=2_000), state_path=state, resume=True)
    assert longer.seed == first.seed
    assert longer.event == first.event
    assert longer.pairs == first.pairs + 2_000
    assert longer.pilot_pairs == first.pilot_pairs
    with pytest.raises(InvalidParameter, match="same options"):
        examine(check_plan(PLAN, 0.02), Budget(pairs=10), state_path=state, resume=True)
    with pytest.raises(InvalidParameter, match="saved audit"):
        examine(check, Budget(pairs=10), state_path=tmp_path / "none.json", resume=True)
    state.write_text("{}")
    with pytest.raises(InvalidParameter, match="state saved by an audit"):
        examine(check, Budget(pairs=10), state_path=state, resume=True)


def test_two_workers_play_the_same_blocks_as_one() -> None:
    plan = FullShuffle(20, 1, DaryResponse(3.0, 3))
    found = examine(check_plan(plan, 0.01), Budget(pairs=4_000), seed=1, workers=2)
    assert 0.0 < found.lower <= found.claimed


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget(seconds=90)),
        ("2h", Budget(seconds=7200)),
        ("500", Budget(pairs=500)),
        ("20m-cpu", Budget(cpu_seconds=1200)),
    ],
)
def test_budgets_are_read(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "5x", "-3", "0", "1.5", "nan", "0s-cpu", "5-cpu"])
def test_budgets_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="budget"):
        Budget.parse(text)


def test_any_function_that_releases_batches_can_be_audited() -> None:
    """A black box without a permutation, with chance of its own: found out by its first report."""
    chance = np.random.default_rng(11)
    randomizer = DaryResponse(4.0, 3)

    def release(which: int, number: int) -> list[np.ndarray]:
        values = np.array([which] + [2] * 99)
        lies = chance.integers(3, size=100)
        return [np.where(chance.random(100) < 0.95, values, lies)]

    data = Neighbours(others=2, first=0, second=1)
    plan = FullShuffle(100, 1, randomizer)
    check = Check(
        "black box",
        BlackBox(release),
        data,
        tuple(standard_statistics(randomizer, data, 100)),
        plan.guarantee(0.05).epsilon.upper,
        0.05,
    )
    found = examine(check, Budget(pairs=1500), seed=1)
    assert found.refuted
    only_counts = Check(**{**check.__dict__, "statistics": (Place(randomizer, data, 3),)})
    assert not examine(only_counts, Budget(pairs=1500), seed=1).refuted


def test_a_finding_says_what_it_is() -> None:
    found = examine(check_plan(PLAN, 0.01), Budget(pairs=5_000), seed=1)
    said = found.to_json()
    assert json.loads(json.dumps(said)) == said
    assert {"claimed_epsilon", "lower_bound", "confidence", "delta", "refuted"} <= said.keys()
    assert "with 99% confidence" in str(found)
    assert "not violated" in str(found)


# --- verdicts ----------------------------------------------------------------------------------


def test_a_bound_far_below_what_should_be_seen_is_inconclusive() -> None:
    check = check_plan(PLAN, 0.01)
    short = examine(check, Budget(pairs=100), seed=1)
    assert short.verdict is Verdict.INCONCLUSIVE
    assert "INCONCLUSIVE" in str(short)
    needed = needed_pairs(check, short)
    long = examine(check, Budget(pairs=needed), seed=1)
    assert long.verdict is Verdict.NOT_VIOLATED
    assert long.lower >= long.wanted == ENOUGH * check.epsilon
    assert {v: v.exit_code for v in Verdict} == {
        Verdict.NOT_VIOLATED: 0, Verdict.VIOLATED: 1, Verdict.INCONCLUSIVE: 3,
    }  # fmt: skip


def test_a_claim_that_is_looser_than_the_exact_loss_is_measured_by_the_loss() -> None:
    """Ten times what is true: an audit that comes near the truth is no worse for it."""
    exact = lower_bound([(PLAN.accounting_round(), 1)], 0.01).epsilon.lower
    check = check_plan(PLAN, 0.01, epsilon=10 * exact)
    found = examine(check, Budget(pairs=10_000), seed=1)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert judged(check, found).verdict is Verdict.NOT_VIOLATED
    assert judged(check, found).wanted == pytest.approx(ENOUGH * exact)


def test_a_bound_of_nothing_is_inconclusive_whatever_is_claimed() -> None:
    check = check_plan(PLAN, 0.01, epsilon=math.inf)
    found = examine(check, Budget(pairs=20), seed=1)
    assert found.lower == 0.0
    assert found.verdict is Verdict.INCONCLUSIVE
    assert needed_pairs(check, found) > 20


# --- every protocol -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "randomizer", "epsilon", "rounds"),
    [
        # certifying these two takes longer than all other audits here together
        pytest.param("shuffled-check-in", "gaussian:1", None, 1, marks=pytest.mark.slow),
        ("shuffled-check-in", "laplace", 2.0, 1),
        ("shuffled-check-in", "privunit:5", 3.0, 1),
        ("shuffled-check-in", "hemisphere:4", 3.0, 1),
        ("subsampled-shuffle", "dary:4", 3.0, 1),
        ("shuffle", "binary", 2.0, 1),
        ("distributed-check-in", "gaussian:1", None, 2),
        pytest.param("random-check-in-fixed", "gaussian:1", None, 1, marks=pytest.mark.slow),
    ],
)
def test_no_honest_protocol_is_flagged_and_something_is_seen_of_each(
    protocol: str, randomizer: str, epsilon: float | None, rounds: int
) -> None:
    plan = plan_named(protocol, registry.randomizer(randomizer, local_epsilon=epsilon), 10, 0.3, rounds)
    found = examine(check_plan(plan, 0.02), Budget(pairs=1_500), seed=5)
    assert 0.0 < found.lower <= found.claimed


# --- claims -------------------------------------------------------------------------------------


def test_p4s_theorem_is_refuted_by_attack() -> None:
    claim = claimed(Request(claim="p4-shuffle-gaussian", population=50, randomizer="gaussian:1"))
    check = check_plan(claim.plan, claim.delta, epsilon=claim.epsilon)
    found = examine(check, Budget(pairs=4_000), seed=1, stop_when_refuted=True)
    assert found.refuted


def test_a_claim_out_of_reach_comes_with_the_runs_it_needs() -> None:
    claim = claimed(Request(claim="p1-table2-approach2"))
    assert (claim.epsilon, claim.delta, claim.plan.rounds) == (0.049, 1e-4, 100)
    check = check_plan(claim.plan, claim.delta, epsilon=claim.epsilon)
    found = examine(check, Budget(pairs=60), seed=1)
    assert not found.refuted
    needed = forecast(claim.plan, found)
    assert needed.pairs is not None
    assert 1_000 < needed.pairs < 100_000_000
    assert "pairs of runs" in str(needed)


def test_a_claim_above_the_exact_loss_is_beyond_this_attack() -> None:
    plan = claimed(Request(claim="p1-table2-baseline", rate=1e-2)).plan
    sound = check_plan(plan, 1e-4, epsilon=0.096)  # the table's only sound entry of this row
    assert forecast(plan, examine(sound, Budget(pairs=20), seed=1)).pairs is None


def test_printed_figures_lie_below_the_exact_loss_where_we_attack_them() -> None:
    for name in ("p1-table2-baseline", "p1-table2-approach1", "p1-table2-approach2"):
        claim = claimed(Request(claim=name))
        assert isinstance(claim.plan, ShuffledCheckIn)
        exact = lower_bound([(claim.plan.accounting_round(), 100)], claim.delta)
        assert claim.epsilon < exact.epsilon.lower


def test_unknown_claims_and_cells_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="claim"):
        claimed(Request(claim="p9"))
    with pytest.raises(InvalidParameter, match="rate"):
        claimed(Request(claim="p1-table2-baseline", rate=0.5))
    with pytest.raises(InvalidParameter, match="population"):
        claimed(Request(claim="p1-table2-baseline", population=5))
    assert "p4-shuffle-gaussian" in claim_names()


# --- the tightness figure -----------------------------------------------------------------------


def test_cells_are_kept_and_drawn(tmp_path: Path) -> None:
    cells = [Cell("binary", 100, 0.1, 2.0), Cell("dary:3", 100, 0.1, 2.0)]
    kept = tmp_path / "cells.json"
    first = audit_cells(cells[:1], Budget(pairs=300), kept)
    both = audit_cells(cells, Budget(pairs=300), kept)
    assert both[0] == first[0]
    assert cells_markdown(both).count("\n") == 4
    draw(both, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert all(math.isfinite(r["lower_bound"]) for r in both)
