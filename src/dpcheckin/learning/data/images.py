"""Images in folders, one folder a class: `cats/1.png`, `dogs/1.png`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.display import needed
from dpcheckin.errors import InvalidParameter

_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


def _images(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name.lower().endswith(_IMAGES))


def is_image_folder(source: str | Path) -> bool:
    """Is this a folder with a folder of images for each class?"""
    path = Path(source).expanduser()
    return path.is_dir() and any(_images(inner) for inner in path.iterdir() if inner.is_dir())


def read_images(path: Path) -> tuple[NDArray[np.floating[Any]], NDArray[Any]]:
    """Images as (records, channels, rows, columns) in [-1, 1], and the names of their folders.

    Colours are kept where the first image has some. All images must be of its size: what is done to them otherwise is
    a choice, and not made here.
    """
    opened = needed("PIL.Image", "plot").open
    files = [file for inner in sorted(path.expanduser().iterdir()) if inner.is_dir() for file in _images(inner)]
    pixels: list[NDArray[Any]] = []
    for file in files:
        try:
            with opened(file) as image:
                mode = image.mode if not pixels else ("L" if pixels[0].ndim == 2 else "RGB")
                pixels.append(np.asarray(image.convert("L" if mode in ("1", "L", "I;16") else "RGB"), np.float32))
        except OSError as problem:
            reason = str(problem).splitlines()[0]
            raise InvalidParameter("data", str(file), f"an image that can be read ({reason})") from None
        if pixels[-1].shape != pixels[0].shape:
            tall, wide = pixels[0].shape[:2]
            allowed = f"{wide}×{tall} pixels, as {files[0].name}: bring all images to one size before"
            raise InvalidParameter("data", f"{file} of {pixels[-1].shape[1]}×{pixels[-1].shape[0]} pixels", allowed)
    rows: NDArray[np.floating[Any]] = np.stack(pixels) / 127.5 - 1.0
    return (np.moveaxis(rows, -1, 1) if rows.ndim == 4 else rows[:, None]), np.array([f.parent.name for f in files])
