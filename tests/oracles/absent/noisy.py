"""Gaussian and Laplace reports of few clients, sorted into cells.

Cells are post-processing, so that the divergence of the cells' multisets is at most that of the reports: quadrature
that errs on one side only. In the plane cells are products of intervals.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from oracles.absent import shuffles
from oracles.absent.crowd import Array
from oracles.absent.designs import Design
from oracles.absent.setting import Random, Setting

CELLS = {1: 400, 2: 110, 3: 34, 4: 18, 5: 12, 6: 9}
"""Cells on the line for so many clients: some ten thousand multisets."""
SIDES = {1: 20, 2: 10, 3: 6, 4: 4}


def _normal(edges: Array, at: Array, noise: float) -> Array:
    below = special.ndtr((edges[None, :] - at[:, None]) / noise)
    below = np.hstack([np.zeros((len(at), 1)), below, np.ones((len(at), 1))])
    return np.asarray(np.diff(below, axis=1))


def _edges(noise: float, reach: float, cells: int) -> Array:
    """Inner edges, wide outside."""
    return reach * (1.0 + 2.6 * noise) * np.linspace(-1.0, 1.0, cells - 1)


def _noise(rng: Random) -> float:
    return round(float(np.exp(rng.uniform(np.log(0.35), np.log(5.0)))), 3)


def line(rng: Random, cells: int) -> Design:
    """Gaussian noise on numbers of [-1, 1], both ends among them."""
    noise = _noise(rng)
    inputs = np.concatenate([[-1.0, 1.0], np.round(rng.uniform(-1.0, 1.0, 2), 3)])
    return Design(f"gaussian({noise})", _normal(_edges(noise, 1.0, cells), inputs, noise))


def plane(rng: Random, side: int) -> Design:
    """Gaussian noise on points of the disk: two at its ends, others on the circle and inside."""
    noise, turn = _noise(rng), rng.uniform(0.0, np.pi / 2)
    angles = turn + np.concatenate([[0.0, np.pi], rng.uniform(0.0, 2 * np.pi, 2)])
    radius = np.array([1.0, 1.0, 1.0, np.sqrt(rng.random())])
    edges = _edges(noise, 1.0, side)
    across, up = (_normal(edges, radius * turned, noise) for turned in (np.cos(angles), np.sin(angles)))
    table = (across[:, :, None] * up[:, None, :]).reshape(4, -1)
    return Design(f"gaussian({noise})", table)


def laplace(rng: Random, cells: int) -> Design:
    """Laplace noise on numbers of [0, 1]; beyond these, ratios do not change any more."""
    e0 = round(float(rng.uniform(0.2, 4.0)), 3)
    inputs = np.concatenate([[0.0, 1.0], rng.uniform(0.0, 1.0, 1)])
    away = np.linspace(0.0, 1.0, cells - 1)[None, :] - inputs[:, None]
    below = np.where(away < 0, np.exp(-e0 * np.abs(away)) / 2, 1.0 - np.exp(-e0 * np.abs(away)) / 2)
    below = np.hstack([np.zeros((3, 1)), below, np.ones((3, 1))])
    return Design(f"laplace({e0})", np.asarray(np.diff(below, axis=1)))


def on_line(rng: Random) -> Setting:
    """A full shuffle of numbers with Gaussian noise."""
    clients = int(rng.integers(1, 7))
    return shuffles.full(rng, line(rng, CELLS[clients]), clients, 24)


def in_plane(rng: Random) -> Setting:
    """A full shuffle of points of the disk with Gaussian noise."""
    clients = int(rng.integers(2, 5))
    return shuffles.full(rng, plane(rng, SIDES[clients]), clients, 24)


def with_laplace(rng: Random) -> Setting:
    """A full shuffle of numbers with Laplace noise."""
    clients = int(rng.integers(1, 7))
    return shuffles.full(rng, laplace(rng, CELLS[clients]), clients, 24)


def coarse(rng: Random) -> Setting:
    """A larger crowd, of whose noisy numbers only two or three cells are told."""
    noise = _noise(rng)
    inputs = np.array([-1.0, 1.0, round(float(rng.uniform(-1.0, 1.0)), 3)])
    edges = np.sort(rng.uniform(-1.2 - noise, 1.2 + noise, int(rng.integers(1, 3))))
    design = Design(f"gaussian({noise})", _normal(edges, inputs, noise))
    clients = round(7 * (60 / 7) ** float(rng.random()))
    return shuffles.full(rng, design, clients, 24)


def uneven(rng: Random) -> Setting:
    """A check-in at uneven rates of numbers with Gaussian or Laplace noise."""
    clients = int(rng.integers(1, 6))
    make = line if rng.random() < 0.7 else laplace
    return shuffles.uneven(rng, make(rng, max(CELLS[clients] - 4, 4)), clients, 24)
