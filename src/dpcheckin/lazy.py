"""Packages that load their names when these are first touched, so that a command pays only for what it uses.

What a package offers stands once, as imports for type checkers: `if TYPE_CHECKING: from room.module import A as A`.
"""

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module


def offered(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package: the names that its source imports as themselves."""
    source = ast.parse(inspect.getsource(sys.modules[package]))
    imports = [node for node in ast.walk(source) if isinstance(node, ast.ImportFrom)]
    home = {alias.asname: node.module for node in imports for alias in node.names if alias.asname}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(str(home[name])), name)
        setattr(sys.modules[package], name, value)
        return value

    return list(home), load, lambda: sorted(sys.modules[package].__all__)
