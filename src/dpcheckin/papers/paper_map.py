"""From theorem to code: which function computes what a paper states (docs/paper-map.md).

Two sources, both read and not written by hand. The catalogue of published bounds says where each
theorem stands, and the functions its entries call are looked up in their code. The docstrings of
the mechanisms and protocols say which section of which paper they implement.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import PAPERS

_HEAD = """# From paper to function

Which function computes what a paper states. `./dev docs` writes this page from the catalogue of
published bounds and from docstrings; a test compares the two. The standing of each entry is
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
    """The public functions of the package that a catalogue entry calls, as `module.function`.

    Private helpers of the catalogue are looked into. Names are resolved in the code itself, so the
    map cannot name a function that is not there.
    """
    return list(dict.fromkeys(_called(compute)))


def _called(compute: Any) -> Iterator[str]:
    if not isinstance(compute, FunctionType):
        return
    names = compute.__code__.co_names
    known = [_plain(compute.__globals__.get(name)) for name in names]
    for member in known:
        if not isinstance(member, FunctionType):
            continue
        if member.__name__.startswith("_"):
            yield from _called(member)
        elif member.__module__.startswith("dpcheckin."):
            yield _place(member)
    for module in known:
        if isinstance(module, ModuleType) and module.__name__.startswith("dpcheckin."):
            for name in names:
                member = _plain(vars(module).get(name))
                if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                    yield _place(member)


def _plain(member: Any) -> Any:
    """What a cache or another decorator is wrapped round."""
    return inspect.unwrap(member) if callable(member) else member


def _place(function: FunctionType) -> str:
    return f"{function.__module__.removeprefix('dpcheckin.')}.{function.__name__}"


def citations() -> list[tuple[str, list[str]]]:
    """Modules, public classes and functions whose docstring cites a paper, with what they cite.

    Source is parsed, not imported: some layers need libraries that need not be installed.
    """
    out = []
    package = Path(__file__).parents[1]
    for file in (file for layer in _LAYERS for file in sorted((package / layer).rglob("*.py"))):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        parts = file.relative_to(package).with_suffix("").parts
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


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for tag, paper in PAPERS.items():
        entries = [bound for bound in catalogue() if bound.paper == tag]
        if not entries:
            continue
        lines += [f"## {tag}", "", f"{paper}.", "", "| statement | standing | computed by |"]
        lines.append("|---|---|---|")
        for bound in entries:
            code = ", ".join(f"`{name}`" for name in functions_behind(bound.compute)) or "–"
            lines.append(f"| {bound.theorem}: {_cell(bound.name)} | {bound.kind.value} | {code} |")
        lines.append("")
    lines.append(_MECHANISMS)
    lines += [f"| `{place}` | {', '.join(cited)} |" for place, cited in citations()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|chi|", "χ")


if __name__ == "__main__":
    print(page(), end="")
