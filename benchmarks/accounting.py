"""CPU time of the accountant, its targets, and the same numbers from other packages.

    python benchmarks/accounting.py [--repeats 5] [--peer-repeats 3] [--no-peers] [--check]
        [--json FILE]

Every time is the median CPU time of several calls on one thread, each on new objects, so that
nothing is remembered from the call before. Peers run in the same process after ours; those that
are not installed are named. With --check the exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import _timing  # first: it limits the threads
from _accounting_peers import (
    ExplicitPair,
    Peer,
    dictionary_peers,
    exact_gaussian_epsilon,
    explicit_pair,
    gaussian_peers,
    quietly,
)
from _timing import Row
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from dpcheckin.accounting import Bracket, CheckInRound, LocalRound, Round, ShuffleRound, any_pure, compose, gaussian

Make = Callable[[], tuple[Round, int]]
GAUSSIANS = ((0.182, 6800), (1.0, 1000))  # the check-in row's mu-GDP limit, and a larger loss
P3_OPTIONS = (
    *("--population", "60000", "--rate", "0.0333333333", "--local-epsilon", "2"),
    *("--rounds", "6000", "--delta", "1e-5"),
)
DICTIONARY = "n=1e4, rate 1e-2, eps0=2, T=100"


def ours(case: str, make: Make, delta: float, repeats: int, **about: object) -> Row:
    """Time the whole way from a description to a certified epsilon."""
    result, times = _timing.cpu_times(lambda: compose([make()]).epsilon(delta), repeats)
    assert isinstance(result, Bracket)
    row = Row("accountant", case, result.lower, result.upper, times)
    for name, value in about.items():
        setattr(row, name, value)
    return row


def targets(repeats: int) -> list[Row]:
    """The cases with a promised time, and the reference values of Gaussian check-in."""
    many = 10**9

    def run(case: str, make: Make, delta: float, **about: object) -> Row:
        return ours(case, make, delta, repeats, **about)

    rows = [
        run(
            "P3: n=6e4, rate 1/30, eps0=2, T=6000, delta 1e-5",
            lambda: (CheckInRound(60_000, 1 / 30, any_pure(2.0)), 6000),
            1e-5,
            target=0.3,
            target_width=1e-4,
        )
    ]
    for name, delta in (("1e-5", 1e-5), ("1e-10", 1e-10)):
        rows.append(
            run(
                f"n=1e9, rate 1e-5, eps0=4, T=1e5, delta {name}",
                lambda: (CheckInRound(many, 1e-5, any_pure(4.0)), 100_000),
                delta,
                target=1.0,
            )
        )
        rows.append(
            run(
                f"n=1e9, rate 1e-2, eps0=4, T=1e4, delta {name}",
                lambda: (CheckInRound(many, 1e-2, any_pure(4.0)), 10_000),
                delta,
                target=2.0,
            )
        )
    rows.append(
        run(
            "one full shuffle: n=1e6, eps0=2, delta 1e-6",
            lambda: (ShuffleRound(10**6, any_pure(2.0)), 1),
            1e-6,
            target=0.1,
        )
    )
    for n, rate, rounds in ((60_000, 0.1, 6800), (10_000, 0.05, 200)):
        rows.append(
            run(
                f"Gaussian s=1: n={n:g}, rate {rate:g}, T={rounds}, delta 1e-5",
                lambda n=n, rate=rate, rounds=rounds: (CheckInRound(n, rate, gaussian(2.0)), rounds),
                1e-5,
                numerical=False,
            )
        )
    return rows


def growth(repeats: int) -> dict[str, list[Row]]:
    """Cost against n * rate from 1e3 to 1e7: by a higher rate, and by a larger fleet."""
    sizes = [10.0 ** (k / 2) for k in range(6, 15)]
    curves: dict[str, list[Row]] = {"n = 1e9, rate varies": [], "rate = 1e-2, n varies": []}
    for size in sizes:
        for name, n, rate in (
            ("n = 1e9, rate varies", 10**9, size / 1e9),
            ("rate = 1e-2, n varies", round(size * 100), 1e-2),
        ):
            row = ours(
                f"{size:.3g}", lambda n=n, rate=rate: (CheckInRound(n, rate, any_pure(4.0)), 1000), 1e-6, repeats
            )
            row.extra["check_ins"] = size
            curves[name].append(row)
    return curves


def beside(peers: list[Peer], own: Row, repeats: int) -> tuple[list[Row], list[str]]:
    """Rows of the peers that run, reasons of those that do not."""
    rows, skipped = [], []
    for peer in peers:
        if peer.missing:
            skipped.append(f"{peer.label}: {peer.missing}")
            continue
        try:
            quietly(peer.run)  # imports, and whatever a package prepares once
            ends, times = _timing.cpu_times(lambda peer=peer: quietly(peer.run), repeats)
        except Exception as problem:
            skipped.append(f"{peer.label} on {own.case}: {type(problem).__name__}: {problem}")
            continue
        lower, upper = ends  # type: ignore[misc]
        rows.append(Row(own.group, own.case, lower, upper, times, beside=own.case, who=peer.label))
    return rows, skipped


def comparisons(repeats: int, peer_repeats: int) -> tuple[list[Row], list[str], list[str]]:
    """Ours and the peers' on the same explicit pair and on the same Gaussians."""
    rows, skipped, notes = [], [], []
    own = ours(
        DICTIONARY, lambda: (CheckInRound(10_000, 1e-2, any_pure(2.0)), 100), 1e-4, repeats, group="explicit pair"
    )
    rows.append(own)
    built, (preparing,) = _timing.cpu_times(lambda: explicit_pair(10_000, 1e-2, 2.0), 1)
    assert isinstance(built, ExplicitPair)
    notes.append(
        f"explicit pair: {len(built.upper):,} outcomes, at most {built.lost:.1g} of the mass left "
        f"out; writing it down took {preparing:.2f} s, which is not charged to the peer"
    )
    more, why = beside(dictionary_peers(built, 100, 1e-4), own, peer_repeats)
    for row in more:
        row.times = [t / 2 for t in row.times]  # each call computes a lower and an upper end
    notes.append("dp-accounting dict: two runs give the two ends; the time shown is that of one")
    rows, skipped = rows + more, skipped + why
    for mu, rounds in GAUSSIANS:
        case = f"Gaussian, mu={mu:g} over T={rounds}, delta 1e-5"
        own = ours(
            case,
            lambda mu=mu, rounds=rounds: (LocalRound(gaussian(2 * math.sqrt(rounds) / mu)), rounds),
            1e-5,
            repeats,
            group="Gaussian",
        )
        exact = exact_gaussian_epsilon(mu, 1e-5)
        notes.append(f"{case}: the closed form is {exact:.6f}")
        own.extra["exact"] = exact
        more, why = beside(gaussian_peers(mu, rounds, 1e-5), own, peer_repeats)
        for row in more:
            row.extra["exact"] = exact
        rows, skipped = [*rows, own, *more], skipped + why
    return rows, skipped, notes


