"""The README does not lie: its example runs, its commands work, its figures are what they print."""

import html
import json
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import markdown
import pytest

import dpcheckin
from cli_in_process import A_SIGN_OF_LIFE
from dpcheckin.numerals import rounded_up

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHARP_EDGES = (ROOT / "docs" / "sharp-edges.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Every dpcheckin command in the README, in blocks and in running text."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    inline = re.findall(r"`(dpcheckin [a-z]+ [^`]*--[^`]*)`", README)
    return [line for line in [*lines, *inline] if line.startswith("dpcheckin ")]


def call(command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = "from dpcheckin.cli import main; main()"
    arguments = shlex.split(command)[1:]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=1200, cwd=folder
    )


@cache
def answer(command: str) -> Any:
    """What the command prints as JSON."""
    result = call(command if "--json" in command else f"{command} --json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def command_with(*words: str) -> str:
    found = [c for c in commands() if all(word in c for word in words)]
    assert found, f"the README has no command with {words}"
    return found[0]


# --- the Python example ---------------------------------------------------------------------


def test_the_python_example_runs_and_prints_what_it_says() -> None:
    (example,) = blocks("python")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=1200
    )
    assert result.returncode == 0, result.stderr
    sentence, upper, lower = result.stdout.strip().splitlines()
    (promised,) = re.findall(r"# a sentence: epsilon ([\d.]+)", example)
    assert sentence.startswith(f"The run is ({promised}, 1e-05)-differentially private")
    assert "If the shuffler colludes" in sentence
    (certified,) = re.findall(r"# certified: at most ([\d.]+)", example)
    assert 0.0 < float(lower) < float(upper) <= float(certified) <= float(upper) * 1.001


def test_the_python_example_has_ten_lines_and_uses_the_front_door_only() -> None:
    (example,) = blocks("python")
    assert len(example.splitlines()) <= 10
    assert re.findall(r"^.*\bimport\b.*$", example, flags=re.MULTILINE) == ["import dpcheckin as dp"]
    used = set(re.findall(r"\bdp\.(\w+)", example))
    assert {"CheckInRound", "any_pure", "guarantee", "lower_bound"} <= used <= set(dir(dpcheckin))


def test_the_first_three_lines_state_a_guarantee_by_themselves() -> None:
    (example,) = blocks("python")
    three = [line for line in example.splitlines() if line.strip()][:3]
    result = subprocess.run([sys.executable, "-c", "\n".join(three)], capture_output=True, text=True, timeout=1200)
    assert result.stdout.startswith("The run is ("), result.stderr


# --- its length -----------------------------------------------------------------------------


def test_the_readme_has_fewer_than_600_words() -> None:
    """As rendered, code and tables included; and in the file too, marks and all."""
    page = markdown.markdown(README, extensions=["tables", "fenced_code"])
    rendered = html.unescape(re.sub(r"<!--.*?-->|<[^>]+>", " ", page, flags=re.DOTALL))
    assert len(rendered.split()) < 600
    assert len(README.split()) <= 600


@pytest.mark.parametrize("tag", ["P0", "P1", "P2", "P3", "P4"])
def test_the_papers_are_written_out_where_they_are_first_mentioned(tag: str) -> None:
    """Authors or version, and the title in italics."""
    first = README[README.index(tag) :]
    assert re.match(rf"{tag}, [^;|*]*\*[A-Z][^*]{{10,}}\*", " ".join(first.split()))


# --- the commands ---------------------------------------------------------------------------


def test_the_readme_shows_every_command_a_newcomer_needs() -> None:
    shown = {shlex.split(command)[1] for command in commands()}
    assert {"epsilon", "plan", "compare", "reproduce"} <= shown


def test_epsilon_prints_the_guarantee_the_lower_bound_and_what_is_left() -> None:
    said = answer(command_with("epsilon", "--rate 0.01"))
    assert said["kind"] == "guarantee"
    assert said["lower_bound"]["epsilon"] < said["epsilon"]["upper"] < said["local"]["epsilon"]


def test_delta_and_epsilon_of_the_same_run_agree() -> None:
    """delta falls with epsilon: at a larger epsilon than the first command's it is below 1e-4."""
    command = command_with("epsilon", "--rate 0.01", "--local-epsilon 2")
    epsilon = answer(command)
    asked = command.replace(" epsilon ", " delta --epsilon 0.1 ").replace(" --delta 1e-4", "")
    delta = answer(asked)
    assert epsilon["epsilon"]["upper"] < delta["epsilon"]
    assert 0.0 < delta["delta"]["lower"] <= delta["delta"]["upper"] < epsilon["delta"]


def test_plan_meets_its_target_and_one_round_more_does_not() -> None:
    command = command_with("plan", "--epsilon 0.5")
    solved = answer(command)["solved"]
    assert solved["parameter"] == "rounds"
    asked = command.replace("plan --epsilon 0.5", "epsilon")
    at, beyond = (answer(f"{asked} --rounds {solved['value'] + more}") for more in (0, 1))
    assert at["epsilon"]["upper"] <= 0.5 < beyond["epsilon"]["upper"]


# --- the table ------------------------------------------------------------------------------


def table() -> list[tuple[str, list[float], list[bool], str, str]]:
    """Rows as (run, published figures, which are in italics, guarantee, lower bound)."""
    rows = []
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.match(r"\| P\d", line):
            run, published, guarantee, lower = cells
            # what P0 says is no statement: epsilon without a delta
            stated = published.removeprefix('"≃ 1", δ not stated; its own bound: ')
            figures = stated.split(" / ")
            values = [float(figure.strip("*")) for figure in figures]
            rows.append((run, values, ["*" in figure for figure in figures], guarantee, lower))
    assert len(rows) == 7
    return rows


@cache
def reproduced() -> dict[tuple[str, str], float]:
    """What the command under the table computes, by row and column."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        panels = answer(f"{command_with('reproduce', 'claims', 'p1-table2', 'p4-table1')} --out {folder}")
    return {
        (next(iter(row.values())), cell["column"]): cell["epsilon"]
        for panel in panels
        for row in panel["rows"]
        for cell in row["cells"]
    }


def computed(run: str) -> tuple[list[float], float, float]:
    """Published, guarantee and lower bound of a row, as the command prints them."""
    cells = reproduced()
    if run.startswith("P3"):
        setting = "P3: MNIST, 89.7%"
        published = [round(cells[setting, "P3 Theorem 1, fixed cohort"], 1)]
        assert published == [cells[setting, "claim"]]
    elif run.startswith("P0"):
        setting = "P0: MNIST, 90%"
        published = [round(cells[setting, "P0 Equation 18"], 1)]
    elif run.startswith("P4"):
        published = [cells["1", "ours (P4)"]]
        return published, cells["1", "empty-seat guarantee"], cells["1", "homogeneous pair, lower"]
    else:
        (rate,) = re.findall(r"γ = ([\d.]+)", run)
        (local,) = re.findall(r"ε₀ = (\d+)", run)
        setting = f"ε0 = {local}, γ = {rate}"
        published = [cells[setting, name] for name in ("baseline", "approach 1", "approach 2")]
    return published, cells[setting, "empty-seat guarantee"], cells[setting, "3-ary lower bound"]


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_the_table_is_what_the_commands_print(row: tuple[str, list[float], list[bool], str, str]) -> None:
    run, published, impossible, guarantee, lower = row
    theirs, ours, least = computed(run)
    assert published == theirs
    # rounded to the safe side, and by no more than the digits shown
    assert ours <= float(guarantee) <= ours * 1.001
    assert least * 0.998 <= float(lower) <= least
    assert impossible == [figure < least for figure in theirs]


# --- what it points to ----------------------------------------------------------------------


PICTURES = ("planner.png", "trust.svg", "epsilon-against-rounds.png")


def test_every_file_the_readme_links_exists() -> None:
    targets = [t for t in re.findall(r"\]\(([^)#\s]+)", README) if "://" not in t]
    assert {f"docs/images/{name}" for name in PICTURES} <= set(targets)
    assert {"docs/theory.md", "docs/sharp-edges.md", "docs/errata.md"} <= set(targets)
    for target in targets:
        assert (ROOT / target).is_file(), target


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_are_pictures(name: str) -> None:
    content = (ROOT / "docs" / "images" / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<svg")


def test_the_picture_of_trust_shows_what_its_command_prints() -> None:
    """Both figures of the picture, and the local one, are those of the first command."""
    drawn = re.findall(r">ε₀? = ([\d.]+)<", (ROOT / "docs" / "images" / "trust.svg").read_text(encoding="utf-8"))
    said = answer(command_with("epsilon", "--rate 0.01", "--local-epsilon 2"))
    local = said["local"]
    figures = [said["epsilon"]["upper"], local["epsilon"], local["report_epsilon"]]
    assert drawn == [rounded_up(figure) for figure in figures]


def test_newcomers_are_told_the_two_commands() -> None:
    (first,) = [b for b in blocks("console") if "./dev" in b]
    assert re.findall(r"^\./dev (\w+)", first, flags=re.MULTILINE) == ["ui", "train", "test", "quick"]


# --- sharp edges ----------------------------------------------------------------------------

SIXTY_THOUSAND = "dpcheckin epsilon --population 60000 --rounds 1000 --delta 1e-5"


@pytest.mark.parametrize(
    ("shown", "command"),
    [
        ("0.418", f"{SIXTY_THOUSAND} --rate 0.1 --local-epsilon 2"),
        ("0.472", f"{SIXTY_THOUSAND} --rate 0.1 --local-epsilon 2 --dropout 0.2"),
        ("0.472", f"{SIXTY_THOUSAND} --rate 0.1 --local-epsilon 2 --colluding 0.2"),
        ("0.37", f"{SIXTY_THOUSAND} --rate 0.08 --local-epsilon 2"),
        ("0.177", f"{SIXTY_THOUSAND} --rate 0.1 --randomizer gaussian:2"),
        pytest.param("1.67", f"{SIXTY_THOUSAND} --rate 0.1 --randomizer gaussian:1", marks=pytest.mark.slow),
        ("7.11", f"{SIXTY_THOUSAND} --rate 0.1 --randomizer gaussian:0.8"),
        ("46.2", f"{SIXTY_THOUSAND} --rate 0.1 --randomizer gaussian:0.6"),
    ],
)
def test_the_sharp_edges_page_prints_true_figures(shown: str, command: str) -> None:
    assert shown in SHARP_EDGES
    assert answer(command)["epsilon"]["upper"] == pytest.approx(float(shown), rel=5e-3)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            f"{SIXTY_THOUSAND} --rate 0.1 --local-epsilon 1 --local-delta 2e-7",
            "delta = 1e-05 cannot be reached by any epsilon",
        ),
        (f"{SIXTY_THOUSAND} --rate 0.1 --randomizer gaussian:0.05", "noise-multiplier = 0.05"),
    ],
)
def test_what_is_refused_is_refused_in_one_line(command: str, said: str) -> None:
    result = call(command)
    assert result.returncode == 2
    assert result.stdout == ""
    refusal = A_SIGN_OF_LIFE.sub("", result.stderr)
    assert said in refusal
    assert refusal.count("\n") == 1
