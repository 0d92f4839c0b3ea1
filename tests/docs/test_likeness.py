"""A stale picture is told from one that another machine drew."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from docs.likeness import difference
from tests.docs.pages import ROOT


def page(file: Path, lines: list[str], *, family: str = "DejaVu Sans", size: float = 12.0) -> Path:
    """Lines of text on a page of 1,000 by 600 pixels."""
    figure = Figure(figsize=(10, 6), dpi=100)
    for number, line in enumerate(lines):
        figure.text(0.05, 0.92 - 0.06 * number, line, family=family, size=size)
    figure.savefig(file)
    return file


LINES = [
    "The bridge at Olm was closed on Monday because a pillar had cracked.",
    "Engineers found the crack during a yearly inspection.",
    "The repair takes nine weeks and costs 2.3 million.",
    "Traffic goes through the village in the meantime.",
    "The mayor will speak about it on Thursday.",
]


def test_the_same_page_with_slightly_other_letters_is_alike(tmp_path: Path) -> None:
    kept = page(tmp_path / "kept.png", LINES)
    assert difference(page(tmp_path / "made.png", LINES), kept) == ""
    assert difference(page(tmp_path / "wider.png", LINES, size=12.1), kept) == ""


def test_a_line_less_or_moved_is_another_picture(tmp_path: Path) -> None:
    kept = page(tmp_path / "kept.png", LINES)
    assert "look different" in difference(page(tmp_path / "made.png", LINES[:4]), kept)
    assert "look different" in difference(page(tmp_path / "moved.png", ["", *LINES]), kept)


def test_another_size_and_a_missing_picture_are_named(tmp_path: Path) -> None:
    made = page(tmp_path / "made.png", LINES)
    Figure(figsize=(5, 6), dpi=100).savefig(tmp_path / "small.png")
    assert difference(made, tmp_path / "small.png") == "1000x600 pixels instead of 500x600"
    assert difference(made, tmp_path / "none.png") == "none.png is missing"


@pytest.mark.parametrize(
    "file", sorted((ROOT / "docs" / "gallery").glob("*.png")), ids=lambda file: file.stem
)
def test_every_picture_of_the_gallery_is_like_itself_and_not_like_a_blank_one(
    file: Path, tmp_path: Path
) -> None:
    from matplotlib.image import imread, imsave

    blank = np.ones_like(imread(str(file)))
    imsave(str(tmp_path / "blank.png"), blank)
    assert difference(file, file) == ""
    assert "look different" in difference(file, tmp_path / "blank.png")
