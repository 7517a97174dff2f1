"""Making one entry of the table: cells are cut until the claim is proved for each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussian_types.claim import Claim, Examination
from gaussian_types.gram import WHOLE, halves
from gaussian_types.rounding import Array

FINEST = 18  # how often a cell may be halved before the claim is given up
_FIRST = 6  # cells coarser than this never pass
_BATCH = 64

# Smoothing scales found to leave room, by diameter; between them their logarithm is interpolated,
# which lies above the smallest possible scale because that one is convex on this picture.
_SCALES = {
    0.05: 0.09,
    0.125: 0.225,
    0.25: 0.45,
    0.5: 1.0,
    0.75: 1.75,
    1.0: 2.8,
    1.25: 5.0,
    1.5: 9.5,
    1.75: 20.0,
    2.0: 54.0,
}
# The same for claims whose types are hardly wider than the reports: more noise leaves them room.
_CLOSE_SCALES = {1.0: 4.2, 1.25: 8.0, 1.5: 15.0, 1.75: 30.0, 2.0: 72.0}


def close_proposal(diameter: float) -> Claim:
    """The claim with types 0.7% wider than the reports, for diameters from 1.09 to 2.

    It holds for α up to 1.17 only: where three thousand check in, all that many small reports lose together lies there.
    Further out α asks for wider types.
    """
    smoothing = _interpolated(_CLOSE_SCALES, diameter)
    return Claim(diameter, diameter * 1.007, smoothing, 1e-12, (0.0, 80 / 1024), 0.14, 0.25)


def proposal(diameter: float) -> Claim:
    """The claim worth trying for a diameter (noise standard deviations, at most 2).

    The tilts shrink with the diameter: with little to tell apart per report, curves are read at an α that is close to
    1, and the slack of the claim is proportional to the diameter squared.
    """
    smoothing = _interpolated(_SCALES, diameter)
    if diameter <= 1.0:
        unit = np.floor(64 * diameter) / 1024
        count, extra, slicing = (6 if diameter < 0.75 else 5), 0.0075, 0.2
    else:
        unit = 80 / 1024
        count, extra, slicing = (4 if diameter < 1.4 else 5 if diameter < 1.7 else 6), 0.01, 0.25
    tilts = tuple(float(unit * k) for k in range(count))
    return Claim(diameter, diameter * (1 + extra), smoothing, 1e-12, tilts, slicing=slicing)


def _interpolated(scales: dict[float, float], diameter: float) -> float:
    logs = np.interp(diameter, list(scales), np.log(list(scales.values())))
    return float(np.round(np.exp(logs), 4))


@dataclass(frozen=True)
class Proof:
    """A claim and the tree of cells for each of which it holds."""

    claim: Claim
    tree: str


def prove(claim: Claim, start: str | None = None) -> Proof | None:
    """Search for a cover by cells; None if some cell resists after `FINEST` cuts.

    Args:
        claim: what is to be proved.
        start: the tree of a neighbouring claim, to begin with its cells.
    """
    examination = Examination(claim)
    waiting = _paths(start) if start else [""]
    while min(map(len, waiting)) < _FIRST:
        waiting = [one + turn for one in waiting for turn in (("0", "1") if len(one) < _FIRST else ("",))]
    proved: set[str] = set()
    while waiting:
        batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
        if max(map(len, batch)) > FINEST:
            return None
        holds = examination.holds(np.stack([_cell(one) for one in batch]))
        proved.update(one for one, good in zip(batch, holds, strict=True) if good)
        # Fine cells first: a claim that cannot be proved shows it early.
        cut = [one for one, good in zip(batch, holds, strict=True) if not good]
        waiting = [one + turn for one in cut for turn in "01"] + waiting
    return Proof(claim, _tree(proved))


def _paths(tree: str) -> list[str]:
    """The leaves of a tree as paths of left and right turns, in depth-first order."""
    found, waiting = [], [""]
    for mark in tree:
        path = waiting.pop()
        if mark == "1":
            waiting += [path + "1", path + "0"]
        else:
            found.append(path)
    return found


def _cell(path: str) -> Array:
    cell = WHOLE
    for turn in path:
        cell = halves(cell[None])[int(turn)]
    return cell


def _tree(paths: set[str]) -> str:
    marks, waiting = [], [""]
    while waiting:
        path = waiting.pop()
        if path in paths:
            marks.append("0")
        else:
            marks.append("1")
            waiting += [path + "1", path + "0"]
    return "".join(marks)
