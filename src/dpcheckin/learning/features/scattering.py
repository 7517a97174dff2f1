"""Scattering transform of small images: wavelet moduli, averaged; nothing in it is learned.

Orders 0, 1 and 2 of Bruna and Mallat (arXiv 1203.1513v2, section 2) with Morlet wavelets: a
low-pass of the image, of the moduli of its wavelet transform, and of the moduli of theirs. Every
client can compute it from its own image alone, so it costs no privacy. Of the averaged moduli roots
are taken, and each order of each image is standardised by itself: brightness and contrast of the
image, and with them any normalisation that was applied before, drop out.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter

SCALES, ANGLES = 2, 8
_SMALLEST = 1e-5  # an image of one colour has no contrast to divide by


@lru_cache(maxsize=4)
def _wavelets(side: int, scales: int, angles: int) -> Tensor:
    """Fourier transforms of Morlet wavelets, (scales, angles, side, side).

    A Morlet wavelet is a plane wave under an elongated Gaussian, made to sum to zero; its spectrum
    is real because the Gaussian is even.
    """
    grid = torch.fft.fftfreq(side, 1 / side, dtype=torch.float64)
    down, along = torch.meshgrid(grid, grid, indexing="ij")

    def spectrum(scale: int, angle: float) -> Tensor:
        deviation, wave, slant = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 4.0 / angles
        c, s = math.cos(angle), math.sin(angle)
        first, second = c * down + s * along, -s * down + c * along
        bump = torch.exp(-(first**2 + (slant * second) ** 2) / (2 * deviation**2))
        signal = bump * torch.exp(1j * wave * first)
        signal = signal - bump * (signal.sum() / bump.sum())
        wavelet: Tensor = torch.fft.fft2(signal).real * (slant / (2 * math.pi * deviation**2))
        return wavelet

    rows = [[spectrum(j, math.pi * a / angles) for a in range(angles)] for j in range(scales)]
    return torch.stack([torch.stack(row) for row in rows]).float()


def _modulus(spectra: Tensor, waves: Tensor, thinned: int) -> Tensor:
    """Spectra (…, side, side) through wavelets (angles, side, side): moduli, every so many pixels.

    A wavelet of a coarser scale leaves little above half the frequencies: folding the spectrum
    keeps every second pixel of the result and spares three quarters of the work.
    """
    side = spectra.shape[-1] // thinned
    product: Tensor | None = None
    for i, j in itertools.product(range(thinned), repeat=2):  # block by block: memory is the cost
        block = (..., slice(i * side, (i + 1) * side), slice(j * side, (j + 1) * side))
        term = spectra[block].unsqueeze(-3) * (waves[block] / thinned**2)
        product = term if product is None else product.add_(term)
    assert product is not None
    moduli: Tensor = torch.fft.ifft2(product).abs()
    return moduli


@lru_cache(maxsize=8)
def _averages(side: int, margin: int, scales: int, thinned: int) -> Tensor:
    """Weights (positions, pixels) of the low-pass along one axis, at points 2^scales apart."""
    step = 2**scales
    pixels = torch.arange(0, side + 2 * margin, thinned, dtype=torch.float64)
    points = margin + torch.arange(step // 2, side, step, dtype=torch.float64) - 0.5
    bump = torch.exp(-((pixels - points[:, None]) ** 2) / (2 * (0.8 * 2 ** (scales - 1)) ** 2))
    return (bump / bump.sum(dim=1, keepdim=True)).float()


def standardised(order: Tensor) -> Tensor:
    """Each image's coefficients of one order, less their mean, over their deviation."""
    flat = order.flatten(1)
    centred = flat - flat.mean(dim=1, keepdim=True)
    scale = centred.square().mean(dim=1, keepdim=True).sqrt()
    return centred / scale.clamp(min=_SMALLEST)


def scattering(images: Tensor, scales: int = SCALES, angles: int = ANGLES) -> Tensor:
    """Scattering coefficients, one row an image (channels, side, side).

    Coefficients of `scales` octaves of wavelets are 2^scales pixels apart.
    """
    if images.ndim != 4 or images.shape[-1] != images.shape[-2]:
        raise InvalidParameter("images", tuple(images.shape), "square images with channels")
    side, step = images.shape[-1], 2**scales
    if side < 2 * step:
        raise InvalidParameter("images", f"side {side}", f"a side of at least {2 * step}")
    margin = step
    padded = torch.nn.functional.pad(images, (margin,) * 4, mode="reflect")
    waves = _wavelets(side + 2 * margin, scales, angles)

    def averaged(maps: Tensor, thinned: int) -> Tensor:
        weights = _averages(side, margin, scales, thinned)
        return (weights @ maps @ weights.T).flatten(1)

    orders = [averaged(padded, 1)]
    first, second = [], []
    spectra = torch.fft.fft2(padded)
    for j in range(scales):
        last = j + 1 == scales
        moduli = _modulus(spectra, waves[j], 2**j if last else 1)
        first.append(averaged(moduli, 2**j if last else 1))
        for k in range(j + 1, scales):
            deeper = _modulus(torch.fft.fft2(moduli), waves[k], 2**k)
            second.append(averaged(deeper, 2**k))
    # roots: a few strong edges would otherwise drown the rest of an order
    orders += [torch.cat(paths, 1).clamp(min=0).sqrt() for paths in (first, second) if paths]
    return torch.cat([standardised(order) for order in orders], dim=1)
