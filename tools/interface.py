"""The public Python interface as a listing: every name that a package offers, with its parameters.

    python tools/interface.py            write docs/api/interface.txt
    python tools/interface.py --check    say what differs from it, and fail

Read from the source without importing it, so that it is the same under every Python. What stands in the listing is
stable as docs/stability.md says; a test compares.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LISTING = ROOT / "docs" / "api" / "interface.txt"
PACKAGES = ("", ".accounting", ".randomizers", ".protocols", ".learning", ".survey", ".audit", ".errors")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(module: str) -> ast.Module:
    """The source of a module or package, by its name."""
    place = SOURCE.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def offered(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package imports as themselves, or defines, and where they are from."""
    for node in ast.walk(parsed(package)):
        if isinstance(node, ast.ImportFrom):
            yield from ((alias.asname, str(node.module)) for alias in node.names if alias.asname)
    if package.endswith("errors"):
        yield from ((node.name, package) for node in parsed(package).body if isinstance(node, ast.ClassDef))


def definition(name: str, module: str) -> tuple[ast.stmt | None, str]:
    """Where a name is defined, followed through modules that only pass it on."""
    for node in parsed(module).body:
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            return node, module
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node, module
    for further, home in offered(module):
        if further == name and home != module:
            return definition(name, home)
    return None, module


def signature(node: Function) -> str:
    """Parameters and what is returned; a default that is long is only said to be there."""
    arguments = ast.unparse(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returns}"


def members(node: ast.ClassDef) -> Iterator[str]:
    """Fields, properties and methods of a class that strangers may use."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id[0] != "_":
            yield f"{part.target.id}: {ast.unparse(part.annotation)}{' = …' if part.value else ''}"
        elif isinstance(part, Function) and part.name[0] != "_":
            kinds = {ast.unparse(decorator).rpartition(".")[2] for decorator in part.decorator_list}
            if kinds & {"property", "cached_property"}:
                yield f"{part.name} -> {ast.unparse(part.returns) if part.returns else 'Any'}"
            elif "overload" not in kinds:
                yield signature(part)


def listing() -> str:
    """The whole listing."""
    lines: list[str] = []
    for suffix in PACKAGES:
        package = "dpcheckin" + suffix
        lines += ["", package]
        for name, home in sorted(set(offered(package))):
            node, _ = definition(name, home)
            if isinstance(node, ast.ClassDef):
                bases = ", ".join(map(ast.unparse, node.bases))
                lines.append(f"  class {name}({bases})" if bases else f"  class {name}")
                lines += [f"    {text}" for text in members(node)]
            elif isinstance(node, Function):
                lines.append(f"  {signature(node)}")
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                lines.append(f"  {name}")
            else:
                raise SystemExit(f"{package}.{name} is not found in {home}")
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    """Write the listing, or compare it."""
    now = listing()
    if "--check" not in sys.argv:
        LISTING.write_text(now, encoding="utf-8")
        return
    known = LISTING.read_text(encoding="utf-8")
    changes = difflib.unified_diff(known.splitlines(), now.splitlines(), "known", "now", lineterm="", n=1)
    if text := "\n".join(changes):
        raise SystemExit(f"{text}\nthe interface changed: see docs/stability.md, then python tools/interface.py")


if __name__ == "__main__":
    main()
