"""Claims: what is proved is true, and what is false, or forged, is not proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gaussian_types.claim import Claim, Examination
from gaussian_types.gram import gram, halves, leaves
from gaussian_types.rounding import Array
from gaussian_types.search import Proof, proposal, prove
from gaussian_types.table import read, shipped_lines


def shipped(diameter: float) -> Proof:
    """The entry of the shipped table for exactly this diameter, with a wide range of α."""
    found = (one for one in read(shipped_lines()) if one.claim.diameter == diameter)
    return max(found, key=lambda one: len(one.claim.tilts))


def close_entries() -> list[Proof]:
    """Those whose types are closest to the reports, by diameter."""
    found = [one for one in read(shipped_lines()) if len(one.claim.tilts) == 2]
    return sorted(found, key=lambda one: one.claim.diameter)


def some_cells(proof: Proof, count: int, seed: int = 0) -> Array:
    cells = leaves(proof.tree)
    return cells[np.random.default_rng(seed).choice(len(cells), count, replace=False)]


def smoothed_excess(z: Array, mass: Array, u: Array, scale: float) -> Array:
    """E G(Z - u) - (E Z - u)₊, free of cancellation, for a law given by atoms."""
    gap = z - u[:, None]
    mean = (z * mass).sum() - u
    kinked = np.maximum(gap, 0.0) @ mass - np.maximum(mean, 0.0)
    return kinked + scale / 2 * (np.exp(-np.abs(gap) / scale) @ mass)


def fine_normal(nodes: int) -> tuple[Array, Array]:
    z = np.linspace(-8, 8, nodes)
    mass = np.exp(-z * z / 2)
    return z, mass / mass.sum()


@pytest.mark.parametrize("diameter", [0.5, 1.0])
def test_a_proved_cell_is_true_by_quadrature(diameter: float) -> None:
    """Random triples of random cells, random α and u, with the weight the examination chose."""
    proof = shipped(diameter)
    claim = proof.claim
    cells = some_cells(proof, 12, seed=3)
    violations, weights = Examination(claim).examine(cells)
    assert violations.max() <= claim.violation
    rng = np.random.default_rng(4)
    v, mass = fine_normal(241)
    one, two = np.meshgrid(v, v, indexing="ij")
    plane = np.outer(mass, mass).ravel()
    line, line_mass = fine_normal(4001)
    w = np.exp(claim.scale * line - claim.scale**2 / 2)
    for cell, weight in zip(cells, weights, strict=True):
        k = int(rng.integers(len(weight)))
        tilt = float(rng.uniform(claim.tilts[k], claim.tilts[k + 1]))
        alpha = (1 + tilt) / (1 - tilt)
        scale = claim.smoothing * (1 + alpha) / 2
        g11, g22, g12 = gram(rng.dirichlet(np.ones(3)) @ cell, diameter)
        a = (np.sqrt(g11), 0.0)
        b = (g12 / a[0], np.sqrt(max(g22 - g12**2 / g11, 0.0)))
        m = np.exp(a[0] * one - g11 / 2).ravel()
        n = np.exp(b[0] * one + b[1] * two - g22 / 2).ravel()
        u = np.concatenate([rng.normal(0, 2 * diameter, 6), rng.normal(0, 4 * scale, 4)])
        report = smoothed_excess(m - alpha * n, plane, u, scale)
        first = smoothed_excess(1 - alpha * w, line_mass, u, scale)
        second = smoothed_excess(w - alpha, line_mass, u, scale)
        assert np.all(report <= (1 - weight[k]) * first + weight[k] * second + 1e-7)


@pytest.mark.parametrize("diameter", [0.5, 1.0, 2.0])
def test_a_smoothing_scale_forged_by_a_fifth_is_caught(diameter: float) -> None:
    """The cells of the proof no longer pass."""
    proof = shipped(diameter)
    forged = Examination(replace(proof.claim, smoothing=0.8 * proof.claim.smoothing))
    cells = some_cells(proof, 150)
    assert Examination(proof.claim).holds(cells[:20]).all()
    assert not forged.holds(cells).all()


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("change", ["smoothing", "scale", "diameter"])
def test_forged_close_entries_are_caught(place: float, change: str) -> None:
    """Noise a fifth too small, types no wider than the reports, a ball half a per cent larger."""
    entries = close_entries()
    proof = entries[round(place * (len(entries) - 1))]
    claim, cells = proof.claim, some_cells(proof, 150)
    forged = {
        "smoothing": replace(claim, smoothing=0.8 * claim.smoothing),
        "scale": replace(claim, scale=claim.diameter),
        "diameter": replace(claim, diameter=1.005 * claim.diameter),
    }[change]
    assert Examination(claim).holds(cells[:20]).all()
    assert not Examination(forged).holds(cells).all()


@pytest.mark.parametrize(("diameter", "smoothing"), [(0.5, 0.32), (1.0, 1.2)])
def test_a_smoothing_scale_that_is_too_small_is_never_proved(diameter: float, smoothing: float) -> None:
    """However small the cells: with a and b antipodal and x half-way the claim is false."""
    claim = replace(proposal(diameter), tilts=(0.0, 1 / 1024))
    corner = np.array([0.5, 0.5 + 1e-3])
    tiny = corner + 1e-4 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert Examination(claim).holds(tiny[None]).all()
    assert not Examination(replace(claim, smoothing=smoothing)).holds(tiny[None]).any()


@pytest.mark.parametrize("change", [{"scale": 0.5}, {"violation": 1e-15}])
def test_other_forgeries_are_caught(change: dict[str, float]) -> None:
    """Types no wider than the reports; a violation below what the tails cost."""
    proof = shipped(0.5)
    forged = Examination(replace(proof.claim, **change))  # type: ignore[arg-type]
    assert not forged.holds(some_cells(proof, 200)).all()


def test_a_wrong_cell_is_not_proved() -> None:
    """The whole triangle as one cell, and a claim for a smaller ball used for a larger one."""
    proof = shipped(0.5)
    assert not Examination(proof.claim).holds(leaves("0")).any()
    larger = replace(proof.claim, diameter=0.53)
    assert not Examination(larger).holds(some_cells(proof, 150)).all()


def test_search_gives_up_on_a_false_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """With types of the reports' own scale no cover is found."""
    monkeypatch.setattr("gaussian_types.search.FINEST", 9)
    claim = Claim(0.5, 0.5, 0.9, 1e-12, (0.0, 1 / 64))
    assert prove(claim) is None


def test_search_finds_a_proof_that_verifies() -> None:
    """A generous claim, from nothing and from a neighbour's cells."""
    claim = Claim(0.5, 0.53, 2.0, 1e-11, (0.0, 1 / 64))
    proof = prove(claim)
    assert proof is not None
    assert Examination(claim).holds(leaves(proof.tree)).all()
    again = prove(claim, proof.tree)
    assert again is not None and again.tree == proof.tree
    assert Examination(claim).holds(halves(leaves(proof.tree)[:20])).all()
