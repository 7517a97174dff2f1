"""One page for the end of a run: the template of every `report.html`.

A document is a title, a few figures, one statement, pictures and tables. It becomes a single file
that looks like the planner, light and dark, wide and narrow: pictures are embedded and nothing is
fetched. What is said in it is the business of those who fill it in.
"""

from __future__ import annotations

import base64
import html
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

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

    Args:
        kind: What was done, such as "Training report".
        title: The headline: one figure or one sentence.
        chip: A word about it, such as "certified".
        statement: The one sentence to quote.
        figures: Names and values shown large.
        pictures: Files of pictures, with a text for those who do not see them.
        tables: Further figures and settings.
        bad: Whether the chip is bad news.
    """

    kind: str
    title: str
    chip: str
    statement: str
    figures: Mapping[str, str]
    pictures: Mapping[Path, str] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    bad: bool = False

    def write(self, path: Path) -> None:
        """Write the page to a file."""
        path.write_text(self.html(), encoding="utf-8")

    def html(self) -> str:
        """The page."""
        facts = "".join(
            f"<div><dt>{_safe(name)}</dt><dd>{_safe(text)}</dd></div>"
            for name, text in self.figures.items()
        )
        pictures = "".join(_picture(path, about) for path, about in self.pictures.items())
        tables = "".join(_table(table) for table in self.tables)
        state = ' class="chip bad"' if self.bad else ' class="chip"'
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{_safe(self.kind)}</title><style>{STYLE}</style></head><body><main>"
            f'<header><p class="kind">{_safe(self.kind)}</p><h1>{_safe(self.title)}</h1>'
            f"<p><span{state}>{_safe(self.chip)}</span></p></header>"
            f'<p class="statement">{_safe(self.statement)}</p>'
            f"<dl>{facts}</dl>{pictures}{tables}</main></body></html>\n"
        )


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


def _picture(path: Path, about: str) -> str:
    embedded = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure class="panel"><img alt="{_safe(about)}" '
        f'src="data:image/png;base64,{embedded}"><figcaption>{_safe(about)}</figcaption></figure>'
    )


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{_safe(head)}</th>' for head in table.heads)
    above = [f' data-head="{_safe(head)}"' for head in table.heads[1:]]
    rows = "".join(
        f'<tr><th scope="row">{_safe(first)}</th>'
        + "".join(
            f"<td{head}>{_cell(cell)}</td>"
            for cell, head in zip_longest(rest, above[: len(rest)], fillvalue="")
        )
        + "</tr>"
        for first, *rest in table.rows
    )
    head = f"<thead><tr>{heads}</tr></thead>" if heads else ""
    body = f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'
    if table.folded:
        title = f"<summary><h2>{_safe(table.title)}</h2></summary>"
        return f'<section class="panel"><details>{title}{body}</details></section>'
    return f'<section class="panel"><h2>{_safe(table.title)}</h2>{body}</section>'


# the colours and measures of the planner (dashboard/static/page.css)
STYLE = """
:root{color-scheme:light dark;--ground:light-dark(#f7f8f8,#101615);--paper:light-dark(#fff,#18201f);
--ink:light-dark(#16201f,#e8eeed);--soft:light-dark(#55615f,#a3b1ae);--line:light-dark(#dde2e1,#2d3938);
--accent:light-dark(#0b7268,#4fd1bf);--accent-soft:light-dark(#e2f1ee,#17332f);
--bad:light-dark(#a8231c,#ff9d94);--bad-soft:light-dark(#fbeae8,#3a201e)}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","DejaVu Sans",sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:920px;margin:0 auto;padding:clamp(16px,4vw,48px);display:grid;gap:20px}
main>*{min-width:0;margin:0}
h1,h2,p,dl,dd{margin:0}
.kind{color:var(--soft)}
h1{font-size:clamp(1.9rem,6vw,3.2rem);font-weight:620;letter-spacing:-.03em;line-height:1.15;
overflow-wrap:anywhere}
h2{font-size:1rem;font-weight:600}
.chip{display:inline-block;border-radius:99px;padding:0 10px;font-size:.8rem;font-weight:550;
line-height:1.75;background:var(--accent-soft);color:var(--accent)}
.chip.bad{background:var(--bad-soft);color:var(--bad)}
.statement{max-width:80ch;overflow-wrap:anywhere;white-space:pre-line}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:14px 20px}
dt{color:var(--soft);font-size:.83rem}
dd{font-size:1.2rem;font-weight:600;overflow-wrap:anywhere}
.panel{background:var(--paper);border:1px solid var(--line);border-radius:12px;padding:18px 20px;
display:grid;gap:12px}
.panel>*{min-width:0}
img{width:100%;height:auto;border-radius:6px;background:#fff}
figcaption{color:var(--soft);font-size:.85rem}
summary{cursor:pointer}
summary h2{display:inline}
details[open] summary{margin-bottom:12px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.87rem;width:100%}
th,td{text-align:left;vertical-align:top;padding:5px 18px 5px 0;border-bottom:1px solid var(--line);
font-weight:400}
th[scope=row],thead th{color:var(--soft)}
td{overflow-wrap:break-word}
@media(max-width:560px){
tr{display:grid;padding:6px 0;border-bottom:1px solid var(--line)}
th,td{border:0;padding:0}
td{font-weight:500}
td+td{font-weight:400;color:var(--soft)}
td[data-head]::before{content:attr(data-head) ": ";font-weight:400;color:var(--soft)}
figure{overflow-x:auto}
.panel>img{min-width:540px}
thead{display:none}
}
""".replace("\n", "")
