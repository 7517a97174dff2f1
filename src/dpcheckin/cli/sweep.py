"""`dpcheckin sweep`: many training runs, or many prices, over a grid of options and seeds.

This file holds the arguments, the progress bar and what is printed. What may be set and varied are
the options of `dpcheckin train`, with the same names and defaults. The work is in
`dpcheckin.learning.sweeps.grid`; torch is imported only when the command runs.
"""

from __future__ import annotations

import inspect
import json as json_format
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from dpcheckin.cli.train import train
from dpcheckin.errors import DpCheckinError, InvalidParameter

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def sweep(
    over: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE,VALUE,…: an option of train and what it ranges over."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: an option of train for all runs."),
    ] = None,
    seeds: Annotated[
        str, typer.Option(help="How many (counted from 0), or a list with commas.")
    ] = "3",
    out: Annotated[
        Path, typer.Option(help="Folder for results, table and picture; resumes if present.")
    ] = Path("sweep-out"),
    account_only: Annotated[
        bool, typer.Option("--account-only", help="Train nothing, state what every plan costs.")
    ] = False,
    backend: Annotated[str, typer.Option(help="local, processes or ray.")] = "processes",
    workers: Annotated[int, typer.Option(help="Processes, or size of a local Ray cluster.")] = 2,
    ray_address: Annotated[
        str | None, typer.Option(help="A running Ray cluster, such as auto or ray://host:10001.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Play every combination of the values with every seed, and write one table and one picture.

    Finished runs are kept in OUT and not played again, so an interrupted or widened sweep plays
    only what is missing. Results do not depend on the backend. Exit code 1 if a run failed.
    """
    try:
        from dpcheckin.learning.sweeps.grid import Sweep, run_sweep
        from dpcheckin.learning.sweeps.report import shown, write_sweep
        from dpcheckin.learning.sweeps.runners import make_runner
    except ImportError as problem:
        raise DpCheckinError(
            f"sweeps need torch: pip install 'dpcheckin[learning]' ({problem})"
        ) from None
    runner = make_runner(backend, workers, ray_address)
    grid = dict(map(_values, over or []))
    wanted = Sweep(_base(set_ or [], grid), grid, _seeds(seeds), train=not account_only)
    wanted.check()
    with _bar() as bar:
        task = bar.add_task("", total=len(wanted.cells()))

        def show(done: int, total: int, result: dict[str, Any]) -> None:
            last = f"accuracy {100 * result['accuracy']:.1f} %" if "accuracy" in result else ""
            bar.update(task, completed=done, total=total, description=last)

        results = run_sweep(wanted, out, runner, show)
    content = write_sweep(wanted, results, out)
    failed = sum("failed" in result for result in results)
    if json:
        typer.echo(json_format.dumps(content, default=str))
    else:
        _print_table(*shown(content["table"]))
        typer.echo(f"table and picture: {out / 'sweep.md'}, {out / 'sweep.png'}")
    if failed:
        typer.echo(f"dpcheckin: {failed} of {len(results)} runs failed", err=True)
        raise typer.Exit(1)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("runs"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def _print_table(headings: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _allowed() -> dict[str, Any]:
    """The options of `train` that make up a run, with their types."""
    from dpcheckin.learning.sweeps.grid import NAMES

    hints = get_type_hints(train)
    return {name: hints[name] for name in inspect.signature(train).parameters if name in NAMES}


def _base(settings: list[str], grid: dict[str, Any]) -> Any:
    """Options of all runs: train's defaults, and what was set."""
    from dpcheckin.learning.simulation.runs import RunOptions
    from dpcheckin.learning.sweeps.grid import changed_options

    parameters = inspect.signature(train).parameters
    changes = {name: parameters[name].default for name in _allowed()}
    for said in settings:
        name, values = _values(said, several=False)
        if name in grid:
            raise InvalidParameter("set", said, "an option that --over does not vary")
        changes[name] = values[0]
    return changed_options(RunOptions(), changes)


def _values(said: str, several: bool = True) -> tuple[str, list[Any]]:
    name, equals, text = said.partition("=")
    name = name.strip().lstrip("-").replace("-", "_")
    allowed = _allowed()
    if not equals or name not in allowed:
        names = ", ".join(sorted(n.replace("_", "-") for n in allowed))
        raise InvalidParameter(
            "over" if several else "set", said, f"NAME=VALUE with NAME in {names}"
        )
    texts = text.split(",") if several else [text]
    return name, [_value(name, part.strip(), allowed[name]) for part in texts]


def _value(name: str, text: str, hint: Any) -> Any:
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = next(k for k in kinds if k is not type(None))
    if kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise InvalidParameter(name, text, "true or false")
        return text.lower() in _TRUE
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter(name, text, f"a value of type {kind.__name__}") from None


def _seeds(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameter("seeds", text, "a number, or numbers with commas") from None
    if len(found) > 1:
        return found
    if found[0] < 1:
        raise InvalidParameter("seeds", found[0], "at least 1")
    return list(range(found[0]))
