"""`dpcheckin audit`: exit codes, JSON, report, picture, resuming."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.audit.plans import AUDITED
from dpcheckin.audit.requests import Request
from dpcheckin.protocols.questions import PROTOCOLS

PROGRAM = "from dpcheckin.cli import main; main()"
SMALL = [
    "--population", "20", "--rate", "0.2", "--local-epsilon", "3", "--rounds", "1",
    "--delta", "0.01", "--workers", "1",
]  # fmt: skip


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, "audit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_a_claim_that_stands_ends_with_0_and_leaves_report_and_picture(tmp_path: Path) -> None:
    out = tmp_path / "audited"
    done = call(*SMALL, "--budget", "1500", "--seed", "1", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert 0.0 < said["lower_bound"] <= said["claimed_epsilon"]
    assert said["confidence"] == 0.99
    assert said["refuted"] is False
    assert json.loads((out / "audit.json").read_text()) == said
    assert (out / "audit.png").read_bytes().startswith(b"\x89PNG")
    over = call(*SMALL, "--budget", "700", "--out", out)
    assert over.returncode == 2 and "a folder without an audit" in over.stderr
    assert json.loads((out / "audit.json").read_text()) == said
    more = call(*SMALL, "--budget", "700", "--out", out, "--resume", "--json")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["pairs"] == said["pairs"] + 700


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name in AUDITED for alias in PROTOCOLS[name].aliases])
def test_a_protocol_may_be_typed_by_its_alias(name: str, alias: str) -> None:
    """With the defaults of the protocol that is meant: a window is one run."""
    about: dict[str, Any] = {"population": 10}
    if "slots" in PROTOCOLS[name].fields:
        about |= {"slots": 10, "randomizer": "laplace"}  # dummies are vectors
    assert Request(protocol=alias, **about).check() == Request(protocol=name, **about).check()


def here(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The command in this process: exit code and what it printed."""
    from dpcheckin.cli import main

    argv, sys.argv = sys.argv, ["dpcheckin", "audit", *arguments]
    try:
        with pytest.raises(SystemExit) as stopped:
            main()
    finally:
        sys.argv = argv
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, capsys.readouterr().out


def test_an_audit_that_saw_too_little_ends_with_3_and_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = here(capsys, *SMALL, "--budget", "40", "--seed", "1", "--json")
    said = json.loads(printed)
    assert (code, said["verdict"]) == (3, "inconclusive")
    assert said["lower_bound"] < said["wanted_lower_bound"]
    needed = said["pairs_needed"]
    assert needed >= 80
    # an estimate from forty pairs
    code, printed = here(capsys, *SMALL, "--budget", str(4 * needed), "--seed", "1", "--json")
    said = json.loads(printed)
    assert (code, said["verdict"]) == (0, "not violated")
    assert said["lower_bound"] >= said["wanted_lower_bound"]
    assert said["played"] == "the plan's own cohorts, in the shuffler's own order"


def test_fast_coins_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = here(capsys, *SMALL, "--budget", "3000", "--seed", "1", "--fast-coins")
    assert code == 0
    assert "played: fast coins" in printed


def test_a_claim_that_is_violated_ends_with_1() -> None:
    done = call(
        "--claim", "p4-shuffle-gaussian", "--population", "40", "--budget", "3000",
        "--workers", "1", "--seed", "1",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "VIOLATED" in done.stdout
    assert "with 99% confidence" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--budget", "soon"], "budget"),
        (["--confidence", "2"], "confidence"),
        (["--delta", "0"], "delta"),
        (["--rate", "1.5"], "rate"),
        (["--randomizer", "magic"], "randomizer"),
        (["--protocol", "magic"], "protocol"),
        (["--attack", "magic"], "attack"),
        (["--claim", "magic"], "claim"),
        (["--resume"], "resume"),
        (["--tightness"], "out"),
        (["--mutants", "--repetitions", "0"], "repetitions"),
        (["--attack", "report", "--rounds", "3"], "rounds"),
        (["--arrival", "last"], "arrival"),
        (["--attack", "service", "--arrival", "soon"], "arrival"),
        (["--attack", "service", "--fast-coins"], "fast-coins"),
        (["--fast-coins", "--protocol", "subsampled-shuffle"], "fast-coins"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpcheckin.cli import main

    argv, sys.argv = sys.argv, ["dpcheckin", "audit", *arguments]
    try:
        with pytest.raises(SystemExit) as stopped:
            main()
    finally:
        sys.argv = argv
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert named in said.err
    assert said.out == ""


def test_claims_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from dpcheckin.cli.audit import audit

    audit(claim="list")
    assert "p1-table2-approach2" in capsys.readouterr().out.split()
