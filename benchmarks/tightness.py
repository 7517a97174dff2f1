"""How far guarantees are from proven lower bounds: random runs of every randomizer.

    python benchmarks/tightness.py --run [--minutes 10] [--rows any binary]
    python benchmarks/tightness.py
    python benchmarks/tightness.py --far

The first computes what is missing, both print the table; the last one answers some questions whose guarantees
were or are far from what is known to be lost.

A setting is a shuffled check-in with at least 300 expected check-ins a round (3,000 for Gaussian
reports), 1 to 10,000 rounds and a delta between 1e-10 and 1e-3; or 1 to 1,000 full shuffles of at
least 10,000 and 1,000 e0 clients; or check-in at rates that differ by up to two. Those whose
guarantee is above 5 are left out and drawn again. Printed are quantiles of guarantee / lower bound.

Setting i of a row depends on the seed, the row and i alone, so a run may be stopped and goes on
where it was; `--fresh` computes stored settings again, `--above 1.02` those with a larger gap only:
a bound that got better since can only make a stored gap smaller. Results are kept in
docs/results/tightness.json, and docs/theory.md shows the table.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpcheckin.accounting import (
    CheckInRound,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    binary_response,
    compose,
    dary_response,
    gaussian,
    hadamard_response,
    laplace,
    lower_bound,
    privunit,
    subset_selection,
    unary_encoding,
)
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.numerals import rounded_down, rounded_up

LARGEST = 5.0
STORE = Path(__file__).parents[1] / "docs" / "results" / "tightness.json"
COMMAND = "python benchmarks/tightness.py --run"

Draw = Callable[[np.random.Generator], LocalPair]
Setting = tuple[CheckInRound | ShuffleRound, int, float]


@dataclass(frozen=True)
class Row:
    """One randomizer with the range its parameter is drawn from, and what is wished for."""

    text: str
    pair: Draw
    median: float | None  # goals
    most: float | None  # for 95% of the settings
    fewest: int = 300
    shape: str = "check-in"  # or a full shuffle, or rates that differ by a factor of up to two


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _any(rng: np.random.Generator) -> LocalPair:
    epsilon = _between(rng, 0.1, 8.0)
    while 0.5 < epsilon < 0.9:
        epsilon = _between(rng, 0.1, 8.0)
    return any_pure(epsilon)


def _approximate(rng: np.random.Generator) -> LocalPair:
    pair = _any(rng)
    return approximate(pair.local_epsilon, _between(rng, 1e-15, 1e-11))


def _dary(rng: np.random.Generator) -> LocalPair:
    return dary_response(_between(rng, 0.1, 8.0), round(_between(rng, 3, 1000)))


def _laplace(rng: np.random.Generator) -> LocalPair:
    return laplace(_between(rng, 0.1, 4.0))


def _privunit(low: float, high: float) -> Draw:
    return lambda rng: privunit(_between(rng, low, high), round(_between(rng, 50, 10_000)))


def _gaussian(low: float, high: float) -> Draw:
    return lambda rng: gaussian(2.0 / _between(rng, low, high))


ROWS = {
    "any": Row("any pure, ε₀ in 0.1–8 outside 0.5–0.9", _any, 1.02, 1.06),
    "near-two": Row("any pure, ε₀ in 0.5–0.9", lambda rng: any_pure(_between(rng, 0.5, 0.9)), None, None),
    "approximate": Row("any (ε₀, δ₀), the same ε₀, δ₀ in 10⁻¹⁵–10⁻¹¹", _approximate, 1.02, 1.06),
    "binary": Row("binary response, LDP-SGD", lambda rng: binary_response(_between(rng, 0.1, 8.0)), 1.02, 1.06),
    "dary": Row("d-ary response, d in 3–1000", _dary, 1.02, 1.06),
    "privunit-4": Row("PrivUnit, ε₀ in 4–8", _privunit(4.0, 8.0), 1.02, 1.02),
    "privunit-2": Row("PrivUnit, ε₀ in 2–4", _privunit(2.0, 4.0), 1.06, 1.06),
    "laplace-4": Row("Laplace, ε₀ in 0.1–4", _laplace, 1.02, 1.06),
    "laplace-8": Row("Laplace, ε₀ in 4–8", lambda rng: laplace(_between(rng, 4.0, 8.0)), None, None),
    "gaussian-1": Row("Gaussian, s = 2/σ in 0.5–1", _gaussian(0.5, 1.0), 1.07, 1.07, 3_000),
    "gaussian-2": Row("Gaussian, s in 1–2", _gaussian(1.0, 2.0), 1.12, 1.12, 3_000),
    "any-full": Row("full shuffle: any pure, ε₀ outside 0.5–0.9", _any, 1.03, 1.03, shape="full"),
    "binary-full": Row(
        "full shuffle: binary response, LDP-SGD", lambda rng: binary_response(_between(rng, 0.1, 4.0)), 1.03, 1.03,
        shape="full",
    ),
    "dary-full": Row("full shuffle: d-ary response", _dary, 1.03, 1.03, shape="full"),
    "privunit-full": Row("full shuffle: PrivUnit, ε₀ in 4–8", _privunit(4.0, 8.0), 1.03, 1.03, shape="full"),
    "laplace-full": Row("full shuffle: Laplace, ε₀ in 0.1–4", _laplace, None, None, shape="full"),
    "gaussian-full": Row("full shuffle: Gaussian, s in 0.2–1", _gaussian(0.2, 1.0), 1.08, 1.08, shape="full"),
    "any-uneven": Row("uneven rates: any pure, ε₀ outside 0.5–0.9", _any, 1.05, 1.05, 1_000, "uneven"),
    "dary-uneven": Row("uneven rates: d-ary response", _dary, 1.05, 1.05, 1_000, "uneven"),
    "gaussian-uneven": Row("uneven rates: Gaussian, s in 0.25–1", _gaussian(0.25, 1.0), 1.10, 1.10, 3_000, "uneven"),
}  # fmt: skip


FAR: dict[str, tuple[CheckInRound | SubsampleRound, int, str]] = {
    "Gaussian, s = 1.4": (CheckInRound(100_000, 0.05, gaussian(2.0 / 1.4)), 100, "types 1.2% wider"),
    "Gaussian, s = 4": (CheckInRound(100_000, 0.05, gaussian(0.5)), 100, "no types beyond s = 2.1"),
    "Gaussian, s = 1, 39 clients": (CheckInRound(39, 0.5, gaussian(2.0)), 10, "few reports"),
    "Gaussian, s = 1, 1,000 clients": (CheckInRound(1_000, 0.1, gaussian(2.0)), 20, ""),
    "Laplace, ε₀ = 8": (CheckInRound(100_000, 0.05, laplace(8.0)), 100, ""),
    "PrivUnit, ε₀ = 1": (CheckInRound(100_000, 0.02, privunit(1.0, 100)), 300, "no types"),
    "Hadamard, ε₀ = 2.5, 7 symbols": (CheckInRound(100_000, 0.02, hadamard_response(2.5, 7)), 300, ""),
    "unary, ε₀ = 1": (CheckInRound(100_000, 0.02, unary_encoding(1.0, 10)), 300, ""),
    "5 of 10, ε₀ = 2": (CheckInRound(100_000, 0.02, subset_selection(2.0, 10, 5)), 300, ""),
    "binary, ε₀ = 7": (CheckInRound(100_000, 0.02, binary_response(7.0)), 100, ""),
    "binary, ε₀ = 1, 20 clients": (CheckInRound(20, 0.5, binary_response(1.0)), 10, "few reports"),
    "any, ε₀ = 2, 1,000 of 10,000, a fifth colludes": (
        SubsampleRound(10_000, 1_000, any_pure(2.0), colluding=0.2), 100, "",
    ),
}  # fmt: skip


def far() -> str:
    """Guarantee and lower bound of each, and what stands in the way."""
    lines = [
        "| check-in, δ = 10⁻⁶ | rounds | guarantee | lower bound | ratio | in the way |",
        "|---|---|---|---|---|---|",
    ]
    for name, (one, rounds, why) in FAR.items():
        upper, lower = compose([(one, rounds)]).epsilon(1e-6).upper, lower_bound([(one, rounds)], 1e-6).epsilon.lower
        figures = f"{rounded_up(upper)} | {rounded_down(lower)} | {_shown(upper / lower)}"
        lines.append(f"| {name} | {rounds} | {figures} | {why or '–'} |")
    return "\n".join(lines)


def settings(name: str, seed: int, index: int) -> Iterator[Setting]:
    """Candidates for one setting: the first whose guarantee is at most 5 is taken."""
    row, rng = ROWS[name], np.random.default_rng([seed, *name.encode(), index])
    while row.shape == "full":
        pair, rounds = row.pair(rng), round(_between(rng, 1, 1_000))
        largest = math.exp(pair.local_epsilon) if math.isfinite(pair.local_epsilon) else 1.0
        people = round(_between(rng, max(1e4, 1e3 * largest), max(1e6, 1e4 * largest)))
        yield ShuffleRound(people, pair), rounds, 10.0 ** rng.uniform(-10, -3)
    while True:
        population = round(_between(rng, 4 * row.fewest, 1e7))
        rate = _between(rng, row.fewest / population, 0.5)
        rounds, delta = round(_between(rng, 1, 10_000)), 10.0 ** rng.uniform(-10, -3)
        lowest = rate * float(rng.uniform(0.5, 1.0)) if row.shape == "uneven" else None
        yield CheckInRound(population, rate, row.pair(rng), lowest_rate=lowest), rounds, delta


def described(setting: Setting) -> str:
    """A setting in words."""
    one, rounds, delta = setting
    rate = f"rate {one.rate:.3g}" if isinstance(one, CheckInRound) else "all shuffled"
    return f"{one.pair.label}: {one.population:,} clients, {rate}, {rounds:,} rounds, delta {delta:.2g}"


def measured(name: str, seed: int, index: int) -> tuple[int, float, float]:
    """Which candidate was taken, its guarantee and its lower bound."""
    for candidate, (one, rounds, delta) in enumerate(settings(name, seed, index)):
        upper = compose([(one, rounds)]).epsilon(delta).upper
        if 1e-6 < upper <= LARGEST:
            return candidate, upper, lower_bound([(one, rounds)], delta).epsilon.lower
    raise AssertionError("candidates do not end")


def _rounded(upper: float, lower: float) -> list[float]:
    """Six digits, outward."""
    unit = 10.0 ** (math.floor(math.log10(upper)) - 5)
    return [float(f"{math.ceil(upper / unit) * unit:.6g}"), float(f"{math.floor(lower / unit) * unit:.6g}")]


def stored(path: Path = STORE) -> dict[str, dict[str, list[float]]]:
    """What was computed: for every row, index -> candidate, guarantee, lower bound."""
    if not path.exists():
        return {}
    found: dict[str, dict[str, list[float]]] = json.loads(path.read_text("utf-8"))["rows"]
    return found


def _store(path: Path, seed: int, rows: dict[str, dict[str, list[float]]]) -> None:
    lines = [
        f'  "{name}": {{\n'
        + ",\n".join(f'   "{i}": {json.dumps(rows[name][i])}' for i in sorted(rows[name], key=int))
        + "\n  }"
        for name in ROWS
        if name in rows
    ]
    text = (
        f'{{\n "command": "{COMMAND}",\n "seed": {seed},\n'
        ' "columns": ["candidate", "guarantee", "lower bound"],\n "rows": {\n' + ",\n".join(lines) + "\n }\n}\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def ratios(row: dict[str, list[float]]) -> np.ndarray:
    """guarantee / lower bound of the settings of one row."""
    return np.array([_ratio(upper, lower) for _, upper, lower in row.values()])


def _ratio(upper: float, lower: float) -> float:
    return upper / lower if lower > 0.0 else math.inf


def _shown(ratio: float) -> str:
    return "∞" if math.isinf(ratio) else f"{math.ceil(1e3 * ratio - 1e-6) / 1e3:.3f}"


def table(rows: dict[str, dict[str, list[float]]]) -> str:
    """The table of the documents; figures are rounded up."""
    lines = ["| randomizer | settings | median | 95% | largest | goal |", "|---|---|---|---|---|---|"]
    for name, row in ROWS.items():
        if name not in rows:
            continue
        found = ratios(rows[name])
        # the higher of two neighbours: nothing is interpolated to infinity
        figures = [*np.quantile(found, [0.5, 0.95], method="higher"), found.max()]
        shown = " | ".join(_shown(float(figure)) for figure in figures)
        if row.median is None or row.most is None:
            goal = "–"
        elif row.median == row.most:
            goal = f"{row.most}"
        else:
            goal = f"{row.median}; {row.most}"
        lines.append(f"| {row.text} | {found.size} | {shown} | {goal} |")
    return "\n".join(lines)


def _run(options: argparse.Namespace) -> None:
    rows = {} if options.fresh else stored(options.store)
    began = told = time.monotonic()
    for name in options.rows:
        known = rows.setdefault(name, {})
        for index in range(options.settings):
            if str(index) in known and _ratio(*known[str(index)][1:]) <= options.above:
                continue
            if time.monotonic() - began > 60 * options.minutes:
                break
            candidate, upper, lower = measured(name, options.seed, index)
            known[str(index)] = [candidate, *_rounded(upper, lower)]
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"# {name}: {len(known)} of {options.settings}", file=sys.stderr, flush=True)
                _store(options.store, options.seed, rows)
        _store(options.store, options.seed, rows)


def _worst(options: argparse.Namespace) -> None:
    """The settings of each row with the largest gap."""
    rows = stored(options.store)
    for name in options.rows:
        found = ratios(rows.get(name, {}))
        for at in np.argsort(-found)[: options.worst]:
            index = list(rows[name])[at]
            candidate = int(rows[name][index][0])
            for tried, setting in enumerate(settings(name, options.seed, int(index))):
                if tried == candidate:
                    print(f"{found[at]:.4f} {name} {index}: {described(setting)}")
                    break


def main() -> None:
    """Compute what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", action="store_true", help="compute settings that are not stored")
    parser.add_argument("--fresh", action="store_true", help="forget what is stored")
    parser.add_argument("--above", type=float, default=math.inf, help="also what is stored with a larger gap")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--worst", type=int, default=0, help="show so many of the worst settings")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--far", action="store_true", help="questions whose guarantees were or are far away")
    options = parser.parse_args()
    if options.far:
        print(far())
        return
    if options.run:
        _run(options)
    if options.worst:
        _worst(options)
    else:
        print(table(stored(options.store)))


if __name__ == "__main__":
    main()
