"""The analyzer survives a crash at every single step, and nothing hostile in a batch stops it."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import core, state
from dpcheckin.service.analyzer.core import PlanChanged, Status
from dpcheckin.service.analyzer.daemon import LEDGER, Analyzer, Schedule
from dpcheckin.service.analyzer.ledger import BudgetSpent, FleetBudget, TotalLedger
from dpcheckin.service.analyzer.parties import TruncatedBatch
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.journal import Journal
from dpcheckin.service.wire.envelope import sizes
from dpcheckin.service.wire.problems import Problem, Refusal
from service.analyzer_world import OUTCOMES, Adding, World, small_plan
from service.fake_shuffler import Died
from service.plans import plan

# --- the course of a run ----------------------------------------------------------------------


def test_a_run_charges_what_must_be_charged_and_no_more(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), OUTCOMES)
    assert world.run() == "all 4 rounds of the plan have been charged"
    states = [row["state"] for row in world.kept.log]
    released = [n for n, what in enumerate(states) if what == "released"]
    assert states[1] == "void by population"
    assert states[3] == "void by batch"
    assert [c["round"] for c in world.charges()] == [0, 2, 3, 4]  # the round void by population: no
    assert [c["why"] for c in world.charges()] == ["release", "release", "void", "release"]
    assert sorted(world.shuffler.claims) == released == world.shuffler.deleted
    assert world.kept.steps == 3
    assert world.kept.task.model.count(b";") == 3


def test_every_crash_point_leaves_the_ledger_at_or_above_the_truth(tmp_path: Path) -> None:
    """Die before and after every effect on the shuffler, start again, and compare with no crash."""
    reference = World(tmp_path / "whole", small_plan(), OUTCOMES)
    reference.run()
    effects = reference.shuffler.calls
    assert effects > 20
    for point in range(1, effects + 1):
        for after in (False, True):
            world = World(tmp_path / f"{point}-{after}", small_plan(), OUTCOMES)
            world.shuffler.die_at = (point, after)
            with pytest.raises(Died):
                world.run()
            world.shuffler.die_at = None
            world.run()
            rounds = [c["round"] for c in world.charges()]
            assert rounds == [0, 2, 3, 4]
            assert set(world.shuffler.claims) <= set(rounds)
            assert [row["state"] for row in world.kept.log] == [row["state"] for row in reference.kept.log]
            assert world.kept.steps == reference.kept.steps
            assert all(not batch for batch in world.shuffler.batches.values())


@pytest.mark.parametrize("point", range(1, 35, 2))
def test_a_crash_at_any_write_to_disk_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int) -> None:
    """The same for the disk: die just before the n-th fsync."""
    world = World(tmp_path, small_plan(), OUTCOMES)
    real, count = os.fsync, [0]

    def dying(handle: int) -> None:
        count[0] += 1
        if count[0] == point:
            raise Died
        real(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", dying)
        with pytest.raises(Died):
            world.run()
    world.run()
    assert [c["round"] for c in world.charges()] == [0, 2, 3, 4]
    assert world.kept.steps == 3


def test_the_budget_stops_the_run_before_the_round_that_would_pass_it(tmp_path: Path) -> None:
    document = plan(rounds=12, epsilon_budget=4.0)
    world = World(tmp_path, document, {})
    reason = world.run()
    assert "more than the budget of 4" in reason
    allowed = Price(document).allowed_rounds
    assert len(world.charges()) == allowed == len(world.shuffler.rounds)
    assert world.run() == reason  # and starting it again changes nothing
    assert len(world.shuffler.rounds) == allowed


def test_a_budget_that_pays_for_no_round_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    one = Price(plan(rounds=12, epsilon_budget=4.0)).spent(1).epsilon
    small = World(tmp_path, plan(rounds=12, epsilon_budget=0.9 * one), {})
    with pytest.raises(BudgetSpent, match=r"the first round .* \(epsilon_budget\)"):
        small.analyzer()
    assert state.load(tmp_path) is None and not (tmp_path / LEDGER).exists()
    # so that the same folder takes the plan when its budget is mended
    enough = World(tmp_path, plan(rounds=12, epsilon_budget=1.1 * one), {})
    assert enough.run().startswith("one more round")
    assert len(enough.charges()) >= 1


def test_a_plan_that_others_have_left_nothing_for_is_refused_too(tmp_path: Path) -> None:
    world = World(tmp_path / "one", plan(rounds=1, epsilon_budget=4.0), {})
    one = Price(world.document).spent(1).epsilon
    budget = FleetBudget(tmp_path / "all", 1.5 * one, 1e-3)

    def made(folder: str, **changes: Any) -> Analyzer:
        document = plan(rounds=1, epsilon_budget=4.0, **changes)
        task, stop = Adding(), threading.Event()
        return Analyzer(
            tmp_path / folder, document, world.identity, task, world.shuffler,  # type: ignore[arg-type]
            Schedule(now=world._now), stop, budget=budget,
        )  # fmt: skip

    first = made("one")
    assert first.run().startswith("all 1 rounds")
    first.close()
    with pytest.raises(BudgetSpent, match="over all plans"):
        made("two", nonce="11" * 16)
    assert state.load(tmp_path / "two") is None
    TotalLedger(budget).close()  # and the common file was given back


def test_keys_rotate_and_old_ones_are_destroyed(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    seen: list[set[str]] = []
    real = world.shuffler.delete

    def watching(number: int) -> None:
        real(number)
        seen.append({p.name for p in (tmp_path / "keys").iterdir()})

    world.shuffler.delete = watching  # type: ignore[method-assign]
    world.run(rotate_every=2)
    assert len(world.shuffler.keys) == 2  # announced for rounds 0 and 2
    assert [row["state"] for row in world.kept.log] == ["released"] * 4
    assert {p.name for p in (tmp_path / "keys").iterdir()} == {"from-0000000002.key"}


def test_an_operator_can_rotate_at_once(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    made = world.analyzer()
    made.rotate_now.set()
    made.run()
    made.close()
    assert len(world.shuffler.keys) >= 1
    assert not made.rotate_now.is_set()


def test_minibatches_of_slots_make_one_step(tmp_path: Path) -> None:
    document = plan("random-check-in-averaged", minibatch=1, rounds=4, slots=4, epsilon_budget=50.0)
    fixed = plan("random-check-in-fixed", minibatch=2, rounds=4, slots=4, epsilon_budget=50.0)
    world = World(tmp_path / "a", document, {})
    world.run()
    assert world.kept.steps == 4
    two = World(tmp_path / "f", fixed, {n: Status("closed", 120, 1) for n in range(4)})
    two.run()
    assert two.kept.steps == 2
    assert b"0/2:2:" in two.kept.task.model


def test_a_round_too_old_to_open_is_announced_anew(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    real, refused = world.shuffler.put_round, []

    def late(number: int, signed: bytes) -> None:
        if not refused:
            refused.append(signed)
            raise Refusal(Problem.ROUND_CLOSED)
        real(number, signed)

    world.shuffler.put_round = late  # type: ignore[method-assign]
    world.run()
    assert world.shuffler.rounds[0] != refused[0]
    assert len(world.charges()) == 4


@pytest.mark.parametrize(
    ("problem", "said"), [(Problem.PLAN_EXHAUSTED, "released all rounds"), (Problem.CONFLICT, None)]
)
def test_what_the_shuffler_refuses_ends_the_run_clearly(tmp_path: Path, problem: Problem, said: str | None) -> None:
    world = World(tmp_path, small_plan(), {})

    def refusing(number: int, signed: bytes) -> None:
        raise Refusal(problem)

    world.shuffler.put_round = refusing  # type: ignore[method-assign]
    if said is None:
        with pytest.raises(Refusal):
            world.run()
    else:
        assert said in world.run()


def test_a_batch_cut_short_is_fetched_again(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    real, cuts = world.shuffler.batch, [0]

    def cutting(number: int, largest: int) -> Any:
        cuts[0] += 1
        if cuts[0] == 1:
            raise TruncatedBatch("lost")
        return real(number, largest)

    world.shuffler.batch = cutting  # type: ignore[method-assign]
    world.run()
    assert [row["opened"] for row in world.kept.log] == [3] * 4


def always_cut(number: int, largest: int) -> Any:
    raise TruncatedBatch("lost")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status("closed", 3, 3), "3 clients were present, the plan wants 100"),
        (Status("closed", None, 3), "None clients were present"),
        (Status("closed", 120, None), "None reports of 120 clients"),
        (Status("closed", 120, 121), "121 reports of 120 clients"),
        (Status("closed", 120, 1), "1 reports of 120 clients, the plan wants 2"),
    ],
)
def test_a_crowd_that_the_plan_does_not_want_or_that_cannot_be_is_not_fetched(
    tmp_path: Path, status: Status, said: str
) -> None:
    """It is charged all the same, since its numbers were seen, and destroyed."""
    world = World(tmp_path, small_plan(minimum_batch=2), {1: status})
    world.run()
    assert [row["state"] for row in world.kept.log] == ["released", "void by checks", "released", "released"]
    row = world.kept.log[1]
    assert (row["opened"], row["dropped"]) == (0, 0)
    assert any(said in why for why in row["reasons"])
    assert [(one["round"], one["why"]) for one in world.charges()][1] == (1, "void")
    assert world.shuffler.deleted == [0, 1, 2, 3]


@pytest.mark.parametrize(("there", "said"), [(80, "more"), (1, "fewer"), (0, "fewer")])
def test_a_batch_of_another_size_than_was_announced_counts_nothing(tmp_path: Path, there: int, said: str) -> None:
    world = World(tmp_path, small_plan(), {})
    whole = world._batch

    def batch(number: int, document: dict[str, Any]) -> tuple[Status, list[bytes]]:
        status, found = whole(number, document)
        return status, (found * 40)[:there] if number == 2 else found

    world.shuffler._batch_of = batch
    world.run()
    assert [row["state"] for row in world.kept.log] == ["released", "released", "void by checks", "released"]
    assert [row["opened"] for row in world.kept.log] == [3, 3, 0, 3]
    assert list(world.kept.log[2]["reasons"]) == [f"{said} reports than were announced"]
    assert len(world.charges()) == 4


def test_told_to_stop_while_a_batch_cannot_be_fetched_it_stops_and_goes_on_later(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    real = world.shuffler.batch
    world.shuffler.batch = always_cut  # type: ignore[method-assign]
    threading.Timer(0.2, world.stop.set).start()
    assert world.run() == "stopped"
    assert [body["round"] for body in world.charges()] == [0]
    world.shuffler.batch = real  # type: ignore[method-assign]
    world.stop.clear()
    world.run()
    assert [row["opened"] for row in world.kept.log] == [3] * 4


def test_a_batch_that_can_never_be_fetched_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    world.shuffler.batch = always_cut  # type: ignore[method-assign]
    world.stop.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    with pytest.raises(TruncatedBatch, match="round 0: 20 attempts failed"):
        world.run()


def test_what_is_dropped_or_spoiled_is_logged_counted_and_kept_from_the_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rounds of shares: in order, with a seed of nobody, with a wrong sum, empty."""
    document = plan("distributed-check-in", rounds=4, epsilon_budget=50.0)
    world = World(tmp_path, document, {})
    whole, cut = world._batch, sizes(document).released

    def batch(number: int, said: dict[str, Any]) -> tuple[Status, list[bytes]]:
        status, found = whole(number, said)
        shares = [np.frombuffer(one[cut:], dtype="<u4") for one in found]
        total = np.sum(shares, axis=0, dtype=np.uint32)
        records = [one[:cut] for one in found]
        if number == 1:
            records[0] = os.urandom(cut)
        if number == 2:
            total = total ^ np.uint32(1 << 30)
        return status, [] if number == 3 else [total.astype("<u4").tobytes(), *records]

    world.shuffler._batch_of = batch
    world.run(pause_seconds=0.001)
    rows = world.kept.log
    assert [(row["opened"], row["dropped"]) for row in rows] == [(3, 0), (2, 1), (3, 0), (0, 0)]
    assert [row["spoiled"] is not None for row in rows] == [False, True, True, False]
    assert world.kept.steps == 1
    assert "round 1: 1 reports dropped: not a report of this round" in caplog.text
    assert "round 2 teaches nothing: the sum is longer than honest shares" in caplog.text


