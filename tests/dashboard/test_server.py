"""The server's answers, without a browser."""

import asyncio
import json
import re
import socket
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from dpcheckin.accounting import CheckInRound, WindowRound, any_pure, compose, lower_bound
from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form
from dpcheckin.dashboard.server import application
from dpcheckin.dashboard.workers import Workers
from dpcheckin.document import PALETTE
from dpcheckin.numerals import rounded_up
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS, randomizers_of

STATIC = files("dpcheckin.dashboard") / "static"
PATIENCE = 600  # seconds; a busy machine is no failure


def lines(server: str, path: str) -> list[dict[str, object]]:
    text = httpx.get(f"{server}{path}", timeout=PATIENCE).text
    return [json.loads(line) for line in text.splitlines()]


def test_the_statement_is_the_librarys(server: str) -> None:
    said = httpx.get(f"{server}/api/statement?population=1e4&rate=0.01&rounds=100", timeout=PATIENCE)
    wanted = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)]).epsilon(1e-5)
    assert said.json()["epsilon"] == {"value": wanted.upper, "text": rounded_up(wanted.upper)}
    assert said.json()["sentence"].startswith(f"The run is ({rounded_up(wanted.upper)}, 1e-05)")


def test_a_plan_has_its_certificate(server: str) -> None:
    query = "population=1e4&rate=0.01&rounds=100"
    said = httpx.get(f"{server}/api/certificate?{query}", timeout=PATIENCE).json()
    wanted = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)]).epsilon(1e-5)
    assert json.loads(said["text"])["claim"]["epsilon"] == rounded_up(wanted.upper)
    query = "protocol=random-check-in-fixed&population=1e4&slots=1000&local_epsilon=0.5"
    said = httpx.get(f"{server}/api/certificate?{query}", timeout=PATIENCE).json()
    assert "a certificate does not cover" in said["problem"]


def test_a_preview_says_the_figure_first_and_then_the_line(server: str) -> None:
    said = lines(server, "/api/preview?population=10000&rate=0.01&rounds=100&over=rate")
    # on a busy machine a rougher figure may come before it
    first, *points = [line for line in said if "rough" not in line]
    assert {"epsilon", "texts"} == set(first)
    xs = [point["x"] for point in points]
    assert 0.01 in xs and len(set(xs)) == len(xs) >= 9
    ordered = [point["y"] for point in sorted(points, key=lambda p: p["x"])]  # type: ignore[arg-type, return-value]
    assert ordered == sorted(ordered)  # type: ignore[type-var]


class Slow(Workers):
    """Workers whose preview takes its time, or whose rougher figure is a refusal."""

    def __init__(self, first: dict[str, object]) -> None:
        self._first, self._looked_at = first, asyncio.Event()

    async def soon(self, function: object, *arguments: object) -> dict[str, object]:
        if function is answers.quick:  # not before the rougher figure has been looked at
            await self._looked_at.wait()
            return {"epsilon": 2}
        return {"x": 1, "y": 2}

    async def first(self, function: object, *arguments: object) -> dict[str, object]:
        assert function is answers.rough
        asyncio.get_running_loop().call_later(0.1, self._looked_at.set)
        return self._first


@pytest.mark.parametrize(
    ("rough", "shown"), [({"epsilon": 9, "rough": True}, [9, 2]), ({"problem": "none", "field": None}, [2])]
)
def test_while_a_preview_takes_its_time_a_rougher_figure_is_shown(rough, shown) -> None:
    """Within the server's patience, and followed by the preview itself."""

    async def played() -> list[dict[str, object]]:
        app = application()
        app.state.workers = Slow(rough)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            text = (await client.get("/api/preview")).text
        return [json.loads(line) for line in text.splitlines()]

    found = asyncio.run(played())
    assert [line["epsilon"] for line in found if "epsilon" in line] == shown
    assert len(found) > len(shown)  # and the line of the plot


@pytest.mark.parametrize("protocol", ["shuffled-check-in", "random-check-in-fixed"])
@pytest.mark.parametrize("randomizer", ["any", "gaussian"])
def test_the_rougher_figure_is_no_promise_too_much(protocol: str, randomizer: str) -> None:
    form = Form.read({"protocol": protocol, "randomizer": randomizer, "rounds": "20"})
    assert answers.rough(form)["epsilon"]["value"] >= answers.least(form)["lower"]["value"]


def test_nobody_speaks_of_a_shuffler_where_there_is_none(server: str) -> None:
    """Neither in the titles of the two cards nor in the sentence under the second."""
    known = httpx.get(f"{server}/api/describe", timeout=PATIENCE).json()["protocols"]
    for protocol, randomizer in (
        ("distributed-check-in", "gaussian"),
        ("random-check-in-fixed", "any"),
        ("random-check-in-averaged", "any"),
    ):
        about = known[protocol]
        query = httpx.QueryParams(protocol=protocol, randomizer=randomizer, rounds=10)
        said = httpx.get(f"{server}/api/statement?{query}", timeout=PATIENCE).json()
        assert "huffler" not in about["trusted"] + about["betrayed"] + said["untrusted"]
        assert re.match("If .*, what is left is [(]", said["untrusted"])
    assert known["shuffled-check-in"]["trusted"] == "If the shuffler is honest"


