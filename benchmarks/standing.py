"""The standing sample: 400 ordinary questions, each answered in a process of its own.

    python benchmarks/standing.py --run [--again 3 17] [--slower 3]
    python benchmarks/standing.py

The first asks what was not asked yet and may be stopped at any time, both print the table. `--again`
asks these settings once more, `--slower` those that took more CPU seconds. A setting is drawn from
ranges that people use: 100 to 10^9 clients, rates from 1e-4 to 1, every randomizer, 1 to 10^7 rounds,
deltas from 1e-12 to 1e-3; setting i depends on the seed and i alone. Of each are written to
docs/results/standing.jsonl: the guarantee, the lower bound, CPU seconds of both after everything was
imported, the largest memory of the process, and what was said instead of an answer.

An answer is good if it is finite and not below its lower bound, and there within 60 CPU seconds and
2 GB; the goal is 3 seconds. Anything else is listed and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

for _name in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

from dpcheckin.errors import DpCheckinError  # noqa: E402
from dpcheckin.numerals import rounded_down, rounded_up  # noqa: E402
from dpcheckin.protocols.questions import RunQuestion  # noqa: E402
from dpcheckin.randomizers.registry import BUILT_IN, Kind, typed_name  # noqa: E402

STORE = Path(__file__).parents[1] / "docs" / "results" / "standing.jsonl"
SETTINGS, SEED, WORST = 400, 26, 10
MOST_SECONDS, MOST_BYTES, GOAL = 60.0, 2 * 10**9, 3.0
Row = dict[str, Any]


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """As likely in every decade, in three digits, as people write it."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def _numbers(kind: Kind, rng: np.random.Generator) -> dict[str, Any]:
    """A value for everything that is typed behind a randomizer's name."""
    ranges: dict[str, tuple[float, float]] = {
        "noise_multiplier": (0.8, 20.0),
        "dimension": (2, 1e5),
        "symbols": (2, 1000),
        "steps": (2, 100),
        "leaves": (8, 4096),
        "buckets": (2, 1024),
    }
    found: dict[str, Any] = {}
    for name in [argument.field for argument in kind.arguments]:
        if name in ranges:
            low, high = ranges[name]
            found[name] = _between(rng, low, high) if name == "noise_multiplier" else round(_between(rng, low, high))
    if "buckets" in found:
        found["buckets"] = 2 ** round(math.log2(found["buckets"]))
    if "branching" in [argument.field for argument in kind.arguments]:
        found["branching"] = int(rng.integers(2, 9))
    if "chosen" in [argument.field for argument in kind.arguments]:
        found["symbols"] = max(found["symbols"], 3)
        found["chosen"] = int(rng.integers(1, min(found["symbols"], 20)))
    return found


def setting(index: int) -> Row:
    """Question `index` in the words of the front door, with its delta."""
    rng = np.random.default_rng([SEED, index])
    kind = BUILT_IN[index % len(BUILT_IN)]
    population, rate = round(_between(rng, 100, 1e9)), _between(rng, 1e-4, 1.0)
    rounds, delta = round(_between(rng, 1, 1e7)), _between(rng, 1e-12, 1e-3)
    asked: Row = {"population": population, "rounds": rounds, "delta": delta}
    asked["randomizer"] = typed_name(kind, _numbers(kind, rng))
    if kind.noise_field == "local_epsilon":
        asked["local_epsilon"] = _between(rng, 0.1, 8.0)
    if kind.name in ("skellam", "discrete-gaussian"):  # have no local pair
        return {"protocol": "distributed-check-in", "rate": rate, **asked}
    if rng.random() < 0.25:
        return {"protocol": "subsampled-shuffle", "cohort": max(round(rate * population), 2), **asked}
    return {"protocol": "shuffled-check-in", "rate": rate, **asked}


