"""How accurate are surveys at a certified epsilon, beside the centre and beside other tools?

    python benchmarks/survey_accuracy.py [census] [adult] [aol] [--data ../shared/data]
        [--peer PYTHON] [--repeats 20] [--json FILE]

census  602,156 people in 915 categories at delta = 1e-8: mean squared error per category of our
        planned survey beside (a) the central Gaussian mechanism of the same (epsilon, delta),
        (b) central discrete Laplace noise of the same epsilon, (c) pure-ldp's mechanisms at the
        local epsilon that our accountant allows any randomizer, (d) the same at the local epsilon
        that the clones bound allows.
adult   32,561 people at epsilon = 1, delta = 1e-6: mean and quantiles of age, largest error of the
        distribution function beside that of the central Gaussian mechanism.
aol     131,072 people, values of 24 bits, delta = 1e-6: F1 of the top 50 beside PEM (Wang, Li, Jha,
        arXiv 1708.06674) with its groups shuffled, at equal certified epsilon.

`--peer` is a Python that has pure-ldp and what it imports without asking for it (scikit-learn,
statsmodels); it need not be this one; without it (c) and (d) are the
formulas of those mechanisms' variances. pure-ldp takes each report by itself, so it is measured on
a sample of the people, and errors are scaled to all of them: they grow in proportion.
"""

from __future__ import annotations

import _timing  # noqa: F401  (one thread for every library)

# isort: split
import argparse
import importlib.util
import json
import math
import subprocess
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dpcheckin.accounting import ShuffleRound, any_pure, clones
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.randomizers import LocalHashing, SeededSource
from dpcheckin.survey import Distribution, HeavyHitters, Histogram, Mean, Quantiles, Wish, plan_survey, simulate
from dpcheckin.survey.estimates import gaussian_mu

PEERS = Path(__file__).with_name("_survey_peers.py")


def loader(folder: Path) -> ModuleType:
    """The datasets' own loader."""
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    if spec is None or spec.loader is None or not (folder / "load.py").exists():
        raise SystemExit(f"no load.py in {folder}: give --data")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def any_allowed(people: int, epsilon: float, delta: float) -> float:
    """The local epsilon that our accountant allows any pure randomizer, one full round."""
    return solve(
        "local_epsilon", lambda value: (ShuffleRound(people, any_pure(value)), 1), epsilon=epsilon, delta=delta
    )


def clones_allowed(people: int, epsilon: float, delta: float, *, exact: bool) -> float:
    """The local epsilon that the clones bound allows: closed form, or its pair computed."""

    def cost(local: float) -> float:
        if exact:
            return clones.numerical(local, people, delta)
        if people < clones.smallest_shuffle(local, delta):
            return local
        return clones.closed_form(local, people, delta)

    low, high = 1e-3, 20.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= epsilon else (low, middle)
    return max(low, epsilon)  # without amplification the local epsilon is the central one


def formulas(local: float, size: int) -> dict[str, float]:
    """Mean squared error per category and person of each mechanism, shares spread evenly."""
    e0 = math.exp(local)
    de = (e0 + size - 2) / (e0 - 1) ** 2 + (size - 2) / (size * (e0 - 1))
    q = 1 / (e0 + 1)
    oue = (q * (1 - q) * (1 - 1 / size) + 0.25 / size) / (0.5 - q) ** 2
    g = round(e0) + 1
    p = e0 / (e0 + g - 1)
    other = (1 / g) * (1 - 1 / g) * (1 - 1 / size) + p * (1 - p) / size
    return {"DE": de, "OUE": oue, "OLH": other / (p - 1 / g) ** 2}


