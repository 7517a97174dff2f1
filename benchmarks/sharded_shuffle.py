"""What sharding a shuffler costs in privacy: bounds beside simulated attacks, and fleets to 10⁹.

    python benchmarks/sharded_shuffle.py [--samples 200000] [--json FILE]

First table: one round of binary response, everybody but the target holding the same value, where
the best attack is a likelihood-ratio test. The rounds are simulated (coins, shards, reports), the
attacker's delta(epsilon) is estimated with three standard errors, and stands beside the bound that
each design has (docs/scaling.md, Propositions 1 to 4). Second table: whole runs of large fleets.
"""

from __future__ import annotations

import _timing  # noqa: F401  (limits threads; must come before numpy)

# isort: split
import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.accounting import CheckInRound, any_pure, binary_response, compose, guarantee
from dpcheckin.accounting.rounds.sharded import sharded
from dpcheckin.numerals import rounded_up

CLIENTS, RATE, LOCAL, SHARDS, CORRUPTED = 2000, 0.05, 2.0, 20, 2
EPSILONS = (0.02, 0.05, 0.1, 0.3)


def ratios(chance: np.random.Generator, samples: int, others: int, rate: float) -> Any:
    """Density of "target holds a" over "holds b" for rounds in which all hold b."""
    e0 = math.exp(LOCAL)
    taken = chance.binomial(others + 1, rate, samples)
    hits = chance.binomial(taken, 1 / (e0 + 1))  # reports that speak for a
    return ((others + 1 - taken) + hits * e0 + (taken - hits) / e0) / (others + 1)


def attacked(strata: list[tuple[float, Any]], epsilon: float) -> tuple[float, float]:
    """The attacker's delta and three standard errors; strata have known probabilities."""
    delta = variance = 0.0
    for weight, ratio in strata:
        gain = np.maximum(ratio - math.exp(epsilon), 0.0)
        delta += weight * float(gain.mean())
        variance += weight**2 * float(gain.var()) / len(gain)
    return delta, 3 * math.sqrt(variance)


def corrupted_ratios(chance: np.random.Generator, samples: int) -> list[tuple[float, Any]]:
    """Two shards of twenty tell names: the target's report is seen, or it hides among the rest."""
    exposed = RATE * CORRUPTED / SHARDS
    left = chance.binomial(CLIENTS - 1, 1 - exposed, samples)
    hidden = (RATE - exposed) / (1 - exposed)
    e0 = math.exp(LOCAL)
    taken = chance.binomial(left + 1, hidden)
    hits = chance.binomial(taken, 1 / (e0 + 1))
    among = ((left + 1 - taken) + hits * e0 + (taken - hits) / e0) / (left + 1)
    named = np.where(chance.random(samples) < 1 / (e0 + 1), e0, 1 / e0)
    return [(exposed, named), (1 - exposed, among)]


def one_round(samples: int) -> list[dict[str, Any]]:
    """Every design at every epsilon: the attack, and the bound it must not cross."""
    chance, pair = np.random.default_rng(0), binary_response(LOCAL)
    whole = compose([(CheckInRound(CLIENTS, RATE, pair), 1)])
    own = compose([(CheckInRound(CLIENTS // SHARDS, RATE, pair), 1)])
    some = compose(sharded(CLIENTS, RATE, pair, 1, shards=SHARDS, corrupted=CORRUPTED))
    designs = {
        "one shuffler; or shards merged at random": ([(1.0, ratios(chance, samples, CLIENTS - 1, RATE))], whole.delta),
        f"{SHARDS} shards, picked secretly each round": (
            [(1.0, ratios(chance, samples, CLIENTS - 1, RATE))],
            compose(sharded(CLIENTS, RATE, pair, 1, shards=SHARDS)).delta,
        ),
        f"{SHARDS} shards, fixed": ([(1.0, ratios(chance, samples, CLIENTS // SHARDS - 1, RATE))], own.delta),
        f"{SHARDS} shards, picked secretly, {CORRUPTED} of them corrupted": (
            corrupted_ratios(chance, samples),
            some.delta,
        ),
    }
    rows = []
    for name, (strata, bound) in designs.items():
        for epsilon in EPSILONS:
            found, error = attacked(strata, epsilon)
            rows.append(
                {
                    "design": name,
                    "epsilon": epsilon,
                    "attack": found,
                    "three_errors": error,
                    "bound": bound(epsilon).upper,
                    "crossed": found - error > bound(epsilon).upper,
                }
            )
    return rows


def fleets() -> list[dict[str, Any]]:
    """Certified epsilon of whole runs, 1,000 rounds of about 6,000 check-ins, local epsilon 2."""
    rows, pair, rounds = [], any_pure(2.0), 1000
    for clients, delta in ((10**6, 1e-8), (10**9, 1e-11)):
        rate = 6000 / clients
        row: dict[str, Any] = {"clients": clients, "rate": rate, "delta": delta, "rounds": rounds}
        plain = [(CheckInRound(clients, rate, pair), rounds)]
        row["one shuffler, or secret shards"] = guarantee(plain, delta).epsilon.upper
        for shards in (10, 1000):
            fixed = [(CheckInRound(clients // shards, rate, pair), rounds)]
            row[f"{shards} fixed shards"] = guarantee(fixed, delta).epsilon.upper
        for shards, corrupted in ((1000, 1), (1000, 100)):
            told = sharded(clients, rate, pair, rounds, shards=shards, corrupted=corrupted)
            row[f"{shards} secret shards, {corrupted} corrupted"] = compose(told).epsilon(delta).upper
        rows.append(row)
    return rows


def main() -> None:
    """Print both tables; exit code 1 if an attack crosses a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rounds, runs = one_round(options.samples), fleets()
    print("| design | ε | attack's δ (simulated) | bound |\n|---|---|---|---|")
    for row in rounds:
        attack = f"{row['attack']:.2e} ± {row['three_errors']:.0e}"
        print(f"| {row['design']} | {row['epsilon']} | {attack} | {row['bound']:.2e} |")
    names = [name for name in runs[0] if name not in ("clients", "rate", "delta", "rounds")]
    print("\n| clients | δ | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 2))
    for row in runs:
        said = " | ".join(rounded_up(row[name]) for name in names)
        print(f"| {row['clients']:,} | {row['delta']:g} | {said} |")
    if options.json:
        content = {"one_round": rounds, "fleets": runs}
        Path(options.json).write_text(json.dumps(content, indent=1) + "\n")
    if any(row["crossed"] for row in rounds):
        raise SystemExit("an attack crosses a bound")


if __name__ == "__main__":
    main()
