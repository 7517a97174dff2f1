"""Statements: what they say, what they are worth, and what may be charged."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpcheckin.accounting
from dpcheckin.accounting import (
    Bracket,
    CheckInRound,
    Guarantee,
    Kind,
    LocalRound,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    compose,
    guarantee,
    lower_bound,
)
from dpcheckin.errors import InvalidParameter, NotAGuarantee, NumericalFailure, Unreachable


def test_statement() -> None:
    said = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], 1e-4)
    assert said.kind is Kind.GUARANTEE
    assert "(0.0695, 0.0001)-differentially private" in str(said)
    assert "If the shuffler colludes" in str(said) and "2 for a single report" in str(said)
    assert said.local is not None and 2 < said.local.epsilon < 100
    assert said.charge() == said.epsilon.upper
    assert Guarantee.from_json(json.dumps(said.to_json())) == said
    with pytest.raises(InvalidParameter, match="to_json"):
        Guarantee.from_json("{}")
    full = guarantee([(ShuffleRound(100, any_pure(1.0)), 1)], 1e-6)
    assert any("blanket" in reason for reason in full.basis)


def test_a_cohort_drawn_by_a_traitor_is_no_protection() -> None:
    """One's own coin stays random when the shuffler colludes; its draw of the cohort does not."""
    delta, pair = 1e-5, any_pure(1.0)
    always = compose([(LocalRound(pair, 1.0), 20)]).epsilon(delta).upper
    sometimes = compose([(LocalRound(pair, 0.05), 20)]).epsilon(delta).upper
    drawn = guarantee([(SubsampleRound(1000, 50, pair), 20)], delta)
    own = guarantee([(CheckInRound(1000, 0.05, pair), 20)], delta)
    assert drawn.local is not None and drawn.local.epsilon == always
    assert own.local is not None and own.local.epsilon == sometimes < always
    # towards an analyzer alone the draw is as good as the coins
    assert drawn.epsilon.upper < sometimes


def test_only_a_guarantee_is_charged() -> None:
    least = lower_bound([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], 1e-4)
    assert least.kind is Kind.LOWER_BOUND
    with pytest.raises(NotAGuarantee, match="cannot be charged"):
        least.charge()  # type: ignore[attr-defined]
    assert "can promise less" in str(least)
    assert least.epsilon.upper == math.inf
    stated = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], 1e-4).to_json()
    for other in (least.to_json(), stated | {"kind": Kind.REFUTED.value}):
        with pytest.raises(NotAGuarantee, match="not a guarantee"):
            Guarantee.from_json(other)


def test_a_delta_below_the_lost_mass_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        guarantee([(CheckInRound(1000, 0.1, approximate(1.0, 1e-3)), 10)], 1e-6)


def test_a_statement_without_any_report() -> None:
    said = guarantee([(CheckInRound(1000, 0.0, any_pure(1.0)), 10)], 1e-6)
    assert said.epsilon.upper == 0.0 and said.local is not None and said.local.epsilon == 0.0
    heavy = guarantee([(CheckInRound(1000, 0.1, approximate(1.0, 1e-9)), 10)], 1e-6)
    assert heavy.local is not None and math.isfinite(heavy.local.epsilon)
    gone = guarantee([(CheckInRound(1000, 1e-6, approximate(1.0, 1e-3)), 10)], 1e-6)
    assert "nothing is left" not in str(gone) or math.isinf(gone.local.epsilon)  # type: ignore[union-attr]


def test_brackets_refuse_nonsense() -> None:
    with pytest.raises(NumericalFailure, match="crossed"):
        Bracket(1.0, 0.5)
    with pytest.raises(NumericalFailure, match="NaN"):
        Bracket(math.nan, 0.5)
    assert Bracket(0.0, math.inf).relative_width == 1.0
    assert Bracket(0.0, 0.0).relative_width == 0.0


CHARGES = """
from dpcheckin.accounting.composition.guarantees import guarantee
from dpcheckin.accounting.composition.lower_bounds import lower_bound
guarantee([], 1e-4).charge()
lower_bound([], 1e-4).charge()
"""


def test_charging_a_lower_bound_is_an_error_of_types(tmp_path: Path) -> None:
    """The type checker sees no such method; charging a guarantee is fine."""
    (tmp_path / "snippet.py").write_text(CHARGES, encoding="utf-8")
    package = Path(dpcheckin.accounting.__file__).parents[1]
    # these modules only: the rest of the package has nothing to do with it, and takes time
    modules = [
        str(package / "accounting" / f"{name}.py")
        for name in ("composition/account", "composition/gate", "composition/lower_bounds", "statements")
    ]
    options = ["--follow-imports=skip", "--explicit-package-bases", "--no-color-output"]
    options += ["--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *modules, "snippet.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    about = [line for line in done.stdout.splitlines() if line.startswith("snippet.py")]
    assert len(about) == 1, done.stdout + done.stderr
    assert about[0].startswith("snippet.py:5: error: ")
    assert '"LowerBound" has no attribute "charge"' in about[0]
