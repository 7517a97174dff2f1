"""For the API pages: doctests of a docstring become Python code blocks.

The docstrings have their examples at the end, as plain doctests; Markdown would read ``>>>`` as
quotations. Loaded by mkdocstrings through mkdocs.yml, never imported by the package.
"""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


def fenced(docstring: str) -> str:
    """The text with every run of doctest lines between fences."""
    out: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if not inside and line.startswith(">>> "):
            out += ["", "```python"]
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line)
    if inside:
        out.append("```")
    return "\n".join(out)


class FenceDoctests(Extension):
    """Applies `fenced` to every docstring that griffe collects."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
