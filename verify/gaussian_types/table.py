"""The table with its proofs: claims about Gaussian reports that this program has proved.

One line of JSON per diameter, with the tree of cells, so that every line can be proved again without a search. The
package reads the claims alone (`dpcheckin.accounting.pairs.gaussian`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np

from dpcheckin.accounting.pairs.gaussian import TABLE
from dpcheckin.errors import InvalidParameter
from gaussian_types.claim import Claim, Examination
from gaussian_types.gram import leaves
from gaussian_types.search import Proof

_BATCH = 64


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
    text = files("dpcheckin.accounting.pairs").joinpath(TABLE).read_text(encoding="utf-8")
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


def _unpacked(digits: str, marks: int) -> str:
    text = f"{int(digits, 16):b}"
    if len(text) != marks + 1:
        raise InvalidParameter("tree", digits, f"the hexadecimal digits of {marks} marks")
    return text[1:]
