"""`dpcheckin demo`: the guarantee of a real deployment, beside what was published for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# P3's MNIST run: 60,000 clients, 2,000 in expectation per round, 6,000 rounds, local epsilon 2
POPULATION, RATE, LOCAL_EPSILON, ROUNDS, DELTA = 60_000, 1 / 30, 2.0, 6_000, 1e-5


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-out"),
) -> None:
    """State the guarantee of a published MNIST run and draw epsilon against rounds."""
    from rich.console import Console
    from rich.progress import track

    from dpcheckin.accounting import CheckInRound, any_pure, compose, guarantee, lower_bound
    from dpcheckin.accounting.published import published_bounds
    from dpcheckin.cli.compare import compare

    console = Console()
    one = CheckInRound(POPULATION, RATE, any_pure(LOCAL_EPSILON))
    console.print(
        f"{POPULATION:,} clients check in at rate 1/30 and report with local epsilon "
        f"{LOCAL_EPSILON:g}, {ROUNDS:,} rounds (the MNIST run of the subsampled-shuffle paper).\n"
    )
    console.print(str(guarantee([(one, ROUNDS)], DELTA)), highlight=False)
    compare(
        population=POPULATION, rounds=ROUNDS, delta=DELTA, rate=RATE, local_epsilon=LOCAL_EPSILON,
        local_delta=0.0,
    )  # fmt: skip

    out.mkdir(parents=True, exist_ok=True)
    counts = [10, 30, 100, 300, 1000, 3000, ROUNDS]
    ours, least = [], []
    theirs: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for n in track(counts, description="epsilon against rounds"):
        ours.append(compose([(one, n)]).epsilon(DELTA).upper)
        least.append(lower_bound([(one, n)], DELTA).epsilon.lower)
        for entry in published_bounds(POPULATION, RATE, LOCAL_EPSILON, n, DELTA):
            if entry.epsilon is not None:
                key = (f"{entry.bound.name} ({entry.bound.kind.value})", entry.bound.kind.value)
                theirs.setdefault(key, []).append((n, entry.epsilon))
    picture = out / "epsilon-against-rounds.png"
    _draw(picture, counts, ours, least, theirs)
    console.print(f"\nPicture: {picture}")


def _draw(
    path: Path,
    counts: list[int],
    ours: list[float],
    least: list[float],
    theirs: dict[tuple[str, str], list[tuple[int, float]]],
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 5.2), layout="constrained")
    axes.loglog(
        counts, ours, "o-", lw=2.5, color="#0b6e4f", label="dpcheckin (guarantee)", zorder=5
    )
    axes.loglog(counts, least, "--", lw=2, color="#1f4e9c", label="proven lower bound", zorder=4)
    for (name, kind), points in sorted(theirs.items()):
        style = ":" if kind == "refuted claim" else "-."
        axes.loglog(*zip(*points, strict=True), style, lw=1.4, alpha=0.85, label=name)
    axes.set(xlabel="rounds", ylabel=f"epsilon at delta = {DELTA:g}")
    axes.set_title("60,000 clients, rate 1/30, local epsilon 2")
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=7.5)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