def command_line(repeats: int) -> list[Row]:
    """Commands in a new process, beside what Python alone and the imports cost."""
    script = Path(sys.executable).with_name("dpcheckin")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import dpcheckin.accounting": [sys.executable, "-c", "import dpcheckin.accounting"],
        "dpcheckin --help": [str(script), "--help"],
        "dpcheckin epsilon (the P3 case)": [str(script), "epsilon", *P3_OPTIONS],
    }
    rows = []
    for name, command in commands.items():
        _timing.started(command, 1)  # compiled files and the disk's cache
        runs = _timing.started(command, repeats)
        row = Row("start", name, None, None, [run.cpu for run in runs])
        row.extra = {"wall": statistics.median(run.wall for run in runs), "best_wall": min(run.wall for run in runs)}
        row.target = 0.5 if name == "dpcheckin --help" else None
        rows.append(row)
    return rows


def _ends(row: Row) -> str:
    if row.upper is None:
        return "–"
    return f"[{'–' if row.lower is None else f'{row.lower:.6g}'}, {row.upper:.6g}]"


def _width(row: Row) -> str:
    if not row.numerical:
        return "two bounds"
    exact = row.extra.get("exact")
    if row.width is None and exact and row.upper is not None:
        return f"{(row.upper - exact) / exact:+.4%} off"
    return "–" if row.width is None else f"{row.width:.4%}"


