"""The standing of a privacy figure.  Only a guarantee may ever be charged or quoted as one."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a number is worth."""

    GUARANTEE = "guarantee"
    LOWER_BOUND = "lower bound"
    CONJECTURE = "conjecture"
    REFUTED = "refuted claim"
