"""One page for the end of a run: the template of every `report.html`.

A document is a title, a few figures, one statement, pictures and tables. It becomes a single file that looks like the
planner, light and dark, wide and narrow: pictures are embedded and nothing is fetched. What is said in it is the
business of those who fill it in.
"""

from __future__ import annotations

import base64
import html
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import Any

Row = Sequence[object]


@dataclass(frozen=True)
class Table:
    """A table with a heading; the first cell of a row names it, a path is a file beside the page.

    A folded one shows its heading only, until somebody wants to see more.
    """

    title: str
    rows: Sequence[Row]
    heads: Sequence[str] = ()
    folded: bool = False


@dataclass(frozen=True)
class Document:
    """What a report says.

    The `kind` is what was done, such as "Training report", the `title` one figure or one sentence, the `chip` a word
    about it, such as "certified" (`bad` news or not), the `statement` the one sentence to quote. `figures` are names
    and values shown large, `pictures` files or what they hold, with a text for those who do not see them.
    """

    kind: str
    title: str
    chip: str
    statement: str
    figures: Mapping[str, str]
    pictures: Mapping[Any, str] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    bad: bool = False

    def write(self, path: Path) -> None:
        """Write the page to a file."""
        path.write_text(self.html(), encoding="utf-8")

    def html(self) -> str:
        """The page."""
        facts = "".join(
            f"<div><dt>{_safe(name)}</dt><dd>{_safe(text)}</dd></div>" for name, text in self.figures.items()
        )
        pictures = "".join(_picture(path, about) for path, about in self.pictures.items())
        tables = "".join(_table(table) for table in self.tables)
        state = ' class="chip bad"' if self.bad else ' class="chip"'
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{_safe(self.kind)}</title><style>{_style()}</style></head><body><main>"
            f'<header><p class="kind">{_safe(self.kind)}</p><h1>{_safe(self.title)}</h1>'
            f"<p><span{state}>{_safe(self.chip)}</span></p></header>"
            f'<p class="statement">{_safe(self.statement)}</p>'
            f"<dl>{facts}</dl>{pictures}{tables}</main></body></html>\n"
        )


PALETTE = Path(__file__).with_name("palette.css")
"""The colours of a page; the planner has them too."""


@cache
def _style() -> str:
    return PALETTE.read_text(encoding="utf-8") + Path(__file__).with_name("document.css").read_text(encoding="utf-8")


def versions(*packages: str) -> Table:
    """Python, this package and others, as installed; those that are not there are left out."""
    rows: list[Row] = [("Python", platform.python_version())]
    for name in dict.fromkeys(("dpcheckin", "numpy", *packages)):
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return Table("Versions", rows)


def _safe(text: object) -> str:
    return html.escape(str(text))


def _cell(value: object) -> str:
    """A cell; a path is a file beside the page, and a link to it."""
    text = _safe(value.name if isinstance(value, Path) else value)
    return f'<a href="{text}">{text}</a>' if isinstance(value, Path) else text


def _picture(path: Path | bytes, about: str) -> str:
    embedded = base64.b64encode(path if isinstance(path, bytes) else path.read_bytes()).decode()
    return (
        f'<figure class="panel"><img alt="{_safe(about)}" '
        f'src="data:image/png;base64,{embedded}"><figcaption>{_safe(about)}</figcaption></figure>'
    )


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{_safe(head)}</th>' for head in table.heads)
    above = [f' data-head="{_safe(head)}"' for head in table.heads[1:]]
    rows = "".join(
        f'<tr><th scope="row">{_safe(first)}</th>'
        + "".join(f"<td{head}>{_cell(cell)}</td>" for cell, head in zip_longest(rest, above[: len(rest)], fillvalue=""))
        + "</tr>"
        for first, *rest in table.rows
    )
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    body = f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'
    if table.folded:
        title = f"<summary><h2>{_safe(table.title)}</h2></summary>"
        return f'<section class="panel"><details>{title}{body}</details></section>'
    return f'<section class="panel"><h2>{_safe(table.title)}</h2>{body}</section>'
