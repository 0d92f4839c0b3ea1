"""Claims about MASS spans: one a block, fixed numbers, original positions, and what is written in the text."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from precis.data.batches.corruption import CorruptionIds, mass_spans
from precis_text.errors import UserError

CLS, SEP, MASK = 1, 2, 999
WORDS = range(300, 900)
IDS = CorruptionIds(pad=0, cls=CLS, sep=SEP, mask=MASK, pieces=WORDS)
NO_PIECES = replace(IDS, pieces=())


def text(rows: int, length: int, *, seed: int = 0) -> np.ndarray:
    """Tokens outside `WORDS`, so that a random word is seen as one."""
    ids = np.random.default_rng(seed).integers(5, 300, (rows, length))
    ids[:, 0], ids[:, -1] = CLS, SEP
    return ids


def numbers(rows: int, width: int, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, width))


@pytest.mark.parametrize("length", [4, 9, 66, 100, 130, 514])
@pytest.mark.parametrize("rate", [0.05, 0.15, 0.5])
def test_the_rate_is_exact_and_the_text_can_be_put_back(length: int, rate: float) -> None:
    ids = text(30, length)
    hidden = mass_spans(ids, numbers(30, length), rate=rate, words=IDS)
    assert hidden.targets.shape == (30, max(1, round(rate * (length - 2))))
    restored = hidden.input_ids.copy()
    np.put_along_axis(restored, hidden.positions, hidden.targets, axis=1)
    assert (restored == ids).all()
    changed = np.nonzero(hidden.input_ids != ids)
    assert all(place in hidden.positions[row] for row, place in zip(*changed, strict=True))


def test_every_block_of_64_has_one_span_of_nine_or_ten_tokens() -> None:
    hidden = mass_spans(text(200, 514), numbers(200, 514), words=IDS)
    assert Counter(Counter(hidden.spans.tolist()).values()) == {9: 3, 10: 5}  # 77 of 512 tokens
    assert (hidden.spans == (hidden.positions - 1) // 64).all()
    steps = np.diff(hidden.positions, axis=1)
    inside = np.diff(hidden.spans) == 0
    assert (steps[:, inside] == 1).all()
    assert (steps[:, ~inside] >= 1).all()
    assert (steps[:, ~inside] > 1).any()


def test_a_ragged_last_block_has_a_shorter_span() -> None:
    hidden = mass_spans(text(200, 98), numbers(200, 98), words=IDS)  # blocks of 64 and 32 tokens
    assert Counter(hidden.spans.tolist()) == {0: 10, 1: 4}
    assert hidden.positions.max() == 96
    assert hidden.positions[:, 10:].min() == 65


def test_control_tokens_are_never_hidden() -> None:
    hidden = mass_spans(text(2000, 20), numbers(2000, 20), rate=0.5, words=IDS)
    assert (hidden.positions.min(), hidden.positions.max()) == (1, 18)


def test_a_span_begins_equally_often_wherever_it_fits() -> None:
    rows = 20_000
    hidden = mass_spans(text(rows, 66), numbers(rows, 66), words=IDS)  # a span of 10 in 64: 55 places
    starts = np.bincount(hidden.positions[:, 0] - 1, minlength=55) / rows
    assert starts.shape == (55,)
    assert abs(starts - 1 / 55).max() < 4.5 * (1 / 55 / rows) ** 0.5


def test_eighty_percent_masked_ten_random_ten_unchanged() -> None:
    ids = text(2000, 514)
    hidden = mass_spans(ids, numbers(2000, 514), words=IDS)
    seen = np.take_along_axis(hidden.input_ids, hidden.positions, axis=1)
    assert (seen == MASK).mean() == pytest.approx(0.8, abs=0.005)
    assert (seen == hidden.targets).mean() == pytest.approx(0.1, abs=0.005)
    drawn = seen[(seen != MASK) & (seen != hidden.targets)]
    assert drawn.size / seen.size == pytest.approx(0.1, abs=0.005)
    assert set(drawn.tolist()) == set(WORDS)
    halves = (drawn < 600).mean()
    assert halves == pytest.approx(0.5, abs=0.02)


def test_the_shares_may_be_none_or_all() -> None:
    ids, drawn = text(20, 130), numbers(20, 130)
    masked = mass_spans(ids, drawn, random=0.0, keep=0.0, words=NO_PIECES)
    assert (np.take_along_axis(masked.input_ids, masked.positions, axis=1) == MASK).all()
    kept = mass_spans(ids, drawn, random=0.0, keep=1.0, words=NO_PIECES)
    assert (kept.input_ids == ids).all()
    highest = np.full((20, 130), 1.0 - 2.0**-53)
    random = mass_spans(ids, highest, random=1.0, keep=0.0, words=IDS)
    assert (np.take_along_axis(random.input_ids, random.positions, axis=1) == WORDS[-1]).all()
    assert random.positions[:, -1].tolist() == [128] * 20


def test_what_happens_to_a_row_does_not_depend_on_its_company_and_the_ids_stay() -> None:
    ids, drawn = text(3, 200), numbers(3, 200)
    before = ids.copy()
    together = mass_spans(ids, drawn, words=IDS)
    assert (ids == before).all()
    for row in range(3):
        alone = mass_spans(ids[[row]], drawn[[row]], words=IDS)
        assert (together.input_ids[row] == alone.input_ids[0]).all()
        assert (together.positions[row] == alone.positions[0]).all()
        assert (together.targets[row] == alone.targets[0]).all()


def test_too_few_random_numbers_are_refused_and_one_more_changes_nothing() -> None:
    ids, drawn = text(2, 66), numbers(2, 66)  # one block, ten hidden tokens
    with pytest.raises(ValueError, match="10 random numbers a row for 1 blocks and 10 hidden tokens"):
        mass_spans(ids, drawn[:, :10], words=IDS)
    enough, more = (mass_spans(ids, drawn[:, :width], words=IDS) for width in (11, 66))
    assert (enough.input_ids == more.input_ids).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": 0}, "block=0 must be 1 or more"),
        ({"rate": 0.0}, "rate=0.0 is outside"),
        ({"random": 0.6, "keep": 0.5}, "random=0.6 and keep=0.5 must be shares"),
        ({"words": NO_PIECES}, "is empty"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        mass_spans(text(2, 20), numbers(2, 20), **{"words": IDS, **changes})


def test_a_row_without_room_for_a_span_is_refused() -> None:
    with pytest.raises(UserError, match="a row of 1 tokens is too short"):
        mass_spans(text(2, 3), numbers(2, 3), IDS)
