"""Certificates of runs: the checker, a program that shares no code with us, proves them all."""

from __future__ import annotations

import importlib.util
import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpcheckin as dp
from dpcheckin.accounting.proof.certificate import as_text, write
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.accounting.statements import Guarantee
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import rounded_up

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("certificates", ROOT / "benchmarks/certificates.py")
assert spec is not None
assert spec.loader is not None
benchmark: Any = importlib.util.module_from_spec(spec)
sys.modules["certificates"] = benchmark  # its dataclass looks itself up there
spec.loader.exec_module(benchmark)
Run = list[tuple[Round, int]]


def checked(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "verify" / "check.py", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def proved(run: Run, delta: float, folder: Path) -> tuple[float, float]:
    """What is printed, and what was claimed and proved."""
    stated = dp.guarantee(run, delta)
    content = stated.certificate()
    path = write(content, folder / "certificate.json")
    assert path.stat().st_size <= 200_000
    said = checked(path)
    assert said.returncode == 0, said.stdout + said.stderr
    printed = float(rounded_up(stated.epsilon.upper).replace(",", ""))
    return printed, float(content["claim"]["epsilon"])


FEW = {
    "any": dp.CheckInRound(2_000, 0.05, dp.any_pure(2.0)),
    "any near 2": dp.CheckInRound(5_000, 0.2, dp.any_pure(0.75)),
    "hemisphere": dp.CheckInRound(2_000, 0.05, dp.hemisphere(1.0)),
    "dary": dp.CheckInRound(2_000, 0.05, dp.dary_response(2.0, 4)),
    "cohort": dp.SubsampleRound(2_000, 100, dp.any_pure(2.0)),
    "shuffle": dp.ShuffleRound(20_000, dp.any_pure(1.0)),
    "rates": dp.CheckInRound(2_000, 0.05, dp.unary_encoding(1.0, 9), 0.1, 0.2, 0.02),
    "delta": dp.CheckInRound(2_000, 0.05, dp.approximate(2.0, 1e-12)),
    "PrivUnit": dp.CheckInRound(2_000, 0.05, dp.privunit(4.0, 100)),
    "subsets": dp.CheckInRound(2_000, 0.05, dp.subset_selection(2.0, 9, 2)),
    "atoms": dp.CheckInRound(2_000, 0.05, dp.from_atoms([3.0, 1.0, 0.5], [0.1, 0.5, 0.4])),
    "Laplace": dp.CheckInRound(2_000, 0.05, dp.laplace(1.0)),
    "colluders in a cohort": dp.SubsampleRound(500, 100, dp.any_pure(2.0), 0.1),
    "types, uneven": dp.CheckInRound(2_000, 0.05, dp.any_pure(2.0), lowest_rate=0.03),
    "binary, shuffled": dp.ShuffleRound(2_000, dp.binary_response(2.0)),
}


@pytest.mark.slow
def test_gaussian_reports_are_proved_with_the_types_that_are_quoted(tmp_path: Path) -> None:
    run: Run = [(dp.CheckInRound(60_000, 1 / 30, dp.gaussian(2.0)), 1_000)]
    printed, claimed = proved(run, 1e-5, tmp_path)
    assert printed <= claimed <= 1.002 * printed


TIGHTER = ("colluders in a cohort",)  # by a lemma that the engine does not use
SOON = ("any", "rates", "Laplace", "colluders in a cohort", "binary, shuffled")  # the others take as long


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[] if kind in SOON else pytest.mark.slow) for kind in FEW])
def test_a_certificate_claims_what_is_printed_and_is_proved(kind: str, tmp_path: Path) -> None:
    printed, claimed = proved([(FEW[kind], 60)], 1e-5, tmp_path)
    assert claimed <= 1.002 * printed
    assert (claimed < 0.998 * printed) == (kind in TIGHTER)


DRAWN = list(benchmark.drawn(30, 0, False))
RARE = (22,)  # fourteen cohorts of five of 2,900 clients


@pytest.mark.parametrize("index", range(len(DRAWN)))
def test_a_run_at_random_is_proved(index: int) -> None:
    """The engine against a program that shares no code with it."""
    row = benchmark.certified(*DRAWN[index])
    assert row is not None
    if index in RARE:
        assert row.verdict == "not covered: reports this rare leave no smooth sum"
        return
    assert row.verdict == "proved"
    assert row.ratio <= 1.001


