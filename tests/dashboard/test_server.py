"""The server's answers, without a browser."""

import json
import re
import socket
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from dpcheckin.accounting import CheckInRound, any_pure, compose
from dpcheckin.accounting.kinds import rounded_up
from dpcheckin.dashboard.form import PROTOCOLS, Form

STATIC = files("dpcheckin.dashboard") / "static"


def lines(server: str, path: str) -> list[dict[str, object]]:
    text = httpx.get(f"{server}{path}", timeout=60).text
    return [json.loads(line) for line in text.splitlines()]


def test_the_statement_is_the_librarys(server: str) -> None:
    said = httpx.get(f"{server}/api/statement?population=1e4&rate=0.01&rounds=100", timeout=60)
    wanted = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)]).epsilon(1e-5)
    assert said.json()["epsilon"] == {"value": wanted.upper, "text": rounded_up(wanted.upper)}
    assert said.json()["sentence"].startswith(f"The run is ({rounded_up(wanted.upper)}, 1e-05)")


def test_a_preview_says_the_figure_first_and_then_the_line(server: str) -> None:
    first, *points = lines(server, "/api/preview?population=10000&rate=0.01&rounds=100&over=rate")
    assert {"epsilon", "texts"} == set(first)
    xs = [point["x"] for point in points]
    assert 0.01 in xs and len(set(xs)) == len(xs) >= 9
    ordered = [point["y"] for point in sorted(points, key=lambda p: p["x"])]  # type: ignore[arg-type, return-value]
    assert ordered == sorted(ordered)  # type: ignore[type-var]


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
    (answer,) = (
        lines(server, f"/api/lines?{query}")
        if "rate" not in query
        else lines(server, f"/api/preview?{query}")
    )
    assert answer["field"] == field


def test_a_target_that_is_no_number_or_out_of_reach(server: str) -> None:
    asked = f"{server}/api/solve?quick=1&target="
    assert httpx.get(f"{asked}x", timeout=60).json()["field"] == "target"
    assert httpx.get(f"{asked}-1", timeout=60).json()["field"] == "target"
    assert "exceeds" in httpx.get(f"{asked}1e-9", timeout=60).json()["problem"]
    other = httpx.get(f"{asked}1&protocol=random-check-in-fixed", timeout=60).json()
    assert "no inverse question" in other["problem"]


def test_every_protocol_has_an_axis_and_every_axis_a_range() -> None:
    for name, protocol in PROTOCOLS.items():
        form = Form(protocol=name, randomizer=protocol.randomizers[0])
        form.check()
        for over in protocol.over:
            axis = form.axis(over)
            xs = form.abscissas(axis, 9)
            assert getattr(form, axis) in xs
            assert xs == sorted(set(xs)) and len(xs) >= 8


def test_another_sites_name_for_this_machine_is_turned_away(server: str) -> None:
    assert httpx.get(server, headers={"Host": "evil.example"}).status_code == 400


def test_the_browser_is_told_to_fetch_nothing_from_elsewhere(server: str) -> None:
    for path in ("/", "/static/main.js", "/api/describe"):
        assert "default-src 'self'" in httpx.get(server + path).headers["Content-Security-Policy"]


def test_what_is_shipped_refers_to_nothing_outside_and_misses_nothing(server: str) -> None:
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= {"http://www.w3.org/2000/svg"}
        for name in re.findall(r"(?:/static/|from \"\./)([\w.-]+)\"", text):
            assert (STATIC / name).is_file(), name
            assert httpx.get(f"{server}/static/{name}").status_code == 200


def ui(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from dpcheckin.cli import main; main()"
    command = [sys.executable, "-c", program, "ui", "--no-browser", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


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
