"""From a client's value to an envelope, and what clients that lie can do to the result of a round.

`make_envelope` is what a client sends: randomized with secure chance, encoded, sealed; about the `neutral_value` when
it has nothing else, which is also how a shuffler fills an empty slot. How the analyzer opens them is in
`analyzer.batches`.

Privacy does not depend on clients that lie; whoever uses the result does. A pure or Gaussian report is checked by
itself, so the influence of c clients is c times that of one. Of two shares nothing can be checked: each is uniformly
random alone, and only the length of the whole sum tells. So one client can do there what all of them together can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_up
from dpcheckin.randomizers import (
    CategoryRandomizer,
    Gaussian,
    IntegerVector,
    Randomizer,
    SecureSource,
    VectorRandomizer,
)
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.wire.documents import OCTETS, PlanDocument
from dpcheckin.service.wire.envelope import seal
from dpcheckin.service.wire.payloads import (
    FALSE_ALARM,
    longest_sum,
    make_shares,
    octets_payload,
    seed_payload,
    symbol_payload,
    vector_payload,
)


def make_envelope(
    plan: PlanDocument,
    randomizer: Randomizer,
    round_number: int,
    model_digest: bytes,
    public_key: bytes,
    value: NDArray[Any],
    source: SecureSource,
    token: bytes = b"",
) -> bytes:
    """Randomize one client's value and seal it.

    Args:
        plan: fixes encoding, suite and sizes.
        randomizer: the plan's, as `pricing.randomizer_of` makes it.
        round_number: counted from 0.
        model_digest: 32 bytes, of the model the round names.
        public_key: the round's opening key, raw.
        value: a vector of the plan's dimension (clipped by the randomizer), or one symbol; with
            encoding 4 one row of what the randomizer takes.
        source: secure chance; a seeded one is refused.
        token: the client's for this round, in a plan with an issuer.
    """
    if not source.is_secure:  # a simulation's generator must never make a report that leaves
        raise InvalidParameter("source", type(source).__name__, "SecureSource")
    share = b""
    if plan.encoding == OCTETS:
        rows = randomizer.randomize(value, source)
        if len(rows) != 1:
            raise InvalidParameter("value", f"{len(rows):,} rows", "one")
        payload = octets_payload(randomizer.report_format.encode(rows)[0])
    elif isinstance(randomizer, IntegerVector):
        seed, share = make_shares(randomizer, np.asarray(value, np.float64), source)
        payload = seed_payload(seed, plan.dimension)
    elif isinstance(randomizer, CategoryRandomizer):
        symbol = randomizer.randomize(np.asarray(value, np.int64).reshape(1), source)
        payload = symbol_payload(int(symbol[0]), plan.dimension)
    else:
        assert isinstance(randomizer, VectorRandomizer)
        row = np.asarray(value, np.float64).reshape(1, -1)
        if row.shape[1] != plan.dimension:
            raise InvalidParameter("value", row.shape[1], f"{plan.dimension:,} coordinates")
        payload = vector_payload(randomizer.randomize(row, source)[0])
    return seal(plan, public_key, round_number, model_digest, payload + token, share)


def neutral_value(plan: PlanDocument, randomizer: Randomizer) -> NDArray[Any]:
    """The first category, 0 or the zero vector of a `plan` and its `randomizer`: known before anybody's data are
    touched.
    """
    if not isinstance(randomizer, VectorRandomizer):
        return np.zeros(1, np.int64)
    # with encoding 4 the plan's dimension is the size of a report, not of a vector
    return np.zeros((1, randomizer.dimension if plan.encoding == OCTETS else plan.dimension))


UNIT_SQUARES = (0.998, 1.002)
"""Squared lengths of a direction that are taken for one, in float32."""


def longest_gaussian(randomizer: Gaussian, dimension: int) -> float:
    """No honest report of so many coordinates (`dimension`) by this `randomizer` is longer, except with probability
    exp(-9²/2).
    """
    # ‖noise‖ exceeds σ(√d + t) with probability at most exp(-t²/2)
    return (randomizer.clip + randomizer.deviation * (math.sqrt(dimension) + 9.0)) * 1.0001


@dataclass(frozen=True)
class Influence:
    """How far hostile clients can move the sum of a round, beside what an honest one gives."""

    hostile: int
    reports: int
    moved: float
    """Largest move of the sum that no check notices, in l2."""
    honest: float
    """What one honest client adds to it on average, at the most: its clip, or one count."""
    sentence: str


def influence(plan: PlanDocument, reports: int, hostile: int = 1) -> Influence:
    """What so many `hostile` clients, at least 1, can do to the sum of a round of a `plan` with so many `reports`,
    theirs included.
    """
    if not 1 <= hostile <= reports:
        raise InvalidParameter("hostile", hostile, f"from 1 to the {reports:,} reports")
    if plan.encoding == OCTETS:
        raise InvalidParameter("plan", "a survey", "a plan whose reports are added up")
    randomizer = randomizer_of(plan)
    clip = float(plan.randomizer["clip"])
    who = "one client that lies" if hostile == 1 else f"{hostile:,} clients that lie"
    if isinstance(randomizer, IntegerVector):
        moved = 2 * longest_sum(randomizer, reports)
        checked = (
            f"only the length of the sum is checked (false alarms: at most {FALSE_ALARM:.1e} "
            "a round), so that any number of them can do what one can"
        )
    elif isinstance(randomizer, VectorRandomizer):
        moved = hostile * 2 * _longest_estimate(randomizer, plan.dimension)
        checked = "the length of every report is checked"
    else:
        assert isinstance(randomizer, CategoryRandomizer)
        first, second = (randomizer.estimate(np.array([symbol])) for symbol in (0, 1))
        moved, clip = hostile * float(np.linalg.norm(first - second)), 1.0
        checked = "every report is one symbol"
    sentence = (
        f"Of {reports:,} reports, {who} can move the sum by at most "
        f"{rounded_up(moved / clip)} times what one honest client may add: {checked}."
    )
    return Influence(hostile, reports, moved, clip, sentence)


def _longest_estimate(randomizer: VectorRandomizer, dimension: int) -> float:
    """Length of the longest estimate that a single report which passes the checks can give."""
    if isinstance(randomizer, Gaussian):
        longest = longest_gaussian(randomizer, dimension)
    else:
        longest = math.sqrt(UNIT_SQUARES[1])
    unit = np.zeros((1, dimension))
    unit[0, 0] = 1.0
    return longest * float(np.linalg.norm(randomizer.sum_estimates(unit)))
