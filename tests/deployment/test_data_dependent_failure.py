"""An attack: who writes the plan chooses for whom the task fails, and watches who reports.

For every kind of question and every task the analyzer picks a predicate: a value that fits and one
that does not. Shuffler and analyzer together then see whether a client reported and what its report
says. By that no event may be more than e^ε₀ times as likely for the one client as for the other.
With 200 rounds for each of them, all events at a confidence of 99.9% together, the same agents with
the fault that a failure becomes a cover are caught with a probability above 0.99, and are.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from deployment.survey_world import KINDS, survey_of
from dpcheckin.audit.mutants import failure_as_cover
from dpcheckin.deployment.answers import Answer, AnsweringTask
from dpcheckin.deployment.numpy_tasks import NumpyClientTask
from dpcheckin.deployment.questions import round_question
from dpcheckin.service.client.config import Limits
from dpcheckin.service.client.core import Action, Agent
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import OCTETS, PlanDocument
from dpcheckin.service.wire.payloads import PAYLOAD_HEAD_BYTES, read_payload
from dpcheckin.special.intervals import largest_probability, least_probability
from service.client.timing_world import FreePrice
from service.client_world import WIDE, World
from service.plans import plan

LOCAL, RATE, ROUNDS, DOUBT = 1.0, 0.5, 200, 1e-3
Task = Callable[[bytes], Any]
Event = tuple[str, int]

PREDICATES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("count", {}, 1, 7),
    ("count", {}, 0, "unknown"),
    ("histogram", {"categories": ["positive", "not said"]}, "not said", "negative"),
    ("histogram", {"categories": ["other", "positive"]}, "positive", None),
    ("histogram", {"categories": 3}, 1, 3),
    ("mean", {"low": 0.0, "high": 10.0}, 5.0, "text"),
    ("sum", {"low": 0.0, "high": 10.0}, 5.0, float("nan")),
    ("vector-mean", {"dimension": 3, "clip": 1.0}, [0.1, 0.2, 0.3], [0.1, 0.2]),
    ("vector-mean", {"dimension": 3, "clip": 1.0}, [0.1, 0.2, 0.3], [1e200, 0.0, 0.0]),
    ("quantiles", {"low": 0.0, "high": 10.0, "bins": 16}, 5.0, ""),
    ("distribution", {"low": 0.0, "high": 10.0, "bins": 16}, 5.0, [1, 2]),
    ("heavy-hitters", {"bits": 20, "top": 5, "alphabet": "abcdefgh"}, "head", "heart"),
    ("heavy-hitters", {"bits": 8, "top": 5, "alphabet": ""}, 255, 256),
]


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)


def answering(folder: Path, document: PlanDocument, value: Any) -> Task:
    """The owner's own task, with this value in the owner's file."""
    path = folder / "me.json"
    path.write_text(json.dumps([{"v": value}]))
    made = AnsweringTask({"taste": Answer(path, ("v",), 1)})
    made.join(document)
    return made.value


def watched(folder: Path, document: PlanDocument, task: Task, model: bytes) -> Counter[Event]:
    """What shuffler and analyzer see of one client in many rounds: envelopes, and what is in."""
    world = World(folder, document)
    agent = world.agent(Limits(**{**WIDE.__dict__, "rate": RATE}))
    agent._price = FreePrice
    agent.read_plan(world.page())
    sizes, seen = set(), Counter[Event]()
    for number in range(ROUNDS):
        found = agent.read_round(world.round(number, model=digest(model).hex()))
        part = agent.take_part(found, lambda: task(model))
        sizes.add(len(part.envelope))
        seen[part.action.value, -1] += 1
        if part.action is Action.REPORT:
            seen["says", said_by(world, part.envelope, model)] += 1
    agent.ledger.close()
    assert len(sizes) == 1
    return seen


def said_by(world: World, envelope: bytes, model: bytes) -> int:
    """A report in few words: its last symbol, or the signs of its first entries."""
    opened = world.key.open(envelope, world.plan.id, digest(model))
    if world.plan.encoding != OCTETS:
        return int(np.packbits(read_payload(world.plan, opened)[:3] > 0)[0])
    rows = randomizer_of(world.plan).report_format.rows(opened[PAYLOAD_HEAD_BYTES:])
    if rows.dtype.kind == "f":
        return int(np.packbits(rows[0, :3] > 0)[0])
    return int(np.atleast_1d(rows[0])[-1])


def shown(one: Counter[Event], other: Counter[Event]) -> float:
    """The largest log ratio that some event shows, with confidence in all of them together."""
    events = set(one) | set(other) | {("report", -1), ("cover", -1)}
    each = DOUBT / (4 * len(events))
    found = 0.0
    for event in events:
        for a, b in ((one[event], other[event]), (other[event], one[event])):
            if a:
                least = least_probability(a, ROUNDS, each)
                found = max(found, math.log(least / largest_probability(b, ROUNDS, each)))
    return found


def power() -> float:
    """Probability that "a report" betrays the fault: always expected of one, never of the other.

    With as many events as any of the cases has.
    """
    each = DOUBT / (4 * 70)
    none = largest_probability(0, ROUNDS, each)
    needed = next(k for k in range(1, ROUNDS) if least_probability(k, ROUNDS, each) > none * math.exp(LOCAL))
    return float(binom.sf(needed - 1, ROUNDS, RATE))


def attack(folder: Path, document: PlanDocument, tasks: tuple[Task, Task], model: bytes) -> float:
    both = []
    for place, task in enumerate(tasks):
        (folder / str(place)).mkdir()
        both.append(watched(folder / str(place), document, task, model))
    return shown(*both)


def test_the_power_of_this_attack_on_the_broken_agents() -> None:
    print(f"power {power():.6f}")
    assert power() > 0.99


def test_every_kind_of_question_is_attacked() -> None:
    assert {kind for kind, *_ in PREDICATES} == set(KINDS)


@pytest.mark.parametrize("broken", [False, True], ids=["shipped", "a failure is a cover"])
@pytest.mark.parametrize(("kind", "asked", "fits", "not_"), PREDICATES)
def test_no_question_tells_who_has_a_value_that_does_not_fit(
    tmp_path: Path, kind: str, asked: dict[str, Any], fits: Any, not_: Any, broken: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    table = {"kind": kind, "about": "taste", **asked}
    randomizer = {"name": KINDS[kind][1], "local_epsilon": LOCAL}
    changes = {"plan": {"rate": RATE, "population": 40}, "task": table, "randomizer": randomizer}
    task, document = survey_of(tmp_path / "analyzer", kind, **changes)
    model = round_question(task.survey, [])
    tasks = (answering(_made(tmp_path / "a"), document, fits), answering(_made(tmp_path / "b"), document, not_))
    if broken:  # and the question refuses what is no value, as it did
        monkeypatch.setattr(type(task.survey.query), "encode_any", lambda query, value: query.encode([value]))
    with failure_as_cover().applied() if broken else _nothing():
        found = attack(tmp_path, document, tasks, model)
    print(f"{kind}: {found:.3f} of {LOCAL:g}")
    assert (found > LOCAL) == broken


GRADIENTS = plan(
    rate=RATE,
    population=40,
    rounds=2,
    epsilon_budget=50.0,
    randomizer={"name": "privunit", "local_epsilon": LOCAL, "dimension": 10, "clip": 1.0,
                "encoding": 1},
)  # fmt: skip
OVERFLOWING = np.full(10, 3e38, "<f4").tobytes()
"""A finite model, signed like any other, at which some pictures overflow."""


def _numpy_task(picture: list[float]) -> Task:
    return NumpyClientTask("linear", np.array([picture]), np.array([0]), 2).value


def _torch_task(picture: list[float]) -> Task:
    torch = pytest.importorskip("torch")
    from dpcheckin.deployment.torch_tasks import TorchClientTask

    module = torch.nn.Linear(4, 2)
    return TorchClientTask(module, torch.tensor([picture]), torch.tensor([0])).value


def _nan_task(picture: list[float]) -> Task:
    return lambda model: np.full(10, np.nan if sum(picture) else 1.0)


def _ending_task(picture: list[float]) -> Task:
    def value(model: bytes) -> Any:
        if sum(picture):
            raise SystemExit(3)
        return np.ones(10)

    return value


@pytest.mark.parametrize("broken", [False, True], ids=["shipped", "a failure is a cover"])
@pytest.mark.parametrize("make", [_numpy_task, _torch_task, _nan_task, _ending_task])
def test_no_model_tells_whose_gradient_overflows(
    tmp_path: Path, make: Callable[[list[float]], Task], broken: bool
) -> None:
    bright = 1e300 if make is _numpy_task else 50.0
    tasks = (make([0.0] * 4), make([bright] * 4))
    with failure_as_cover().applied() if broken else _nothing():
        found = attack(tmp_path, GRADIENTS, tasks, OVERFLOWING)
    print(f"{make.__name__}: {found:.3f} of {LOCAL:g}")
    assert (found > LOCAL) == broken


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_the_fault_is_the_agents() -> None:
    assert failure_as_cover().owner is Agent
