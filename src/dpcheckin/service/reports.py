"""From a client's value to an envelope: randomize with secure chance, encode, seal.

`make_envelope` is what a client sends; `neutral_envelope` is the same about the neutral value: what
a client sends when it has nothing else, and with which a shuffler fills an empty slot. How the
analyzer opens them is in `analyzer.batches`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    CategoryRandomizer,
    IntegerVector,
    Randomizer,
    SecureSource,
    VectorRandomizer,
)
from dpcheckin.service.wire.documents import OCTETS, PlanDocument
from dpcheckin.service.wire.envelope import seal
from dpcheckin.service.wire.payloads import (
    octets_payload,
    seed_payload,
    symbol_payload,
    vector_payload,
)
from dpcheckin.service.wire.shares import make_shares


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
    """The first category, 0 or the zero vector: known before anybody's data are touched.

    Args:
        plan: fixes encoding and size.
        randomizer: the plan's.
    """
    if not isinstance(randomizer, VectorRandomizer):
        return np.zeros(1, np.int64)
    # with encoding 4 the plan's dimension is the size of a report, not of a vector
    return np.zeros((1, randomizer.dimension if plan.encoding == OCTETS else plan.dimension))


def neutral_envelope(
    plan: PlanDocument,
    randomizer: Randomizer,
    round_number: int,
    model_digest: bytes,
    public_key: bytes,
    source: SecureSource,
    token: bytes = b"",
) -> bytes:
    """A report of the neutral value, made like any other: it has the law of a client that holds it.

    Args:
        plan: fixes encoding, suite and sizes.
        randomizer: the plan's.
        round_number: counted from 0.
        model_digest: 32 bytes, of the model the round names.
        public_key: the round's opening key, raw.
        source: secure chance.
        token: the client's for this round, in a plan with an issuer.
    """
    value = neutral_value(plan, randomizer)
    return make_envelope(
        plan, randomizer, round_number, model_digest, public_key, value, source, token
    )
