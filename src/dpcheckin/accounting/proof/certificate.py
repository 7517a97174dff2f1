"""A run and its guarantee in, a certificate out: plain data that `verify/check.py` proves again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.accounting.proof.composition import Law, Rounds, hull, place
from dpcheckin.accounting.proof.points import Points
from dpcheckin.accounting.proof.stated import in_words, number, round_entry
from dpcheckin.accounting.proof.trapezoid import above
from dpcheckin.accounting.proof.ways import Kind
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.accounting.statements import Adjacency, Guarantee
from dpcheckin.errors import NumericalFailure, OutsideTheorem
from dpcheckin.numerals import rounded_up

FORMAT = "dpcheckin-certificate/1"
NAME = "certificate.json"  # of the file beside a report
LARGEST = 204_800  # bytes
MUCH_LESS = 0.998  # of what is printed: the claim is what is proved
MOST_ABOVE = 1.002  # of what is printed: a weaker claim is no certificate of it
_CUT = 1e-5  # of delta, for losses that are cut off
_PASSES, _FEW_POINTS = 14, 4.0  # the second: how much more chords may cost at first
SENTENCES = {"types", "types-any", "types-hemisphere", "types-gaussian", "types-laplace"}


@np.errstate(over="ignore", invalid="ignore")  # a bound that is no number is never chosen
def certificate(run: Sequence[tuple[Round, int]], epsilon: float, delta: float) -> dict[str, Any]:
    """The certificate of a run of rounds and how often each takes place, at a `delta`.

    It claims `epsilon`, rounded up as it is printed, where that can be proved, at most 0.2% more otherwise, and less
    where much less can be proved. Raises OutsideTheorem if the run is not covered.
    """
    kept = [(one, count) for one, count in run if count and one.participation > 0.0]
    if not kept:
        raise OutsideTheorem("no certificate: nobody reports, or the run was left behind")
    if any(one.adjacency is not Adjacency.REPLACE_ONE for one, _ in kept):
        raise OutsideTheorem("a certificate covers the adjacency 'replace one client' only")
    entries = [round_entry(one, count, delta) for one, count in kept]
    printed = rounded_up(epsilon).replace(",", "")
    if sum(count for _, count in kept) == 1:
        claim, proof = _single(Points(Kind(entries[0], _CUT * delta), 1), printed, delta)
    else:
        least = [_CUT * delta / (entry["count"] * len(entries)) for entry in entries]
        kinds = [Points(Kind(entry, cut), entry["count"]) for entry, cut in zip(entries, least, strict=True)]
        claim, proof = _composed(kinds, printed, delta)
    if not float(claim) <= MOST_ABOVE * float(printed):
        raise OutsideTheorem(
            f"a certificate would claim epsilon = {claim} where {printed} is printed: such runs are not covered"
        )
    parts, composition = proof
    rounds = [entry | part for entry, part in zip(entries, parts, strict=True)]
    content = {
        "format": FORMAT,
        "package": f"dpcheckin {version('dpcheckin')}",
        "run": {
            "words": "; then ".join(in_words(one, count) for one, count in kept),
            "adjacency": Adjacency.REPLACE_ONE.value,
        },
        "claim": {"epsilon": claim, "delta": number(delta)},
        "assumed": sorted(set().union(*(_assumed(entry) for entry in rounds)) | {"profile"}),
        "rounds": rounds,
        **composition,
    }
    return _signed(content)


@dataclass(frozen=True, slots=True)
class Prover:
    """Certificates of one `run`: rounds and how often each takes place."""

    run: tuple[tuple[Round, int], ...]

    def __call__(self, epsilon: float, delta: float) -> dict[str, Any]:
        return certificate(self.run, epsilon, delta)

    def __reduce__(self) -> tuple[Any, ...]:
        # rounds may hold functions, which do not travel between processes: the run is left behind
        return Prover, ((),)


Proof = tuple[list[dict[str, Any]], dict[str, Any]]


def _single(points: Points, printed: str, delta: float) -> tuple[str, Proof]:
    """One round: a point at the claim is the proof."""

    def reached(loss: float) -> bool:
        return bool(place(points.at(loss, below=True))[1] <= Fraction(number(delta)))

    claim, low, high = printed, float(printed), MOST_ABOVE * float(printed)
    if reached(MUCH_LESS * low):
        low, high = 0.0, low
    if low == 0.0 or not reached(low):
        for _ in range(12):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        claim = above(high * (1 + 1e-7), 7)
    return claim, ([_entry(points, _below(points, float(claim)))], {})


def _below(points: Points, epsilon: float) -> list[dict[str, Any]]:
    """Points at alpha = 1 and just below e^epsilon, which make a pair."""
    return hull([points.at(0.0), points.at(epsilon, below=True)])


def _composed(kinds: list[Points], printed: str, delta: float) -> tuple[str, Proof]:
    """Many rounds: points as dense as the composition needs them."""
    epsilon = max(float(printed), 1e-12)
    for points in kinds:
        points.begin(points.kind.negligible)
    for coarser in (_FEW_POINTS, 1.0):
        allowed = coarser * max(points.kind.chords for points in kinds) * epsilon / len(kinds)
        for _ in range(_PASSES):
            theta = float(_rounds(kinds).numbers(epsilon).theta)
            if sum([points.refine(theta, allowed) for points in kinds]) <= allowed * len(kinds):
                break
        rounds = _rounds(kinds)
        numbers = rounds.numbers(epsilon)
        if rounds.delta(numbers, float(printed)) <= delta:
            break
    claim, (least, better) = printed, rounds.smallest(delta, epsilon)
    if least < MUCH_LESS * epsilon or not rounds.delta(numbers, float(printed)) <= delta:
        claim, numbers = above(least, 5), better
        if not rounds.delta(numbers, float(claim)) <= delta:
            raise NumericalFailure("the composition of a certificate is not monotone")
    composition = {"theta": numbers.theta, "period": numbers.period, "terms": numbers.terms, "normal": numbers.normal}
    return claim, ([_entry(p, p.hull()) for p in kinds], {"composition": composition})


def _rounds(kinds: list[Points]) -> Rounds:
    return Rounds(tuple((Law(points.hull()), points.count) for points in kinds))


def _entry(points: Points, kept: list[dict[str, Any]]) -> dict[str, Any]:
    used = {point["way"] for point in kept}
    ways = {name: way for name, way in points.kind.ways.items() if name in used}
    return {"ways": ways, "points": kept}


def _assumed(entry: dict[str, Any]) -> set[str]:
    """The sentences that the proof of one kind of round rests on (docs/certificate.md)."""
    kind, assumed = entry["randomizer"]["kind"], set()
    if {"colluding", "lowest_rate", "dropout"} & set(entry):
        assumed.add("extensions")
    for way in entry["ways"].values():
        theorem = way["theorem"]
        if theorem == "types":
            named = {"types", f"types-{kind}"} & SENTENCES
            paid = "local_delta" in entry["randomizer"] or kind == "gaussian"
            assumed |= named | ({"types-delta"} if paid else set())
            assumed |= {"thresholds"} if "thresholds" in way and "cohort" not in entry else set()
        assumed |= {"marking"} if "marking" in way else set()
        if theorem != "local":
            assumed.add("blanket" if theorem == "blanket" else "empty-seat")
    return assumed


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def as_text(content: dict[str, Any]) -> str:
    """The file of a certificate: a line for each point."""
    text = json.dumps(content, separators=(",", ":"))
    text = text.replace('{"alpha"', '\n{"alpha"').replace('],"composition"', '],\n"composition"') + "\n"
    if len(text) > LARGEST:
        raise NumericalFailure(f"a certificate of {len(text):,} bytes is larger than allowed")
    return text


def beside(stated: Guarantee, folder: Path) -> Path | str:
    """Write the certificate of what is `stated` into the report's `folder`; a sentence if there is none."""
    try:
        return write(stated.certificate(), folder / NAME)
    except (OutsideTheorem, NumericalFailure) as problem:
        return f"none: {problem}"


def write(content: dict[str, Any], path: Path) -> Path:
    """Write the `content` of a certificate to a file at `path`."""
    path.write_text(as_text(content), encoding="ascii")
    return path
