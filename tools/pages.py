"""The pages of docs/ that are made from code: command line, published bounds, paper map; `./dev docs` runs this.

    python tools/pages.py            writes them; the tests compare them with what stands there

The command line is the parser's own help, as lists instead of the columns of a terminal. Which function computes a
bound is looked up in the code of the catalogue's entries, what a mechanism implements in its docstring.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import typer.main

import dpcheckin
from dpcheckin.cli import application
from dpcheckin.cli.arguments import fill_lists
from dpcheckin.papers.catalogue import catalogue, steps
from dpcheckin.papers.entry import PAPERS

PACKAGE, DOCS = Path(dpcheckin.__file__).parent, Path(__file__).resolve().parents[1] / "docs"

_COMMAND_LINE = """# Command line

What `--help` says of every command. `./dev docs` writes this page; a test compares the two.
Every command ends with exit code 0, or with 2 and one line on standard error when it was asked for
something that is not allowed or not proved.
"""


def command_line() -> str:
    """docs/cli.md."""
    return "\n".join([_COMMAND_LINE, *_sections(typer.main.get_command(application()), "dpcheckin", None)])


def _sections(command: Any, name: str, parent: Any) -> Iterator[str]:
    command.rich_markup_mode = None
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## `{context.command_path}`\n\n`{context.command_path} {usage}`\n"
    if command.help:
        yield f"{_prose(command.help)}\n"
    children = sorted(getattr(command, "commands", {}).items())
    if children:
        yield "\n".join(_link(context.command_path, *one) for one in children) + "\n"
    for title, lines in _panels(command, context).items():
        yield f"**{title}**\n\n" + "\n".join(lines) + "\n"
    for one, child in children:
        yield from _sections(child, one, context)


def _panels(command: Any, context: Any) -> dict[str, list[str]]:
    """Arguments and options under the headings that the help gives them; --help goes without."""
    found: dict[str, list[str]] = {}
    fill_lists(command)
    every = command.get_params(context)
    for one in sorted(every, key=lambda one: str(one.param_type_name)):  # arguments first
        record = one.get_help_record(context)
        if record is None or "--help" in one.opts:
            continue
        title = "Arguments" if one.param_type_name == "argument" else "Options"
        title = getattr(one, "rich_help_panel", None) or title
        found.setdefault(title, []).append(_item(*record))
    return found


def _link(group: str, name: str, command: Any) -> str:
    path = f"{group} {name}"
    return f"- [`{path}`](#{path.replace(' ', '-')}): {_prose(command.get_short_help_str(200))}"


def _item(name: str, text: str) -> str:
    return f"- `{_plain(name)}`: {_prose(text)}" if text else f"- `{_plain(name)}`"


def _plain(text: str) -> str:
    """Without what typer puts before brackets, for a terminal with markup."""
    return " ".join(text.replace("\\[", "[").split())


def _prose(text: str) -> str:
    """Paragraphs of a help text, in which stars and underscores are no markup."""
    paragraphs = (_plain(one) for one in re.split(r"\n\s*\n", text.replace("\f", "")))
    return "\n\n".join(re.sub(r"([*_<])", r"\\\1", one) for one in paragraphs)


_BOUNDS = """# Every published bound, and what it is worth

`./dev docs` writes this page from the catalogue in `dpcheckin.papers`; a test compares the two.
A *guarantee* is proved and may be charged; a *lower bound* says what no guarantee can undercut; a
*conjecture* is unproved, or proves something else than epsilon, and is not refuted; a *refuted
claim* is computed as its paper computed it. Neither can ever become a guarantee. The
[errata](errata.md) have counterexamples, the [paper map](paper-map.md) says which function
computes what.
"""


def bounds() -> str:
    """docs/bounds.md."""
    lines = [_BOUNDS, "| tag | paper |", "|---|---|"]
    lines += [f"| {tag} | {text} |" for tag, text in PAPERS.items()]
    protocols: dict[str, list[str]] = {}
    for bound in catalogue():
        row = (
            f"| {bound.name} | {bound.paper} {bound.theorem} | {bound.kind.value} | "
            f"{bound.statement} | {bound.erratum or ''} |"
        )
        for protocol in bound.protocols:
            protocols.setdefault(protocol, []).append(row)
    for protocol, rows in protocols.items():
        lines += ["", f"## {protocol}", "", "| bound | source | kind | statement | erratum |"]
        lines += ["|---|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


_MAP = """# From paper to function

