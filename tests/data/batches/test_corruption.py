"""Claims about masked tokens, spans and gap sentences: rates, lengths, reversibility, independence of company."""

from collections import Counter

import numpy as np
import pytest

from precis.data.batches.corruption import (
    CorruptionIds,
    corrupt_spans,
    gap_sentences,
    mask_tokens,
    sentence_scores,
)
from precis_text.errors import UserError
from tests.restored_spans import restore_spans

CLS, SEP, PAD, MASK, SENTINEL = 1, 2, 0, 999, 1000
WORDS = CorruptionIds(pad=PAD, cls=CLS, sep=SEP, mask=MASK, first_sentinel=SENTINEL, sentinels=100)


def text(rows: int, length: int, *, seed: int = 0) -> np.ndarray:
    ids = np.random.default_rng(seed).integers(5, 900, (rows, length))
    ids[:, 0], ids[:, -1] = CLS, SEP
    return ids


def numbers(rows: int, width: int, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, width))


@pytest.mark.parametrize("length", [3, 8, 64, 512])
def test_exactly_the_rate_is_masked_and_never_a_control_token(length: int) -> None:
    ids = text(50, length)
    masked, places = mask_tokens(ids, numbers(50, length), WORDS)
    assert places.shape == (50, max(1, round(0.15 * (length - 2))))
    assert (np.diff(places, axis=1) > 0).all()
    chosen = np.zeros(ids.shape, bool)
    np.put_along_axis(chosen, places, True, axis=1)
    assert (masked[chosen] == MASK).all()
    assert (masked[~chosen] == ids[~chosen]).all()
    assert not chosen[:, [0, -1]].any()


def test_eq1_masking_is_uniform_over_all_positions() -> None:
    """DeBERTa's code never masks the last tenth of a block of 512."""
    ids = text(20_000, 42)
    _, places = mask_tokens(ids, numbers(20_000, 42), WORDS)
    rates = np.bincount(places.ravel(), minlength=42)[1:-1] / 20_000  # 40 places, 6 of them chosen
    assert abs(rates - 0.15).max() < 4 * (0.15 * 0.85 / 20_000) ** 0.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("length", [8, 15, 40, 129, 512])
def test_spans_can_be_put_back(length: int, seed: int) -> None:
    ids = text(40, length, seed=seed)
    spans = corrupt_spans(ids, numbers(40, length, seed=seed), WORDS)
    assert restore_spans(spans.input_ids, spans.labels, WORDS) == ids.tolist()
    assert (spans.attention == (spans.input_ids != PAD)).all()


def test_eq5_rate_and_number_of_spans_are_exact_and_full_rows_need_no_padding() -> None:
    ids = text(300, 512)
    spans = corrupt_spans(ids, numbers(300, 512), WORDS)
    noise, count = round(0.15 * 510), round(round(0.15 * 510) / 3)
    assert spans.input_ids.shape == (300, 512 - noise + count)
    assert spans.labels.shape == (300, noise + count + 1)
    assert spans.attention.all()
    assert (spans.labels >= 0).all()


def test_spans_are_three_tokens_long_on_average_and_of_many_lengths() -> None:
    ids = text(500, 512)
    labels = corrupt_spans(ids, numbers(500, 512), WORDS).labels
    lengths = Counter(len(span.split()) for row in labels for span in _spans(row))
    mean = sum(n * times for n, times in lengths.items()) / lengths.total()
    assert mean == pytest.approx(76 / 25)
    # compositions of 76 into 25 parts: the share of spans of one token is 24/75
    assert lengths[1] / lengths.total() == pytest.approx(24 / 75, abs=0.01)
    assert max(lengths) > 9


def _spans(row: np.ndarray) -> list[str]:
    joined = " ".join("|" if token >= SENTINEL else str(token) for token in row[:-1])
    return [part for part in joined.split("|") if part.strip()]


def test_a_span_begins_anywhere_equally_often() -> None:
    """28 tokens have one span of 4: 25 places. So the tokens at the ends lie in fewer spans than the others."""
    rows, length = 40_000, 30
    ids = np.tile(np.arange(100, 100 + length), (rows, 1))
    ids[:, 0], ids[:, -1] = CLS, SEP
    spans = corrupt_spans(ids, numbers(rows, length), WORDS)
    hidden = spans.labels[(spans.labels >= 100) & (spans.labels < 100 + length)] - 100
    rates = np.bincount(hidden, minlength=length)[1:-1] / rows
    expected = np.array([min(place + 1, 4, 28 - place) / 25 for place in range(28)])
    assert abs(rates - expected).max() < 4 * (0.16 * 0.84 / rows) ** 0.5


