"""Random rounds: how the package spells them, and all that the analyzer may see of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

from oracles.exact.families import Array, Family, pooled
from oracles.exact.shuffles import check_in, local, shuffle, subsample
from oracles.exact.windows import window
from oracles.standing.randomizers import Drawn, Random


@dataclass(frozen=True)
class DrawnRound:
    """One round; `covered` and `attained` as with a drawn randomizer."""

    text: str
    covered: Family
    attained: Family
    is_local: bool = False


def _round(text: str, drawn: Drawn, seen: Callable[[Array], Family], **more: bool) -> DrawnRound:
    attained = pooled([seen(m) for m in drawn.attained])
    rest = [seen(m) for m in drawn.covered if not any(m is other for other in drawn.attained)]
    covered = pooled([attained, *rest]) if rest and not drawn.continuous else attained
    if drawn.continuous:
        covered = pooled(rest)
    return DrawnRound(text, covered, attained, **more)


def _rate(rng: Random) -> float:
    if rng.random() < 0.06:
        return float(rng.choice([0.001, 0.999, 1.0]))
    return round(float(rng.uniform(0.02, 0.98)), 2)


def _check_in(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n, rate = int(rng.integers(1, largest + 1)), _rate(rng)
    text = f"CheckInRound({n}, {rate}, {drawn.text})"
    return _round(text, drawn, lambda m: check_in(m, n, [rate]))


def _uneven(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n, rate = int(rng.integers(2, max(largest, 3))), _rate(rng)
    lowest = float(f"{rng.uniform(0.05 * rate, rate):.3g}")
    text = f"CheckInRound({n}, {rate}, {drawn.text}, lowest_rate={lowest})"
    return _round(text, drawn, lambda m: check_in(m, n, [lowest, rate]))


def _dropout(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n, rate = int(rng.integers(2, max(largest, 3))), _rate(rng)
    dropout = round(float(rng.uniform(0.01, 0.99)), 2)
    text = f"CheckInRound({n}, {rate}, {drawn.text}, dropout={dropout})"
    return _round(text, drawn, lambda m: check_in(m, n, [rate * (1 - dropout), rate]))


def _colluders(rng: Random, population: int) -> tuple[str, int, int]:
    """A fraction of the population: how it is spelled, the fewest and the most it can mean."""
    if rng.random() < 0.7:
        j = int(rng.integers(0, population))
        return f"{j / population}", j, j
    fraction = round(float(rng.uniform(0.0, 0.95)), 2)
    few, most = floor(fraction * population + 1e-9), ceil(fraction * population - 1e-9)
    return f"{fraction}", min(few, population - 1), min(most, population - 1)


def _with_colluders(text: str, drawn: Drawn, few: int, most: int, seen: Callable[[Array, int], Family]) -> DrawnRound:
    """A guarantee must cover the fewest, a lower bound may rely on the most colluders."""
    fewest = _round(text, drawn, lambda m: seen(m, few))
    if few == most:
        return fewest
    return DrawnRound(text, fewest.covered, _round(text, drawn, lambda m: seen(m, most)).attained)


def _colluding(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n, rate = int(rng.integers(2, largest + 2)), _rate(rng)
    spelled, few, most = _colluders(rng, n)
    text = f"CheckInRound({n}, {rate}, {drawn.text}, colluding={spelled})"
    return _with_colluders(text, drawn, few, most, lambda m, c: check_in(m, n - c, [rate]))


def _subsample(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n = int(rng.integers(1, largest + 1))
    k = int(rng.integers(1, n + 1))
    text = f"SubsampleRound({n}, {k}, {drawn.text})"
    return _round(text, drawn, lambda m: subsample(m, n, k))


def _subsample_colluding(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n = int(rng.integers(2, largest + 2))
    k = int(rng.integers(1, n + 1))
    spelled, few, most = _colluders(rng, n)
    text = f"SubsampleRound({n}, {k}, {drawn.text}, colluding={spelled})"
    return _with_colluders(text, drawn, few, most, lambda m, c: subsample(m, n, k, c))


def _shuffle(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n = int(rng.integers(1, largest + 1))
    return _round(f"ShuffleRound({n}, {drawn.text})", drawn, lambda m: shuffle(m, n))


def _shuffle_colluding(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    n = int(rng.integers(2, largest + 2))
    spelled, few, most = _colluders(rng, n)
    text = f"ShuffleRound({n}, {drawn.text}, colluding={spelled})"
    return _with_colluders(text, drawn, few, most, lambda m, c: shuffle(m, n - c))


def _local(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    rate = 1.0 if rng.random() < 0.4 else _rate(rng)
    text = f"LocalRound({drawn.text}, {rate})"
    return _round(text, drawn, lambda m: local(m, rate), is_local=True)


def _slots(rng: Random, drawn: Drawn, largest: int) -> tuple[int, float]:
    symbols = max(m.shape[1] for m in (*drawn.covered, *drawn.attained))
    most = max(s for s in range(1, 5) if symbols**s <= 81 or s == 1)
    p = 1.0 if rng.random() < 0.4 else round(float(rng.uniform(0.05, 0.99)), 2)
    return int(rng.integers(1, most + 1)), p


def _lone_window(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    """Nobody is relied on: there may be no other client at all, or one of any habit."""
    m, p = _slots(rng, drawn, largest)
    text = f"WindowRound({m}, {drawn.text}, {p})"
    return _round(
        text, drawn, lambda r: pooled([window(r, m, 0, p), window(r, m, 1, p, others_probabilities=[p, 1.0])])
    )


def _elapsed_window(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    m, p = _slots(rng, drawn, largest)
    elapsed = int(rng.integers(1, m + 1))
    text = f"WindowRound({m}, {drawn.text}, {p}, elapsed={elapsed})"
    return _round(text, drawn, lambda r: window(r, m, 0, p, elapsed))


def _crowded_window(rng: Random, drawn: Drawn, largest: int) -> DrawnRound:
    m, p = _slots(rng, drawn, largest)
    others = int(rng.integers(0, max(largest - 1, 2)))
    habits = [p, 1.0] if p < 1 and others <= 2 else [p]
    text = f"WindowRound({m}, {drawn.text}, {p}, others={others})"
    return _round(text, drawn, lambda r: window(r, m, others, p, others_probabilities=habits))


PROTOCOLS: dict[str, Callable[[Random, Drawn, int], DrawnRound]] = {
    "check-in": _check_in,
    "uneven": _uneven,
    "dropout": _dropout,
    "colluding": _colluding,
    "subsample": _subsample,
    "subsample-colluding": _subsample_colluding,
    "shuffle": _shuffle,
    "shuffle-colluding": _shuffle_colluding,
    "local": _local,
    "window": _lone_window,
    "window-elapsed": _elapsed_window,
    "window-crowd": _crowded_window,
}
