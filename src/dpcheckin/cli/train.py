"""`dpcheckin train`: train a model over a simulated fleet and watch accuracy and epsilon together.

The options are those of `dpcheckin.learning.options`; this file adds where results go, the progress bar and what is
printed. The work is in `dpcheckin.learning`; torch is imported only when the command runs.
"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcheckin.cli.arguments import options_from
from dpcheckin.console import remark, waiting
from dpcheckin.learning.options import MACHINE, RunOptions

if TYPE_CHECKING:
    from dpcheckin.learning import Dataset, Trainer


@options_from(RunOptions)
def train(
    options: RunOptions,
    out: Annotated[Path | None, typer.Option(help="Folder for checkpoint, log and report; resumes if present.")] = None,
    stop_after: Annotated[
        int | None, typer.Option(help="Stop at this round; run again to go on.", rich_help_panel=MACHINE)
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for an event file of every round.", rich_help_panel=MACHINE)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.", rich_help_panel=MACHINE)] = False,
) -> None:
    """Train a model over a simulated fleet; without arguments, on digits in under a minute."""
    with waiting("train") as say:
        say("loading")
        from dpcheckin.learning.simulation.runs import build, make_data

        data = make_data(options, remark)
        trainer = build(options, out, data)
        if tensorboard is not None:
            from dpcheckin.learning.callbacks import TensorBoard

            trainer.on_round = TensorBoard(tensorboard)
    trainer.stop_after = stop_after
    facts = _run(trainer, data, out)
    if json:
        print(json_format.dumps(facts))
    else:
        _print(facts, out)


def _print(facts: dict[str, Any], out: Path | None) -> None:
    from dpcheckin.accounting.statements import rounds_in_words
    from dpcheckin.numerals import rounded_up

    print(f"{facts['protocol']}; {facts['randomizer']}; {rounds_in_words(facts['rounds'])}")
    if facts["stopped_by_budget"]:
        print(f"stopped by the budget: the next round would pass ε = {facts['epsilon_budget']:g}")
    print(facts["data"])
    spent = rounded_up(facts["epsilon"])
    print(f"{facts['reached']} at ε ≤ {spent}, δ = {facts['delta']:g}")
    if facts["beside"]:
        print(f"the same model reaches {facts['beside']}")
    print(facts["statement"])
    if out is None:
        print("nothing was kept; --out FOLDER keeps checkpoint, log, model and report")
    else:
        print(f"report: {out / 'report.html'} (log and model beside it)")


def _run(trainer: Trainer, data: Dataset, out: Path | None) -> dict[str, Any]:
    """Run under a progress bar and leave model and report in the run's folder."""
    import torch

    from dpcheckin.learning.run import run_watched, summary, write_report
    from dpcheckin.learning.simulation.training import CHECKPOINT

    try:
        outcome = run_watched(trainer, data=data)
    except KeyboardInterrupt:
        if out is not None and (out / CHECKPOINT).is_file():
            remark(f"dpcheckin: {out} keeps the rounds so far; the same command goes on from there")
        raise
    if out is None:
        return summary(trainer, outcome)
    torch.save(outcome.module.state_dict(), out / "model.pt")
    return write_report(out, trainer, outcome)