def show(console: Console, rows: list[Row]) -> None:
    """The table of cases; a peer's ratio is its time over ours."""
    own = {row.case: row for row in rows if row.beside is None}
    table = Table("case", "by", r"epsilon \[lower, upper]", "width", "CPU s", "target", "ratio to ours")
    for row in rows:
        wanted = "–"
        if row.target is not None:
            colour, word = ("green", "met") if row.met else ("red", "MISSED")
            narrow = f", {row.target_width:.2%}" if row.target_width else ""
            wanted = f"[{colour}]≤ {row.target:g}{narrow}: {word}[/]"
        ratio = "–" if row.beside is None else f"{row.seconds / own[row.beside].seconds:.3g}"
        case = row.case if row.beside is None else ""
        cells = (_ends(row).replace("[", r"\["), _width(row), f"{row.seconds:.4f}", wanted, ratio)
        table.add_row(case, row.who, *cells)
    console.print(table)


def show_growth(console: Console, curves: dict[str, list[Row]]) -> None:
    """CPU seconds against check-ins a round, and the exponent of the growth."""
    table = Table("n * rate", *curves, title="CPU seconds, eps0=4, T=1000, delta 1e-6")
    for several in zip(*curves.values(), strict=True):
        table.add_row(several[0].case, *(f"{r.seconds:.3f}  (width {_width(r)})" for r in several))
    console.print(table)
    for name, rows in curves.items():
        times = [row.seconds for row in rows]
        exponent = _timing.slope([row.extra["check_ins"] for row in rows], times)
        console.print(
            f"{name}: {min(times):.3f} to {max(times):.3f} s over a factor of 10,000, cost ~ (n rate)^{exponent:+.3f}"
        )


def show_start(console: Console, rows: list[Row]) -> None:
    """Processes: wall time says how the machine was, CPU time how the program is."""
    table = Table("new process", "CPU s", "wall s", "best wall s", "target")
    for row in rows:
        wanted = "–" if row.target is None else f"≤ {row.target:g}: {'met' if row.met else 'MISSED'}"
        wall = (f"{row.extra[name]:.3f}" for name in ("wall", "best_wall"))
        table.add_row(row.case, f"{row.seconds:.3f}", *wall, wanted)
    console.print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="calls of ours per case")
    parser.add_argument("--peer-repeats", type=int, default=3, help="calls of a peer per case")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--json", metavar="FILE", default=None)
    options = parser.parse_args()
    if min(options.repeats, options.peer_repeats) < 1:
        parser.error("--repeats and --peer-repeats must be at least 1")
    console = Console(width=None if sys.stdout.isatty() else 170)
    about = _timing.machine()
    console.print_json(json.dumps(about))

    skipped, notes, compared = ["all: --no-peers was given"], [], []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        stage = progress.add_task("starting processes", total=4)
        start = command_line(options.repeats)
        progress.update(stage, advance=1, description="cases with a target")
        rows = targets(options.repeats)
        progress.update(stage, advance=1, description="cost against check-ins")
        curves = growth(max(options.repeats - 2, 1))
        progress.update(stage, advance=1, description="other packages")
        if not options.no_peers:
            compared, skipped, notes = comparisons(options.repeats, options.peer_repeats)
        progress.update(stage, advance=1)

    show(console, rows + compared)
    for note in notes:
        console.print(note, highlight=False)
    skipped = list(dict.fromkeys(skipped))
    for reason in skipped:
        console.print(f"skipped: {reason}", highlight=False)
    show_growth(console, curves)
    show_start(console, start)
    if options.json:
        found = {
            "machine": about,
            "rows": [row.to_json() for row in rows + compared + start],
            "growth": {name: [row.to_json() for row in some] for name, some in curves.items()},
            "skipped": skipped,
            "notes": notes,
        }
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    missed = [row.case for row in rows + start if row.met is False]
    for case in missed:
        console.print(f"[red]target missed: {case}[/]")
    sys.exit(1 if missed and options.check else 0)


if __name__ == "__main__":
    main()
