"""Every kind of question through the real analyzer: honest and hostile reports, and crashes."""

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deployment.survey_world import KINDS, settings_of, simulated, survey_of, values_of
from dpcheckin.deployment.answers import Answer, AnsweringTask, NotAnswered
from dpcheckin.deployment.questions import asked_index, read_question, round_question
from dpcheckin.deployment.survey_tasks import SurveyAnalyzerTask
from dpcheckin.deployment.tasks import OwnerTask, analyzer_task, client_task
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import FullShuffle
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.analyzer import backup, batches, core, state
from dpcheckin.service.analyzer.batches import OUT_OF_RANGE
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.daemon import Analyzer, Schedule
from dpcheckin.service.analyzer.settings import read_settings
from dpcheckin.service.analyzer.state import KeyRing
from dpcheckin.service.pricing import Price, randomizer_of
from dpcheckin.service.reports import influence, make_envelope
from dpcheckin.service.storage.identity import load_identity
from dpcheckin.service.wire import payloads
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key, seal
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.survey import HeavyHitters, Query
from service.client_world import SameWords
from service.fake_shuffler import Died, FakeShuffler
from service.plans import plan

PEOPLE, HOSTILE = 40, 3


class Fleet:
    """Clients with one value each, and a shuffler that brings their reports and hostile ones."""

    def __init__(self, folder: Path, kind: str, **changes: Any) -> None:
        self.folder, self.kind = folder, kind
        self.task, self.document = survey_of(folder / "analyzer", kind, **changes)
        self.shuffler = FakeShuffler(self._batch)
        self.identity = load_identity(folder / "analyzer")
        self.questions: list[bytes] = []
        self.sent: list[Any] = []
        path = folder / "people.json"
        values = [list(one) if kind == "vector-mean" else one for one in values_of(kind, PEOPLE)]
        path.write_text(json.dumps([{"v": one} for one in values], default=float))
        self.clients = [AnsweringTask({"taste": Answer(path, ("v",), i + 1)}) for i in range(PEOPLE)]
        self.time = 1000.0
        self.empty: set[int] = set()

    def _batch(self, number: int, said: dict[str, Any]) -> tuple[Status, list[bytes]]:
        if number in self.empty:
            return Status("closed", PEOPLE, 0), []
        if number == 1:
            return Status("void", 20, None, "population"), []  # the question is asked again
        kept = PlanDocument.from_object(state.load(self.folder / "analyzer").plan)  # type: ignore[union-attr]
        ring = KeyRing(self.folder / "analyzer" / "keys", kept.suite)
        key = ring.by_id(bytes.fromhex(said["key"])).public_key  # type: ignore[union-attr]
        digest, model = bytes.fromhex(said["model"]), self.shuffler.models[said["model"]]
        made, source = randomizer_of(kept), SameWords(number)
        self.questions.append(model)
        envelopes = []
        for client in self.clients:
            assert client.join(kept) == kept.task["answers"]
            value = client.value(model)
            envelopes.append(make_envelope(kept, made, number, digest, key, value, source))
        bad = payloads.octets_payload(b"\xff" * kept.dimension)  # no randomizer makes this
        broken = bytearray(seal(kept, key, number, digest, bad))
        broken[-1] ^= 1  # does not open
        hostile = [seal(kept, key, number, digest, bad) for _ in range(HOSTILE - 2)]
        envelopes += [*hostile, bytes(broken), envelopes[0]]  # and a copy
        return Status("closed", PEOPLE + HOSTILE, len(envelopes)), envelopes

    def run(self) -> Analyzer:
        def now() -> float:
            self.time += 1.0
            return self.time

        made = Analyzer(
            self.folder / "analyzer", self.document, self.identity, self.task,
            self.shuffler, Schedule(now=now), threading.Event(),  # type: ignore[arg-type]
        )  # fmt: skip
        try:
            made.run()
        finally:
            made.close()
        return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_the_librarys_for_the_reports_that_were_sent(tmp_path: Path, kind: str) -> None:
    fleet = Fleet(tmp_path, kind)
    shot = fleet.run().board.snapshot()
    assert shot["finished"] == "all 2 rounds of the plan have been charged"
    told = json.loads((tmp_path / "analyzer" / "estimate.json").read_text())
    reports = [fleet.task.reports(i) for i in range(2)]
    assert [len(rows) for rows in reports] == [PEOPLE, PEOPLE]
    again = replace(fleet.task.survey, population=PEOPLE + HOSTILE).estimate(reports)
    assert told["estimate"]["values"] == again.values.tolist()
    assert told["estimate"]["upper"] == again.upper.tolist()
    # hostile reports are dropped and counted, everywhere alike
    assert told["estimate"]["dropped"] == shot["survey"]["dropped"] == 2 * HOSTILE
    assert [row.get("dropped") for row in shot["rounds"]] == [HOSTILE, None, HOSTILE]
    assert shot["survey"]["reports"] == 2 * PEOPLE
    assert shot["survey"]["influence"] == told["influence"]
    for clients, most in told["influence"].items():  # the largest of the bounds for each figure
        each = told["influence_of_each"][clients]
        # so few people may leave no word frequent enough to be listed
        assert (len(each), max(each, default=0.0)) == (len(again.names), most)
    assert [asked_index(question) for question in fleet.questions] == [0, 1]
    truth = fleet.task.survey.query.truth(values_of(kind, PEOPLE), again)
    # within a bin of a distribution a quantile may lie anywhere
    apart = np.abs(again.values - truth) - np.maximum(again.upper - again.lower, 0.0)
    assert np.all(apart <= 8 * again.deviation + 1e-9)
    assert fleet.task.finish()
    page = (tmp_path / "analyzer" / "report.html").read_text()
    assert "differentially private" in page and "reports dropped" in page