def test_in_a_full_block_every_position_is_hidden_equally_often() -> None:
    rows, length = 20_000, 102
    ids = np.tile(np.arange(100, 100 + length), (rows, 1))
    ids[:, 0], ids[:, -1] = CLS, SEP
    spans = corrupt_spans(ids, numbers(rows, length), WORDS)
    hidden = spans.labels[(spans.labels >= 100) & (spans.labels < 100 + length)] - 100
    rates = np.bincount(hidden, minlength=length)[1:-1] / rows
    assert abs(rates[10:-10] - 0.15).max() < 0.02
    assert rates[-5:].mean() == pytest.approx(rates[:5].mean(), abs=0.01)


def test_sentinels_come_in_order_in_source_and_target() -> None:
    ids = text(20, 200)
    spans = corrupt_spans(ids, numbers(20, 200), WORDS)
    for rows in (spans.input_ids, spans.labels):
        for row in rows:
            marks = row[row >= SENTINEL]
            assert marks.tolist() == list(range(SENTINEL, SENTINEL + len(marks)))
    assert (spans.labels[:, -1] == SEP).all()


def test_spans_never_touch() -> None:
    ids = text(200, 60)
    spans = corrupt_spans(ids, numbers(200, 60), WORDS, rate=0.5)
    is_mark = spans.input_ids >= SENTINEL
    assert not (is_mark[:, 1:] & is_mark[:, :-1]).any()


def test_what_happens_to_a_row_does_not_depend_on_its_company() -> None:
    ids, drawn = text(3, 50), numbers(3, 50)
    together, (masked, _) = corrupt_spans(ids, drawn, WORDS), mask_tokens(ids, drawn, WORDS)
    for row in range(3):
        alone = corrupt_spans(ids[[row]], drawn[[row]], WORDS)
        assert (together.input_ids[row] == alone.input_ids[0]).all()
        assert (together.labels[row] == alone.labels[0]).all()
        one, _ = mask_tokens(ids[[row]], drawn[[row]], WORDS)
        assert (one[0] == masked[row]).all()


def test_more_spans_than_sentinels_and_rows_too_short_are_refused() -> None:
    ids = text(1, 3000)
    with pytest.raises(
        UserError, match="150 spans in a row of 3000 tokens, but the tokenizer has 100 sentinels"
    ):
        corrupt_spans(ids, numbers(1, 3000), WORDS)
    with pytest.raises(UserError, match="too short"):
        corrupt_spans(text(1, 3), numbers(1, 3), WORDS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.0}, "rate=0.0 is outside"),
        ({"rate": 1.0}, "outside"),
        ({"mean_length": 0.5}, "mean_length=0.5"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, float], message: str) -> None:
    ids, drawn = text(2, 20), numbers(2, 20)
    with pytest.raises(UserError, match=message):
        corrupt_spans(ids, drawn, WORDS, **changes)
    if "rate" in changes:
        with pytest.raises(UserError, match=message):
            mask_tokens(ids, drawn, WORDS, rate=changes["rate"])


@pytest.mark.parametrize("width", [1, 19])
def test_fewer_random_numbers_than_tokens_are_refused(width: int) -> None:
    """A single column would be broadcast and hide the beginning of every row."""
    ids = text(2, 20)
    with pytest.raises(ValueError, match=f"{width} random numbers for rows of 20 tokens"):
        corrupt_spans(ids, numbers(2, width), WORDS)
    with pytest.raises(ValueError, match=f"{width} random numbers for rows of 20 tokens"):
        mask_tokens(ids, numbers(2, width), WORDS)


@pytest.mark.parametrize("seed", range(40))
def test_sizes_and_reversibility_hold_at_any_rate_and_mean_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length, rate, mean = int(rng.integers(4, 120)), rng.uniform(0.01, 0.95), rng.uniform(1, 8)
    ids = text(25, length, seed=seed)
    spans = corrupt_spans(ids, rng.random((25, length)), WORDS, rate=rate, mean_length=mean)
    noise = np.clip(np.rint(rate * (length - 2)), 1, length - 3)
    count = min(max(1, np.rint(noise / mean)), length - 2 - noise + 1)
    assert (((spans.labels >= 5) & (spans.labels < 900)).sum(axis=1) == noise).all()
    for marked in (spans.input_ids >= SENTINEL, spans.labels >= SENTINEL):
        assert (marked.sum(axis=1) == count).all()
        assert not (marked[:, 1:] & marked[:, :-1]).any()
    assert restore_spans(spans.input_ids, spans.labels, WORDS) == ids.tolist()


