"""What holds for every test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# What decides whether a change lands gives the same verdict twice: the examples follow from the
# test alone. `HYPOTHESIS_PROFILE=explore` looks for new ones.
settings.register_profile("same-examples", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same-examples"))

# Lanes: what a test needs follows from where it lives, or from what it asks for. `./dev quick` runs
# those that need nothing but this process.
TESTS = Path(__file__).parent
LANES = {
    "service": ("service", "deployment", "audit/test_training_and_service.py"),
    "cluster": ("flower", "learning/sweeps/test_ray.py"),
    "document": ("documentation", "test_readme.py", "test_packages.py", "test_lock.py"),
}
BROWSER = {"page", "browser", "server"}  # fixtures of the tests that look at pages
LONG = frozenset((TESTS / "long_tests.txt").read_text(encoding="utf-8").split())
"""Tests that take most of a second together, `path::function`; written by tools/long_tests.py."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put every test into its lane."""
    for item in items:
        place = os.path.relpath(item.path, TESTS)
        for lane, homes in LANES.items():
            if any(place == home or place.startswith(f"{home}/") for home in homes):
                item.add_marker(lane)
        if BROWSER & set(getattr(item, "fixturenames", ())):
            item.add_marker("browser")
        if f"{place}::{item.name.split('[')[0]}" in LONG:
            item.add_marker("long")


@pytest.fixture(autouse=True)
def _own_randomizers() -> Iterator[None]:
    """What a test or a page registers is not there for the next one."""
    yield
    registry = sys.modules.get("dpcheckin.randomizers.registry")
    if registry is not None:
        registry._registered.clear()