def test_a_crash_at_any_moment_changes_nothing(tmp_path: Path) -> None:
    calm = Fleet(tmp_path / "calm", "count")
    calm.run()
    for number in range(2, calm.shuffler.calls, 3):
        folder = tmp_path / f"{number}"
        fleet = Fleet(folder, "count")
        fleet.shuffler.die_at = (number, number % 2 == 0)
        with pytest.raises(Died):
            fleet.run()
        fleet.shuffler.die_at = None
        kept = fleet.run().board.snapshot()
        assert kept["survey"]["reports"] == 2 * PEOPLE
        assert kept["survey"]["dropped"] == 2 * HOSTILE
        assert kept["spent"]["charged"] == 2
        told = json.loads((folder / "analyzer" / "estimate.json").read_text())
        reports = [fleet.task.reports(i) for i in range(2)]
        assert (
            told["estimate"]["values"]
            == replace(fleet.task.survey, population=PEOPLE + HOSTILE).estimate(reports).values.tolist()
        )


def test_prefixes_of_heavy_hitters_are_published_and_the_stage_follows_what_was_released(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, "heavy-hitters", plan={"rounds": 4})
    fleet.run()
    first, second, third, _ = (json.loads(question) for question in fleet.questions)
    assert (first["bits"], first["prefixes"]) == (10, [])
    assert (second["bits"], second["prefix_bits"]) == (20, 10)
    query = fleet.task.survey.query
    assert isinstance(query, HeavyHitters)
    assert len(second["prefixes"]) == query.kept
    tea = int(query.encode(["tea"])[0]) >> 10
    assert f"{tea:x}" in second["prefixes"]
    assert third["bits"] == 10  # the stages begin again
    plan_ = fleet.task.survey.plan
    reports = [fleet.task.reports(i) for i in range(4)]
    assert round_question(fleet.task.survey, reports[:1]) == fleet.questions[1]
    tried = query.candidates(reports[:1], plan_)
    assert {f"{int(one) >> 10:x}" for one in tried} == set(second["prefixes"])


def test_dropped_reports_are_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Fleet(tmp_path, "histogram").run()
    said = [record.getMessage() for record in caplog.records]
    assert f"round 0: 1 reports dropped: {OUT_OF_RANGE}" in said
    assert "round 0: 1 reports dropped: a copy of another report" in said
    assert "round 0: 1 reports dropped: the seal does not open" in said