def test_a_round_deleted_at_the_shuffler_is_given_up_but_charged(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {0: Status("done", 120, 3)})
    world.run()
    assert world.kept.log[0]["state"] == "lost"
    assert [body["round"] for body in world.charges()] == [0, 1, 2, 3]


def put_back_in_time(world: World, number: int) -> Path:
    """Let the run go on, and keep the folder as it was when this round was claimed."""
    older = world.folder.parent / "older"

    def copy(claimed: int, charge: str) -> None:
        if claimed == number:
            shutil.copytree(world.folder, older)

    world.shuffler.on_claim = copy
    world.run()
    world.shuffler.on_claim = lambda claimed, charge: pytest.fail("claimed once more")
    return older


def test_a_folder_put_back_in_time_pays_for_the_rounds_it_has_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path / "folder", small_plan(), {})
    older = put_back_in_time(world, 1)
    before = world.charges()
    shutil.rmtree(world.folder)
    older.rename(world.folder)
    assert len(world.charges()) == 2
    assert world.run() == "all 4 rounds of the plan have been charged"
    assert world.charges() == before
    assert [row["state"] for row in world.kept.log] == ["released", "lost", "lost", "lost"]


def test_a_ledger_put_back_in_time_under_its_checkpoint_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path / "folder", small_plan(), {})
    older = put_back_in_time(world, 1)
    for file in older.glob(f"{LEDGER}*"):  # with the note of how long it is
        file.replace(world.folder / file.name)
    with pytest.raises(core.LedgerBehind, match="round 2 is in the checkpoint and not in"):
        world.analyzer()
    with Journal(world.folder / LEDGER):  # it was given back
        pass


