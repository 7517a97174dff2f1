"""Clients with local epsilons of their own, by complete enumeration.

Each client has a row of report probabilities of its own making; the analyzer sees how often each report occurs. No
theorem is used here, nor anything of the package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from oracles.brute_force import Floats, Law, _views, as_pair, hockey_stick


def tempered(matrix: Floats, share: float, law: Floats) -> Floats:
    """Rows of a client that reports on its own value with this chance, else on one drawn from the law of values."""
    return np.asarray(share * matrix + (1.0 - share) * (law @ matrix)[None, :])


def response(symbols: int, epsilon: float) -> Floats:
    """k-ary response of this epsilon, written down by itself."""
    e = math.exp(epsilon)
    return np.asarray((np.ones((symbols, symbols)) + (e - 1.0) * np.eye(symbols)) / (e + symbols - 1.0))


def local_epsilon(matrix: Floats) -> float:
    """The largest log ratio between two rows."""
    return float(max(np.log(a / b).max() for a in matrix for b in matrix))


def view(rows: Sequence[Floats], rate: float) -> Law:
    """Check-in at this rate, one row of report probabilities for each client."""
    return _views([(1.0 - rate, rate * row) for row in rows], len(rows[0]))


def worst_delta(own: tuple[Floats, Floats], others: Sequence[Floats], rate: float, epsilon: float) -> float:
    """The larger direction, for a client whose report has one of two rows, beside others with theirs."""
    p, q = as_pair(view([own[0], *others], rate), view([own[1], *others], rate))
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
