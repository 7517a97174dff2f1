"""`dpcheckin compare`: every bound about one run, side by side, each labelled as what it is.

Arguments, table and picture only; the figures come from `dpcheckin.report.compare`.
"""

from __future__ import annotations

import inspect
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpcheckin.cli.arguments import show_parameters, takes_run
from dpcheckin.console import print_table, waiting
from dpcheckin.display import needed
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.numerals import number
from dpcheckin.options import DEFAULT_DELTA

if TYPE_CHECKING:
    from dpcheckin.accounting import Kind
    from dpcheckin.notebook.comparisons import Comparison
    from dpcheckin.papers.entry import Setting
    from dpcheckin.papers.panel import Panel
    from dpcheckin.report.compare import Line

_COLOURS = {"guarantee": "green", "lower bound": "blue", "conjecture": "yellow", "refuted claim": "red"}


@takes_run("protocol", "dimension")
def compare(
    protocol: Annotated[
        str,
        typer.Option(
            help="shuffled-check-in, subsampled-shuffle, shuffle, distributed-check-in, "
            "distributed-check-in-removal, random-check-in-fixed, random-check-in-averaged or "
            "random-check-in-sliding."
        ),
    ] = "shuffled-check-in",
    delta: Annotated[float, typer.Option(help="Delta of the statements.")] = DEFAULT_DELTA,
    over: Annotated[
        str | None,
        typer.Option(
            help="Draw along this parameter: rounds, rate, population, local-epsilon, noise-multiplier, delta or slots."
        ),
    ] = None,
    values: Annotated[str | None, typer.Option(help="Its values, separated by commas.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A page to hand over, FILE.html; with --over a picture, FILE.png, or a folder for it and its CSV."
        ),
    ] = None,
    variance: Annotated[
        float | None,
        typer.Option(
            help="Instead: which randomizer loses least at this error per report, in units of the "
            "squared clipping norm (with --dimension)."
        ),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Numbers of a report, for randomizers of vectors; with --variance too.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also list bounds that do not apply, and why.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    **run: Any,
) -> None:
    """Compare every published bound, and ours, for one run.

    Green is proved, blue is a lower bound, red is refuted.
    """
    from dpcheckin.notebook.comparisons import Comparison, checked, setting_of
    from dpcheckin.report import compare as comparison

    entries: dict[str, Any] = {} if variance is not None else {"dimension": dimension}
    setting = setting_of(**run, **entries, protocol=protocol, delta=delta)
    if variance is not None:
        _advise(setting, variance, dimension, json)
        return
    checked(setting)
    if over is None and values is not None:
        raise Superfluous("values", values, "leave it out without --over")
    if over is not None:
        numbers = _numbers(values)
        if out is not None:
            needed("matplotlib.figure", "plot")  # before anything is computed
        with waiting("compare") as say:
            panel = comparison.along(setting, over.replace("-", "_"), numbers, say)
        _draw(panel, out, json)
        return
    if out is not None:
        from dpcheckin.notebook.pages import check_page

        check_page(out)
    with waiting("compare") as say:
        lines = comparison.compare(setting, on_bound=say)
        if out is not None:
            _hand_over(out, Comparison(setting, tuple(lines)), {**run, **entries, "protocol": protocol}, say)
    if json:
        typer.echo(json_format.dumps([line.to_json() for line in lines], indent=2))
        return
    _print(lines, Comparison(setting, tuple(lines)).caption, every)


def bounds(**given: Any) -> None:
    """The same as `compare --all`: every bound about one run, side by side."""
    compare(**given)


_parameters = inspect.signature(compare, eval_str=True).parameters
show_parameters(bounds, [one.replace(default=True) if name == "every" else one for name, one in _parameters.items()])


def _advise(setting: Setting, variance: float, dimension: int | None, as_json: bool) -> None:
    from dpcheckin.report.advice import advise

    if dimension is None:
        raise InvalidParameter("dimension", None, "a whole number, with --variance")
    if setting.protocol != "shuffled-check-in" or setting.rate is None:
        raise InvalidParameter("protocol", setting.protocol, "shuffled-check-in with a --rate")
    with waiting("compare") as say:
        lines = advise(
            variance, dimension, setting.population, setting.rate, setting.rounds, setting.delta,
            on_randomizer=say,
        )  # fmt: skip
    if as_json:
        content = [{"randomizer": x.randomizer, "epsilon": x.epsilon, "note": x.note} for x in lines]
        typer.echo(json_format.dumps(content, indent=2))
        return
    from dpcheckin.accounting import Kind

    rows = [(Kind.GUARANTEE.figure(x.epsilon), x.randomizer, x.note or "") for x in lines]
    title = f"error {variance:g} per report in dimension {dimension:,}"
    print_table(rows, "epsilon", "randomizer", "note", title=title, overflow="fold")


def _hand_over(out: Path, found: Comparison, run: dict[str, Any], say: Any) -> None:
    from dpcheckin.document import Table
    from dpcheckin.notebook.pages import run_page
    from dpcheckin.protocols.questions import RunQuestion

    question = RunQuestion(**run)
    rows = [(line["ε"], line["kind"], f"{line['bound']} [{line['source']}]") for line in found.shown()]
    bounds = Table("Every bound about this run; docs/errata.md says why some are refuted", rows, ("ε", "kind", "bound"))
    run_page(out, question, question.guarantee(found.setting.delta), tables=[bounds], drawn=found, say=say)


def _coloured(text: str, kind: Kind) -> str:
    return f"[{_COLOURS[kind.value]}]{text}[/]"


def _print(lines: list[Line], title: str, every: bool) -> None:
    """The table of bounds; notes stand below it, each once, under a number."""
    rows, notes = [], []
    for line in lines:
        if line.epsilon is None and not every:
            continue
        if line.note and line.note not in notes:
            notes.append(line.note)
        sign = f"({notes.index(line.note) + 1})" if line.note else ""
        figure, kind = _coloured(line.kind.figure(line.epsilon, 5), line.kind), _coloured(line.kind.value, line.kind)
        rows.append((figure, kind, line.name, line.source, sign))
    shown = 5 if notes else 4
    heads = ("epsilon", "kind", "bound", "source", "")[:shown]
    print_table([row[:shown] for row in rows], *heads, title=title, overflow="fold")
    console = Console()
    for mark, note in enumerate(notes, 1):
        console.print(f"({mark}) {note}", markup=False, highlight=False)


def _draw(panel: Panel, out: Path | None, as_json: bool) -> None:
    from dpcheckin.report.reproduce import markdown, write_csv, write_png

    cells = {(row.label, c.label): c.compute(row.parameters) for row in panel.rows for c in panel.columns}
    if out is not None:
        folder, name = (out.parent, out.stem) if out.suffix.lower() == ".png" else (out, panel.name)
        folder.mkdir(parents=True, exist_ok=True)
        write_csv(panel, cells, folder / f"{name}.csv")
        write_png(panel, cells, folder / f"{name}.png")
        (folder / f"{name}.md").write_text(markdown(panel, cells), encoding="utf-8")
    if as_json:
        rows = [
            {
                panel.row_title: row.x,
                "bounds": [
                    {"name": c.label, "source": c.source, "kind": c.kind.value, "epsilon": cells[(row.label, c.label)]}
                    for c in panel.columns
                ],
            }
            for row in panel.rows
        ]
        typer.echo(json_format.dumps(rows, indent=2))
        return
    table = Table(title=f"{panel.title} ({panel.about})")
    for heading in ("bound", "source"):
        table.add_column(heading, overflow="fold")
    for row in panel.rows:
        table.add_column(row.label, no_wrap=True)
    for c in panel.columns:
        figures = (_coloured(c.kind.figure(cells[(row.label, c.label)]), c.kind) for row in panel.rows)
        bound = f"{_coloured(escape(c.label), c.kind)}\n[dim]{c.kind.value}[/]"
        table.add_row(bound, escape(c.source), *figures)
    Console().print(table)
    if out is not None:
        typer.echo(f"written to {out}")


def _numbers(values: str | None) -> list[float]:
    allowed = "numbers separated by commas"
    if not values:
        raise InvalidParameter("values", values, allowed)
    try:
        return [number(x) for x in values.split(",")]
    except ValueError:
        raise InvalidParameter("values", values, allowed) from None
