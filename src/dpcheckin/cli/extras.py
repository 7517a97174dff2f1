"""Are the libraries there that a command will need? Asked at its start; nothing is loaded."""

from __future__ import annotations

from importlib.util import find_spec

from dpcheckin.errors import MissingExtra


def need(*modules: str) -> None:
    """Raise `MissingExtra` for the first that is not there.

    Args:
        modules: names of modules that an extra brings.
    """
    from dpcheckin.cli import EXTRAS  # the table stands with what names a missing module later

    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(module, EXTRAS[module])
