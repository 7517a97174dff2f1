"""The shipped table: read, asked, proved again in part, and refused when damaged."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gaussian_types
from dpcheckin.accounting.pairs.gaussian import certified_scale, certified_scales
from dpcheckin.errors import InvalidParameter
from gaussian_types.__main__ import _proposals
from gaussian_types.gram import leaves
from gaussian_types.search import close_proposal, proposal
from gaussian_types.table import read, shipped_lines, verified, written

PROGRAM = Path(gaussian_types.__file__).parent
PROOFS = sorted(read(shipped_lines()), key=lambda proof: proof.claim.diameter)


def test_a_random_part_of_the_table_is_proved_again() -> None:
    """Other entries and other cells in every run; the seed is printed if one fails."""
    seed = int.from_bytes(os.urandom(4))
    rng = np.random.default_rng(seed)
    for i in rng.choice(len(PROOFS), 6, replace=False):
        proof = PROOFS[i]
        examined, failing = verified(proof, 30 / len(leaves(proof.tree)), seed)
        assert examined >= 29
        assert failing == 0, f"s = {proof.claim.diameter}, seed {seed}"


@pytest.mark.slow
def test_three_whole_entries_are_proved_again() -> None:
    """All cells of the first, the middle and the last entry up to s = 1."""
    small = [one for one in PROOFS if one.claim.diameter <= 1]
    for proof in (small[0], small[len(small) // 2], small[-1]):
        examined, failing = verified(proof)
        assert failing == 0 and examined == len(leaves(proof.tree))


def test_the_table_covers_what_the_documentation_says() -> None:
    """Diameters from 1/4 to 2, neighbours 1.1% apart from 1/2 on, types at most 1% wider."""
    wide = [one.claim for one in PROOFS if len(one.claim.tilts) > 2]
    diameters = np.array([claim.diameter for claim in wide])
    assert diameters[0] <= 0.25 and diameters[-1] == 2.0
    ratios = diameters[1:] / diameters[:-1]
    assert np.all(ratios < 1.022)
    assert np.all(ratios[diameters[1:] > 0.5] < 1.011)
    for claim in wide:
        assert claim.diameter < claim.scale <= 1.0101 * claim.diameter
        assert claim.violation <= 1e-12
        assert claim.largest_alpha > 1 + 0.55 * min(claim.diameter, 1.0)


def test_close_types_are_what_the_documentation_says() -> None:
    """113 entries from 1.09 to 2, 0.54% apart, types 0.7% wider, for α up to 1.17."""
    close = [one.claim for one in PROOFS if len(one.claim.tilts) == 2]
    diameters = np.array([claim.diameter for claim in close])
    assert len(close) == 113 and diameters[0] < 1.091 and diameters[-1] == 2.0
    assert np.all(diameters[1:] / diameters[:-1] < 1.00544)
    for claim in close:
        assert claim.diameter < claim.scale <= 1.00701 * claim.diameter
        assert claim.violation <= 1e-12 and claim.largest_alpha > 1.169


def test_every_entry_is_one_that_the_program_proposes() -> None:
    """So that `make` makes this table again."""
    for claim in (proof.claim for proof in PROOFS):
        assert claim in (proposal(claim.diameter), close_proposal(claim.diameter))
    claims = [proof.claim for proof in PROOFS]
    proposed = [one for one in _proposals(1) if one.diameter >= 0.41]
    assert all(one in claims for one in proposed if len(one.tilts) == 2 or one.diameter >= 0.5)


def test_a_question_is_answered_by_the_next_larger_diameter() -> None:
    """And by nothing above the table or far below it."""
    for diameter in (0.5, 0.777, 1.0, 1.99, 2.0):
        found = certified_scale(diameter)
        assert found is not None
        assert diameter <= found.diameter < 1.011 * diameter
        assert found.scale > found.diameter
    exact = certified_scale(1.0)
    assert exact is not None and exact.diameter == 1.0 and exact.smoothing == 2.8
    assert certified_scale(2.0001) is None
    assert certified_scale(PROOFS[0].claim.diameter / 1.2) is None


def test_further_types_are_wider_and_reach_further() -> None:
    """Each serves the diameter, and none could be left out."""
    for diameter in (0.3, 0.9, 1.7, 1.99):
        found = certified_scales(diameter)
        assert found[0] == certified_scale(diameter)
        assert all(one.diameter >= diameter for one in found)
        for one, two in itertools.pairwise(found):
            assert one.scale < two.scale and one.largest_alpha < two.largest_alpha
    assert certified_scales(1.98)[0].scale < 1.0125 * 1.98
    assert certified_scales(1.98)[-1].largest_alpha > 2.2


@pytest.mark.parametrize("diameter", [0.0, -1.0, float("nan"), float("inf")])
def test_a_diameter_out_of_range_is_refused(diameter: float) -> None:
    """With the name and the value."""
    with pytest.raises(InvalidParameter, match="diameter"):
        certified_scale(diameter)


def test_lines_survive_writing_and_damage_is_seen() -> None:
    """Every digit of a claim and every mark of its tree."""
    for line, proof in zip(shipped_lines(), read(shipped_lines()), strict=True):
        assert json.loads(written(proof)) == json.loads(line)
    entry = json.loads(shipped_lines()[0])
    entry["marks"] += 1
    with pytest.raises(InvalidParameter):
        list(read([json.dumps(entry)]))


def test_the_command_verifies_and_reports() -> None:
    """A few cells of one entry; exit code 0, and 1 when nothing is selected."""
    command = [sys.executable, "-m", "gaussian_types", "verify"]
    chosen = ["--smallest", "0.5", "--largest", "0.5", "--share", "0.02"]
    done = subprocess.run([*command, *chosen], cwd=PROGRAM.parent, capture_output=True, text=True, check=True)
    assert "holds" in done.stdout and "1 entries, 0 failing cells" in done.stdout
    none = subprocess.run([*command, "--smallest", "50"], cwd=PROGRAM.parent, capture_output=True, text=True)
    assert none.returncode == 1
