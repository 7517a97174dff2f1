"""The analyzer survives a crash at every single step, and nothing hostile in a batch stops it."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import core, state
from dpcheckin.service.analyzer.board import expected
from dpcheckin.service.analyzer.core import PlanChanged, Status, Step, next_step
from dpcheckin.service.analyzer.daemon import LEDGER, Analyzer, Schedule
from dpcheckin.service.analyzer.keys import KeyRing, load_identity
from dpcheckin.service.analyzer.shuffler_client import TruncatedBatch, records
from dpcheckin.service.analyzer.state import AnalyzerState, CheckpointDamaged
from dpcheckin.service.journal import Journal
from dpcheckin.service.pricing import Price
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.envelope import sizes
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal
from service.fake_shuffler import Died, FakeShuffler
from service.plans import plan, sealed


class Adding:
    """A task whose model is the list of everything it was given."""

    def start(self) -> TaskState:
        return TaskState(b"start", b"", {"accuracy": 0.0})

    def step(self, state: TaskState, total: Any, reports: int, index: int, steps: int) -> TaskState:
        line = f"{index}/{steps}:{reports}:{digest(total.tobytes()).hex()[:8]};".encode()
        return TaskState(state.model + line, b"p", {"accuracy": index / steps})


class World:
    """An analyzer's folder and a shuffler that fills every round by a script."""

    def __init__(self, folder: Path, document: PlanDocument, outcomes: dict[int, Status]) -> None:
        self.folder, self.document, self.outcomes = folder, document, outcomes
        self.shuffler = FakeShuffler(self._batch)
        self.shuffler.on_claim = self._check_claim
        self.identity = load_identity(folder)
        self.stop = threading.Event()
        self.time = 1000.0

    def _batch(self, number: int, said: dict[str, Any]) -> tuple[Status, list[bytes]]:
        status = self.outcomes.get(number, Status("closed", 120, 3))
        if status.state != "closed":
            return status, []
        ring = KeyRing(self.folder / "keys", self.document.suite)
        key = ring.by_id(bytes.fromhex(said["key"]))
        assert key is not None
        kept = PlanDocument.from_object(state.load(self.folder).plan)  # type: ignore[union-attr]
        model = bytes.fromhex(said["model"])
        return status, sealed(kept, number, model, key.public_key, status.reports or 0)

    def _check_claim(self, number: int, charge: str) -> None:
        """At the moment of the claim, the charge is on disk: read as a crash would find it."""
        lines = (self.folder / LEDGER).read_text().splitlines()
        assert any(f'"round":{number}' in line and charge in line for line in lines)

    def analyzer(self, **schedule: Any) -> Analyzer:
        clock = Schedule(now=self._now, **schedule)
        return Analyzer(
            self.folder,
            self.document,
            self.identity,
            Adding(),
            self.shuffler,
            clock,
            self.stop,  # type: ignore[arg-type]
        )

    def _now(self) -> float:
        self.time += 1.0
        return self.time

    def run(self, **schedule: Any) -> str:
        made = self.analyzer(**schedule)
        try:
            return made.run()
        finally:
            made.close()

    def charges(self) -> list[dict[str, Any]]:
        with Journal(self.folder / LEDGER) as journal:
            return [entry.body for entry in journal][1:]

    @property
    def kept(self) -> AnalyzerState:
        found = state.load(self.folder)
        assert found is not None
        return found


OUTCOMES = {
    1: Status("void", 50, None, "population"),
    3: Status("void", 120, 1, "batch"),
}


def small_plan(**changes: Any) -> PlanDocument:
    return plan(rounds=4, epsilon_budget=50.0, **changes)


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
            assert [row["state"] for row in world.kept.log] == [
                row["state"] for row in reference.kept.log
            ]
            assert world.kept.steps == reference.kept.steps
            assert all(not batch for batch in world.shuffler.batches.values())


@pytest.mark.parametrize("point", range(1, 35, 2))
def test_a_crash_at_any_write_to_disk_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
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
def test_what_the_shuffler_refuses_ends_the_run_clearly(
    tmp_path: Path, problem: Problem, said: str | None
) -> None:
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

    def cutting(number: int) -> Any:
        cuts[0] += 1
        if cuts[0] == 1:
            raise TruncatedBatch("lost")
        return real(number)

    world.shuffler.batch = cutting  # type: ignore[method-assign]
    world.run()
    assert [row["opened"] for row in world.kept.log] == [3] * 4


def always_cut(number: int) -> Any:
    raise TruncatedBatch("lost")


def test_told_to_stop_while_a_batch_cannot_be_fetched_it_stops_and_goes_on_later(
    tmp_path: Path,
) -> None:
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


