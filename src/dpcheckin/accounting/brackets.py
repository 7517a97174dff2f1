"""Many brackets at once: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.statements import Bracket


def is_array(value: object) -> bool:
    """Are these many numbers, and not one?"""
    return isinstance(value, list | tuple | range) or np.ndim(value) > 0  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Brackets:
    """Closed intervals in the shape of the question; `upper` is what a guarantee may quote.

    As an array it is its upper ends, so that it can be plotted or compared as it is.

    >>> found = Brackets.of([Bracket(0.1, 0.2), Bracket(0.3, 0.4)])
    >>> found.upper.tolist(), len(found), found[1]
    ([0.2, 0.4], 2, Bracket(lower=0.3, upper=0.4))
    """

    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def of(found: Sequence[Bracket], shape: tuple[int, ...] | None = None) -> Brackets:
        """One array of each end, in the given shape."""
        ends = [np.array([getattr(one, end) for one in found]) for end in ("lower", "upper")]
        return Brackets(*(values.reshape(shape or (-1,)) for values in ends))

    def __len__(self) -> int:
        return len(self.upper)

    def __getitem__(self, index: int) -> Bracket:
        return Bracket(float(self.lower.flat[index]), float(self.upper.flat[index]))

    def __iter__(self) -> Iterator[Bracket]:
        return (self[i] for i in range(self.upper.size))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.upper, dtype=dtype, copy=True if copy is None else copy)  # type: ignore[call-overload,no-any-return]
