"""Random runs, certified and checked: does `verify/check.py` agree with the engine?

    python benchmarks/certificates.py [--runs 30] [--seed 0] [--large] [--fixed] [--kept FILE]

prints a table: what `epsilon` prints, what the certificate claims, CPU seconds to make and to check it, bytes and the
checker's verdict. `--fixed` takes README's runs and one of each kind. `--kept` writes every row to a file as it is
found and computes only what is not there: `python benchmarks/certificates.py --large --runs 300 --kept
docs/results/certificates.jsonl` prints the 300 runs with up to 10^9 clients and 10^7 rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

import dpcheckin as dp
from dpcheckin.accounting.proof.certificate import certificate, write
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.errors import DpCheckinError, NumericalFailure, OutsideTheorem
from dpcheckin.numerals import rounded_up

CHECKER = Path(__file__).parents[1] / "verify" / "check.py"
Run = list[tuple[Round, int]]


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one run."""

    name: str
    printed: str
    claimed: str = "–"
    made: float = 0.0
    checked: float = 0.0
    size: int = 0
    verdict: str = ""

    @property
    def ratio(self) -> float:
        """Of the claim to what is printed; NaN without a claim."""
        return float("nan") if self.claimed == "–" else float(self.claimed) / _number(self.printed)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def loaded(path: Path) -> ModuleType:
    """The checker as a module: nothing of it is shared, and a process less is started."""
    spec = importlib.util.spec_from_file_location("check", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def certified(name: str, run: Run, delta: float) -> Row | None:
    """Certify and check one run; None if there is no guarantee.

    Args:
        name: For the table.
        run: Rounds and how often each takes place.
        delta: Of the statement.
    """
    try:
        epsilon = dp.compose(run).epsilon(delta).upper
    except DpCheckinError:
        return None
    if not math.isfinite(epsilon):
        return None
    printed, start = rounded_up(epsilon), time.process_time()
    try:
        content = certificate(run, epsilon, delta)
    except (OutsideTheorem, NumericalFailure) as problem:
        return Row(name, printed, verdict=f"not covered: {problem}")
    made, said = time.process_time() - start, io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = write(content, Path(folder) / "certificate.json")
        before = time.process_time()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = loaded(CHECKER).main([str(path)])
        checked, size = time.process_time() - before, path.stat().st_size
    verdict = "proved" if code == 0 else said.getvalue().strip()[-300:]
    return Row(name, printed, content["claim"]["epsilon"], made, checked, size, verdict)


def fixed() -> Iterator[tuple[str, Run, float]]:
    """README's runs, and one of each kind."""
    check_in, pure = dp.CheckInRound, dp.any_pure
    yield "P3, MNIST", [(check_in(60_000, 1 / 30, pure(2.0)), 6_000)], 1e-5
    yield "P0, MNIST", [(check_in(60_000, 0.1, pure(2.0)), 6_800)], 1 / 60_000
    for rate, epsilon in ((0.01, 2.0), (0.001, 2.0), (0.01, 8.0), (0.001, 8.0)):
        yield f"P1, {rate:g}, {epsilon:g}", [(check_in(10_000, rate, pure(epsilon)), 100)], 1e-4
    yield "LDP-SGD", [(check_in(60_000, 1 / 30, dp.hemisphere(2.0)), 6_000)], 1e-5
    for name, pair in (
        ("binary", dp.binary_response(1.0)),
        ("10-ary", dp.dary_response(2.0, 10)),
        ("any 0.75", pure(0.75)),
        ("any 0.3", pure(0.3)),
        ("PrivUnit", dp.privunit(4.0, 784)),
        ("subsets", dp.subset_selection(2.0, 20, 4)),
        ("unary", dp.unary_encoding(2.0, 20)),
        ("Hadamard", dp.hadamard_response(2.0, 20)),
        ("(2, 1e-12)", dp.approximate(2.0, 1e-12)),
        ("Gaussian, 2", dp.gaussian(2.0)),
        ("atoms", dp.from_atoms([3.0, 1.0, 0.5], [0.1, 0.5, 0.4])),
    ):
        yield name, [(check_in(60_000, 1 / 30, pair), 1_000)], 1e-5
    yield "cohort", [(dp.SubsampleRound(60_000, 2_000, pure(2.0)), 6_000)], 1e-5
    yield "shuffle", [(dp.ShuffleRound(10_000, pure(1.0)), 10)], 1e-6
    yield "colluding", [(check_in(60_000, 1 / 30, pure(2.0), colluding=0.1), 1_000)], 1e-5
    yield "dropout", [(check_in(60_000, 1 / 30, pure(2.0), dropout=0.2), 1_000)], 1e-5
    uneven = check_in(60_000, 0.05, dp.binary_response(1.0), lowest_rate=0.01)
    yield "rates 1-5%", [(uneven, 1_000)], 1e-5
    evenings = check_in(40_000, 0.05, dp.binary_response(1.0))
    yield "mixed", [(check_in(60_000, 1 / 30, pure(2.0)), 1_000), (evenings, 500)], 1e-5
    yield "billion", [(check_in(10**9, 0.001, pure(2.0)), 10**4)], 1e-9
    yield "one round", [(check_in(60_000, 1 / 30, pure(2.0)), 1)], 1e-5


def _pair(draw: np.random.Generator) -> dp.LocalPair:
    epsilon = float(f"{draw.uniform(0.1, 6.0):.3g}")
    kinds = (
        dp.any_pure,
        dp.binary_response,
        dp.hemisphere,
        lambda e: dp.dary_response(e, int(draw.integers(3, 60))),
        lambda e: dp.subset_selection(e, 20, int(draw.integers(2, 8))),
        lambda e: dp.unary_encoding(e, 12),
        lambda e: dp.hadamard_response(e, 16),
        lambda e: dp.privunit(max(e, 1.0), int(draw.integers(10, 1000))),
        lambda e: dp.approximate(e, 1e-13),
    )
    return kinds[int(draw.integers(len(kinds)))](epsilon)


def drawn(runs: int, seed: int, large: bool) -> Iterator[tuple[str, Run, float]]:
    """Runs at random.

    Args:
        runs: How many.
        seed: Of the draws.
        large: Whether up to 10^9 clients and 10^7 rounds.
    """
    people, rounds = (9.0, 7.0) if large else (5.0, 4.0)
    for index in range(runs):
        draw = np.random.default_rng([seed, index])
        n = int(10 ** draw.uniform(2.5, people))
        rate = float(f"{min(10 ** draw.uniform(-3, -0.1), 0.9):.3g}")
        count = int(10 ** draw.uniform(0, rounds))
        delta = float(f"{10 ** draw.uniform(-9, -4):.2g}")
        pair, shape = _pair(draw), int(draw.integers(8))
        one: Round = dp.CheckInRound(n, rate, pair)
        if shape == 0:
            one = dp.SubsampleRound(n, max(int(rate * n), 2), pair)
        elif shape == 1 and pair.full_shuffle_proved:
            one = dp.ShuffleRound(n, pair)
        elif shape == 2:
            one = dp.CheckInRound(n, rate, pair, dropout=0.1)
        elif shape == 3:
            one = dp.CheckInRound(n, rate, pair, colluding=0.2)
        run: Run = [(one, count)]
        if shape == 4:
            run.append((dp.CheckInRound(2 * n, rate / 2, dp.any_pure(1.0)), count))
        named = f"{index}: {type(one).__name__} {n:.2g} {rate:g} {pair.label} x{count} {delta:g}"
        yield named, run, delta


def main() -> int:
    """Print the table; the exit code says whether all certificates were proved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", action="store_true", help="to 1e9 clients and 1e7 rounds")
    parser.add_argument("--fixed", action="store_true", help="README's runs, one of each kind")
    parser.add_argument("--kept", type=Path, help="a file of rows: what is there is not computed again")
    asked = parser.parse_args()
    known: dict[str, Row | None] = {}
    if asked.kept and asked.kept.exists():
        for line in asked.kept.read_text().splitlines():
            entry = json.loads(line)
            known[entry["name"]] = Row(**entry) if "printed" in entry else None
    rows: list[Row] = []
    print("| run | printed | claimed | ratio | s to make | s to check | bytes | |")
    print("|---|---|---|---|---|---|---|---|")
    for one in fixed() if asked.fixed else drawn(asked.runs, asked.seed, asked.large):
        row = known[one[0]] if one[0] in known else certified(*one)
        if asked.kept and one[0] not in known:
            with asked.kept.open("a") as file:
                file.write(json.dumps({"name": one[0]} if row is None else asdict(row)) + "\n")
        if row is None:
            continue
        rows.append(row)
        figures = f"{row.ratio:.5f} | {row.made:.1f} | {row.checked:.1f} | {row.size:,}"
        print(f"| {row.name} | {row.printed} | {row.claimed} | {figures} | {row.verdict} |", flush=True)
    proved = [row for row in rows if row.verdict == "proved"]
    refused = sum(row.verdict.startswith("not covered") for row in rows)
    worst = max((row.ratio for row in proved), default=1.0)
    print(f"{len(proved)} proved of {len(rows)}, {refused} not covered, largest ratio {worst:.5f}")
    near, less = (sum(abs(row.ratio - 1) <= 1e-3 for row in proved), sum(row.ratio < 1 - 1e-3 for row in proved))
    print(f"{near} within 0.1% of what is printed, {less} below it by more")
    return 0 if len(proved) + refused == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
