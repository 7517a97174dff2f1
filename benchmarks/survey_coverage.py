"""How often do intervals of quantiles contain the real quantile, of numbers of every shape?

    python benchmarks/survey_coverage.py [--repeats 400] [--people 5000] [--epsilon 1] [--json FILE]

Each row is a law of numbers and a number of bins: the share of 95% intervals that contain the quantile of the numbers
themselves (not of their bins), for the quartiles and for the 99% quantile, the share of runs in which all four hold at
once when that is asked for, and the median width of an interval beside that of a bin. Everybody reports, in one round
at the certified epsilon; with --rate only a part of the population does.
"""

from __future__ import annotations

import _timing  # noqa: F401  (one thread for every library)

# isort: split
import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.survey import Quantiles, Survey, Wish, one_round, plan_survey

WANTED = (0.25, 0.5, 0.75, 0.99)


def laws(people: int) -> dict[str, tuple[tuple[float, float], np.ndarray]]:
    """Numbers of so many people with the bounds of the question: smooth, skewed, discrete, heavy-tailed, with gaps."""
    draw = np.random.default_rng(5)
    return {
        "uniform": ((0, 1), draw.random(people)),
        "normal": ((-5, 5), draw.standard_normal(people)),
        "lognormal income": ((0, 300_000), np.exp(10 + draw.standard_normal(people))),
        "exponential": ((0, 20), draw.exponential(1.0, people)),
        "Pareto, index 1.1": ((0, 200), draw.pareto(1.1, people)),
        "Cauchy": ((-50, 50), draw.standard_cauchy(people)),
        "Poisson, mean 3": ((0, 16), draw.poisson(3, people).astype(float)),
        "grades, 1 to 6": ((1, 6), draw.choice(np.arange(1, 7), people, p=[0.1, 0.3, 0.3, 0.2, 0.07, 0.03]) * 1.0),
        "two lumps": ((0, 10), np.where(draw.random(people) < 0.5, 1.0, 9.0) + 0.1 * draw.random(people)),
        "half zeros": ((0, 100), np.where(draw.random(people) < 0.5, 0.0, draw.gamma(2, 10, people))),
        "one value": ((0, 10), np.full(people, 7.3)),
    }


def covered(survey: Survey, values: np.ndarray, repeats: int) -> dict[str, Any]:
    """Shares of intervals that contain the real quantile, and how wide they are."""
    query = survey.query
    assert isinstance(query, Quantiles)
    encoded = query.encode(values)
    real = np.sort(np.clip(values, query.low, query.high))
    real = real[np.ceil(np.array(query.probabilities) * len(values)).astype(int) - 1]
    each, together, widths = [], [], []
    for seed in range(repeats):
        reports = [one_round(survey, encoded, seed, index) for index in range(survey.rounds)]
        found = survey.estimate(reports)
        each.append(found.contains(real))
        widths.append(found.upper - found.lower)
        together.append(bool(survey.estimate(reports, simultaneous=True).contains(real).all()))
    bin_width = (query.high - query.low) / query.bins
    return {
        "each": np.mean(each, axis=0).tolist(),
        "together": float(np.mean(together)),
        "width": float(np.median(widths) / bin_width),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    started, rows = time.perf_counter(), []
    print(f"{given.people:,} people, epsilon {given.epsilon:g}, rate {given.rate:g}, {given.repeats:,} runs a row")
    print(f"{'numbers':20s} bins   25%    50%    75%    99%   all at once   width in bins")
    for name, ((low, high), values) in laws(given.people).items():
        for bins in (20, 50, 200):
            query = Quantiles(low, high, bins, WANTED)
            wish = Wish(query, given.people, 1e-6, epsilon=given.epsilon, rounds=1, rate=given.rate)
            found = covered(plan_survey(wish).survey, values, given.repeats)
            rows.append({"numbers": name, "bins": bins, **found})
            shares = " ".join(f"{share:6.1%}" for share in found["each"])
            print(f"{name:20s} {bins:4d} {shares} {found['together']:10.1%} {found['width']:13.1f}", flush=True)
    least = min(min(row["each"]) for row in rows)
    print(f"least: {least:.1%} of single intervals, {min(row['together'] for row in rows):.1%} of all at once")
    print(f"{time.perf_counter() - started:.0f} s")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