Which function computes what a paper states, bounds first, then lemmas and other steps. `./dev docs` writes this page
from the catalogue and from docstrings; a test compares the two. The standing of each entry is
explained on [published bounds](bounds.md), what is wrong with the refuted ones in the
[errata](errata.md). Our own theorem is [here](theory.md); it is computed by
`dpcheckin.accounting.compose`, its lower bounds by `dpcheckin.accounting.lower_bound`.
"""

_MECHANISMS = """## Mechanisms and protocols

What the docstrings of randomizers, protocols and engines cite.

| code | cites |
|---|---|"""

_LAYERS = ("randomizers", "protocols", "accounting", "learning", "papers")
_CITATION = re.compile(
    r"P[0-4] (?:Thm|Theorem|Lemma|Eq|Equation|Figure|Algorithm|Appendix|Definition|Proposition|"
    r"Cor|Corollary|section|sections)s?\.? ?[\w.]+(?:\.\d+)?|arXiv \d{4}\.\d{5}(?:v\d+)?"
)


def functions_behind(compute: Callable[..., Any] | None) -> list[str]:
    """The public function that a catalogue entry is computed by, as `module.function`; those that a private one calls.

    Names are resolved in the code itself, so the map cannot name a
    function that is not there.
    """
    return list(dict.fromkeys(_called(_unwrapped(compute))))


def _called(compute: Any) -> Iterator[str]:
    if not isinstance(compute, FunctionType):
        return
    if not compute.__name__.startswith("_"):
        yield _place(compute)
        return
    names = compute.__code__.co_names
    known = [_unwrapped(compute.__globals__.get(name)) for name in names]
    for member in known:
        if isinstance(member, FunctionType) and member.__module__.startswith("dpcheckin."):
            yield from _called(member)
    for module in known:
        if isinstance(module, ModuleType) and module.__name__.startswith("dpcheckin."):
            for name in names:
                member = _unwrapped(vars(module).get(name))
                if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                    yield _place(member)


def _unwrapped(member: Any) -> Any:
    """What a cache, another decorator or fixed arguments are wrapped round."""
    member = member.func if isinstance(member, partial) else member
    return inspect.unwrap(member) if callable(member) else member


def _place(function: FunctionType) -> str:
    return f"{function.__module__.removeprefix('dpcheckin.')}.{function.__name__}"


def citations() -> list[tuple[str, list[str]]]:
    """Modules, public classes and functions whose docstring cites a paper, with what they cite.

    Source is parsed, not imported: some layers need libraries that need not be installed.
    """
    out = []
    for file in (file for layer in _LAYERS for file in sorted((PACKAGE / layer).rglob("*.py"))):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        place = ".".join(part for part in parts if part != "__init__")
        public = [
            (f"{place}.{node.name}", node)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
        documented: list[tuple[str, ast.Module | ast.FunctionDef | ast.ClassDef]]
        documented = [(place, tree), *public]
        for name, node in documented:
            cited = dict.fromkeys(_cited(ast.get_docstring(node)))
            if cited:
                out.append((name, list(cited)))
    return out


def _cited(docstring: str | None) -> list[str]:
    return [c.rstrip(".,;:)") for c in _CITATION.findall(" ".join((docstring or "").split()))]


def paper_map() -> str:
    """docs/paper-map.md."""
    lines = [_MAP]
    for tag, paper in PAPERS.items():
        entries = [bound for bound in catalogue() if bound.paper == tag]
        lines += [f"## {tag}", "", f"{paper}.", "", "| statement | standing | computed by |"]
        lines.append("|---|---|---|")
        for bound in entries:
            lines.append(_row(bound.theorem, bound.name, bound.kind.value, functions_behind(bound.compute)))
        for step in (step for step in steps() if step.paper == tag):
            lines.append(_row(step.theorem, step.statement, step.kind.value, step.code))
        lines.append("")
    lines.append(_MECHANISMS)
    lines += [f"| `{place}` | {', '.join(cited)} |" for place, cited in citations()]
    return "\n".join(lines) + "\n"


def _row(theorem: str, statement: str, standing: str, code: Sequence[str]) -> str:
    places = ", ".join(f"`{place}`" for place in code)
    return f"| {theorem}: {statement} | {standing} | {places} |"


PAGES = {"cli.md": command_line, "bounds.md": bounds, "paper-map.md": paper_map}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (DOCS / name).write_text(made(), encoding="utf-8")