def sentences(rows: int, length: int, size: int) -> list[np.ndarray]:
    return [np.arange(1, length - 1, size)] * rows


def test_gap_sentences_are_whole_sentences_and_can_be_put_back() -> None:
    ids = text(50, 202)
    starts = sentences(50, 202, 10)
    gaps = gap_sentences(ids, starts, numbers(50, 1), WORDS)
    assert restore_spans(gaps.input_ids, gaps.labels, WORDS) == ids.tolist()
    sizes = {len(span.split()) for row in gaps.labels for span in _spans(row[row >= 0])}
    assert sizes == {10}


def test_gap_sentences_hide_the_rate_on_average_and_leave_something() -> None:
    ids = text(4000, 62)
    gaps = gap_sentences(ids, sentences(4000, 62, 8), numbers(4000, 1), WORDS)
    hidden = ((gaps.labels >= 5) & (gaps.labels < 900)).sum(axis=1)
    assert hidden.mean() / 60 == pytest.approx(0.15, abs=0.01)
    assert hidden.min() > 0
    alone = gap_sentences(text(3, 20), [np.array([1])] * 3, numbers(3, 1), WORDS)
    assert (
        ((alone.labels >= 5) & (alone.labels < 900)).sum(axis=1) == 9
    ).all()  # halves of a single sentence


@pytest.mark.long
def test_gap_sentences_hide_the_rate_also_where_the_best_sentence_is_too_long() -> None:
    """A quarter of 60 tokens is 15: the best sentence has 30, the best one below 15 has 5."""
    rows = 20_000
    ids = np.array(
        [[CLS, *range(100, 120), *range(100, 110), *range(100, 125), 100, 101, 201, 202, 203, SEP]]
    )
    ids, starts = np.tile(ids, (rows, 1)), [np.array([1, 31, 56])] * rows
    gaps = gap_sentences(ids, starts, numbers(rows, 1), WORDS, rate=0.25)
    sizes = Counter(((gaps.labels >= 5) & (gaps.labels < 900)).sum(axis=1).tolist())
    assert set(sizes) == {30, 5}
    assert sizes[30] / rows == pytest.approx((15 - 5) / (30 - 5), abs=0.015)
    shortest = gap_sentences(ids[:1], starts[:1], numbers(1, 1), WORDS, rate=0.05)
    assert ((shortest.labels >= 5) & (shortest.labels < 900)).sum() == 5


def test_a_row_loses_the_same_sentences_in_any_company() -> None:
    ids, starts, drawn = text(8, 62), sentences(8, 62, 8), numbers(8, 1)
    together = gap_sentences(ids, starts, drawn, WORDS)
    for row in range(8):
        alone = gap_sentences(ids[[row]], starts[:1], drawn[[row]], WORDS)
        assert (together.labels[row, : alone.labels.shape[1]] == alone.labels[0]).all()
        assert (together.input_ids[row, : alone.input_ids.shape[1]] == alone.input_ids[0]).all()


def test_the_principal_sentence_shares_most_with_the_rest() -> None:
    rows = [np.array([1, 2, 3]), np.array([1, 2, 9]), np.array([7, 8, 6]), np.array([3, 1, 2])]
    scores = sentence_scores(rows)
    # distinct tokens: sentence 0 has 3, all shared; the rest has 1 2 9 7 8 6 3
    assert scores[0] == pytest.approx(2 * 3 / (3 + 7))
    assert scores[2] == 0.0
    assert scores.argmax() in (0, 3)


def test_gap_sentences_choose_the_principal_ones() -> None:
    ids = np.array([[CLS, 50, 51, 52, 60, 61, 62, 50, 51, 70, 80, 81, 82, SEP]])
    gaps = gap_sentences(ids, [np.array([1, 4, 7, 10])], np.zeros((1, 1)), WORDS)
    assert gaps.labels[0].tolist() in ([SENTINEL, 50, 51, 52, SEP], [SENTINEL, 50, 51, 70, SEP])
