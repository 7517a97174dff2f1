"""The analyzer survives a crash at every single step, and nothing hostile in a batch stops it."""

import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SecureSource, SeededSource
from dpcheckin.service import envelope
from dpcheckin.service.analyzer import core, state
from dpcheckin.service.analyzer.board import expected
from dpcheckin.service.analyzer.core import PlanChanged, Status, Step, next_step
from dpcheckin.service.analyzer.daemon import LEDGER, Analyzer, Schedule
from dpcheckin.service.analyzer.keys import KeyRing, load_identity
from dpcheckin.service.analyzer.remote import BatchCutShort, records
from dpcheckin.service.analyzer.settings import read_settings
from dpcheckin.service.analyzer.state import AnalyzerState, CheckpointDamaged
from dpcheckin.service.canonical import digest
from dpcheckin.service.documents import PlanDocument, RoundDocument
from dpcheckin.service.envelope import OpeningKey, new_private_key, sizes
from dpcheckin.service.journal import Journal
from dpcheckin.service.pricing import Price, randomizer_of
from dpcheckin.service.problems import Malformed, Problem, Refusal
from dpcheckin.service.reports import BatchReader, Decoded, dummy_envelope, make_envelope
from dpcheckin.service.tasks import TaskState

from .fake_shuffler import Died, FakeShuffler
from .plans import DARY, GAUSSIAN, SKELLAM, plan

MODEL = digest(b"model")


class Adding:
    """A task whose model is the list of everything it was given."""

    def start(self) -> TaskState:
        return TaskState(b"start", b"", {"accuracy": 0.0})

    def step(self, state: TaskState, total: Any, reports: int, index: int, steps: int) -> TaskState:
        line = f"{index}/{steps}:{reports}:{digest(total.tobytes()).hex()[:8]};".encode()
        return TaskState(state.model + line, b"p", {"accuracy": index / steps})


def sealed(
    document: PlanDocument, number: int, model: bytes, key: bytes, count: int
) -> list[bytes]:
    randomizer = randomizer_of(document)
    source = SecureSource()
    found = np.ones(document.dimension) if document.encoding != 2 else np.array([1])
    return [
        make_envelope(document, randomizer, number, model, key, found, source) for _ in range(count)
    ]


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
            raise BatchCutShort("lost")
        return real(number)

    world.shuffler.batch = cutting  # type: ignore[method-assign]
    world.run()
    assert [row["opened"] for row in world.kept.log] == [3] * 4


def always_cut(number: int) -> Any:
    raise BatchCutShort("lost")


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
    with pytest.raises(BatchCutShort, match="round 0: 20 attempts failed"):
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


# --- steps and status -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (None, Step.ANNOUNCE),
        (Status("open"), Step.WAIT),
        (Status("closed", 1, 1), Step.PAY_AND_COLLECT),
        (Status("claimed", 1, 1), Step.PAY_AND_COLLECT),
        (Status("void", 1, None, "population"), Step.SKIP),
        (Status("void", 1, 1, "batch"), Step.PAY_AND_SKIP),
        (Status("done"), Step.PAY_AND_GIVE_UP),
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
    with pytest.raises(BatchCutShort):
        list(records(chunks(stream[:-1])))


# --- batches ----------------------------------------------------------------------------------


class Batch:
    """A round of a plan, its key, and envelopes for it."""

    def __init__(self, document: PlanDocument) -> None:
        self.plan = document
        self.key = OpeningKey(document.suite, new_private_key(document.suite))
        key_id = self.key.key_id.hex()
        self.round = RoundDocument(document.id.hex(), 3, MODEL.hex(), key_id, 0.0, 1.0)

    def seal(self, count: int, number: int = 3) -> list[bytes]:
        return sealed(self.plan, number, MODEL, self.key.public_key, count)

    def reader(self, shuffler_sum: bytes | None = None) -> BatchReader:
        return BatchReader(self.plan, self.round, self.key, shuffler_sum)

    def read(self, envelopes: list[bytes]) -> tuple[Decoded, Counter[str]]:
        reader = self.reader()
        for one in envelopes:
            reader.add(one)
        return reader.result(), reader.dropped


@pytest.mark.parametrize("suite", [1, 2])
def test_good_reports_add_up_to_the_truth(suite: int) -> None:
    batch = Batch(plan(randomizer={**GAUSSIAN, "noise_multiplier": 0.05}, suite=suite))
    decoded, dropped = batch.read(batch.seal(200))
    assert (decoded.reports, decoded.dropped, dropped) == (200, 0, Counter())
    assert decoded.total is not None
    mean = decoded.total / 200  # clipped to norm 1: each coordinate 1/√20
    assert np.abs(mean - 20**-0.5).max() < 0.05 * 6 / 200**0.5


def test_symbols_are_estimated() -> None:
    batch = Batch(plan(randomizer=DARY))
    decoded, _ = batch.read(batch.seal(400))
    assert decoded.total is not None
    assert decoded.total.sum() == pytest.approx(400)
    assert decoded.total.argmax() == 1


