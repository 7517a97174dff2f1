"""Are the libraries there that a command will need? Asked at its start; nothing is loaded."""

from __future__ import annotations

from importlib.util import find_spec

from dpcheckin.errors import MissingExtra

# libraries that only some commands need -> the extra that brings them
EXTRAS = {
    "matplotlib": "plot",
    "pandas": "frame",
    "dp_accounting": "bridge",
    "torch": "learning",
    "sklearn": "learning",
    "starlette": "ui",
    "uvicorn": "ui",
    "cryptography": "service",
    "httpx": "service",
    "psycopg": "service",
    "uvloop": "service",
    "httptools": "service",
    "flwr": "flower",
    "ray": "flower",
}


def need(*modules: str) -> None:
    """Raise `MissingExtra` for the first that is not there.

    Args:
        modules: names of modules that an extra brings.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(module, EXTRAS[module])
