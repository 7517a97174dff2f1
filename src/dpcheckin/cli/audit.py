"""`dpcheckin audit`: attack the running code and report a lower bound on epsilon.

This file holds the command's arguments, its progress bar and what it prints; the attacks are in
`dpcheckin.audit`. Exit code 0: the claim stands. 1: it is violated. 2: bad input.
"""

from __future__ import annotations

import json as json_format
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.audit.examination import Check, Finding, Progress

_SYSTEM, _COST = "What is audited", "Budget and output"


def audit(
    protocol: Annotated[
        str,
        typer.Option(
            help="shuffled-check-in, subsampled-shuffle, shuffle, distributed-check-in or "
            "random-check-in-fixed.",
            rich_help_panel=_SYSTEM,
        ),
    ] = "shuffled-check-in",
    randomizer: Annotated[
        str,
        typer.Option(
            help="binary, dary:K, gaussian:SIGMA, laplace, hemisphere:DIM or privunit:DIM.",
            rich_help_panel=_SYSTEM,
        ),
    ] = "dary:3",
    population: Annotated[
        int, typer.Option(help="Number of clients.", rich_help_panel=_SYSTEM)
    ] = 1000,
    rate: Annotated[
        float, typer.Option(help="Probability of checking in.", rich_help_panel=_SYSTEM)
    ] = 0.1,
    local_epsilon: Annotated[
        float | None,
        typer.Option(help="Epsilon of one report (4; none for gaussian).", rich_help_panel=_SYSTEM),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", rich_help_panel=_SYSTEM)] = 1,
    slots: Annotated[
        int | None, typer.Option(help="Slots of a random check-in window.", rich_help_panel=_SYSTEM)
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Delta of claim and audit.", rich_help_panel=_SYSTEM)
    ] = 1e-3,
    budget: Annotated[
        str,
        typer.Option(help="Time (30s, 10m, 2h) or pairs of runs.", rich_help_panel=_COST),
    ] = "30s",
    confidence: Annotated[
        float, typer.Option(help="Confidence of the lower bound.", rich_help_panel=_COST)
    ] = 0.99,
    seed: Annotated[
        int | None, typer.Option(help="Repeat an audit exactly.", rich_help_panel=_COST)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes (default: up to 2).", rich_help_panel=_COST)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for report, picture and state.", rich_help_panel=_COST),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Add this budget to the audit in --out.", rich_help_panel=_COST
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_COST)
    ] = False,
) -> None:
    """Attack the implementation; without arguments, one round of check-ins in half a minute."""
    from dpcheckin.audit import plans

    if local_epsilon is None and not randomizer.startswith("gaussian"):
        local_epsilon = 4.0
    plan = plans.plan_named(
        protocol, plans.randomizer_named(randomizer, local_epsilon), population, rate, rounds, slots
    )
    check = plans.check_plan(plan, delta, confidence)
    finding = _examined(check, budget, seed, workers, out, resume)
    _say([finding], out, json)


def _examined(
    check: Check, budget: str, seed: int | None, workers: int | None, out: Path | None, resume: bool
) -> Finding:
    from dpcheckin.audit.budget import Budget
    from dpcheckin.audit.examination import examine

    allowed = Budget.parse(budget)
    if resume and out is None:
        raise InvalidParameter("resume", True, "used together with --out")
    if resume and seed is not None:
        raise InvalidParameter("seed", seed, "left out with --resume: the saved one goes on")
    if workers is None:  # starting processes takes seconds
        few = allowed.seconds is not None and allowed.seconds < 15
        workers = 1 if few else min(2, os.cpu_count() or 1)
    state = None if out is None else out / "state.json"
    with _bar(check.name) as progress:
        return examine(
            check, allowed, seed=seed, workers=workers, progress=progress,
            state_path=state, resume=resume,
        )  # fmt: skip


def _say(findings: list[Finding], out: Path | None, json: bool) -> None:
    """Print, leave report and picture in the folder, and exit with 1 on a violation."""
    report: dict[str, Any] = {
        "findings": [f.to_json() for f in findings],
        "refuted": any(f.refuted for f in findings),
    }
    if out is not None:
        from dpcheckin.audit.picture import draw_findings

        out.mkdir(parents=True, exist_ok=True)
        (out / "audit.json").write_text(json_format.dumps(report, indent=2), encoding="utf-8")
        draw_findings(findings, out / "audit.png")
    if json:
        typer.echo(json_format.dumps(report))
    else:
        for f in findings:
            typer.echo(f"{f.name}\n{f}")
        if out is not None:
            typer.echo(f"report and picture: {out / 'audit.json'}, {out / 'audit.png'}")
    if report["refuted"]:
        raise typer.Exit(1)


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """A progress bar on stderr, when somebody is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=1.0)

        def progress(share: float, words: str) -> None:
            bar.update(task, completed=share, description=words)

        yield progress
