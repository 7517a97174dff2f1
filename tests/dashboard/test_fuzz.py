"""Odd questions to the planner's page: every answer is a figure or one clear line, never a failure of the server."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from dpcheckin.dashboard import answers
from dpcheckin.dashboard.runs import RunFolder
from dpcheckin.dashboard.server import application
from dpcheckin.dashboard.workers import Workers
from dpcheckin.errors import DpCheckinError
from dpcheckin.protocols.questions import PLANNED
from dpcheckin.randomizers import registry

PATHS = (
    "/", "/bounds", "/static/planner.js", "/api/describe", "/api/preview", "/api/statement", "/api/lines",
    "/api/solve", "/api/tradeoff", "/api/mixed", "/api/certificate", "/api/runs", "/api/run",
    "/api/survey/describe", "/api/survey/plan", "/api/survey/error", "/api/nothing",
)  # fmt: skip
FIELDS = (
    "population", "rate", "cohort", "slots", "check_in_probability", "local_epsilon", "noise_multiplier", "rounds",
    "delta", "colluding", "dropout", "over", "target", "quick", "bound", "part", "version", "name", "kind", "dimension",
)  # fmt: skip
ODD = (
    "1e999", "-1e999", "1e308", "1e-400", "nan", "inf", "-inf", "0", "-1", "1", "2", "1/0", "0/0", "1e6", "60,000",
    "60_000", "9" * 400, "0x10", "٣", "", " ", "%", "1%", "1e5.5", "true", "null", "[]", "{}", "<script>", "../../etc",
    "\x00", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "a" * 2000, "1/3", "0.5", "1e-5",
)  # fmt: skip


class Here(Workers):
    """Figures are what is not looked at here: what comes before and after them is."""

    def __init__(self) -> None:
        pass

    async def later(self, function: Any, *arguments: Any) -> Any:
        """Refusals of the form are the page's own; a computation is played by one."""
        try:
            for one in arguments:
                if hasattr(one, "question"):
                    one.question()
        except DpCheckinError as problem:
            return answers.problem_of(problem)
        return {"problem": "not computed here", "field": None}

    soon = first = next = later

    def close(self) -> None:
        pass


def page(runs: Path) -> Starlette:
    made = application("127.0.0.1")
    made.state.workers, made.state.runs = Here(), RunFolder(runs)
    return made


def question(chance: random.Random) -> tuple[str, str, list[tuple[str, str]]]:
    known: dict[str, tuple[str, ...]] = {"protocol": tuple(PLANNED), "randomizer": tuple(registry.kinds())}
    query = [(name, chance.choice(ODD)) for name in chance.sample(FIELDS, chance.randrange(5))]
    query += [(name, chance.choice((*values, *ODD[:3]))) for name, values in known.items() if chance.random() < 0.6]
    return chance.choices(["GET", "POST", "PUT", "HEAD"], [20, 1, 1, 1])[0], chance.choice(PATHS), query


async def ask(app: Any, requests: int, seed: int) -> Counter[int]:
    chance, found = random.Random(seed), Counter[int]()
    through = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=through, base_url="http://127.0.0.1") as http:
        for _ in range(requests):
            method, path, query = question(chance)
            answer = await http.request(method, path, params=query)
            assert answer.status_code < 500, (method, path, query, answer.text[:300])
            found[answer.status_code] += 1
    return found


@pytest.mark.parametrize("requests", [500, pytest.param(10_500, marks=pytest.mark.slow)])
def test_no_question_makes_the_planner_fail(tmp_path: Path, requests: int) -> None:
    app = page(tmp_path)
    found = asyncio.run(ask(app, requests, seed=requests))
    print(f"{sum(found.values())} answers: {dict(sorted(found.items()))}")
    assert found[200] > requests / 3


def test_a_number_beyond_every_float_is_refused_in_one_line(tmp_path: Path) -> None:
    app = page(tmp_path)

    async def one() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
            return await http.get("/api/statement?population=1e999")

    answer = asyncio.run(one())
    assert answer.json()["problem"] == "population = '1e999' is not allowed: expected a whole number"
    assert answer.json()["field"] == "population"
