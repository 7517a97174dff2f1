"""Parameter checks shared by every public function: one clear line each."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex

from dpcheckin.errors import InvalidParameter

LARGEST_COUNT = 10**12
LARGEST_LOCAL_EPSILON = 50.0


def number(name: str, value: object, allowed: str = "a number") -> float:
    """`value` as a float; NaN and non-numbers are refused."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise InvalidParameter(name, value, allowed)
    result = float(value)
    if math.isnan(result):
        raise InvalidParameter(name, value, allowed)
    return result


def probability(name: str, value: object) -> float:
    """A float in [0, 1]."""
    result = number(name, value, "a probability in [0, 1]")
    if not 0.0 <= result <= 1.0:
        raise InvalidParameter(name, value, "a probability in [0, 1]")
    return result


def fraction_below_one(name: str, value: object) -> float:
    """A float in [0, 1)."""
    result = number(name, value, "a fraction in [0, 1)")
    if not 0.0 <= result < 1.0:
        raise InvalidParameter(name, value, "a fraction in [0, 1)")
    return result


def open_probability(name: str, value: object) -> float:
    """A float strictly between 0 and 1."""
    result = number(name, value, "a number strictly between 0 and 1")
    if not 0.0 < result < 1.0:
        raise InvalidParameter(name, value, "a number strictly between 0 and 1")
    return result


def positive(name: str, value: object) -> float:
    """A finite float above zero."""
    result = number(name, value, "a finite number above 0")
    if not 0.0 < result < math.inf:
        raise InvalidParameter(name, value, "a finite number above 0")
    return result


def non_negative(name: str, value: object) -> float:
    """A finite float, zero allowed."""
    result = number(name, value, "a finite number, 0 or more")
    if not 0.0 <= result < math.inf:
        raise InvalidParameter(name, value, "a finite number, 0 or more")
    return result


def count(name: str, value: object, smallest: int = 1, largest: int = LARGEST_COUNT) -> int:
    """A whole number; 1e6 counts as one, 2.5 does not."""
    allowed = f"a whole number from {smallest:,} to {largest:,}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InvalidParameter(name, value, allowed)
    result = value.__index__()
    if not smallest <= result <= largest:
        raise InvalidParameter(name, value, allowed)
    return result


def keep_count(frozen: object, name: str, smallest: int = 1, largest: int = LARGEST_COUNT) -> None:
    """Let a frozen description hold as an int what was given as a count, perhaps as 1e6.

    Args:
        frozen: The description.
        name: Of its field.
        smallest: That is allowed.
        largest: That is allowed.
    """
    object.__setattr__(frozen, name, count(name, getattr(frozen, name), smallest, largest))


def local_epsilon_in_range(value: object) -> float:
    """The epsilon of one report, in (0, 50]."""
    allowed = f"a number above 0 and at most {LARGEST_LOCAL_EPSILON:g}"
    epsilon = number("local_epsilon", value, allowed)
    if not 0.0 < epsilon <= LARGEST_LOCAL_EPSILON:
        raise InvalidParameter("local_epsilon", value, allowed)
    return epsilon
