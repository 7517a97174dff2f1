"""What every local randomizer offers, whatever it randomizes.

`CategoryRandomizer` takes symbols 0, …, symbols - 1, `VectorRandomizer` vectors inside a ball; both work on a whole
batch of clients at once, one client a row. Accounting is loaded only when a pair is asked for, here as in the modules
beside this one: a client that makes reports need not wait for the accountant's libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive
from dpcheckin.randomizers.formats import ReportFormat
from dpcheckin.randomizers.source import Array, RandomSource, SecureSource

LARGEST_EPSILON = 500.0
"""Of a report that is made: e^-500 is drawn as it should be, and products of e^500 are still numbers."""

Value = int | tuple[float, ...]
"""What a client holds: a symbol, or the coordinates of a vector."""


class Argument(NamedTuple):
    """A field that may be typed behind a randomizer's name, such as the 10 of `dary:10`."""

    field: str
    word: str
    """What stands for it in help texts."""
    usual: float


class Randomizer(ABC):
    """One client's value in, one report out, and all that anybody must know of it.

    Only `pair`, `randomize` and what `describe` says have to be written. The words of the class say how people type it
    (`randomizers.registry`); the other methods let its reports travel (`report_format`) and be attacked (`neighbours`,
    `log_ratio`).
    """

    name: ClassVar[str] = ""
    """As it is typed; one without a name is used by programs alone."""
    aliases: ClassVar[tuple[str, ...]] = ()
    label: ClassVar[str] = ""
    """As lists and headings call it."""
    description: ClassVar[str] = "{0.label}"
    """What `describe` says; {0.symbols:,} stands for the field or property `symbols`."""
    noise_field: ClassVar[str] = "local_epsilon"
    """The field that says how noisy a report is."""
    arguments: ClassVar[tuple[Argument, ...]] = ()
    """Fields that may be typed behind the name, in this order."""
    smallest: ClassVar[float] = SecureSource.smallest
    """The sampler makes no report of a smaller probability, given secure chance. A smaller delta than this has to be
    refused, unless `pair` leaves what is not made without a counterpart."""

    @property
    @abstractmethod
    def pair(self) -> accounting.LocalPair:
        """The local pair of the randomizer, for accounting."""

    @abstractmethod
    def randomize(self, values: Array, source: RandomSource) -> Array:
        """One report for each client's value, one client a row (or entry) of `values`: symbols, integers or vectors.

        Chance comes from `source`; secure for reports that leave a device.
        """

    def describe(self) -> str:
        """A few words for logs and reports, such as `PrivUnit, local epsilon 4`."""
        return self.description.format(self)

    @property
    def report_format(self) -> ReportFormat:
        """How one report travels as bytes."""
        self._cannot("one whose reports travel one by one, in a fixed number of bytes")

    def well_formed(self, reports: Array) -> NDArray[np.bool_]:
        """Which reports, in the shape of the format, could `randomize` have made? The rest must not be counted."""
        return self.report_format.possible(reports)

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        """Values hardest to hide: what all others hold, what the target does, and might instead."""
        self._cannot("one that names the neighbours for an audit to play")

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        """log dR(value)/dR(others) at each row (or entry) of `reports`; a wrong one weakens audits, nothing else.

        `value` is what the target may hold, `others` what everybody else does.
        """
        self._cannot("one that states the density of its reports for an audit")

    def _cannot(self, allowed: str) -> NoReturn:
        raise InvalidParameter("randomizer", self.describe(), allowed)


