"""Attack the package's promises about one round (and two) by brute force.

    python tests/oracles/attack_types.py --attacks 100000 --seed 1 [--kinds 'any/*' gaussian/line]
                                         [--seconds 1500] [--scaled 1.0]

One attack: two neighbouring data sets under one randomizer and protocol, one alpha, both orders;
the exact delta (or a lower bound on it) held against what the package promises. About a quarter
are drawn at random, the others climb towards the largest quotient truth / promise. `crowded`:
the largest quotient with at least 1.5 check-ins a round and epsilon up to half the local one
(elsewhere little is hidden and bounds are exact). `--scaled 0.9` attacks promises that much
smaller, to see that attacks bite. Every crossing is printed with what repeats it; exit code 1 if
there is any. A run that is told to end says what it found.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import warnings
from fnmatch import fnmatch
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "src")]

import numpy as np  # noqa: E402

from oracles.attacks import climb, guarantees  # noqa: E402
from oracles.attacks.climb import Tally  # noqa: E402
from oracles.attacks.kinds import KINDS  # noqa: E402

PARTS = 20


def attack(
    name: str,
    seed: int,
    attacks: int,
    seconds: float = float("inf"),
    promise: guarantees.Promise = guarantees.deltas,
    tally: Tally | None = None,
    size: dict[str, int] | None = None,
) -> Tally:
    """So many attacks of one kind; campaigns are numbered by what the tally holds already.

    `size`: of a campaign, as `climb.campaign` takes it.
    """
    kind, tally = KINDS[name], tally or Tally()
    ends = time.process_time() + seconds
    size = size or kind.size
    while tally.attacks < attacks and time.process_time() < ends:
        rng = np.random.default_rng([seed, *name.encode(), tally.campaigns])
        tally.campaigns += 1
        began = time.process_time()
        arena = kind.draw(rng)
        with warnings.catch_warnings(record=True) as heard:  # the package's: told, not raised
            warnings.simplefilter("always")
            try:
                climb.campaign(rng, arena, promise, tally, **size)
            except guarantees.REFUSALS as refusal:
                tally.refusals[f"{type(refusal).__name__}: {refusal}"[:100]] += 1
        for warning in heard:
            tally.warnings[f"{warning.message}, first near {arena.text}"] += 1
        tally.seconds += time.process_time() - began
    return tally


def table(tallies: dict[str, Tally]) -> str:
    """One line a kind, then the sums."""
    lines = [f"{'kind':20s} {'attacks':>8} {'sampled':>8} {'climbed':>8} {'2 rounds':>8} "
             f"{'cohorts':>8} {'data':>8} {'curves':>7} {'crossed':>7} {'closest':>11} "
             f"{'crowded':>11} {'s':>6}"]  # fmt: skip
    columns = ("attacks", "sampled", "climbed", "twice", "cohorts", "data_sets", "curves")
    for name, t in tallies.items():
        counts = " ".join(f"{getattr(t, c):{7 if c == 'curves' else 8}d}" for c in columns)
        lines.append(f"{name:20s} {counts} {len(t.crossings):7d} {t.closest[0]:11.9f} "
                     f"{t.crowded[0]:11.9f} {t.seconds:6.0f}")  # fmt: skip
    sums = [sum(getattr(t, c) for t in tallies.values()) for c in columns]
    counts = " ".join(f"{s:{7 if c == 'curves' else 8}d}" for s, c in zip(sums, columns, strict=True))
    crossed = sum(len(t.crossings) for t in tallies.values())
    lines.append(f"{'all':20s} {counts} {crossed:7d}")
    for name, t in tallies.items():
        lines.append(f"closest {name}: {t.crowded[0]:.6f} {t.crowded[1]}")
        if t.twice:
            lines.append(f"closest {name}: {t.closest_twice[0]:.6f} {t.closest_twice[1]}")
        lines += [f"warned {name}: {n} x {what}" for what, n in list(t.warnings.items())[:5]]
        lines += [f"refused {name}: {n} x {why}" for why, n in t.refusals.items()]
    return "\n".join(lines)


def _rounds_of_all(options: argparse.Namespace, tallies: dict[str, Tally], promise: guarantees.Promise) -> None:
    """All kinds advance together, so that a run cut short has seen them all."""
    shares = sum(KINDS[name].share for name in tallies)
    told = dict.fromkeys(tallies, 0)
    for part in range(1, PARTS + 1):
        for name, tally in tallies.items():
            quota = int(np.ceil(options.attacks * KINDS[name].share / shares * part / PARTS))
            left = options.seconds - time.process_time()
            attack(name, options.seed, quota, left, promise, tally)
            for crossing in tally.crossings[told[name] :][:20]:
                print(f"CROSSED {name}: {crossing}", flush=True)
            told[name] = len(tally.crossings)
        done = sum(t.attacks for t in tallies.values())
        line = f"# {part}/{PARTS}: {done} attacks, {sum(told.values())} crossed"
        print(f"{line}, {time.process_time():.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Run the attacks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attacks", type=int, default=120_000, help="over all kinds asked for")
    parser.add_argument("--kinds", nargs="+", default=["*"], help="patterns such as 'any/*'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--scaled", type=float, default=1.0, help="of the promises")
    options = parser.parse_args()
    names = [k for k in KINDS if any(fnmatch(k, pattern) for pattern in options.kinds)]
    if not names:
        parser.error(f"no kind matches {options.kinds}; there are: {', '.join(KINDS)}")
    tallies = {name: Tally() for name in names}

    def promise(text, epsilons):
        return options.scaled * guarantees.deltas(text, epsilons)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _rounds_of_all(options, tallies, promise)
    except KeyboardInterrupt:
        print("stopped: what was found until then")
    print(table(tallies))
    return 1 if any(t.crossings for t in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
