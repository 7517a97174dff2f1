"""`dpcheckin train`: train a model over a simulated fleet and watch accuracy and epsilon together.

This file holds the command's arguments, its progress bar and what it prints. The work is in
`dpcheckin.learning`; torch is imported only when the command runs.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dpcheckin.errors import DpCheckinError

_RUN, _PRIVACY, _LEARNING, _MACHINE = "The run", "Privacy", "Learning", "The machine"


def train(
    data: Annotated[
        str,
        typer.Option(
            help="digits, mnist, fashion-mnist, cifar10, cifar100 or a path of an .npz file."
        ),
    ] = "digits",
    protocol: Annotated[
        str,
        typer.Option(
            help="shuffled-check-in, subsampled-shuffle, full-shuffle, random-check-ins-fixed, "
            "random-check-ins-averaged, random-check-ins-sliding, distributed-check-in, "
            "local-only or central."
        ),
    ] = "shuffled-check-in",
    randomizer: Annotated[str, typer.Option(help="privunit, ldp-sgd or gaussian.")] = "privunit",
    out: Annotated[
        Path | None, typer.Option(help="Folder for checkpoint, log and report; resumes if present.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="auto, papers-cnn, papers-cnn-relu or small.", rich_help_panel=_RUN)
    ] = "auto",
    public: Annotated[
        str | None,
        typer.Option(
            help="Public data, as --data: pre-train on it, train only the last layer privately.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    public_epochs: Annotated[
        int, typer.Option(help="Passes over the public data.", rich_help_panel=_RUN)
    ] = 5,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where dataset files are.", rich_help_panel=_RUN)
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(help="Clients, each with a bootstrapped record.", rich_help_panel=_RUN),
    ] = None,
    by_owner: Annotated[
        bool,
        typer.Option(
            "--by-owner", help="One client per owner of records (user-level).", rich_help_panel=_RUN
        ),
    ] = False,
    rounds: Annotated[int, typer.Option(help="Most rounds to run.", rich_help_panel=_RUN)] = 400,
    rate: Annotated[
        float, typer.Option(help="Check-in rate of a round.", rich_help_panel=_RUN)
    ] = 0.2,
    lowest_rate: Annotated[
        float | None,
        typer.Option(help="Clients' rates lie between this and --rate.", rich_help_panel=_RUN),
    ] = None,
    dropout: Annotated[
        float, typer.Option(help="Share of check-ins that get lost.", rich_help_panel=_RUN)
    ] = 0.0,
    slots: Annotated[
        int | None, typer.Option(help="Slots of a random check-ins window.", rich_help_panel=_RUN)
    ] = None,
    minibatch: Annotated[
        int, typer.Option(help="Slots per step of a random check-ins window.", rich_help_panel=_RUN)
    ] = 1,
    epsilon_budget: Annotated[
        float | None,
        typer.Option(help="Stop before the round that would pass it.", rich_help_panel=_PRIVACY),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Delta of the guarantee.", rich_help_panel=_PRIVACY)
    ] = 1e-5,
    local_epsilon: Annotated[
        float, typer.Option(help="Epsilon of one report.", rich_help_panel=_PRIVACY)
    ] = 2.0,
    noise_multiplier: Annotated[
        float, typer.Option(help="Noise over clip, Gaussian reports.", rich_help_panel=_PRIVACY)
    ] = 1.0,
    clip: Annotated[
        float, typer.Option(help="Largest norm of a gradient.", rich_help_panel=_PRIVACY)
    ] = 1.0,
    per_tensor: Annotated[
        bool,
        typer.Option(
            "--per-tensor", help="Clip each parameter tensor alike.", rich_help_panel=_PRIVACY
        ),
    ] = False,
    optimizer: Annotated[str, typer.Option(help="sgd or adam.", rich_help_panel=_LEARNING)] = "sgd",
    learning_rate: Annotated[
        float, typer.Option(help="In units of the clip.", rich_help_panel=_LEARNING)
    ] = 0.3,
    momentum: Annotated[float, typer.Option(rich_help_panel=_LEARNING)] = 0.0,
    schedule: Annotated[
        str,
        typer.Option(
            help="constant, linear or cosine, over the rounds.", rich_help_panel=_LEARNING
        ),
    ] = "linear",
    averaging: Annotated[
        float, typer.Option(help="Decay of the averaged model.", rich_help_panel=_LEARNING)
    ] = 0.97,
    weight_decay: Annotated[
        float, typer.Option(help="Pull of the parameters to zero.", rich_help_panel=_LEARNING)
    ] = 0.0,
    seed: Annotated[int, typer.Option(rich_help_panel=_LEARNING)] = 0,
    evaluate_every: Annotated[
        int, typer.Option(help="Rounds between log lines.", rich_help_panel=_LEARNING)
    ] = 10,
    checkpoint_every: Annotated[
        int, typer.Option(help="Rounds between checkpoints.", rich_help_panel=_MACHINE)
    ] = 50,
    stop_after: Annotated[
        int | None,
        typer.Option(help="Stop at this round; run again to go on.", rich_help_panel=_MACHINE),
    ] = None,
    reports: Annotated[
        str,
        typer.Option(
            help="sum draws only their sum, each draws every report.", rich_help_panel=_MACHINE
        ),
    ] = "sum",
    backend: Annotated[
        str, typer.Option(help="local, processes or ray.", rich_help_panel=_MACHINE)
    ] = "local",
    workers: Annotated[int, typer.Option(help="Worker processes.", rich_help_panel=_MACHINE)] = 2,
    threads: Annotated[
        int | None, typer.Option(help="Threads of each process.", rich_help_panel=_MACHINE)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON.", rich_help_panel=_MACHINE)
    ] = False,
) -> None:
    """Train a model over a simulated fleet; without arguments, on digits in under a minute."""
    from dpcheckin.accounting.kinds import rounded_up

    try:
        from dpcheckin.learning.settings import Settings
        from dpcheckin.learning.simulation.runs import RunOptions, build
    except ImportError as problem:
        _fail(f"training needs torch: pip install 'dpcheckin[learning]' ({problem})")
    try:
        settings = Settings(
            optimizer=optimizer,
            learning_rate=learning_rate,
            momentum=momentum,
            schedule=schedule,
            averaging=averaging,
            weight_decay=weight_decay,
            seed=seed,
            evaluate_every=evaluate_every,
            checkpoint_every=checkpoint_every,
        )
        options = RunOptions(
            data=data,
            data_dir=data_dir,
            model=model,
            public=public,
            public_epochs=public_epochs,
            protocol=protocol,
            randomizer=randomizer,
            local_epsilon=local_epsilon,
            noise_multiplier=noise_multiplier,
            clip=clip,
            per_tensor=per_tensor,
            population=population,
            rate=rate,
            lowest_rate=lowest_rate,
            dropout=dropout,
            slots=slots,
            minibatch=minibatch,
            rounds=rounds,
            by_owner=by_owner,
            reports=reports,
            settings=settings,
            delta=delta,
            epsilon_budget=epsilon_budget,
            backend=backend,
            workers=workers,
            threads=threads,
        )
        trainer = build(options, out)
        trainer.stop_after = stop_after
        facts = _run(trainer, out)
    except DpCheckinError as problem:
        _fail(str(problem))
    if json:
        print(json_format.dumps(facts))
        return
    print(f"{facts['protocol']}; {facts['randomizer']}; {facts['rounds']} rounds")
    spent = rounded_up(facts["epsilon"])
    print(f"test accuracy {100 * facts['accuracy']:.2f}% at ε ≤ {spent}, δ = {facts['delta']:g}")
    print(facts["statement"])
    if out is None:
        print("nothing was kept; --out FOLDER keeps checkpoint, log, model and report")
    else:
        print(f"report: {out / 'report.html'} (log and model beside it)")


def _run(trainer: Any, out: Path | None) -> dict[str, Any]:
    """Run under a progress bar and leave model and report in the run's folder."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from dpcheckin.accounting.kinds import rounded_up
    from dpcheckin.learning.report import summary, write_report

    columns = (
        TextColumn("round {task.completed}/{task.total}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    # the bar goes to stderr: stdout is for results
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("train", total=trainer.rounds_allowed(), facts="")
        seen: dict[str, Any] = {}

        def show(row: dict[str, Any]) -> None:
            seen.update(row)
            facts = f"{seen['check_ins']} check-ins"
            if "accuracy" in seen:
                facts += (
                    f"  accuracy {100 * seen['accuracy']:.1f}%  ε ≤ {rounded_up(seen['epsilon'])}"
                )
            progress.update(task, completed=seen["round"], facts=facts)

        trainer.on_round = show
        try:
            outcome = trainer.run()
        finally:
            if trainer.backend is not None:
                trainer.backend.close()
    if out is None:
        return summary(trainer, outcome)
    torch.save(outcome.module.state_dict(), out / "model.pt")
    return write_report(out, trainer, outcome)


def _fail(message: str) -> NoReturn:
    typer.echo(f"dpcheckin: {message}", err=True)
    raise typer.Exit(2)
