"""A package of somebody else's that declares a randomizer is used like one of ours."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import dpcheckin
from dpcheckin.accounting import CheckInRound, compose, laplace

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "one_entry"
FEW = ("--population", "500", "--rate", "0.1", "--local-epsilon", "1")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment: what is there already, and the package, installed without a network."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    there = [str(Path(dpcheckin.__file__).parents[1]), *(path for path in sys.path if path.endswith("-packages"))]
    (site / "there.pth").write_text("\n".join(there) + "\n", encoding="utf-8")
    own = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(own), "install", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "--no-index", "--disable-pip-version-check", str(PACKAGE)], check=True, timeout=300)
    return own


def told(python: Path, *arguments: str) -> str:
    done = subprocess.run(
        [python, *arguments],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(python: Path, *arguments: str) -> str:
    return told(python, "-c", "from dpcheckin.cli import main; main()", *arguments)


def test_its_name_is_priced_and_compared(python: Path) -> None:
    """Epsilon by its own pair; ours among the published bounds."""
    wanted = compose([(CheckInRound(500, 0.1, laplace(1.0)), 1)]).epsilon(1e-5).upper
    named = (*FEW, "--randomizer", "one-entry:10")
    priced = json.loads(command(python, "epsilon", *named, "--no-lower-bound", "--json"))
    assert priced["epsilon"]["upper"] == wanted
    lines = json.loads(command(python, "compare", *named, "--json"))
    (ours,) = [line for line in lines if line["name"] == "empty-seat theorem"]
    assert ours["epsilon"] == wanted
    assert any(line["source"] != ours["source"] and line["epsilon"] for line in lines)
    planned = ("--population", "500", "--rate", "0.1", "--rounds", "2", "--epsilon", "0.1")
    found = json.loads(command(python, "plan", *planned, "--randomizer", "one-entry:10", "--json"))
    assert found["solved"]["parameter"] == "local-epsilon"


def test_it_trains_and_is_audited(python: Path) -> None:
    """A model is trained with its reports; an audit finds no more than its guarantee allows."""
    pytest.importorskip("torch")
    run = ("--rounds", "2", "--threads", "1", "--randomizer", "one-entry", "--json")
    facts = json.loads(command(python, "train", *run))
    assert facts["randomizer"].startswith("one entry with Laplace noise")
    audit = ("--attack", "report", "--randomizer", "one-entry:3", "--local-epsilon", "4")
    found = json.loads(command(python, "audit", *audit, "--budget", "2000", "--seed", "1", "--json"))
    assert found["verdict"] == "not violated" and found["lower_bound"] > 2.0


def test_the_planner_and_the_help_list_it(python: Path) -> None:
    described = (
        "import json; from dpcheckin.dashboard.form import describe, Form\n"
        "from dpcheckin.dashboard.answers import quick\n"
        "form = Form.read({'randomizer': 'one-entry', 'population': '500', 'rounds': '1'})\n"
        "print(json.dumps([describe(), quick(form)]))"
    )
    tables, answer = json.loads(told(python, "-c", described))
    assert tables["randomizers"]["one-entry"] == {
        "label": "one entry with Laplace noise",
        "noise": "local_epsilon",
        "arguments": ["dimension"],
    }
    assert "one-entry" in tables["protocols"]["shuffled-check-in"]["randomizers"]
    assert answer["epsilon"]["value"] > 0 and "one-entry:1000" in answer["texts"]["shell"]
    assert "one-entry:DIM" in "".join(command(python, "epsilon", "--help").split())
