"""The catalogue of published bounds as a Markdown page (docs/bounds.md)."""

from __future__ import annotations

from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import PAPERS

_HEAD = """# Every published bound, and what it is worth

`./dev docs` writes this page from the catalogue in `dpcheckin.papers`; a test compares the two.
A *guarantee* is proved and may be charged; a *lower bound* says what no guarantee can undercut; a
*conjecture* is unproved, or proves something else than epsilon, and is not refuted; a *refuted
claim* is computed as its paper computed it. Neither can ever become a guarantee. The
[errata](errata.md) have counterexamples, the [paper map](paper-map.md) says which function
computes what.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD, "| tag | paper |", "|---|---|"]
    lines += [f"| {tag} | {text} |" for tag, text in PAPERS.items()]
    protocols: dict[str, list[str]] = {}
    for bound in catalogue():
        row = (
            f"| {bound.name} | {bound.paper} {bound.theorem} | {bound.kind.value} | "
            f"{bound.statement} | {bound.erratum or ''} |"
        )
        for protocol in bound.protocols:
            protocols.setdefault(protocol, []).append(row.replace("|chi|", "χ"))
    for protocol, rows in protocols.items():
        lines += ["", f"## {protocol}", "", "| bound | source | kind | statement | erratum |"]
        lines += ["|---|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