def test_a_round_without_a_report_is_asked_again(tmp_path: Path) -> None:
    task, document = survey_of(tmp_path, "histogram")
    begun = core.begin(document, task)
    nothing = core.Decoded(0, 2, None, rows=np.zeros((0, 1), np.int64))
    after = core.count(begun, task, nothing, Status("closed", 40, 0))
    assert after.steps == 0
    assert after.task.model == begun.task.model
    assert after.task.shown["dropped"] == 2
    assert after.task.shown["waiting"] == "0 of the 1 rounds that make an answer"
    assert not task.finish()


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_without_any_report_are_charged_and_end_nothing(tmp_path: Path, kind: str) -> None:
    """At the beginning, in the middle and at the end; heavy hitters take two rounds."""
    fleet = Fleet(tmp_path, kind, plan={"rounds": 6})
    fleet.empty = {0, 3, 6}
    shot = fleet.run().board.snapshot()
    assert shot["finished"] == "all 6 rounds of the plan have been charged"
    assert [row.get("opened") for row in shot["rounds"]] == [0, None, PEOPLE, 0, PEOPLE, PEOPLE, 0]
    assert shot["spent"]["charged"] == 6
    assert shot["survey"]["reports"] == 3 * PEOPLE
    assert [asked_index(question) for question in fleet.questions] == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_of_empty_rounds_only_ends_without_an_answer(tmp_path: Path, kind: str) -> None:
    fleet = Fleet(tmp_path, kind)
    fleet.empty = set(range(9))
    shot = fleet.run().board.snapshot()
    assert shot["spent"]["charged"] == 2
    assert shot["survey"]["reports"] == 0
    assert shot["statement"] is not None
    assert not fleet.task.finish()


@pytest.mark.parametrize("kind", ["count", "mean"], ids=["numbers", "rows"])
@pytest.mark.parametrize("count", [0, 1, 65_535, 65_536, 65_537, 131_072])
def test_any_number_of_reports_is_read(tmp_path: Path, kind: str, count: int) -> None:
    task, _ = survey_of(tmp_path, kind)
    rows = simulated(task, values_of(kind, PEOPLE), 0)[:1]
    one = payloads.octets_payload(task.survey.randomizer.report_format.encode(rows)[0])
    reader = batches.ReportRows(task.survey.randomizer)
    for _ in range(count):
        reader.take(one)
    found = reader.rows()
    assert found.shape == (count, *rows.shape[1:])
    assert (found == rows[0]).all()
    assert reader.dropped == 0


def test_what_cannot_be_estimated_yet_says_why_and_does_not_stop_the_run(tmp_path: Path) -> None:
    task, document = survey_of(tmp_path, "distribution")
    begun = core.begin(document, task)
    one = core.Decoded(1, 0, None, rows=np.array([[0, 1]]))
    after = core.count(begun, task, one, Status("closed", 40, 1))
    assert "at least one about every level" in after.task.shown["waiting"]
    assert not (tmp_path / "estimate.json").exists()


def test_a_round_of_which_too_few_reports_are_left_counts_for_nothing(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, "count", plan={"minimum_batch": PEOPLE + 1})
    shot = fleet.run().board.snapshot()
    assert {row["state"] for row in shot["rounds"]} >= {"void by checks"}
    assert (shot["survey"]["reports"], shot["spent"]["charged"]) == (0, 2)
    assert shot["survey"]["dropped"] == 2 * HOSTILE


def test_tasks_that_count_have_plans_of_their_own(tmp_path: Path) -> None:
    task, document = survey_of(tmp_path, "count")
    core.check_task(document, task)
    with pytest.raises(InvalidParameter, match="one that counts reports"):
        core.check_task(plan(), task)


# --- settings -----------------------------------------------------------------------------------


def test_the_plan_says_everything_and_names_no_path(tmp_path: Path) -> None:
    task, document = survey_of(tmp_path, "histogram")
    assert document.randomizer["encoding"] == 4
    assert document.dimension == task.survey.report_bytes
    assert randomizer_of(document) == task.survey.randomizer
    said = json.dumps(document.to_object())
    assert str(tmp_path) not in said and "confidence" not in said
    question = read_question(document.task, document.rounds)
    assert (question.about, question.answers) == ("taste", 4)
    assert (
        question.query
        == task.survey.query
        == Query.from_document({"kind": "histogram", "categories": ["red", "green", "blue"]})
    )
    assert Price(document).spent(2).epsilon == task.survey.guarantee(1e-5).charge()


def test_what_the_randomizer_leaves_open_is_chosen_for_the_budget(tmp_path: Path) -> None:
    small = {"population": 200, "rounds": 1, "epsilon_budget": 1.0}
    changes: dict[str, Any] = {"randomizer": {"name": "dary"}, "plan": small}
    task, document = survey_of(tmp_path, "histogram", **changes)
    spent = Price(document).spent(1).epsilon
    assert 0.9 < spent <= 1.0
    again, _ = survey_of(tmp_path, "histogram", **changes)
    assert again.survey == task.survey  # a restart finds the same plan