def hostile(batch: Batch) -> dict[str, bytes]:
    """Envelopes that must be dropped, and why."""
    document, key = batch.plan, batch.key.public_key
    good = batch.seal(1)[0]
    other = OpeningKey(1, new_private_key(1))
    nan = np.full(20, np.nan)

    def vector(values: Any, model: bytes = MODEL, number: int = 3) -> bytes:
        return envelope.seal(document, key, number, model, envelope.vector_payload(values))

    wrong_kind = envelope.vector_payload(np.ones(20))
    wrong_kind = b"\2" + wrong_kind[1:]
    return {
        "empty": b"",
        "short": good[:-1],
        "long": good + b"\0",
        "garbage": os.urandom(len(good)),
        "bad magic": b"XXXX" + good[4:],
        "flipped bit": good[:-1] + bytes([good[-1] ^ 1]),
        "another round": batch.seal(1, number=4)[0],
        "another key": sealed(document, 3, MODEL, other.public_key, 1)[0],
        "another model": vector(np.ones(20) / 20**0.5, model=digest(b"other")),
        "another plan": sealed(plan(nonce="33" * 16), 3, MODEL, key, 1)[0],
        "cover": envelope.cover(document, key, 3),
        "nan": vector(nan),
        "infinite": vector(np.full(20, np.inf)),
        "huge": vector(np.full(20, 1e30)),
        "zero": vector(np.zeros(20)),
        "too long a vector": vector(np.full(20, 0.5)),
        "wrong encoding": envelope.seal(document, key, 3, MODEL, wrong_kind),
    }


def test_every_hostile_envelope_is_counted_and_dropped() -> None:
    batch = Batch(plan())
    bad = hostile(batch)
    assert len({*bad}) == 17
    for name, one in bad.items():
        decoded, dropped = batch.read([one])
        assert (decoded.reports, decoded.dropped, sum(dropped.values())) == (0, 1, 1), name
        assert decoded.total is None
    good = batch.seal(5)
    mixed = [e for pair in zip(list(bad.values())[:5], good, strict=True) for e in pair]
    mixed += list(bad.values())[5:]
    decoded, _ = batch.read(mixed)
    clean, _ = batch.read(good)
    assert (decoded.reports, decoded.dropped) == (5, len(bad))
    assert decoded.total == pytest.approx(clean.total)


def test_a_gaussian_report_longer_than_its_noise_allows_is_dropped() -> None:
    batch = Batch(plan(randomizer=GAUSSIAN))
    payload = envelope.vector_payload(np.full(20, 100.0))
    one = envelope.seal(batch.plan, batch.key.public_key, 3, MODEL, payload)
    assert batch.read([one, *batch.seal(3)])[0].reports == 3


def test_random_bytes_never_stop_a_reader() -> None:
    batch = Batch(plan())
    size = sizes(batch.plan).released
    source = np.random.default_rng(5)
    reader = batch.reader()
    good = batch.seal(1)[0]
    for i in range(3000):
        noise = bytearray(source.bytes(size) if i % 2 else good)
        if i % 2 == 0:
            where = int(source.integers(size))
            noise[where] ^= 1 << int(source.integers(8))
        reader.add(bytes(noise))
    assert reader.result().dropped == 3000


def test_shares_add_up_and_a_bad_one_spoils_only_the_round() -> None:
    batch = Batch(plan("distributed-check-in", randomizer={**SKELLAM, "noise_multiplier": 0.05}))
    sealed_reports = batch.seal(50)
    cut = sizes(batch.plan).released
    shares = [np.frombuffer(e[cut:], dtype="<u4") for e in sealed_reports]
    total = np.sum(shares, axis=0, dtype=np.uint32).astype("<u4").tobytes()
    reader = batch.reader(total)
    for one in sealed_reports:
        reader.add(one[:cut])
    decoded = reader.result()
    assert decoded.reports == 50
    assert decoded.total is not None
    assert np.abs(decoded.total / 50 - 20**-0.5).max() < 0.05
    broken = batch.reader(total)
    for one in sealed_reports[1:]:
        broken.add(one[:cut])
    broken.add(os.urandom(cut))
    found = broken.result()
    assert (found.total, found.reports, found.dropped) == (None, 49, 1)
    assert found.spoiled == "of a dropped report the shuffler's share is in the sum"
    with pytest.raises(Malformed, match="begins with the shuffler's sum"):
        batch.reader()
    with pytest.raises(Malformed, match="dimension"):
        batch.reader(b"\0" * 8)


