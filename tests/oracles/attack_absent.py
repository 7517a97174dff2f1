"""Attack by brute force what the package promises where nobody has to be absent.

    python tests/oracles/attack_absent.py --attacks 100000 --seed 1 [--kinds 'full/*' window/fixed]
                                          [--seconds 1500] [--scaled 0.9]

One attack is one data set of one run: a full shuffle, a check-in at uneven rates, a window of random check-ins, or a
few rounds of them. Its exact delta (or, with Gaussian and Laplace reports, less than that) is held against what the
package promises, at several epsilons and in both directions. For every kind: how many attacks, the largest quotient of
truth and promise (`crowded`: where at least three clients hide and epsilon is at most half the local one), what was
refused, and every crossing with the call of `repeat` that makes it again. Lower bounds are
looked at too: what they claim has to be lost on some data set. `--scaled 0.9` attacks promises that much smaller, to
see that attacks bite. Exit code 1 if anything was crossed, or failed for want of arithmetic.
"""

from __future__ import annotations

import argparse
import sys
import time
from fnmatch import fnmatch
from math import ceil
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "src")]

import numpy as np  # noqa: E402

from oracles.absent.fight import Promise, Tally, attack, campaign, lower_bound, promised  # noqa: E402
from oracles.absent.kinds import KINDS  # noqa: E402
from oracles.absent.setting import Setting  # noqa: E402

PARTS = 20


def repeat(name: str, seed: int, number: int) -> tuple[Setting, Tally]:
    """The setting of this number again, and what came of it."""
    rng = np.random.default_rng([seed, *name.encode(), number])
    setting, tally = KINDS[name].draw(rng), Tally()
    attack(setting, promised, tally, "repeated")
    rng.random()
    lower_bound(rng, setting, tally, "repeated")
    return setting, tally


def table(tallies: dict[str, Tally]) -> str:
    """One line a kind, the sums, and what came closest."""
    lines = [
        f"{'kind':24s} {'attacks':>8} {'runs':>7} {'refused':>7} {'lower':>6} {'crossed':>7} {'closest':>12} "
        f"{'crowded':>12} {'s':>6}"
    ]
    for name, t in tallies.items():
        lines.append(
            f"{name:24s} {t.attacks:8d} {t.settings:7d} {t.refused:7d} {t.lower:6d} {len(t.crossings):7d} "
            f"{t.closest[0]:12.9f} {t.crowded[0]:12.9f} {t.seconds:6.0f}"
        )
    done, crossed = (sum(n) for n in zip(*((t.attacks, len(t.crossings)) for t in tallies.values()), strict=True))
    lines.append(f"{'all':24s} {done:8d} attacks, {crossed} crossed")
    for name, t in tallies.items():
        lines.append(f"closest {name}: {t.crowded[0]:.9f} {t.crowded[1][:500]}")
        lines += [f"FAILED {name}: {len(t.failures)} in all, {failure}" for failure in t.failures[:5]]
        lines += [f"refused {name}: {n} x {why}" for why, n in t.refusals.most_common(6)]
    return "\n".join(lines)


def run(options: argparse.Namespace, tallies: dict[str, Tally], promise: Promise) -> None:
    """All kinds advance together, so that a run cut short has seen them all."""
    shares = sum(KINDS[name].share for name in tallies)
    told = dict.fromkeys(tallies, 0)
    for part in range(1, PARTS + 1):
        for name, tally in tallies.items():
            quota = ceil(options.attacks * KINDS[name].share / shares * part / PARTS)
            left = options.seconds - time.process_time()
            campaign(name, KINDS[name].draw, options.seed, quota, tally, promise, left)
            for crossing in tally.crossings[told[name] :][:20]:
                print(f"CROSSED {name}: {crossing}", flush=True)
            told[name] = len(tally.crossings)
        done = sum(t.attacks for t in tallies.values())
        line = f"# {part}/{PARTS}: {done} attacks, {sum(told.values())} crossed"
        print(f"{line}, {time.process_time():.0f} s", file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> int:
    """Run the attacks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attacks", type=int, default=100_000, help="over all kinds asked for")
    parser.add_argument("--kinds", nargs="+", default=["*"], help="patterns such as 'full/*'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--scaled", type=float, default=1.0, help="of the promises")
    options = parser.parse_args(words)
    names = [k for k in KINDS if any(fnmatch(k, pattern) for pattern in options.kinds)]
    if not names:
        parser.error(f"no kind matches {options.kinds}; there are: {', '.join(KINDS)}")
    tallies = {name: Tally() for name in names}
    try:
        run(options, tallies, lambda text, at: options.scaled * promised(text, at))
    except KeyboardInterrupt:
        print("stopped: what was found until then")
    print(table(tallies))
    return 1 if any(t.crossings or t.failures for t in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