def test_rate_one_is_a_full_shuffle_and_needs_all_reports(tmp_path: Path) -> None:
    _, document = survey_of(tmp_path, "count", plan={"rate": 1.0}, randomizer={"local_epsilon": 1.0})
    assert isinstance(Price(document).plan, FullShuffle)
    assert document.minimum_batch == document.population
    with pytest.raises(InvalidParameter, match="minimum_batch"):
        Price(survey_of(tmp_path, "count", plan={"rate": 1.0, "minimum_batch": 3})[1])
    # whatever the randomizer
    _, other = survey_of(
        tmp_path, "distribution", plan={"rate": 1.0, "population": 1000},
        randomizer={"name": "tree:4", "local_epsilon": 1.0},
    )  # fmt: skip
    assert isinstance(Price(other).plan, FullShuffle)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": {"kind": "histogram"}}, "query"),
        ({"task": {"kind": "histogram", "categories": 3, "colour": 1}}, "colour"),
        ({"task": {"kind": "count", "answers": 0}}, "task.answers"),
        ({"task": {"kind": "count", "about": 3}}, "task.about"),
        ({"task": {"kind": "count", "confidence": 2}}, "task.confidence"),
        ({"task": {"kind": "count", "simultaneous": 1}}, "task.simultaneous"),
        ({"randomizer": {"name": "dary", "local_epsilon": 1.0, "steps": 2}}, "steps"),
        ({"randomizer": {"name": "rappor", "local_epsilon": 1.0}}, "randomizer"),
        ({"plan": {"rounds": None}}, "rounds"),
    ],
)
def test_bad_settings_are_refused_by_name(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        analyzer_task(settings_of(tmp_path, "histogram", **changes))


def test_a_missing_entry_of_the_plan_is_named(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "count")
    del settings.plan["delta"]
    with pytest.raises(InvalidParameter, match=r"plan\.delta"):
        analyzer_task(settings)


def test_settings_file_with_a_common_budget(tmp_path: Path) -> None:
    (tmp_path / "analyzer.toml").touch(mode=0o600)
    (tmp_path / "analyzer.toml").write_text(
        '[shuffler]\naddress = "http://127.0.0.1:1"\ntoken = "t"\n[budget]\n'
        'file = "../all.ledger"\nepsilon = 3\ndelta = 1e-5\n[task]\nkind = "count"\n'
        "[plan]\npopulation = 40\nrounds = 1\ndelta = 1e-5\nepsilon_budget = 3.0\n"
        "round_seconds = 5.0\n"
    )
    settings = read_settings(tmp_path)
    assert settings.budget is not None and settings.budget.epsilon == 3.0
    assert settings.budget.file == tmp_path / "../all.ledger"
    _, task, size = analyzer_task(settings)
    assert isinstance(task, SurveyAnalyzerTask) and size == 1


def test_a_plan_whose_reports_have_another_size_has_no_price(tmp_path: Path) -> None:
    _, document = survey_of(tmp_path, "histogram")
    said = document.to_object()
    said["randomizer"]["dimension"] += 1
    with pytest.raises(InvalidParameter, match=r"randomizer\.dimension"):
        Price(PlanDocument.from_object(said))
    with pytest.raises(Malformed, match="shuffled-check-in with encoding 4"):
        window = {"slots": 9, "check_in_probability": 1.0, "minibatch": 1}
        rest = {name: value for name, value in document.to_object().items() if name != "rate"}
        PlanDocument.from_object({**rest, "protocol": "random-check-in-fixed", **window})
    with pytest.raises(InvalidParameter, match="a plan whose reports are added up"):
        influence(document, 10)


def test_one_client_sends_one_row(tmp_path: Path) -> None:
    task, document = survey_of(tmp_path, "count")
    key = OpeningKey(1, new_private_key(1)).public_key
    two = np.array([0, 1])
    with pytest.raises(InvalidParameter, match="2 rows"):
        make_envelope(document, task.survey.randomizer, 0, bytes(32), key, two, SecureSource())


def test_reports_are_decoded_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_AT_ONCE", 7)
    task, _ = survey_of(tmp_path, "mean")
    rows = simulated(task, values_of("mean", PEOPLE), 0)
    form = task.survey.randomizer.report_format
    reader = batches.ReportRows(task.survey.randomizer)
    for payload in (*form.encode(rows), b"\xff\xff"):
        reader.take(payloads.octets_payload(payload))
    assert reader.rows().tolist() == rows.tolist()
    assert reader.dropped == 1


# --- clients ------------------------------------------------------------------------------------


def test_an_owner_answers_only_what_the_settings_name(tmp_path: Path) -> None:
    (tmp_path / "me.csv").write_text("colour\nred\n")
    table = {"answers": {"taste": {"file": "me.csv", "column": "colour", "kinds": ["histogram"]}}}
    task = client_task(table, tmp_path)
    assert isinstance(task, OwnerTask)
    asking = {"kind": "histogram", "categories": ["red", "blue"], "about": "taste", "answers": 5}
    _, asked = survey_of(tmp_path / "a", "histogram", task=asking)
    assert task.join(asked) == 5
    question = round_question(survey_of(tmp_path, "histogram")[0].survey, [])
    assert task.value(question).tolist() == [0]
    _, other = survey_of(tmp_path / "b", "count")
    with pytest.raises(NotAnswered, match="answers no count here"):
        task.join(other)
    _, elsewhere = survey_of(tmp_path / "c", "count", task={"kind": "count", "about": "health"})
    with pytest.raises(NotAnswered, match="nothing about 'health'"):
        task.join(elsewhere)
    with pytest.raises(NotAnswered, match="no records to train on"):
        task.join(plan())
    anything = client_task({"file": "me.csv", "column": "colour"}, tmp_path)
    assert anything.join(elsewhere) == 4  # type: ignore[attr-defined]


def test_a_question_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "me.csv").write_text("colour\nred\n")
    answering = AnsweringTask({"": Answer(tmp_path / "me.csv", ("colour",))})
    with pytest.raises(NotAnswered, match="no question has been accepted"):
        answering.value(b"{}")
    with pytest.raises(NotAnswered, match="asks nothing that can be answered"):
        answering.join(plan(task={"kind": "histogram", "categories": 1}))
    for bad in (b"model", b"[]", b'{"type":"question"}', b'{"index":-1,"type":"question"}'):
        with pytest.raises(InvalidParameter, match="question"):
            asked_index(bad)