class CategoryRandomizer(Randomizer):
    """Randomizes one symbol out of `symbols`."""

    symbols: int

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        """A third symbol hides least, where there is one (docs/theory.md, lower bounds)."""
        return (1 if self.symbols == 2 else 2), 0, 1

    @abstractmethod
    def estimate(self, reports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimate of how many clients hold each symbol."""

    @abstractmethod
    def variance(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact variance of each entry of `estimate` when `counts` clients hold each symbol."""

    def check_symbols(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values as integers, refused when one is not a symbol."""
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "integers")
        if values.size and (values.min() < 0 or values.max() >= self.symbols):
            bad = values[(values < 0) | (values >= self.symbols)][0]
            raise InvalidParameter("values", int(bad), f"symbols from 0 to {self.symbols - 1}")
        return values.astype(np.int64)


@dataclass(frozen=True, slots=True)
class SummedReports:
    """How the sum of many clients' estimates follows from their vectors x_i.

    The sum is Σ weights_i · x_i + noise, the noise normal with standard deviation `noise_deviation` in every coordinate
    and independent of all else.
    """

    weights: NDArray[np.float64]
    noise_deviation: float


class VectorRandomizer(Randomizer):
    """Randomizes a vector of norm at most `clip` (longer ones are scaled down first)."""

    clip: float
    dimension: int
    norm: float = 2
    """Which lp norm it is that the clip bounds."""

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        """Two ends of the ball, along its first axis."""
        rest = (0.0,) * (self.dimension - 1)
        there, here = (-self.clip, *rest), (self.clip, *rest)
        return there, here, there

    @abstractmethod
    def estimate(self, reports: Array) -> Array:
        """An unbiased estimate of each client's (clipped) vector from its report."""

    def sum_estimates(self, reports: Array) -> Array:
        """The sum over clients of `estimate(reports)`; linear estimates take it on the reports."""
        return self.estimate(reports).sum(axis=0)

    @abstractmethod
    def total_variance(self, values: Array) -> NDArray[np.float64]:
        """Exact E‖estimate - clipped x‖² for each row x of `values`."""


class SummableRandomizer(VectorRandomizer):
    """A randomizer of l2-bounded vectors whose sum of reports can be drawn in one go."""

    @abstractmethod
    def summed(self, norms: NDArray[np.float64], dimension: int, source: RandomSource) -> SummedReports:
        """Draw from `source` the sum of the clients' estimates, without drawing each report.

        Args:
            norms: of the clients' vectors.
            dimension: of the vectors.
            source: where chance comes from.
        """

    def clipping_weights(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """What vectors of these norms are multiplied with to be clipped."""
        return np.asarray(self.clip / np.maximum(norms, self.clip))


@dataclass(frozen=True)
class PureVectorRandomizer(VectorRandomizer):
    """A randomizer of vectors that keeps a local epsilon.

    Args:
        local_epsilon: epsilon of one report, in nats.
        dimension: entries of a vector.
        clip: largest norm of a vector.
    """

    local_epsilon: float
    dimension: int
    clip: float = 1.0

    description = "{0.label}, local epsilon {0.local_epsilon:g}"
    arguments: ClassVar[tuple[Argument, ...]] = (Argument("dimension", "DIM", 1000),)
    least_dimension: ClassVar[int] = 1

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon, LARGEST_EPSILON)
        at_least("dimension", self.dimension, self.least_dimension)
        positive("clip", self.clip)


def row_dots(one: Array, other: Array) -> Array:
    """Inner product of each row of `one` with its counterpart in `other`, without a matrix in between."""
    if isinstance(one, np.ndarray):
        return np.einsum("ij,ij->i", one, other)
    if one.shape[1] < 1000:
        return (one * other).sum(axis=1)
    # long rows: torch has no batched dot product that is as fast as one dot product a row
    return one.new_tensor([float(a.dot(b)) for a, b in zip(one, other, strict=True)])


def row_norms(values: Array) -> Array:
    """Euclidean norm of each row, as a column; refuses what is not finite."""
    norms = row_dots(values, values)[:, None] ** 0.5
    check_finite(norms)
    return norms


def check_rows(values: Array, dimension: int | None = None) -> None:
    """Refuse `values` that are not a matrix with one client a row, of length `dimension` where that is known."""
    if getattr(values, "ndim", 0) != 2:
        raise InvalidParameter("values", f"{getattr(values, 'ndim', 0)}-dimensional", "a matrix")
    if dimension is not None and values.shape[1] != dimension:
        raise InvalidParameter("values", tuple(values.shape), f"rows of dimension {dimension:,}")


def check_finite(values: Array) -> None:
    """Refuse NaN and infinite entries."""
    if not np.isfinite(np.asarray(values)).all():
        raise InvalidParameter("values", "NaN or infinite entries", "finite numbers")


def clip_rows(values: Array, clip: float) -> Array:
    """Scale rows of `values` longer than `clip` down to it."""
    return values * (clip / row_norms(values).clip(clip, None))


def squared_rows(values: Array) -> NDArray[np.float64]:
    """Squared norm of each row, as NumPy."""
    return np.asarray(row_dots(values, values), dtype=np.float64)
