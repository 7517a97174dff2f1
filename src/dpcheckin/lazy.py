"""Packages that load their names when these are first touched, so that a command pays only for what it uses."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def offered(
    package: str, modules: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package, from its modules with the names that each holds."""
    home = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return list(home), load, lambda: sorted(sys.modules[package].__all__)