def test_a_client_that_only_answers_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "me.csv").write_text("colour\nred\n")
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from dpcheckin.deployment.tasks import client_task\n"
        "import dpcheckin.service.client.daemon, dpcheckin.deployment.agents\n"
        f"client_task({{'file': 'me.csv', 'column': 'colour'}}, Path({str(tmp_path)!r}))\n"
        "heavy = {'torch', 'sklearn', 'matplotlib', 'starlette', 'psycopg'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.parametrize("kind", ["count", "heavy-hitters"])
def test_a_restored_survey_goes_on_where_it_was(tmp_path: Path, kind: str) -> None:
    """Backup after two rounds, an empty folder, two rounds more: as if nothing had happened."""
    fleet = Fleet(tmp_path, kind, plan={"rounds": 4})
    folder, file = fleet.folder / "analyzer", tmp_path / "backup"

    def until(rounds: int) -> None:
        made = Analyzer(
            folder, fleet.document, fleet.identity, fleet.task, fleet.shuffler,  # type: ignore[arg-type]
            Schedule(now=lambda: fleet.__dict__.update(time=fleet.time + 1.0) or fleet.time), threading.Event(),
        )  # fmt: skip
        keep = made._keep

        def kept(after: state.AnalyzerState) -> None:
            keep(after)
            if after.steps >= rounds:
                made.stop.set()

        made._keep = kept  # type: ignore[method-assign]
        try:
            made.run()
        finally:
            made.close()

    until(2)
    backup.backup(folder, file, with_keys=True)
    reports = [fleet.task.reports(i).tolist() for i in range(2)]
    folder.rename(tmp_path / "lost")
    assert sum(name.startswith("rounds/") for name in backup.restore(folder, file)) == 2
    until(4)
    assert [fleet.task.reports(i).tolist() for i in range(2)] == reports
    shot = json.loads((folder / "estimate.json").read_text())
    assert shot["rounds"] == 4
    assert fleet.task.finish()
