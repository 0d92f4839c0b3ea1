"""Whether a picture made again looks like the one in the repository.

Letters and figures differ a little between machines. So both pictures are cut into cells of 12 by 12 pixels, and the
mean brightness of each cell is compared. A block that has moved, or a line more, changes many cells.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CELL = 12  # pixels
FAR = 0.08  # difference of the mean brightness, 0..1, from which a cell counts as another
MOST = 0.06  # share of such cells in pictures that are alike


def share_of_other_cells(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the share of cells that differ, among those that are not blank in both pictures.

    Args:
        one, other: brightness (height, width) in 0..1, of the same size.
    """
    means = [_cells(picture) for picture in (one, other)]
    blank = [np.isclose(cells, np.median(cells), atol=0.01) for cells in means]
    drawn = ~(blank[0] & blank[1])
    differs = np.abs(means[0] - means[1]) > FAR
    return float((differs & drawn).sum() / max(1, drawn.sum()))


def _cells(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    height, width = (side // CELL for side in picture.shape)
    whole = picture[: height * CELL, : width * CELL]
    means: NDArray[np.float64] = whole.reshape(height, CELL, width, CELL).mean(axis=(1, 3))
    return means


def brightness(file: Path) -> NDArray[np.float64]:
    """Return the brightness of a PNG file, (height, width) in 0..1; transparent parts are white."""
    from matplotlib.image import imread

    pixels = np.asarray(imread(str(file)), dtype=np.float64)
    if pixels.ndim == 2:
        return pixels
    colours = pixels[..., :3].mean(axis=2)
    if pixels.shape[2] < 4:
        return colours
    opaque = pixels[..., 3]
    mixed: NDArray[np.float64] = colours * opaque + 1.0 - opaque
    return mixed


def difference(made: Path, kept: Path) -> str:
    """Return how a picture differs from the kept one in a few words; "" if they look alike."""
    if not kept.exists():
        return f"{kept.name} is missing"
    one, other = brightness(made), brightness(kept)
    if one.shape != other.shape:
        return f"{one.shape[1]}x{one.shape[0]} pixels instead of {other.shape[1]}x{other.shape[0]}"
    share = share_of_other_cells(one, other)
    return f"{share:.0%} of its parts look different (at most {MOST:.0%})" if share > MOST else ""