def peers(python: str | None, symbols: np.ndarray, size: int, locals_: dict[str, float]) -> Any:
    """Mean squared error per category and person of pure-ldp's mechanisms."""
    if python is None:
        return {label: formulas(local, size) for label, local in locals_.items()}
    draw = np.random.default_rng(1)
    sample = draw.choice(symbols, 20_000, replace=False).tolist()
    asked = {"symbols": sample, "few": 1000, "size": size, "epsilons": locals_, "seed": 1}
    done = subprocess.run([python, str(PEERS)], input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pure-ldp: {done.stderr.strip().splitlines()[-1]}")
    print(done.stderr, end="")
    return json.loads(done.stdout)


def census(load: ModuleType, peer: str | None, repeats: int) -> list[dict[str, Any]]:
    names, symbols = np.unique(load.census(), return_inverse=True)
    people, size, delta = len(symbols), len(names), 1e-8
    epsilons = (0.5, 1.0, 2.0)
    locals_ = {}
    for epsilon in epsilons:
        locals_[f"any {epsilon}"] = any_allowed(people, epsilon, delta)
        locals_[f"clones {epsilon}"] = clones_allowed(people, epsilon, delta, exact=False)
        locals_[f"exact clones {epsilon}"] = clones_allowed(people, epsilon, delta, exact=True)
    rivals = peers(peer, symbols, size, locals_)
    rows = []
    for epsilon in epsilons:
        gaussian = 2 / gaussian_mu(epsilon, delta) ** 2
        step = math.exp(-epsilon / 2)
        row: dict[str, Any] = {"epsilon": epsilon, "gaussian": gaussian, "laplace": 2 * step / (1 - step) ** 2}
        for kind in ("any", "clones", "exact clones"):
            label = f"{kind} {epsilon}"
            found = {name: value * people for name, value in rivals[label].items()}
            best = min(found, key=found.__getitem__)
            row[kind] = {"local": locals_[label], "best": best, **found}
        for title, rounds, rate in (
            ("one round", 1, 1.0), ("20 rounds at 0.1", 20, 0.1), ("eight full rounds", 8, 1.0),
        ):  # fmt: skip
            wish = Wish(Histogram(size), people, delta, epsilon=epsilon, rounds=rounds, rate=rate)
            # a few large categories make one run's error vary by a tenth: ask more often if cheap
            row[title] = _played(wish, symbols, repeats * (10 if rounds == 1 else 1))
        rows.append(row)
        _show_census(row)
    return rows


def _played(wish: Wish, symbols: np.ndarray, repeats: int) -> dict[str, Any]:
    planned = plan_survey(wish)
    errors, inside = [], []
    for seed in range(repeats):
        outcome = simulate(planned.survey, symbols, seed=seed)
        errors.append(float(np.mean((outcome.estimate.values - outcome.truth) ** 2)))
        inside.append(float(outcome.estimate.contains(outcome.truth).mean()))
    return {
        "mechanism": planned.survey.mechanism,
        "local": planned.survey.local_epsilon,
        "epsilon": planned.guarantee.epsilon.upper,
        "lower_bound": planned.survey.lower_bound(wish.delta).epsilon.lower,
        "predicted": planned.error**2,
        "measured": float(np.mean(errors)),
        "standard_error": float(np.std(errors, ddof=1) / math.sqrt(repeats)) if repeats > 1 else None,
        "inside": float(np.mean(inside)),
    }


def _show_census(row: dict[str, Any]) -> None:
    print(f"\nepsilon = {row['epsilon']}, mean squared error per category")
    print(f"  (a) central Gaussian       {row['gaussian']:10.1f}")
    print(f"  (b) central Laplace        {row['laplace']:10.1f}")
    for kind in ("any", "clones", "exact clones"):
        one = row[kind]
        told = ", ".join(f"{k} {one[k]:.0f}" for k in ("DE", "OUE", "OLH", "HR") if k in one)
        print(f"  pure-ldp, {kind:13s} eps0 {one['local']:6.3f}: {told}")
    for title in ("one round", "20 rounds at 0.1", "eight full rounds"):
        one = row[title]
        spread = one["standard_error"] or math.nan
        print(
            f"  ours, {title:18s}   {one['measured']:10.1f} ± {spread:.1f} "
            f"(predicted {one['predicted']:.1f}, {one['predicted'] / row['gaussian']:.3f} × (a); "
            f"measured {one['measured'] / row['gaussian']:.2f} × (a)); {one['mechanism']}, "
            f"eps0 {one['local']:.3f}; certified {one['epsilon']:.4f}, proven at least "
            f"{one['lower_bound']:.4f}; {one['inside']:.1%} of intervals hold"
        )


def adult(load: ModuleType, repeats: int) -> dict[str, Any]:
    age = load.adult()["age"]
    people, epsilon, delta = len(age), 1.0, 1e-6
    print(f"\nAdult, {people:,} people, epsilon = {epsilon}, delta = {delta}, one full round")
    runs = 10 * repeats
    found: dict[str, Any] = {}
    wish = Wish(Mean(17, 91), people, delta, epsilon=epsilon, rounds=1)
    survey = plan_survey(wish).survey
    off = [abs(simulate(survey, age, seed=s).estimate.values[0] - age.mean()) for s in range(runs)]
    found["mean"] = float(np.quantile(off, 0.95))
    query = Quantiles(17, 91, 74, (0.5,))
    survey = plan_survey(Wish(query, people, delta, epsilon=epsilon, rounds=1)).survey
    off = [
        abs(math.floor(simulate(survey, age, seed=s).estimate.values[0]) - float(np.median(age))) for s in range(runs)
    ]
    found["median"] = float(np.quantile(off, 0.95))
    query = Distribution(17, 91, 74)
    survey = plan_survey(Wish(query, people, delta, epsilon=epsilon, rounds=1)).survey
    off = []
    for seed in range(runs):
        outcome = simulate(survey, age, seed=seed)
        off.append(float(np.abs(outcome.estimate.values - outcome.truth).max()))
    found["cdf"] = float(np.mean(off))
    found["central"] = _central_cdf(age, epsilon, delta, runs)
    print(f"  mean age: 95% of {runs} runs within {found['mean']:.3f} years")
    print(f"  median:   95% of runs within {found['median']:.1f} years")
    print(
        f"  largest error of the distribution function: {found['cdf']:.5f}; central Gaussian "
        f"histogram {found['central']:.5f}"
    )
    return found


def _central_cdf(age: np.ndarray, epsilon: float, delta: float, runs: int) -> float:
    """A histogram with Gaussian noise, summed and made non-decreasing as ours is."""
    from dpcheckin.survey.questions.distribution import non_decreasing

    counts = np.bincount(age - 17, minlength=74)
    draw, sigma = np.random.default_rng(3), math.sqrt(2) / gaussian_mu(epsilon, delta)
    truth = counts.cumsum() / len(age)
    off = []
    for _ in range(runs):
        noisy = (counts + sigma * draw.standard_normal(74)).cumsum() / len(age)
        off.append(np.abs(non_decreasing(noisy) - truth).max())
    return float(np.mean(off))


def aol(load: ModuleType, repeats: int) -> list[dict[str, Any]]:
    values = load.aol().astype(np.uint64)
    people, delta, top = len(values), 1e-6, 50
    words, counts = np.unique(values, return_counts=True)
    best = set(words[np.argsort(-counts, kind="stable")[:top]].tolist())
    print(f"\nAOL, {people:,} people, 24 bits, delta = {delta}, F1 of the top {top}")
    rows = []
    for epsilon in (2.0, 4.0):
        row: dict[str, Any] = {"epsilon": epsilon}
        for rounds in (2, 8):
            wish = Wish(HeavyHitters(24, top), people, delta, epsilon=epsilon, rounds=rounds)
            planned = plan_survey(wish)
            scores = []
            for seed in range(repeats):
                listed = simulate(planned.survey, values, seed=seed).estimate.names
                scores.append(f_one({int(name) for name in listed}, best))
            row[f"ours, {rounds} rounds"] = float(np.mean(scores))
        for groups in (3, 4, 6):
            local = any_allowed(people // groups, epsilon, delta)
            scores = [f_one(pem(values, local, groups, top, seed), best) for seed in range(repeats)]
            row[f"PEM, {groups} groups"] = float(np.mean(scores))
        rows.append(row)
        shown = "; ".join(f"{k} {v:.3f}" for k, v in row.items() if k != "epsilon")
        print(f"  epsilon = {epsilon}: {shown}")
    return rows


def f_one(found: set[int], best: set[int]) -> float:
    return 2 * len(found & best) / (len(found) + len(best)) if found else 0.0


def pem(values: np.ndarray, local: float, groups: int, top: int, seed: int) -> set[int]:
    """Prefix extending: each group reports once, a longer prefix than the one before, by OLH."""
    bits, first = 24, 24 - (groups - 1) * (24 // (groups + 1))
    lengths = np.linspace(first, bits, groups).round().astype(int) if groups > 1 else [bits]
    order = np.random.default_rng(seed).permutation(len(values))
    buckets = 1 << min(max(round(local / math.log(2)), 1), 24)  # g = e^eps0 + 1, as a power of two
    hashing = LocalHashing(local, buckets, functions=1024, salt=str(seed))
    candidates = np.arange(1 << int(lengths[0]), dtype=np.uint64)
    for index, part in enumerate(np.array_split(order, groups)):
        prefixes = values[part] >> np.uint64(bits - int(lengths[index]))
        reports = hashing.randomize(prefixes, SeededSource((seed, index)))
        support = hashing.support(hashing.tables(reports), candidates)
        kept = candidates[np.argsort(-support, kind="stable")[:top]]
        if index == groups - 1:
            return {int(word) for word in kept}
        more = np.uint64(int(lengths[index + 1] - lengths[index]))
        ends = np.arange(1 << int(more), dtype=np.uint64)
        candidates = ((kept << more)[:, None] | ends).ravel()
    return set()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help="census, adult, aol; all if none is named")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--peer", help="a Python that has pure-ldp")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    load, started = loader(given.data), time.perf_counter()
    parts = given.parts or ["census", "adult", "aol"]
    done: dict[str, Any] = {}
    if "census" in parts:
        done["census"] = census(load, given.peer, given.repeats)
    if "adult" in parts:
        done["adult"] = adult(load, given.repeats)
    if "aol" in parts:
        done["aol"] = aol(load, max(given.repeats // 4, 1))
    print(f"\n{time.perf_counter() - started:.0f} s")
    if given.json:
        given.json.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
