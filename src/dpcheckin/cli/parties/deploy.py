"""`dpcheckin deploy demo`: the whole system on one machine, from start to end by itself."""

from __future__ import annotations

import dataclasses
import json as json_format
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import typer

from dpcheckin.cli.arguments import check_empty, need
from dpcheckin.console import print_table, remark
from dpcheckin.numerals import written


def demo(
    clients: int = typer.Option(250, help="Client agents."),
    rounds: int = typer.Option(20, help="Rounds of the plan."),
    round_seconds: float | None = typer.Option(
        None, help="Length of a round (default: 2.5, longer when the machine is busy)."
    ),
    task: str = typer.Option(
        "training",
        help="training, or a question: count, histogram, mean, sum, vector-mean, quantiles, "
        "distribution, heavy-hitters.",
    ),
    protocol: str = typer.Option(
        "shuffled-check-in", help="shuffled-check-in, distributed-check-in, random-check-in-fixed, -averaged, -sliding."
    ),
    rate: float = typer.Option(0.3, help="Check-in rate of a round."),
    local_epsilon: float = typer.Option(4.0, help="Epsilon of one report."),
    noise_multiplier: float = typer.Option(2.0, help="Noise over clip (distributed check-in)."),
    epsilon_budget: float = typer.Option(9.0, help="Stop before the round that would pass it."),
    store: str | None = typer.Option(None, help="The shuffler's store (default: SQLite)."),
    issuer: bool = typer.Option(True, "--issuer/--no-issuer", help="Report tokens, where the protocol allows them."),
    out: Path | None = typer.Option(None, help="Keep the parties' folders here."),
    stay: float = typer.Option(0.0, help="Seconds to keep the page up when the run is over."),
    json: bool = typer.Option(False, "--json", help="Print the end of the run as JSON."),
) -> None:
    """Start shuffler, analyzer and client agents on loopback, train or ask, stop by itself."""
    from dpcheckin.service.shuffler.settings import check_not_typed

    need("cryptography", "httpx", "starlette", "uvicorn", *(["torch"] if task == "training" else []))
    if out is not None:
        check_empty(out)
    check_not_typed(store or "")
    remark(f"starting a shuffler, an analyzer and {clients:,} clients on this machine")
    from dpcheckin.deployment.options import DemoOptions, with_time_enough

    options = DemoOptions(
        clients=clients,
        rounds=rounds,
        round_seconds=round_seconds or 2.5,
        protocol=protocol,
        rate=rate,
        randomizer="skellam" if protocol == "distributed-check-in" else "privunit",
        local_epsilon=local_epsilon,
        noise_multiplier=noise_multiplier,
        epsilon_budget=epsilon_budget,
        store=store,
        issuer=issuer,
        task=task,
    )
    if round_seconds is None:
        options = with_time_enough(options, remark)
    if out is not None:
        facts = _run(out, options, stay)
    elif round_seconds is not None:
        facts = _run_nowhere(options, stay)
    else:
        facts = _run_patiently(options, stay)
    if json:
        print(json_format.dumps(facts))
        return
    print(f"{facts['released']:,} rounds, {facts['reports']:,} reports, {facts['dropped']:,} dropped")
    if facts["survey"] is None:
        print(f"test accuracy {100 * facts['accuracy']:.2f}%")
    else:
        _print_survey(facts)
    print(_tokens_line(facts))
    nothing = "No round was charged, so there is nothing to state: was the budget too small for one?"
    print(facts["statement"] or nothing)


def _tokens_line(facts: dict[str, Any]) -> str:
    """Whether the shuffler had to be trusted, and what is left against it alone."""
    from dpcheckin.numerals import rounded_up

    alone = [one["epsilon"] for one in facts["coalitions"] if one["parties"] == "shuffler"]
    left = f"; against the shuffler alone ε ≤ {rounded_up(alone[0])}" if alone and alone[0] else ""
    if facts["tokens"]:
        return f"every report carried a token of the issuer{left}"
    return f"no issuer: the shuffler is trusted to invent no reports{left}"


def _print_survey(facts: dict[str, Any]) -> None:
    """The estimate beside the truth, which the demonstration made up itself."""
    survey = facts["survey"]
    if survey["waiting"] is not None:
        print(f"no estimate: {survey['waiting']}")
        return
    rows = []
    for row in survey["rows"]:
        between = f"{written(row['lower'], 5)} … {written(row['upper'], 5)}"
        true = facts["truth"].get(row["name"])
        truth = "" if true is None else written(true, 5)
        rows.append((row["name"], written(row["value"], 5), between, truth))
    print_table(rows, survey["about"], "estimate", f"{survey['confidence']:.0%} interval", "truth")


def _run_patiently(options: Any, stay: float) -> dict[str, Any]:
    """The run, begun again with longer rounds when they prove too short for this machine."""
    from dpcheckin.deployment.progress import RoundsLost

    for _ in range(2):
        try:
            return _run_nowhere(options, stay)
        except RoundsLost as reason:
            options = dataclasses.replace(options, round_seconds=3 * options.round_seconds)
            seconds = options.round_seconds
            remark(f"{reason}; starting again with {seconds:,g} seconds")
    return _run_nowhere(options, stay)


def _run_nowhere(options: Any, stay: float) -> dict[str, Any]:
    """In folders that are gone afterwards."""
    # one disk plays hundreds of devices' disks here: their ledgers lie in memory where possible
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="dpcheckin-demo-") as folder,
        tempfile.TemporaryDirectory(prefix="dpcheckin-agents-", dir=memory) as ledgers,
    ):
        return _run(Path(folder), dataclasses.replace(options, client_state=ledgers), stay)


def _run(folder: Path, options: Any, stay: float) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from dpcheckin.deployment.demo import Deployment
    from dpcheckin.deployment.progress import Told, follow, summary
    from dpcheckin.numerals import rounded_up

    columns = (
        TextColumn("round {task.completed}/{task.total}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    console = Console(file=sys.stderr)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # that ends its parties too
    with Deployment(folder, options) as deployment:
        deployment.start(remark)
        console.print(f"live page: {deployment.page}", highlight=False)
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("rounds", total=options.rounds, facts="")

            lines = Told(remark, every=not console.is_terminal)

            def show(shot: dict[str, Any]) -> None:
                lines.hear(shot)
                accuracy = shot["metrics"].get("accuracy", 0.0)
                what = f"accuracy {100 * accuracy:.1f}%"
                if shot["survey"] is not None:
                    what = f"{shot['survey']['reports']:,} answers"
                facts = f"{what}  ε ≤ {rounded_up(shot['spent']['epsilon'])}"
                allowed = shot["spent"]["allowed"]
                progress.update(task, total=allowed, completed=shot["spent"]["charged"], facts=facts)

            last = follow(deployment, show)
        if stay > 0:
            console.print(f"done; the page stays up for {stay:,g} seconds", highlight=False)
            time.sleep(stay)
    return summary(options, last, time.monotonic() - began)