def test_the_board_tells_what_happened(tmp_path: Path) -> None:
    world = World(tmp_path, small_plan(), OUTCOMES)
    made = world.analyzer()
    made.run()
    shot, text = made.board.snapshot(), made.board.prometheus()
    made.close()
    assert shot["spent"]["charged"] == 4
    assert shot["spent"]["epsilon"] == made.price.plan.guarantee(1e-5, 4).charge()
    assert shot["rounds"][0]["expected"] == expected(120, 0.2)
    assert "expected" not in shot["rounds"][1]
    assert 'dpcheckin_analyzer_rounds_total{outcome="released"} 3' in text
    assert 'dpcheckin_analyzer_epsilon_spent{shuffler="colluding"}' in text
    assert shot["finished"].startswith("all 4 rounds")


def test_the_band_holds_99_percent() -> None:
    from scipy.stats import binom

    for present, rate in ((120, 0.2), (300, 0.3), (10, 0.01)):
        band = expected(present, rate)
        inside = binom.cdf(band["high"], present, rate) - binom.cdf(band["low"] - 1, present, rate)
        assert inside >= 0.99
        assert binom.cdf(band["low"] - 1, present, rate) < 0.005
        assert binom.sf(band["high"], present, rate) <= 0.005


def test_plan_documents_keep_their_plan(tmp_path: Path) -> None:
    begun = core.begin(plan(), Adding())
    assert core.check_same_plan(begun, plan(nonce="44" * 16)) == plan()
    with pytest.raises(PlanChanged):
        core.check_same_plan(begun, plan(rounds=3))


# --- steps and status -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (None, Step.ANNOUNCE),
        (Status("open"), Step.WAIT),
        (Status("closed", 1, 1), Step.CHARGE_AND_COLLECT),
        (Status("claimed", 1, 1), Step.CHARGE_AND_COLLECT),
        (Status("void", 1, None, "population"), Step.SKIP),
        (Status("void", 1, 1, "batch"), Step.CHARGE_AND_SKIP),
        (Status("done"), Step.CHARGE_AS_LOST),
    ],
)
def test_the_next_step_follows_from_the_shufflers_answer(status: Status | None, step: Step) -> None:
    assert next_step(status) is step


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"state": "ajar"},
        {"state": "void"},
        {"state": "void", "reason": "weather"},
        {"state": "closed", "present": -1},
        {"state": "closed", "reports": True},
        {"state": "closed", "reports": "3"},
    ],
    ids=str,
)
def test_an_odd_status_is_an_error_and_not_a_guess(said: Any) -> None:
    with pytest.raises(Malformed):
        Status.from_object(said)


# --- checkpoint, keys, stream -----------------------------------------------------------------


def test_a_checkpoint_comes_back_whole_and_damage_is_noticed(tmp_path: Path) -> None:
    one = AnalyzerState(
        plan().to_object(), TaskState(b"m", b"\0p", {"a": 0.5}), 3, {"x": 1}, 2, np.ones(3), 7
    )
    state.save(tmp_path, one)
    again = state.load(tmp_path)
    assert again is not None
    assert again.to_bytes() == one.to_bytes()
    content = bytearray(one.to_bytes())
    content[50] ^= 1
    (tmp_path / state.FILE).write_bytes(content)
    with pytest.raises(CheckpointDamaged):
        state.load(tmp_path)
    with pytest.raises(CheckpointDamaged, match="another version"):
        AnalyzerState.from_bytes(digest(b"{}") + b"{}")


def test_keys_survive_and_unreadable_ones_are_named(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, 1)
    first = ring.for_round(0).key.key_id
    assert ring.rotate(5).from_round == 5
    assert ring.rotate(5) is ring.keys[-1]
    again = KeyRing(tmp_path, 1)
    assert again.for_round(4).key.key_id == first
    assert again.for_round(5).key.key_id != first
    with pytest.raises(InvalidParameter, match="from_round"):
        again.rotate(3)
    assert again.forget_before(4) == 0
    assert again.forget_before(5) == 1
    assert again.by_id(first) is None
    assert KeyRing(tmp_path, 1).by_id(first) is None
    (tmp_path / "from-0000000009.key").write_text("zz")
    with pytest.raises(InvalidParameter, match="a key of suite 1"):
        KeyRing(tmp_path, 1)


def test_the_identity_is_made_once(tmp_path: Path) -> None:
    one, two = load_identity(tmp_path), load_identity(tmp_path)
    assert one.private_bytes_raw() == two.private_bytes_raw()
    assert (tmp_path / "identity.key").stat().st_mode & 0o077 == 0
    (tmp_path / "identity.key").write_text("short")
    with pytest.raises(InvalidParameter, match="identity"):
        load_identity(tmp_path)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_records_are_cut_from_a_stream_of_any_chunks(size: int) -> None:
    wanted = [b"", b"a", b"bc" * 40, b"d" * 9]
    stream = b"".join(len(r).to_bytes(4, "big") + r for r in wanted)

    def chunks(content: bytes) -> Iterator[bytes]:
        return iter(content[i : i + size] for i in range(0, len(content), size))

    assert list(records(chunks(stream))) == wanted
    with pytest.raises(TruncatedBatch):
        list(records(chunks(stream[:-1])))
