"""`dpcheckin demo`: the guarantee of a real deployment, beside what was published for it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from dpcheckin.cli.arguments import need
from dpcheckin.console import waiting

# P3's MNIST run: 60,000 clients, 2,000 in expectation per round, 6,000 rounds, local epsilon 2
POPULATION, RATE, LOCAL_EPSILON, ROUNDS, DELTA = 60_000, 1 / 30, 2.0, 6_000, 1e-5


def demo(out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-out")) -> None:
    """State the guarantee of a published MNIST run and draw epsilon against rounds."""
    from rich.console import Console

    from dpcheckin.accounting import CheckInRound, any_pure, compose, guarantee, lower_bound
    from dpcheckin.cli.compare import compare
    from dpcheckin.papers.catalogue import published_bounds

    need("matplotlib")
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
    with waiting("demo") as say:
        for done, n in enumerate(counts):
            say(f"epsilon after {n:,} rounds", done / len(counts))
            ours.append(compose([(one, n)]).epsilon(DELTA).upper)
            least.append(lower_bound([(one, n)], DELTA).epsilon.lower)
            for entry in published_bounds(POPULATION, RATE, LOCAL_EPSILON, n, DELTA):
                if entry.epsilon is not None:
                    kind = entry.bound.kind.value
                    key = (f"{entry.bound.name} ({kind})", kind)
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

    figure, axes = pyplot.subplots(figsize=(10.5, 5.6), layout="constrained")
    axes.set(xscale="log", yscale="log")
    curves = [
        ("dpcheckin (guarantee)", "#0b6e4f", "o-", 2.6, list(zip(counts, ours, strict=True))),
        ("proven lower bound", "#1f4e9c", "--", 2.0, list(zip(counts, least, strict=True))),
    ]
    shades = iter(pyplot.get_cmap("tab10").colors[1:] * 3)  # type: ignore[attr-defined]
    for (name, kind), points in sorted(theirs.items(), key=lambda item: -item[1][-1][1]):
        style = ":" if kind == "refuted claim" else "-."
        curves.append((name, next(shades), style, 1.6, points))
    heights = _apart([math.log10(points[-1][1]) for *_, points in curves])
    for (name, colour, style, width, points), height in zip(curves, heights, strict=True):
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, style, lw=width, color=colour)
        # the name stands where the curve ends, joined to it by a thin line
        axes.annotate(
            name,
            (xs[-1], ys[-1]),
            xytext=(1.35 * counts[-1], 10.0**height),
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.7},
        )
    axes.set_xlim(0.9 * counts[0], 1.1 * counts[-1])
    axes.set(xlabel="rounds", ylabel=f"epsilon at delta = {DELTA:g}")
    axes.set_title("60,000 clients, check-in rate 1/30, local epsilon 2 (refuted claims dotted)")
    axes.grid(True, which="both", alpha=0.2)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _apart(heights: list[float], gap: float = 0.22) -> list[float]:
    """The heights (in decades) moved just far enough that labels do not overlap."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    moved = list(heights)
    for _ in range(200):
        for below, above in pairwise(order):
            lacking = gap - (moved[above] - moved[below])
            if lacking > 0:
                moved[below] -= lacking / 2
                moved[above] += lacking / 2
    return moved