@pytest.mark.slow
def test_rounds_of_several_kinds_are_proved_together(tmp_path: Path) -> None:
    run: Run = [(FEW["any"], 40), (FEW["subsets"], 20)]
    printed, claimed = proved(run, 1e-5, tmp_path)
    assert printed <= claimed <= 1.002 * printed


def test_one_round_needs_two_points_only(tmp_path: Path) -> None:
    printed, claimed = proved([(FEW["any"], 1)], 1e-4, tmp_path)
    assert claimed == printed
    (kind,) = json.loads((tmp_path / "certificate.json").read_text())["rounds"]
    assert len(kind["points"]) == 2


@pytest.mark.slow
def test_a_billion_clients_cost_no_more(tmp_path: Path) -> None:
    run: Run = [(dp.CheckInRound(10**9, 0.001, dp.any_pure(2.0)), 10_000)]
    printed, claimed = proved(run, 1e-9, tmp_path)
    assert claimed == printed


def test_half_a_billion_reports_that_are_marked_are_charged_in_full(tmp_path: Path) -> None:
    """(1 - beta)^n with a small beta: the logarithm of a rate next to one has lost half of its digits."""
    from mpmath import mp, mpf

    from dpcheckin.accounting.proof.ways import _everybody

    with mp.workdps(40):
        assert _everybody(485_716_977, 1 - 5.138e-8) >= (1 - mpf("5.138e-8")) ** 485_716_977
    run: Run = [(dp.ShuffleRound(485_716_977, dp.hemisphere(3.84)), 4_556)]
    printed, claimed = proved(run, 6.6e-5, tmp_path)
    assert claimed <= printed


def test_a_claim_that_is_lowered_is_refused(tmp_path: Path) -> None:
    from dpcheckin.accounting.proof.certificate import _signed

    content = dp.guarantee([(FEW["any"], 3)], 1e-4).certificate()
    del content["sha256"]
    content["claim"]["epsilon"] = str(Fraction(content["claim"]["epsilon"]) * 995 / 1000)
    assert checked(write(_signed(content), tmp_path / "forged.json")).returncode == 1


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ([(dp.CheckInRound(2_000, 0.05, dp.any_pure(1.0)), 0)], "nobody reports"),
        ([(dp.WindowRound(100, dp.any_pure(0.5)), 1)], "WindowRound"),
        ([(dp.SampledGaussianRound(0.01, 2.0), 10)], "replace one client"),
    ],
)
def test_what_is_not_covered_says_so_in_one_line(run: Run, why: str) -> None:
    stated = dp.guarantee(run, 1e-5)
    with pytest.raises(OutsideTheorem, match=why) as problem:
        stated.certificate()
    assert "\n" not in str(problem.value)


def test_the_run_is_no_part_of_the_statement() -> None:
    stated = dp.guarantee([(FEW["atoms"], 3)], 1e-4)
    read = Guarantee.from_json(json.dumps(stated.to_json()))
    assert read == stated
    assert hash(read) == hash(stated)
    assert repr(read) == repr(stated)
    with pytest.raises(OutsideTheorem, match="does not know its run"):
        read.certificate()
    sent = pickle.loads(pickle.dumps(stated))  # its pair holds functions, which do not travel
    assert sent == stated
    with pytest.raises(OutsideTheorem, match="left behind"):
        sent.certificate()


def test_the_file_is_ascii_and_the_same_every_time() -> None:
    one, two = (as_text(dp.guarantee([(FEW["any"], 3)], 1e-4).certificate()) for _ in range(2))
    assert one == two
    assert one.isascii()


def test_the_certificate_of_readme_is_the_one_that_the_command_writes(tmp_path: Path) -> None:
    from cli_in_process import run_cli

    path = tmp_path / "certificate.json"
    run_cli(
        *("epsilon", "--population", "60000", "--rate", "1/30", "--local-epsilon", "2"),
        *("--rounds", "6000", "--delta", "1e-5", "--no-lower-bound", "--certificate", str(path)),
    )
    kept = json.loads((ROOT / "docs" / "results" / "certificate-readme.json").read_text())
    made = json.loads(path.read_text())
    assert made["claim"] == kept["claim"] == {"epsilon": "0.6089", "delta": "1e-05"}
    assert made["assumed"] == kept["assumed"]
