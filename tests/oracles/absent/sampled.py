"""Gaussian reports of fifty clients in twenty dimensions, by Monte Carlo with limits of confidence.

What counts as the attack is the lower limit: above the truth a few times in a billion.

- *Orthogonal*: the others hold different points of an orthonormal frame. The shuffled likelihoods are permanents; the
  attacker uses an event instead, of what the sum over reports of R(a) over the others' mean law is against that of
  R(b), and counts how often either world shows it (Clopper and Pearson).
- *Groups*: the others hold two points only. Then both likelihoods are coefficients of a product of polynomials, and
  H is the mean over runs of the first world of a number in [0, 1] (Maurer and Pontil's empirical Bernstein bound).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from oracles.absent.crowd import Array
from oracles.absent.setting import Random, Setting, epsilons

CLIENTS, DIMENSION = 50, 20
RISK = 1e-9


def at_least(hits: int, runs: int) -> float:
    """A probability of an event that was seen so often is at least this, but for RISK."""
    return float(special.betaincinv(hits, runs - hits + 1, RISK)) if hits else 0.0


def at_most(hits: int, runs: int) -> float:
    """A probability of an event that was seen so often is at most this, but for RISK."""
    return float(special.betaincinv(hits + 1, runs - hits, 1.0 - RISK)) if hits < runs else 1.0


def mean_at_least(values: Array) -> float:
    """The mean of numbers in [0, 1] is at least this, but for RISK."""
    count, risk = len(values), np.log(2.0 / RISK)
    spread = float(values.var(ddof=1))
    return float(values.mean()) - np.sqrt(2 * spread * risk / count) - 7 * risk / (3 * (count - 1))


def _frame(rng: Random) -> tuple[Array, Array, str]:
    """Where a and b are, and the others."""
    axes = np.vstack([np.eye(DIMENSION), -np.eye(DIMENSION)])
    others = axes[rng.permutation(len(axes))[np.arange(CLIENTS - 1) % len(axes)]]
    if rng.random() < 0.5:
        others = np.eye(DIMENSION)[np.arange(CLIENTS - 1) % DIMENSION]
    case = int(rng.integers(3))
    if case == 0:
        return np.array([axes[0], -axes[0]]), others, "a = e1, b = -e1"
    if case == 1:
        return np.array([axes[0], axes[1]]), others, "a = e1, b = e2"
    tilted = np.ones(DIMENSION) / np.sqrt(DIMENSION)
    return np.array([tilted, -tilted]), others, "a = (1, ..., 1)/sqrt 20, b = -a"


def _scores(rng: Random, runs: int, first: Array, ends: Array, others: Array, noise: float) -> Array:
    """The attacker's statistic in runs in which the target holds `first`."""
    held = np.vstack([first, others])
    found = []
    for start in range(0, runs, 2000):
        count = min(2000, runs - start)
        reports = held[None] + noise * rng.normal(size=(count, *held.shape))
        # log R(x)(y) but for what does not depend on x
        logs = (reports @ np.vstack([ends, others]).T - (np.vstack([ends, others]) ** 2).sum(axis=1) / 2) / noise**2
        mean = special.logsumexp(logs[..., 2:], axis=-1)
        likely = special.logsumexp(logs[..., :2] - mean[..., None], axis=1)
        found.append(likely[:, 0] - likely[:, 1])
    return np.concatenate(found)


def orthogonal(rng: Random, runs: int = 8_000) -> Setting:
    """Others on the axes of twenty dimensions."""
    noise = round(float(np.exp(rng.uniform(np.log(0.35), np.log(2.0)))), 3)
    ends, others, said = _frame(rng)

    def truth(at: Array) -> Array:
        tuning = [np.sort(_scores(rng, runs // 4, end, ends, others, noise)) for end in ends]
        counted = [np.sort(_scores(rng, runs, end, ends, others, noise)) for end in ends]
        candidates = np.quantile(np.concatenate(tuning), np.linspace(0.02, 0.995, 200))
        out = np.empty((len(at), 1))
        for i, alpha in enumerate(np.exp(at)):
            guess = [1.0 - np.searchsorted(t, candidates) / len(t) for t in tuning]
            cut = candidates[int(np.argmax(guess[0] - alpha * guess[1]))]
            hits = [len(c) - int(np.searchsorted(c, cut)) for c in counted]
            out[i] = max(0.0, at_least(hits[0], runs) - alpha * at_most(hits[1], runs))
        return out

    text = f"[(ShuffleRound({CLIENTS}, gaussian({noise})), 1)]"
    return Setting(text, epsilons(rng, 2.0 / noise, CLIENTS / 9), truth, lambda _: f"{said}, others {others.tolist()}")


def _coefficients(ratios: Array, first: int) -> tuple[Array, Array]:
    """log sums, over who sent what, of products of ratios: runs x clients x (second point, a, b) in, both worlds out.

    `first`: how many of the others hold the second point; one client is the target, the rest hold the point that is
    the reference, with ratio 1.
    """
    runs, clients, _ = ratios.shape
    scale = np.zeros(runs)
    plain = np.zeros((runs, first + 1))  # so many second points so far, the target not among them
    plain[:, 0] = 1.0
    marked = np.zeros((2, runs, first + 1))
    for i in range(clients):
        second, ends = ratios[:, i, 0, None], ratios[:, i, 1:].T[:, :, None]
        marked = marked + ends * plain
        marked[:, :, 1:] += second * (marked - ends * plain)[:, :, :-1]
        plain[:, 1:] += second * plain[:, :-1]
        most = np.maximum(plain.max(axis=1), marked.max(axis=(0, 2)))
        scale += np.log(most)
        plain, marked = plain / most[:, None], marked / most[None, :, None]
    with np.errstate(divide="ignore"):
        logs = np.log(marked[:, :, first]) + scale
    return logs[0], logs[1]


def groups(rng: Random, runs: int = 6_000) -> Setting:
    """The others at two points of the ball, in shares that are drawn."""
    noise = round(float(np.exp(rng.uniform(np.log(0.4), np.log(3.0)))), 3)
    clients = int(rng.integers(8, CLIENTS + 1)) if rng.random() < 0.7 else int(rng.integers(CLIENTS, 1500))
    angles = np.array([0.0, np.pi, *rng.choice([0.0, np.pi / 2, np.pi, rng.uniform(0.0, np.pi)], 2)])
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # a, b, reference, second: the rest is noise
    first = int(rng.choice([0, (clients - 1) // 2, clients - 1, rng.integers(clients)]))
    first = first if clients <= CLIENTS else 0
    held = points[[0, *[3] * first, *[2] * (clients - 1 - first)]]

    def truth(at: Array) -> Array:
        reports = held[None] + noise * rng.normal(size=(runs, *held.shape))
        logs = reports @ points.T / noise**2  # all points have length one
        ratios = np.exp(logs[..., [3, 0, 1]] - logs[..., 2:3])
        in_a, in_b = _coefficients(ratios, first)
        with np.errstate(over="ignore"):
            return np.array([[max(0.0, mean_at_least(np.maximum(0.0, -np.expm1(e + in_b - in_a))))] for e in at])

    text = f"[(ShuffleRound({clients}, gaussian({noise})), 1)]"
    said = f"a, b, reference, second at angles {angles.tolist()}, {first} hold the second"
    return Setting(text, epsilons(rng, 2.0 / noise, clients / 9), truth, lambda _: said)
