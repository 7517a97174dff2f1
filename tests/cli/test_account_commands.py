"""The command line's contract: options, JSON keys, exit codes, one line on standard error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from dpcheckin.accounting import CheckInRound, any_pure, compose

RUN = ["--population", "10000", "--rate", "0.01", "--local-epsilon", "2", "--rounds", "100"]


A_SIGN_OF_LIFE = re.compile(r"dpcheckin [a-z ]+: \d+ s")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from dpcheckin.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def answer(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_epsilon() -> None:
    said = answer("epsilon", *RUN, "--delta", "1e-4")
    wanted = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)]).epsilon(1e-4)
    assert said["kind"] == "guarantee"
    assert said["epsilon"] == {"lower": wanted.lower, "upper": wanted.upper}
    assert said["delta"] == 1e-4
    assert 0.068 < said["lower_bound"]["epsilon"] < wanted.upper
    assert said["local"]["report_epsilon"] == 2.0
    assert said["adjacency"] == "replace one client" and said["basis"]


def test_epsilon_in_words() -> None:
    done = run("epsilon", *RUN, "--delta", "1e-4")
    assert done.returncode == 0 and "0.0695" in done.stdout and "colludes" in done.stdout


@pytest.mark.parametrize(
    "extra",
    [
        ["--local-epsilon", "2", "--randomizer", "binary"],
        ["--local-epsilon", "2", "--randomizer", "dary:5"],
        ["--local-epsilon", "2", "--randomizer", "hemisphere"],
        ["--local-epsilon", "2", "--randomizer", "privunit:50"],
        ["--local-epsilon", "2", "--randomizer", "laplace"],
        ["--local-epsilon", "2", "--local-delta", "1e-9"],
        ["--randomizer", "gaussian:3"],
        ["--noise-multiplier", "3"],
        ["--local-epsilon", "2", "--colluding", "0.2", "--dropout", "0.1"],
    ],
    ids=lambda extra: "_".join(extra),
)
def test_every_randomizer(extra: list[str]) -> None:
    said = answer("epsilon", "--population", "500", "--rate", "0.1", "--rounds", "3", *extra)
    assert 0 < said["epsilon"]["upper"] < 6
    assert said["lower_bound"]["epsilon"] <= said["epsilon"]["upper"]


def test_other_protocols() -> None:
    fixed = answer(
        "epsilon", "--population", "500", "--cohort", "50", "--local-epsilon", "1",
        "--protocol", "subsampled-shuffle",
    )  # fmt: skip
    same = answer(
        "epsilon", "--population", "500", "--rate", "0.1", "--local-epsilon", "1",
        "--protocol", "subsampled-shuffle",
    )  # fmt: skip
    assert fixed["epsilon"] == same["epsilon"]
    full = answer(
        "epsilon", "--population", "1000", "--local-epsilon", "1", "--protocol", "shuffle",
        "--delta", "1e-6",
    )  # fmt: skip
    assert full["epsilon"]["upper"] == pytest.approx(0.14867, abs=6e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        ["distributed-check-in", "--rate", "0.1", "--noise-multiplier", "1"],
        ["random-check-in-fixed", "--slots", "50", "--check-in-probability", "1",
         "--local-epsilon", "1"],
        ["random-check-in-sliding", "--slots", "50", "--local-epsilon", "1"],
        ["random-check-in-averaged", "--slots", "50", "--local-epsilon", "1"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_protocols_outside_the_theorem(arguments: list[str]) -> None:
    """The same shape of answer, with what must hold and what is left without trust."""
    said = answer("epsilon", "--population", "500", "--delta", "1e-5", "--protocol", *arguments)
    assert said["kind"] == "guarantee"
    assert said["lower_bound"]["epsilon"] <= said["epsilon"]["upper"] <= said["local"]["epsilon"]
    assert said["assumptions"] and said["basis"] and said["adjacency"] == "replace one client"


def test_averaged_windows_state_their_own_provisos() -> None:
    """Their empty slots are skipped, and their clients must not collude: in JSON and in words."""
    asked = [
        "epsilon", "--protocol", "random-check-in-averaged", "--population", "500",
        "--slots", "50", "--local-epsilon", "1", "--delta", "1e-5",
    ]  # fmt: skip
    said, words = answer(*asked), " ".join(run(*asked).stdout.split())
    stated = " ".join(said["assumptions"])
    assert "clients do not collude" in stated and "clients do not collude" in words
    assert "dumm" not in stated and "dumm" not in words
    assert 0.0 < said["lower_bound"]["epsilon"] < said["epsilon"]["upper"]
    fixed = answer(*asked[:2], "random-check-in-fixed", *asked[3:])
    assert "an empty slot is filled with a randomized dummy" in fixed["assumptions"]


def test_delta() -> None:
    said = answer("delta", "--epsilon", "0.0695", *RUN)
    assert said["delta"]["upper"] == pytest.approx(1e-4, rel=1e-2)
    done = run("delta", "--epsilon", "0.0695", *RUN).stdout
    assert "delta (certified)" in done and "epsilon (certified)" not in done
    # what is left without the shuffler is printed beside it, here as there
    other = answer("epsilon", *RUN, "--delta", str(said["delta"]["upper"]), "--no-lower-bound")
    assert "if the shuffler colludes" in done and said["local"] == other["local"]
    assert said["assumptions"] == other["assumptions"] and "provided that" in done


def test_delta_of_what_costs_nothing_or_everything() -> None:
    """Beyond all that reports can tell delta is 0; at epsilon 0 nearly nothing is promised."""
    few = ("--population", "2", "--rate", "1", "--local-epsilon", "1", "--rounds", "1")
    none = answer("delta", "--epsilon", "1.01", *few)
    assert none["delta"] == {"lower": 0.0, "upper": 0.0} and none["local"] is None
    assert "(1.01, 0)-differentially private" in run("delta", "--epsilon", "1.01", *few).stdout
    every = answer("delta", "--epsilon", "0", "--population", "2", "--rate", "1",
                   "--local-epsilon", "20", "--rounds", "100")  # fmt: skip
    assert 0.99 < every["delta"]["upper"] <= 1.0


def test_plan() -> None:
    said = answer(
        "plan", "--epsilon", "0.5", "--delta", "1e-5", "--population", "5000", "--rate", "0.1",
        "--local-epsilon", "2",
    )  # fmt: skip
    assert said["solved"]["parameter"] == "rounds"
    assert said["epsilon"]["upper"] <= 0.5
    assert said["solved"]["value"] > 10


def test_bounds() -> None:
    done = run("bounds", *RUN, "--delta", "1e-4", "--json")
    assert done.returncode == 0, done.stderr
    kinds = {line["kind"] for line in json.loads(done.stdout)}
    assert {"guarantee", "lower bound", "refuted claim"} <= kinds


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["epsilon", "--population", "0", "--rate", "0.1", "--local-epsilon", "1"], "population"),
        (["epsilon", "--population", "10", "--rate", "2", "--local-epsilon", "1"], "rate"),
        (["epsilon", "--population", "10", "--rate", "nan", "--local-epsilon", "1"], "rate"),
        (["epsilon", "--population", "10", "--rate", "x", "--local-epsilon", "1"], "rate"),
        (["epsilon", "--population", "10", "--local-epsilon", "1"], "rate"),
        (["epsilon", "--rate", "0.1", "--local-epsilon", "1"], "population"),
        (["epsilon", *RUN, "--delta", "0"], "delta"),
        (["epsilon", *RUN, "--delta", "1"], "delta"),
        (["epsilon", *RUN, "--rounds", "-1"], "rounds"),
        (["epsilon", *RUN, "--cohort", "5"], "cohort"),
        (["epsilon", *RUN, "--protocol", "pigeon"], "protocol"),
        (["epsilon", *RUN, "--randomizer", "pigeon"], "randomizer"),
        (["epsilon", *RUN, "--randomizer", "gaussian:2"], "local-epsilon"),
        (["epsilon", *RUN, "--randomizer", "gaussian"], "randomizer"),
        (["epsilon", *RUN, "--randomizer", "dary:x"], "randomizer"),
        (["epsilon", *RUN, "--randomizer", "binary", "--local-delta", "0.1"], "local-delta"),
        (["epsilon", *RUN, "--randomizer", "binary", "--noise-multiplier", "1"], "noise"),
        (["epsilon", "--population", "10", "--rate", "0.1"], "local-epsilon"),
        (["epsilon", *RUN, "--protocol", "shuffle"], "rate"),
        (["epsilon", *RUN[:2], *RUN[4:], "--protocol", "subsampled-shuffle"], "cohort"),
        (["epsilon", *RUN, "--cohort", "5", "--protocol", "subsampled-shuffle"], "rate"),
        (["epsilon", *RUN[:2], "--rate", "0.00015", "--local-epsilon", "1", "--protocol",
          "subsampled-shuffle"], "rate"),
        (["epsilon", *RUN[:2], *RUN[4:], "--protocol", "shuffle", "--dropout", "0.1"], "dropout"),
        (["plan", "--epsilon", "1", *RUN], "rounds"),
        (["plan", "--epsilon", "1", "--rate", "0.1"], "is needed"),
        (["plan", "--epsilon", "1e-9", *RUN[:6]], "rounds"),
        (["delta", "--epsilon", "-1", *RUN], "epsilon"),
        (["nonsense"], "nonsense"),
        (["epsilon", "--nonsense"], "nonsense"),
    ],
    ids=lambda value: " ".join(value)[-60:] if isinstance(value, list) else value,
)  # fmt: skip
def test_bad_input_is_one_line(arguments: list[str], named: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if not A_SIGN_OF_LIFE.match(line)]
    assert len(said) == 1, done.stderr
    assert named in said[0]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom dpcheckin.cli import application\napplication()\n"
        "heavy = {'numpy', 'scipy', 'dp_accounting', 'matplotlib', 'torch'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_accounting_loads_no_other_accountant_and_draws_nothing() -> None:
    code = (
        "import sys\nimport dpcheckin.accounting\n"
        "heavy = {'dp_accounting', 'matplotlib', 'torch', 'scipy.stats'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_and_version() -> None:
    assert "epsilon" in run("--help").stdout
    assert run("--version").stdout.startswith("dpcheckin ")
