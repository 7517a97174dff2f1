"""A package of somebody else's that declares a randomizer is used like one of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpcheckin.accounting import CheckInRound, compose, laplace

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "one_entry"
FEW = ("--population", "500", "--rate", "0.1", "--local-epsilon", "1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed, without a network, beside everything that is there."""
    folder = tmp_path_factory.mktemp("site")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    offline = ("--no-index", "--disable-pip-version-check", "--target", str(folder))
    subprocess.run([*pip, *offline, str(PACKAGE)], check=True, timeout=300)
    return folder


def told(site: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(site: Path, *arguments: str) -> str:
    return told(site, "-c", "from dpcheckin.cli import main; main()", *arguments)


def test_its_name_is_priced_and_compared(site: Path) -> None:
    """Epsilon by its own pair; ours among the published bounds."""
    wanted = compose([(CheckInRound(500, 0.1, laplace(1.0)), 1)]).epsilon(1e-5).upper
    named = (*FEW, "--randomizer", "one-entry:10")
    priced = json.loads(command(site, "epsilon", *named, "--no-lower-bound", "--json"))
    assert priced["epsilon"]["upper"] == wanted
    lines = json.loads(command(site, "compare", *named, "--json"))
    (ours,) = [line for line in lines if line["name"] == "empty-seat theorem"]
    assert ours["epsilon"] == wanted
    assert any(line["source"] != ours["source"] and line["epsilon"] for line in lines)
    planned = ("--population", "500", "--rate", "0.1", "--rounds", "2", "--epsilon", "0.1")
    found = json.loads(command(site, "plan", *planned, "--randomizer", "one-entry:10", "--json"))
    assert found["solved"]["parameter"] == "local-epsilon"


def test_it_trains_and_is_audited(site: Path) -> None:
    """A model is trained with its reports; an audit finds no more than its guarantee allows."""
    pytest.importorskip("torch")
    run = ("--rounds", "2", "--threads", "1", "--randomizer", "one-entry", "--json")
    facts = json.loads(command(site, "train", *run))
    assert facts["randomizer"].startswith("one entry with Laplace noise")
    audit = ("--attack", "report", "--randomizer", "one-entry:3", "--local-epsilon", "4")
    found = json.loads(command(site, "audit", *audit, "--budget", "2000", "--seed", "1", "--json"))
    assert found["verdict"] == "not violated" and found["lower_bound"] > 2.0


def test_the_planner_and_the_help_list_it(site: Path) -> None:
    described = (
        "import json; from dpcheckin.dashboard.form import describe, Form\n"
        "from dpcheckin.dashboard.answers import quick\n"
        "form = Form.read({'randomizer': 'one-entry', 'population': '500', 'rounds': '1'})\n"
        "print(json.dumps([describe(), quick(form)]))"
    )
    tables, answer = json.loads(told(site, "-c", described))
    assert tables["randomizers"]["one-entry"] == {
        "label": "one entry with Laplace noise",
        "noise": "local_epsilon",
        "arguments": ["dimension"],
    }
    assert "one-entry" in tables["protocols"]["shuffled-check-in"]["randomizers"]
    assert answer["epsilon"]["value"] > 0 and "one-entry:1000" in answer["texts"]["shell"]
    assert "one-entry:DIM" in "".join(command(site, "epsilon", "--help").split())
