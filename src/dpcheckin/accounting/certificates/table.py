"""The shipped table: claims about Gaussian reports that the program in this package has proved.

One line of JSON per diameter, with the tree of cells, so that every line can be proved again
without a search. Reading the table proves nothing anew; `python -m
dpcheckin.accounting.certificates verify` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpcheckin.accounting.certificates.claim import Claim, Examination
from dpcheckin.accounting.certificates.gram import leaves
from dpcheckin.accounting.certificates.search import Proof
from dpcheckin.errors import InvalidParameter

SHIPPED = "table.jsonl"
_BATCH = 64
_WIDER = 1.02  # how much wider than the first further types may be
_REACH_DOWN = 1.05  # below the smallest diameter rounding up would cost more than types gain


class CertifiedTypes(NamedTuple):
    """Types A' = 1 - αW and B' = W - α that stand in for every report of a ball.

    Attributes:
        scale: s', the spread of the log-normal W, to be used for A', B' and Z* alike.
        smoothing: τ₀; the Laplace noise in the sum has the scale τ₀(1 + α)/2.
        violation: κ; a check-in round at rate γ pays γκ(1 + α)/2 in δ, a fixed cohort of k out of
            n clients pays (k/n)κ(1 + α)/2.
        largest_alpha: the claim holds for α in [1, largest_alpha].
        diameter: the diameter that was certified, at least the one asked for.
    """

    scale: float
    smoothing: float
    violation: float
    largest_alpha: float
    diameter: float


def certified_scale(diameter: float) -> CertifiedTypes | None:
    """The certified types nearest to Gaussian reports, or None where nothing is certified.

    Args:
        diameter: the largest distance of two inputs in noise standard deviations, positive.
    """
    return next(iter(certified_scales(diameter)), None)


@cache
def certified_scales(diameter: float) -> tuple[CertifiedTypes, ...]:
    """All certified types worth using: each is wider than the one before and reaches a larger α.

    Inputs nearer together are harder to tell apart, so a certified diameter that is not below the
    one asked for serves it.

    Args:
        diameter: the largest distance of two inputs in noise standard deviations, positive.
    """
    if not (np.isfinite(diameter) and diameter > 0):
        raise InvalidParameter("diameter", diameter, "a positive, finite number")
    entries = _shipped()
    if diameter < min(one.diameter for one in entries) / _REACH_DOWN:
        return ()
    found: list[CertifiedTypes] = []
    for one in entries:
        if one.diameter < diameter or (found and one.scale > _WIDER * found[0].scale):
            continue
        if not found or one.largest_alpha > found[-1].largest_alpha:
            found.append(
                CertifiedTypes(
                    one.scale, one.smoothing, one.violation, one.largest_alpha, one.diameter
                )
            )
    return tuple(found)


def read(lines: Iterable[str]) -> Iterator[Proof]:
    """The proofs written in lines of JSON."""
    for line in lines:
        if line.strip():
            entry = json.loads(line)
            tree = _unpacked(entry.pop("tree"), entry.pop("marks"))
            entry["tilts"] = tuple(entry["tilts"])
            yield Proof(Claim(**entry), tree)


def written(proof: Proof) -> str:
    """One line of JSON for a proof; floats keep all their digits."""
    claim = proof.claim
    entry: dict[str, object] = {
        "diameter": claim.diameter,
        "scale": claim.scale,
        "smoothing": claim.smoothing,
        "violation": claim.violation,
        "tilts": list(claim.tilts),
        "step": claim.step,
        "slicing": claim.slicing,
        "point_parts": claim.point_parts,
        "tilt_parts": claim.tilt_parts,
        "marks": len(proof.tree),
        "tree": f"{int('1' + proof.tree, 2):x}",
    }
    return json.dumps(entry)


def shipped_lines() -> list[str]:
    """The lines of the shipped table."""
    text = files(__package__).joinpath(SHIPPED).read_text(encoding="utf-8")
    return text.splitlines()


def verified(proof: Proof, share: float = 1.0, seed: int = 0) -> tuple[int, int]:
    """Prove an entry again: (cells examined, cells that do not hold).

    Args:
        proof: the claim and its tree of cells.
        share: examine this part of the cells, chosen at random; 1 examines all of them.
        seed: of that choice.
    """
    cells = leaves(proof.tree)
    if share < 1:
        count = max(1, round(share * len(cells)))
        cells = cells[np.random.default_rng(seed).choice(len(cells), count, replace=False)]
    examination = Examination(proof.claim)
    bad = 0
    for i in range(0, len(cells), _BATCH):
        bad += int(np.sum(~examination.holds(cells[i : i + _BATCH])))
    return len(cells), bad


def stored(path: Path) -> list[Proof]:
    """The proofs in a file, by diameter; none if there is no such file."""
    if not path.exists():
        return []
    found = read(path.read_text(encoding="utf-8").splitlines())
    return sorted(found, key=lambda proof: proof.claim.diameter)


@cache
def _shipped() -> list[Claim]:
    claims = [proof.claim for proof in read(shipped_lines())]
    return sorted(claims, key=lambda claim: claim.scale)


def _unpacked(digits: str, marks: int) -> str:
    text = f"{int(digits, 16):b}"
    if len(text) != marks + 1:
        raise InvalidParameter("tree", digits, f"the hexadecimal digits of {marks} marks")
    return text[1:]
