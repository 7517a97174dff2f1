"""Pairs without their types: the bound with the worst law in every seat, which has references."""

from __future__ import annotations

from dpcheckin.accounting.pairs.local import ThreeAtoms


def worst_law(pair: ThreeAtoms) -> ThreeAtoms:
    """The same pair, its types forgotten."""
    return pair.without_types()
