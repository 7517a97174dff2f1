"""`dpcheckin sweep`: many training runs, or many prices, over a grid of options and seeds.

This file holds the arguments and what is printed. What may be set and varied are the options of `dpcheckin train`, with
the same names and defaults. The work is in `dpcheckin.learning.sweeps`; torch is imported only when the command runs.
"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcheckin.console import print_table, waiting
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.options import RunOptions


def sweep(
    over: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE,VALUE,…: an option of train and what it ranges over.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: an option of train for all runs.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many (counted from 0), or a list with commas.")] = "3",
    out: Annotated[Path, typer.Option(help="Folder for results, table and picture; resumes if present.")] = Path(
        "sweep-out"
    ),
    account_only: Annotated[
        bool, typer.Option("--account-only", help="Train nothing, state what every plan costs.")
    ] = False,
    backend: Annotated[str, typer.Option(help="local, processes or ray.")] = "processes",
    workers: Annotated[int, typer.Option(help="Processes, or size of a local Ray cluster.")] = 2,
    threads: Annotated[int, typer.Option(help="Threads of each run.")] = 1,
    device: Annotated[str, typer.Option(help="Where gradients are computed: cpu, cuda, cuda:1 or mps.")] = "cpu",
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster, such as auto or ray://host:10001.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Play every combination of the values with every seed, and write one table and one picture.

    Finished runs are kept in OUT and not played again, so an interrupted or widened sweep plays only what is missing.
    Results do not depend on the backend. Exit code 1 if a run failed.
    """
    with waiting("sweep") as say:
        say("loading")
        from dpcheckin.learning.sweeps.grid import Sweep, make_runner, run_sweep
        from dpcheckin.learning.sweeps.report import shown, write_sweep

        runner = make_runner(backend, workers, ray_address)
        grid = dict(map(_values, over or []))
        wanted = Sweep(
            _base(set_ or [], grid, threads=threads, device=device), grid, _seeds(seeds), train=not account_only
        )
        wanted.check()
        say(f"0 of {len(wanted.cells()):,} runs")

        def show(done: int, total: int, result: dict[str, Any]) -> None:
            last = f", accuracy {100 * result['accuracy']:.1f}%" if "accuracy" in result else ""
            say(f"{done:,} of {total:,} runs{last}", done / total)

        results = run_sweep(wanted, out, runner, show)
    content = write_sweep(wanted, results, out)
    failed = sum("failed" in result for result in results)
    if json:
        typer.echo(json_format.dumps(content, default=str))
    else:
        headings, rows = shown(content["table"])
        print_table(rows, *headings)
        typer.echo(f"table and picture: {out / 'sweep.md'}, {out / 'sweep.png'}")
    if failed:
        typer.echo(f"dpcheckin: {failed:,} of {len(results):,} runs failed", err=True)
        raise typer.Exit(1)


def _base(settings: list[str], grid: dict[str, Any], **machine: Any) -> RunOptions:
    """Options of all runs: the defaults, what was set, and those about the machine."""
    from dpcheckin.learning.sweeps.grid import changed_options

    changes = {}
    for text in settings:
        name, values = _values(text, several=False)
        if name in grid:
            raise InvalidParameter("set", text, "an option that --over does not vary")
        changes[name] = values[0]
    return changed_options(RunOptions(**machine), changes)


def _values(text: str, several: bool = True) -> tuple[str, list[Any]]:
    """The option and the values that NAME=VALUE,… stands for."""
    from dpcheckin.learning.sweeps.grid import VARIED

    name, equals, given = text.partition("=")
    name = name.strip().lstrip("-").replace("-", "_")
    allowed = {option.name: option for option in VARIED.values() if option.on_command_line}
    if not equals or name not in allowed:
        names = ", ".join(sorted(option.dashed for option in allowed.values()))
        parameter = "over" if several else "set"
        raise InvalidParameter(parameter, text, f"NAME=VALUE with NAME in {names}")
    parts = given.split(",") if several else [given]
    return name, [allowed[name].parse(part.strip()) for part in parts]


def _seeds(text: str) -> list[int]:
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameter("seeds", text, "a number, or numbers with commas") from None
    if len(seeds) > 1:
        return seeds
    if seeds[0] < 1:
        raise InvalidParameter("seeds", seeds[0], "at least 1")
    return list(range(seeds[0]))