def answer(index: int) -> Row:
    """What is said of a setting, and what it took."""
    asked = setting(index)
    row: Row = {"setting": index, **asked}
    delta = asked.pop("delta")
    start = time.process_time()
    try:
        question = RunQuestion(**asked)
        row["upper"] = question.guarantee(delta).epsilon.upper
        row["seconds"] = round(time.process_time() - start, 2)
        if question.has_lower_bound:
            row["lower"] = question.lower_bound(delta).epsilon.lower
            row["lower_seconds"] = round(time.process_time() - start - row["seconds"], 2)
    except DpCheckinError as refusal:
        row["said"] = f"{type(refusal).__name__}: {refusal}"
        row.setdefault("seconds", round(time.process_time() - start, 2))
    row["megabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
    return row


def asked_apart(index: int) -> Row:
    """The same in a process of its own, which is ended when it takes far too much."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (180, 180))
        resource.setrlimit(resource.RLIMIT_AS, (8 * 10**9, 8 * 10**9))

    command = [sys.executable, "-W", "error", __file__, "--one", str(index)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, check=False)
    if done.returncode == 0:
        found: Row = json.loads(done.stdout)
        return found
    last = (done.stderr.strip().splitlines() or ["no word"])[-1]
    return {"setting": index, **setting(index), "said": f"ended with {done.returncode}: {last}"}


def stored(path: Path = STORE) -> dict[int, Row]:
    """The latest row of every setting that was asked."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["setting"]: row for row in sorted(rows, key=lambda row: row["setting"])}


def _store(path: Path, rows: dict[int, Row]) -> None:
    path.write_text("".join(json.dumps(rows[i]) + "\n" for i in sorted(rows)), "utf-8")


def ratio(row: Row) -> float:
    """Guarantee to lower bound; NaN where one of them is not known."""
    lower = row.get("lower", 0.0)
    return row["upper"] / lower if lower > 0.0 and "upper" in row else math.nan


def spent(row: Row) -> float:
    """CPU seconds of guarantee and lower bound, which a command prints together."""
    return float(row.get("seconds", 180.0) + row.get("lower_seconds", 0.0))


def wrong(row: Row) -> str | None:
    """What a row should not be, if it is."""
    if "upper" not in row or "said" in row:
        return str(row.get("said", "no answer"))
    if not 0.0 <= row["upper"] < math.inf:
        return f"not finite: {row['upper']}"
    if not row["upper"] >= row.get("lower", 0.0):
        return f"below its lower bound {row['lower']:.6g}"
    if not (row["seconds"] <= MOST_SECONDS and row.get("lower_seconds", 0.0) <= MOST_SECONDS):
        return f"took {spent(row):.0f} s"
    if not row["megabytes"] <= MOST_BYTES / 1e6:
        return f"took {row['megabytes']} MB"
    return None


def described(row: Row) -> str:
    """A setting in a line."""
    who = f"rate {row['rate']:g}" if "rate" in row else f"{row['cohort']:,} of"
    noise = f" {row['local_epsilon']:g}" if "local_epsilon" in row else ""
    return (
        f"{row['setting']}: {row['randomizer']}{noise}, {who} {row['population']:,}, "
        f"{row['rounds']:,} rounds, {row['delta']:g}"
    )


def _quantiles(values: Iterable[float], digits: int) -> list[str]:
    known = sorted(value for value in values if not math.isnan(value))
    if not known:
        return ["–"] * 3
    at = (statistics.median(known), known[min(math.ceil(0.95 * len(known)), len(known)) - 1], known[-1])
    return [f"{value:.{digits}f}" for value in at]


def table(rows: Iterable[Row]) -> str:
    """By randomizer: settings, good answers, and median, 95% and largest of ratio, seconds, memory."""
    everything = list(rows)
    lines = [
        "| randomizer | settings | good | ratio: median, 95%, largest | seconds | megabytes |",
        "|---|---|---|---|---|---|",
    ]
    for name in [*(kind.name for kind in BUILT_IN), "all"]:
        some = [row for row in everything if name in (row["randomizer"].split(":")[0], "all")]
        good = sum(wrong(row) is None for row in some)
        # a ratio of figures next to zero says nothing
        ratios = _quantiles((ratio(row) for row in some if row.get("lower", 0.0) > 1e-6), 3)
        cells = [
            ratios,
            _quantiles(map(spent, some), 1),
            _quantiles((row.get("megabytes", math.nan) for row in some), 0),
        ]
        lines.append(f"| {name} | {len(some)} | {good} | " + " | ".join(", ".join(cell) for cell in cells) + " |")
    return "\n".join(lines)


def worst(rows: Iterable[Row]) -> Iterator[str]:
    """The worst by ratio, by seconds and by memory, and whatever is wrong."""
    everything = list(rows)
    told = [row for row in everything if row.get("lower", 0.0) > 1e-6]
    for title, some, key in (
        ("ratio", told, ratio),
        ("seconds", everything, spent),
        ("megabytes", [row for row in everything if "megabytes" in row], lambda row: float(row["megabytes"])),
    ):
        yield f"\nworst by {title}"
        for row in sorted(some, key=key, reverse=True)[:WORST]:
            upper = rounded_up(row["upper"]) if "upper" in row else "–"
            yield f"  {key(row):10.3f}  {upper} ≥ {rounded_down(row.get('lower', 0.0))}  {described(row)}"
    bad = [(row, why) for row in everything if (why := wrong(row))]
    yield f"\nnot good: {len(bad)}; slower than {GOAL:g} s: {sum(spent(row) > GOAL for row in everything)}"
    for row, why in bad:
        yield f"  {described(row)}: {why}"


def main() -> int:
    """Ask what is asked for and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="ask what was not asked yet")
    parser.add_argument("--again", type=int, nargs="*", default=[], metavar="I", help="ask these settings once more")
    parser.add_argument("--slower", type=float, default=math.inf, help="and those that took more CPU seconds")
    parser.add_argument("--wrong", action="store_true", help="and those whose answer was not good")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(answer(options.one)))
        return 0
    rows = stored(options.store)
    again = {i for i, row in rows.items() if spent(row) > options.slower or (options.wrong and wrong(row))}
    again |= set(options.again)
    if options.run:
        again |= set(range(SETTINGS)) - rows.keys()
    for index in sorted(again):
        row = asked_apart(index)
        rows = {**stored(options.store), index: row}
        _store(options.store, rows)
        print(described(row), f"{row.get('upper')} ≥ {row.get('lower')}, {spent(row):.1f} s", flush=True)
    print(table(rows.values()))
    print(*worst(rows.values()), sep="\n")
    return int(any(wrong(row) for row in rows.values()))


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