@pytest.mark.parametrize(("protocol", "others"), [("random-check-in-fixed", 999), ("random-check-in-sliding", 999)])
def test_windows_have_their_lower_bound(server: str, protocol: str, others: int | None) -> None:
    """Either knows its crowd: a sliding window's slot is open to as many as there are slots."""
    query = httpx.QueryParams(protocol=protocol, population=1000, slots=1000, local_epsilon=1)
    said = httpx.get(f"{server}/api/statement?{query}&rounds=1&delta=1e-6", timeout=PATIENCE).json()
    one = WindowRound(1_000, any_pure(1.0), others=others)
    assert said["lower"]["value"] == lower_bound([(one, 1)], 1e-6).epsilon.lower > 0.07
    assert said["lower"]["value"] < said["epsilon"]["value"]
    drawn = {line.get("line") for line in lines(server, f"/api/lines?{query}&rounds=1&over=slots")}
    assert {"guarantee", "lower bound"} <= drawn


def test_lines_come_point_by_point_and_keep_their_order(server: str) -> None:
    key = "clones, sampling, strong composition [FMT Thm 3.1 + BBG Thm 9 + KOV Thm 3.4]"
    query = httpx.QueryParams(population=1000, rate=0.1, rounds=20, over="rounds", bound=key)
    head, *rest = lines(server, f"/api/lines?{query}")
    assert head["axis"] == "rounds"
    found: dict[str, dict[float, float]] = {}
    for answer in rest:
        for point in answer.get("points", [answer]):  # type: ignore[attr-defined]
            found.setdefault(str(answer["line"]), {})[point["x"]] = point["y"]
    assert set(found) == {"guarantee", "lower bound", key}
    said = httpx.get(f"{server}/api/statement?{query}", timeout=PATIENCE).json()
    assert found["guarantee"][20] == said["epsilon"]["value"]
    assert found["lower bound"][20] == said["lower"]["value"]
    one = CheckInRound(1_000, 0.1, any_pure(2.0))
    for x, y in found["guarantee"].items():
        assert y == pytest.approx(compose([(one, round(x))]).epsilon(1e-5).upper, rel=1e-4)
    assert all(found["lower bound"][x] <= y for x, y in found["guarantee"].items())
    assert all(found["guarantee"][x] <= y for x, y in found[key].items() if x in found["guarantee"])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("rate=2", "rate"),
        ("over=weather", "over"),
        ("protocol=pigeon", "protocol"),
        ("bound=hearsay", "bound"),
        ("population=", "population"),
    ],
)
def test_a_wrong_question_is_answered_with_its_field(server: str, query: str, field: str) -> None:
    (answer,) = lines(server, f"/api/lines?{query}") if "rate" not in query else lines(server, f"/api/preview?{query}")
    assert answer["field"] == field


def test_a_target_that_is_no_number_or_out_of_reach(server: str) -> None:
    asked = f"{server}/api/solve?quick=1&target="
    assert httpx.get(f"{asked}x", timeout=PATIENCE).json()["field"] == "target"
    assert httpx.get(f"{asked}-1", timeout=PATIENCE).json()["field"] == "target"
    assert "exceeds" in httpx.get(f"{asked}1e-9", timeout=PATIENCE).json()["problem"]
    other = httpx.get(f"{asked}1&protocol=random-check-in-fixed", timeout=PATIENCE).json()
    assert "no inverse question" in other["problem"]


def test_every_protocol_has_an_axis_and_every_axis_a_range() -> None:
    for name in PLANNED:
        protocol = PROTOCOLS[name]
        form = Form(protocol=name, randomizer=randomizers_of(name)[0])
        form.check()
        for over in protocol.over:
            axis = form.axis(over)
            xs = form.abscissas(axis, 9)
            assert getattr(form, axis) in xs
            assert xs == sorted(set(xs)) and len(xs) >= 8


def test_another_sites_name_for_this_machine_is_turned_away(server: str) -> None:
    assert httpx.get(server, headers={"Host": "evil.example"}).status_code == 421


def test_the_browser_is_told_to_fetch_nothing_from_elsewhere(server: str) -> None:
    for path in ("/", "/static/main.js", "/api/describe"):
        assert "default-src 'self'" in httpx.get(server + path).headers["Content-Security-Policy"]


def test_what_is_shipped_refers_to_nothing_outside_and_misses_nothing(server: str) -> None:
    for file in [PALETTE, *STATIC.iterdir()]:
        text = file.read_text(encoding="utf-8")
        outside = set(re.findall(r"https?://[^\s\"'<>)]+", text))
        # a name space, and where a link to a paper leads
        assert outside <= {"http://www.w3.org/2000/svg", "https://arxiv.org/abs/"}
        for name in re.findall(r"(?:/static/|from \"\./)([\w.-]+)\"", text):
            assert name == PALETTE.name or (STATIC / name).is_file(), name
            assert httpx.get(f"{server}/static/{name}").status_code == 200


def ui(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from dpcheckin.cli import main; main()"
    command = [sys.executable, "-c", program, "ui", "--no-browser", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_what_cannot_be_served_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refusals = [
            ui("--runs", str(tmp_path / "nowhere")),
            ui("--port", str(taken.getsockname()[1])),
            ui("--port", "70000"),
        ]
    for named, done in zip(("runs", "port", "port"), refusals, strict=True):
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert named in done.stderr