def test_stopping_while_a_round_is_open_is_clean(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {0: Status("open")})
    threading.Timer(0.3, world.stop.set).start()
    assert world.run() == "stopped"
    assert world.charges() == []


def test_a_lost_key_loses_the_round_and_not_the_run(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    made = world.analyzer()
    made._ring.by_id = lambda key_id: None  # type: ignore[method-assign]
    made.run()
    made.close()
    assert [row["opened"] for row in world.kept.log] == [0] * 4
    assert world.kept.steps == 0


def test_another_plan_or_a_lost_checkpoint_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), {})
    world.run()
    world.document = small_plan(delta=1e-6)
    with pytest.raises(PlanChanged):
        world.analyzer()
    world.document = small_plan(nonce="ab" * 16)  # a fresh nonce is not another plan
    world.analyzer().close()
    (tmp_path / state.FILE).unlink()
    with pytest.raises(InvalidParameter, match="a folder whose checkpoint is there"):
        world.analyzer()


def test_plan_documents_keep_their_plan(tmp_path: Path) -> None:
    begun = core.begin(plan(), Adding())
    assert core.check_same_plan(begun, plan(nonce="44" * 16)) == plan()
    with pytest.raises(PlanChanged):
        core.check_same_plan(begun, plan(rounds=3))


def test_a_void_slot_is_over_and_the_run_ends_when_all_are(tmp_path: Path) -> None:
    """Numbers of slots are never repeated: the last one ends the run, however many of them were void."""
    document = plan("random-check-in-averaged", slots=6, rounds=3, epsilon_budget=50.0)
    world = World(tmp_path, document, {0: Status("void", 50, None, "population")})
    assert world.run() == "all 3 slots of the plan are over"
    assert [row["state"] for row in world.kept.log] == ["void by population", "released", "released"]