@pytest.mark.parametrize("wrong", ["one coordinate", "another seed's share"])
def test_a_share_that_is_not_the_other_half_is_found_out(wrong: str) -> None:
    """Both parts are well formed, so each side takes its own; together they are no report."""
    batch = Batch(plan("distributed-check-in", randomizer=SKELLAM))
    sealed_reports = batch.seal(5)
    cut = sizes(batch.plan).released
    shares = np.array([np.frombuffer(e[cut:], dtype="<u4") for e in sealed_reports])
    if wrong == "one coordinate":
        shares[2, 7] ^= 1 << 30
    else:
        shares[2] = np.frombuffer(batch.seal(1)[0][cut:], dtype="<u4")
    reader = batch.reader(shares.sum(axis=0, dtype=np.uint32).astype("<u4").tobytes())
    for one in sealed_reports:
        reader.add(one[:cut])
    found = reader.result()
    assert (found.total, found.reports, found.dropped) == (None, 5, 0)
    assert found.spoiled is not None and "one was malformed" in found.spoiled


@pytest.mark.parametrize("randomizer", [None, DARY], ids=["vector", "symbol"])
def test_a_dummy_looks_like_a_report(randomizer: Any) -> None:
    changes = {} if randomizer is None else {"randomizer": randomizer}
    batch = Batch(plan("random-check-in-fixed", epsilon_budget=50.0, **changes))
    one = dummy_envelope(batch.plan, 3, MODEL, batch.key.public_key)
    assert len(one) == sizes(batch.plan).envelope
    assert batch.read([one])[0].reports == 1


def test_a_seeded_source_cannot_make_a_report() -> None:
    batch = Batch(plan())
    with pytest.raises(InvalidParameter, match="SecureSource"):
        make_envelope(
            batch.plan,
            randomizer_of(batch.plan),
            3,
            MODEL,
            batch.key.public_key,
            np.ones(20),
            SeededSource(1),  # type: ignore[arg-type]
        )


# --- settings and prices ----------------------------------------------------------------------

SETTINGS = """
[shuffler]
address = "http://127.0.0.1:1"
token = "t"
[plan]
protocol = "shuffled-check-in"
population = 100
rate = 0.2
rounds = 12
delta = 1e-5
epsilon_budget = 8.0
round_seconds = 1.0
[randomizer]
name = "privunit"
local_epsilon = 4.0
[task]
data = "digits"
[analyzer]
rotate_every = 3
"""


def test_settings_make_a_plan(tmp_path: Path) -> None:
    (tmp_path / "analyzer.toml").write_text(SETTINGS)
    found = read_settings(tmp_path)
    document = found.plan_document(20)
    assert (document.dimension, document.encoding, document.cover) == (20, 1, True)
    assert document.nonce != found.plan_document(20).nonce
    assert (found.rotate_every, found.task) == (3, {"data": "digits"})


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("rate = 0.2", "rate = 2.0", "rate"),
        ("rounds = 12", "round = 12", "plan"),
        ("rotate_every = 3", "rotate_every = -1", "rotate_every"),
        ("rotate_every = 3", "port = 70000", "port"),
        ("rotate_every = 3", "pause_seconds = -1.0", "pause_seconds"),
        ("rotate_every = 3", 'log_level = "loud"', "log_level"),
        ("rotate_every = 3", "rotat_every = 3", "rotat_every"),
        ("http://127.0.0.1:1", "http://shuffler.example", "address"),
    ],
)
def test_mistakes_in_the_settings_are_named(tmp_path: Path, old: str, new: str, named: str) -> None:
    (tmp_path / "analyzer.toml").write_text(SETTINGS.replace(old, new))
    with pytest.raises(InvalidParameter, match=named):
        read_settings(tmp_path).plan_document(20)


@pytest.mark.parametrize(
    ("protocol", "changes", "named"),
    [
        ("shuffled-check-in", {"randomizer": DARY | {"encoding": 1}}, "randomizer.encoding"),
        ("random-check-in-fixed", {"minimum_batch": 3}, "minimum_batch"),
        ("random-check-in-fixed", {"rounds": 13}, "rounds"),
        ("distributed-check-in", {"population": 2**24}, "population"),
    ],
)
def test_plans_that_no_theorem_covers_are_refused(
    protocol: str, changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidParameter, match=named):
        Price(plan(protocol, **changes))


@pytest.mark.parametrize("protocol", ["distributed-check-in", "random-check-in-sliding"])
def test_every_protocol_has_both_figures(protocol: str) -> None:
    rounds = {"rounds": 89} if protocol.endswith("sliding") else {}
    price = Price(plan(protocol, epsilon_budget=50.0, **rounds))
    spent = price.spent(5)
    assert 0 < spent.epsilon <= spent.local_epsilon * 1.001
    assert price.reports_epsilon(1) <= price.reports_epsilon(2)
    assert price.local.epsilon > 0
    assert price.spent(0).local_epsilon == 0.0


def test_plan_documents_keep_their_plan(tmp_path: Path) -> None:
    begun = core.begin(plan(), Adding())
    assert core.check_same_plan(begun, plan(nonce="44" * 16)) == plan()
    with pytest.raises(PlanChanged):
        core.check_same_plan(begun, plan(rounds=3))
