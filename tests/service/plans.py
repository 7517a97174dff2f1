"""Plan documents for tests: small, valid, and easy to bend."""

from typing import Any

import numpy as np

from dpcheckin.randomizers import SecureSource
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.reports import make_envelope
from dpcheckin.service.wire.documents import PlanDocument

PRIVUNIT = {"name": "privunit", "local_epsilon": 4.0, "dimension": 20, "clip": 1.0, "encoding": 1}
GAUSSIAN = {"name": "gaussian", "noise_multiplier": 2.0, "dimension": 20, "clip": 1.0}
GAUSSIAN |= {"encoding": 1}
DARY = {"name": "d-ary", "local_epsilon": 1.0, "dimension": 5, "clip": 1.0, "encoding": 2}
SKELLAM = {"name": "skellam", "noise_multiplier": 4.0, "steps": 256, "dimension": 20}
SKELLAM |= {"clip": 1.0, "encoding": 3}
WINDOW = {"slots": 12, "check_in_probability": 1.0, "minibatch": 1}


def plan_object(protocol: str = "shuffled-check-in", **changes: Any) -> dict[str, Any]:
    window = protocol.startswith("random-")
    shares = protocol == "distributed-check-in"
    said: dict[str, Any] = {
        "type": "plan",
        "format": 1,
        "protocol": protocol,
        "population": 100,
        "minimum_present": changes.get("population", 100),
        "colluding": 0.0,
        "dropout": 0.0,
        "minimum_batch": 0,
        "rounds": 12,
        "randomizer": SKELLAM if shares else PRIVUNIT,
        "delta": 1e-5,
        "epsilon_budget": 8.0,
        "round_seconds": 1.0,
        "compute_seconds": 0.3 * changes.get("round_seconds", 1.0),
        "suite": 1,
        "cover": True,
        "task": {},
        "nonce": "00" * 16,
        **(WINDOW if window else {"rate": 0.2}),
    }
    return {**said, **changes}


def plan(protocol: str = "shuffled-check-in", **changes: Any) -> PlanDocument:
    return PlanDocument.from_object(plan_object(protocol, **changes))


def sealed(document: PlanDocument, number: int, model: bytes, key: bytes, count: int) -> list[bytes]:
    """So many reports of one round, all about the same value."""
    randomizer = randomizer_of(document)
    source = SecureSource()
    found = np.ones(document.dimension) if document.encoding != 2 else np.array([1])
    return [make_envelope(document, randomizer, number, model, key, found, source) for _ in range(count)]
