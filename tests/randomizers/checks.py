"""Statistical checks with a stated false-alarm rate: each fails by chance once in ten million."""

from __future__ import annotations

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-7


def assert_mean(samples: np.ndarray, expected: np.ndarray | float) -> None:
    """Each column's mean is the expected one (z-test, Bonferroni over the columns)."""
    samples = samples.reshape(len(samples), -1)
    expected = np.broadcast_to(np.asarray(expected, dtype=float).ravel(), samples.shape[1:])
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    limit = stats.norm.isf(FALSE_ALARM / 2 / samples.shape[1])
    worst = np.abs(samples.mean(axis=0) - expected) / np.maximum(error, 1e-300)
    exact = np.isclose(samples.mean(axis=0), expected, rtol=1e-6, atol=1e-9)
    assert (exact | (worst <= limit)).all(), f"{worst.max():.1f} deviations, limit {limit:.1f}"


def assert_frequencies(observed: np.ndarray, probabilities: np.ndarray) -> None:
    """Counts follow the probabilities (chi-square)."""
    probabilities = np.asarray(probabilities, dtype=float)
    assert abs(probabilities.sum() - 1) < 1e-9
    possible = probabilities > 0
    assert (np.asarray(observed)[~possible] == 0).all()
    expected = probabilities[possible] * np.sum(observed)
    assert stats.chisquare(np.asarray(observed)[possible], expected).pvalue > FALSE_ALARM


def assert_same_law(one: np.ndarray, other: np.ndarray) -> None:
    """Two samples come from one distribution (Kolmogorov-Smirnov)."""
    assert stats.ks_2samp(one, other).pvalue > FALSE_ALARM
