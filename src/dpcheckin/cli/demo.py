"""`dpcheckin demo`: the guarantee of a real deployment, beside what was published for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcheckin.cli.arguments import need
from dpcheckin.console import waiting

# P3's MNIST run: 60,000 clients, 2,000 in expectation per round, 6,000 rounds, local epsilon 2
POPULATION, RATE, LOCAL_EPSILON, ROUNDS, DELTA = 60_000, 1 / 30, 2.0, 6_000, 1e-5
COUNTS = (10, 30, 100, 300, 1000, 3000, ROUNDS)


def demo(out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-out")) -> None:
    """State the guarantee of a published MNIST run and draw epsilon against rounds."""
    from rich.console import Console

    from dpcheckin.accounting import CheckInRound, any_pure, guarantee
    from dpcheckin.cli.compare import compare
    from dpcheckin.notebook.comparisons import setting_of
    from dpcheckin.report.compare import along
    from dpcheckin.report.reproduce import write_png

    need("matplotlib")
    console = Console()
    console.print(
        f"{POPULATION:,} clients check in at rate 1/30 and report with local epsilon "
        f"{LOCAL_EPSILON:g}, {ROUNDS:,} rounds (the MNIST run of the subsampled-shuffle paper).\n"
    )
    one = CheckInRound(POPULATION, RATE, any_pure(LOCAL_EPSILON))
    console.print(str(guarantee([(one, ROUNDS)], DELTA)), highlight=False)
    run: dict[str, Any] = {
        "population": POPULATION,
        "rounds": ROUNDS,
        "delta": DELTA,
        "rate": RATE,
        "local_epsilon": LOCAL_EPSILON,
    }
    compare(**run, local_delta=0.0)
    out.mkdir(parents=True, exist_ok=True)
    with waiting("demo") as say:
        panel = along(setting_of(protocol="shuffled-check-in", **run), "rounds", COUNTS, say)
    cells = {
        (row.label, column.label): column.compute(row.parameters) for row in panel.rows for column in panel.columns
    }
    picture = out / "epsilon-against-rounds.png"
    write_png(panel, cells, picture)
    console.print(f"\nPicture: {picture}")
