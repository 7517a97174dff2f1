"""One-run auditing: many canaries in a single training run.

Every client is a canary: it holds +v or -v by a fair coin of ours, each v a direction of its own.
After one run we guess the signs we are surest of. If the run is (ε, δ)-private under replacing one
client, right guesses are dominated by coins of bias e^ε/(1 + e^ε), up to δ (Steinke, Nasr and
Jagielski, arXiv 2305.08846v1, Theorem 5.2 and its code in appendix D). One run can show less than
many, but costs one run; it also needs no worst-case neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.betting.evidence import needed_capital
from dpcheckin.audit.finding import Verdict
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import Gaussian
from dpcheckin.special import binomial

_ENOUGH = 0.3  # of what right guesses only would show; one run of a sound system shows about half


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses under (epsilon, delta)-privacy.

    Args:
        canaries: clients whose sign was drawn.
        guesses: how many signs were guessed.
        right: how many guesses were right.
        epsilon: the claim's.
        delta: the claim's.

    >>> round(p_value(100, 10, 10, 0.0, 0.0), 6) == round(0.5**10, 6)
    True
    """
    if not 0 <= right <= guesses <= canaries:
        raise InvalidParameter("right", right, f"0 to guesses = {guesses} ≤ canaries = {canaries}")
    bias = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binomial.sf(right - 1, guesses, bias))
    # δ may move a few canaries: the worst number i of them shifts the count from right - i
    masses = np.cumsum(binomial.pmf(np.arange(right - 1, -1, -1), guesses, bias))
    shift = float(np.max(masses / np.arange(1, right + 1), initial=0.0))
    return min(1.0, tail + 2 * canaries * delta * shift)


def one_run_epsilon(
    canaries: int, guesses: int, right: int, delta: float, confidence: float
) -> float:
    """The epsilon that so many right guesses refute with this confidence; 0 if none.

    Args:
        canaries: clients whose sign was drawn.
        guesses: how many signs were guessed.
        right: how many guesses were right.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
    """
    needed_capital(confidence)
    miss = 1.0 - confidence
    if p_value(canaries, guesses, right, 0.0, delta) > miss:
        return 0.0
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        small = p_value(canaries, guesses, right, middle, delta) <= miss
        low, high = (middle, high) if small else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class OneRunFinding:
    """What a single training run has shown."""

    name: str
    claimed: float
    delta: float
    confidence: float
    lower: float
    canaries: int
    guesses: int
    right: int
    seed: int

    @property
    def refuted(self) -> bool:
        return self.lower > self.claimed

    @property
    def wanted(self) -> float:
        """The lower bound from which on a run that refutes nothing means something."""
        best = one_run_epsilon(
            self.canaries, self.guesses, self.guesses, self.delta, self.confidence
        )
        return _ENOUGH * min(self.claimed, best)

    @property
    def verdict(self) -> Verdict:
        """Violated, not violated, or too little seen to say."""
        if self.refuted:
            return Verdict.VIOLATED
        enough = self.lower > 0.0 and self.lower >= self.wanted
        return Verdict.NOT_VIOLATED if enough else Verdict.INCONCLUSIVE

    def __str__(self) -> str:
        return (
            f"Claimed: epsilon ≤ {rounded_up(self.claimed)} at delta = {self.delta:g}. Audited in "
            f"one run: epsilon ≥ {rounded_down(self.lower)} with {100 * self.confidence:g}% "
            f"confidence, from {self.right} right of {self.guesses} guesses about {self.canaries} "
            f"canaries. {self.verdict.sentence}"
        )

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        return {
            "name": self.name,
            "claimed_epsilon": self.claimed,
            "delta": self.delta,
            "confidence": self.confidence,
            "lower_bound": self.lower,
            "refuted": self.refuted,
            "verdict": self.verdict.value,
            "wanted_lower_bound": self.wanted,
            "canaries": self.canaries,
            "guesses": self.guesses,
            "right": self.right,
            "seed": self.seed,
        }


def audit_one_run(
    plan: DistributedCheckIn,
    delta: float,
    confidence: float = 0.99,
    *,
    guesses: int | None = None,
    seed: int = 0,
    length: float = 1.0,
    claimed: float | None = None,
) -> OneRunFinding:
    """Play one training run in which every client is a canary, and guess.

    Args:
        plan: Gaussian reports of which sums are published.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
        guesses: fixed before the run; None is a tenth of the canaries, those with the largest
            scores.
        seed: of signs and run.
        length: norm of the canaries, in clips.
        claimed: epsilon under audit, None for the certified one.
    """
    # torch, which nothing else here needs
    from dpcheckin.audit.checks.training import Canaries, gaussian_of

    n, randomizer = plan.population, gaussian_of(plan)
    count = max(1, n // 10) if guesses is None else guesses
    if not 1 <= count <= n:
        raise InvalidParameter("guesses", guesses, f"1 to the number of clients, {n}")
    signs = np.random.default_rng((seed, 71)).choice([-1.0, 1.0], size=n)
    gradients = np.diag(signs) * (length * randomizer.clip)
    sums, reports = Canaries(plan, gradients).train(seed)
    scores = _scores(sums, reports, n, randomizer)
    surest = np.argsort(-np.abs(scores))[:count]
    right = int(np.count_nonzero(np.sign(scores[surest]) == signs[surest]))
    return OneRunFinding(
        name=f"one training run, every client a canary; {plan.describe()}; "
        f"{randomizer.describe()}; {plan.rounds:,} rounds",
        claimed=plan.guarantee(delta).epsilon.upper if claimed is None else claimed,
        delta=delta,
        confidence=confidence,
        lower=one_run_epsilon(n, count, right, delta, confidence),
        canaries=n,
        guesses=count,
        right=right,
        seed=seed,
    )


def _scores(sums: Any, reports: Any, population: int, randomizer: Gaussian) -> Any:
    """Log likelihood ratio of + against - for each canary, summed over rounds."""
    share = (reports / population)[:, None]
    noise = np.maximum(reports, 1)[:, None] * randomizer.deviation**2
    base = -(randomizer.clip**2) / (2 * noise)
    tilt = randomizer.clip * sums / noise
    sides = [np.log1p(share * np.expm1(np.minimum(base + sign * tilt, 700.0))) for sign in (1, -1)]
    return (sides[0] - sides[1]).sum(axis=0)


def default_one_run_plan() -> DistributedCheckIn:
    """A run whose loss is large enough for one run to show a good part of it."""
    return DistributedCheckIn(population=1000, rate=0.3, rounds=10, randomizer=Gaussian(0.1))
