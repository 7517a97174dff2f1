"""One thread for the linear algebra of small products: more would only wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded when first asked; looking for them again costs more than a small run does."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Within this context NumPy's linear algebra uses one thread."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited
