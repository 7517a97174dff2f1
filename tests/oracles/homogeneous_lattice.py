"""Loss distribution of shuffled Gaussian reports against one fixed background: a LOWER bound.

Everybody else holds one value, the target moves by `sensitivity`. The likelihood ratio of the two outputs is L = (sum
of n independent terms)/n, each 1 for a user who stays away and log-normal for one who reports, so the curves are E(L -
alpha)+ and E(1 - alpha L)+. It is one pair of datasets: the mechanism is at least as bad.

One term is put on a lattice from its potential E(W - x)+. Keeping the potential at the nodes makes the law larger in
convex order (upper end of the bracket); lowering it until every chord lies below makes it smaller (lower end). The sum
is one FFT to the n-th power, whose round-off is charged by an estimate: nobody is charged a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.loss import convex_minorant
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import NumericalFailure
from dpcheckin.numerals import count, positive
from dpcheckin.special import UNIT, fourier
from dpcheckin.special.normal import gaussian_profile
from dpcheckin.special.roots import switch

LARGEST_FFT = 1 << 21
TAIL = 1e-22


def check_in_epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float, *, sensitivity: float = 2.0
) -> Bracket:
    """Epsilon at delta of this pair over so many rounds of shuffled check-in of a population (larger direction).

    Clients check in at this rate, with noise_multiplier and sensitivity in clipping norms. `lower` is a lower bound on
    the mechanism's epsilon; `upper` only tells how exactly this pair was computed (it is infinite where the lattice is
    too coarse for a handful of clients).
    """
    positive("rate", rate, 1.0)
    return _epsilon(population, population, rate, noise_multiplier, sensitivity, rounds, delta)


def subsample_epsilon(
    population: int, cohort: int, noise_multiplier: float, rounds: int, delta: float, *, sensitivity: float = 2.0
) -> Bracket:
    """The same for a random cohort of the population: noise_multiplier, sensitivity, rounds, delta."""
    count("cohort", cohort, largest=population)
    return _epsilon(population, cohort, 1.0, noise_multiplier, sensitivity, rounds, delta)


def _epsilon(
    population: int, terms: int, take: float, noise_multiplier: float, sensitivity: float, rounds: int, delta: float
) -> Bracket:
    positive("noise_multiplier", noise_multiplier)
    positive("sensitivity", sensitivity)
    shift = sensitivity / noise_multiplier
    above = _mean_law(population, terms, take, shift, lowered=False)
    below = _mean_law(population, terms, take, shift, lowered=True)
    ahead = (above.forward, below.forward_low)
    behind = (above.backward, below.backward_low)
    results = []
    for swap, one, other in ((False, ahead, behind), (True, behind, ahead)):
        reach = _reach(above, delta / max(rounds, 1), swap)
        curve = FunctionCurve(*one, reach, other)
        results.append(refined([(curve, rounds)], delta, both_orders=False, may_be_infinite=True))
    return Bracket(max(low for low, _ in results), max(high for _, high in results))


@dataclass(frozen=True, slots=True, eq=False)
class _MeanLaw:
    """The law of L on an increasing grid, as sums from either end."""

    values: FloatArray
    above_mass: FloatArray  # P(L >= value i)
    above_mean: FloatArray  # E[L; L >= value i]
    below_mass: FloatArray
    below_mean: FloatArray
    error: float
    cut: float  # E of what was cut off above the last node, per unit of L

    @property
    def _slack(self) -> float:
        """(L - alpha)+ is at most the largest L; (1 - alpha L)+ is at most 1."""
        return self.error * float(self.values[-1])

    def _ahead(self, alpha: FloatArray) -> FloatArray:
        i = np.searchsorted(self.values, alpha, side="right")
        return np.asarray(self.above_mean[i] - alpha * self.above_mass[i])

    def _behind(self, alpha: FloatArray) -> FloatArray:
        i = np.searchsorted(self.values, 1.0 / alpha, side="left")
        return np.asarray(self.below_mass[i] - alpha * self.below_mean[i])

    def forward(self, alpha: FloatArray) -> FloatArray:
        # beyond the largest value of L there is only what was cut off
        return np.maximum(self._ahead(alpha), 0.0) + np.where(alpha < self.values[-1], self._slack, 0.0) + self.cut

    def backward(self, alpha: FloatArray) -> FloatArray:
        return np.maximum(self._behind(alpha), 0.0) + self.error

    def forward_low(self, alpha: FloatArray) -> FloatArray:
        return np.maximum(self._ahead(alpha) - self._slack, 0.0)

    def backward_low(self, alpha: FloatArray) -> FloatArray:
        return np.maximum(self._behind(alpha) - self.error - alpha * self.cut, 0.0)


def _mean_law(population: int, terms: int, take: float, shift: float, *, lowered: bool) -> _MeanLaw:
    largest = max(math.exp(min(shift * math.sqrt(2.0 * math.log(terms / TAIL)) - shift**2 / 2.0, 200.0)), 4.0)
    variance = take * math.expm1(min(shift**2, 300.0))
    scatter = math.sqrt(terms * min(variance, take * largest**2))
    # 1 is a node, so the atom of those who stay away is kept exactly.
    wanted = min(0.03 * min(1.0, math.sqrt(math.expm1(min(shift**2, 300.0)))), 0.25)
    step = max(wanted, (largest + 24.0 * scatter) / LARGEST_FFT)
    if step > 0.5:
        raise NumericalFailure("log-normal reports with this little noise do not fit a lattice; raise the noise")
    per_one = math.ceil(1.0 / step)
    step = 1.0 / per_one
    top = math.ceil(largest / step)
    halves = np.arange(-2.0, 2.0 * top + 1.0) * (step / 2.0)
    fine = gaussian_profile(shift, halves.astype(np.float64))
    potential = _lowered(fine, step) if lowered else fine[::2]
    cut = float(potential[-1])
    potential = np.maximum(potential - cut, 0.0)
    # Potential at -step, 0, ..., top*step; masses are second differences.
    masses = np.maximum(np.diff(potential, 2, append=0.0) / step, 0.0)  # nodes 0..top
    masses *= take / float(masses.sum())
    masses[per_one] += 1.0 - take
    low = terms - 12.0 * scatter
    size = fourier.next_fast_len(int((largest + 26.0 * scatter) / step) + top + 64, True)
    signal = np.zeros(size)
    signal[(np.arange(masses.size) - per_one) % size] = masses  # centred at 1
    spectrum = fourier.rfft(signal)
    law = fourier.irfft(np.exp(terms * np.log(np.where(spectrum == 0.0, 1e-300, spectrum))), size)
    first = math.floor((low - terms) / step)
    law = np.roll(law, -first)
    offset = (population - terms) + terms + first * step
    values = (offset + np.arange(size) * step) / population
    # round-off: the power multiplies the relative error of each frequency by `terms`
    per_bin = 64.0 * UNIT * math.log2(size) * float(np.linalg.norm(law))
    law = np.maximum(law, 0.0)
    law[law < per_bin] = 0.0
    keep = values > -0.5 * step / population
    values, law = np.maximum(values[keep], 0.0), law[keep]
    above = np.append(np.cumsum(law[::-1])[::-1], 0.0)
    above_mean = np.append(np.cumsum((law * values)[::-1])[::-1], 0.0)
    below = np.insert(np.cumsum(law), 0, 0.0)
    below_mean = np.insert(np.cumsum(law * values), 0, 0.0)
    # bins dropped or rounded: at most per_bin each over the bins that carry anything
    carried = int(np.count_nonzero(law)) + 64
    error = 2.0 * per_bin * math.sqrt(carried) * 8.0 + 4.0 * TAIL
    spare = max(0.0, 1.0 - float(law.sum()))
    return _MeanLaw(values, above, above_mean, below, below_mean, max(error, spare), take * terms * cut / population)


def _lowered(fine: FloatArray, step: float) -> FloatArray:
    """Values at -step, 0, step, ... whose chords stay below the curve given at half steps.

    Every law with mean 1 has a potential of at least 1 - x, so near zero, where hardly any mass lies, the result runs
    along that line and leaves it in the first cell where a chord from the line to the lowered value stays below the
    curve (d = chord - curve is concave: it is negative throughout if its middle is below half of either end).
    """
    curve, middle = fine[::2], fine[1:-1:2]
    gap = np.maximum(0.5 * (curve[:-1] + curve[1:]) - middle, 0.0) * 2.0
    worst = np.maximum(np.append(gap, 0.0), np.insert(gap, 0, 0.0))
    line = 1.0 - (np.arange(curve.size) - 1.0) * step
    low = np.maximum(curve - worst, np.maximum(line, 0.0))
    for j in range(1, curve.size):
        left, right = line[j - 1] - curve[j - 1], low[j] - curve[j]
        centre = 0.5 * (line[j - 1] + low[j]) - middle[j - 1]
        if low[j] > line[j] and centre <= 0.5 * min(left, right):
            break
        low[j] = line[j]
    hull = convex_minorant(np.arange(low.size, dtype=np.float64), low)
    return np.asarray(hull, dtype=np.float64)


def _reach(law: _MeanLaw, smallest: float, swap: bool) -> float:
    curve = law.backward if swap else law.forward

    def left(loss: float) -> float:
        return float(curve(np.array([math.exp(loss)]))[0])

    furthest = 30.0
    target = max(1e-6 * smallest, 2.0 * left(furthest))
    beyond, _ = switch(lambda loss: left(loss) <= target, furthest, 0.0, absolute=furthest / 2**40)
    return beyond
