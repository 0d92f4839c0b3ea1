"""The parts of a long document that a writer reads: the best passages, a start, or pieces that hold everything."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from precis.generation.writers.writer_input import Readable, _most, _split, by_centrality, longest_start
from precis_text.units import extraction_units
from precis_text.words import length_in_words

TEXT = "Ann sings in the hall. Bob reads. The cat sleeps on the old chair. It rains."
SIZES = [5, 2, 7, 2]  # words of its sentences
UNITS = extraction_units(TEXT)
SENTENCES = [unit.text for unit in UNITS]


def words(most: int) -> Callable[[str], bool]:
    return lambda text: length_in_words(text) <= most


def test_the_document_is_read_as_it_is_unless_some_of_its_units_are_left_out() -> None:
    text = f"{TEXT}\n\n\nEnd."
    assert Readable(text, extraction_units(text)).whole == text
    assert Readable(text, extraction_units(text)[1:2]).whole == "Bob reads."
    assert Readable(text, []).whole == ""


@pytest.mark.parametrize(("most", "sentences"), [(5, 1), (6, 1), (7, 2), (13, 2), (14, 3), (15, 3), (16, 4)])
def test_a_start_has_as_many_whole_units_as_fit(most: int, sentences: int) -> None:
    assert [unit.text for unit in extraction_units(Readable(TEXT, UNITS).start(words(most)))] == SENTENCES[
        :sentences
    ]


def test_a_start_shorter_than_the_first_unit_is_its_first_words() -> None:
    assert Readable(TEXT, UNITS).start(words(4)).split() == ["Ann", "sings", "in", "the"]
    assert longest_start("Ann sings", words(0)).strip() == ""
    assert longest_start("Ann sings", lambda text: False) == ""


@pytest.mark.parametrize("most", range(1, 18))
def test_pieces_fit_hold_all_words_in_order_and_are_as_few_as_can_be(most: int) -> None:
    pieces = Readable(TEXT, UNITS).pieces(words(most))
    assert all(length_in_words(piece) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(TEXT.split())
    assert all(length_in_words(f"{piece} {then.splitlines()[0]}") > most for piece, then in pairwise(pieces))


def test_a_letter_is_taken_where_not_even_a_letter_fits() -> None:
    assert _split("abc", lambda text: not text) == ["a", "b", "c"]
    assert _split("ab  ", lambda text: len(text) <= 2) == ["ab"]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("limit", [0, 1, 3, 7, 9])
def test_the_largest_number_that_fits_is_found(count: int, limit: int) -> None:
    assert _most(count, lambda number: number <= limit) == min(count, limit)


def test_quotations_are_asked_for_with_more_words_until_one_of_them_may_be_read() -> None:
    asked: list[int] = []

    def choose(_: str, words: int) -> list[int]:
        asked.append(words)
        return [0] if words < 8 else [0, UNITS[2].start]

    assert Readable(TEXT, UNITS[1:]).best(choose, 2) == [UNITS[2]]
    assert asked == [2, 4, 8]
    asked.clear()
    assert Readable(TEXT, UNITS[1:2]).best(choose, 2) == [UNITS[1]]  # the first, if there is none
    assert asked == [2, 4, 8, 16]
    assert Readable(TEXT, []).best(choose, 2) == []


def test_passages_are_chosen_for_a_tenth_fewer_words_until_they_fit() -> None:
    asked: list[int] = []

    def choose(_: str, words: int) -> list[int]:
        asked.append(words)
        return [unit.start for unit in UNITS[: words // 3]]

    source = Readable(TEXT, UNITS)
    assert source.passages(choose, words(7), words=12).split() == " ".join(SENTENCES[:2]).split()
    assert asked == [12, 10, 9, 8]
    asked.clear()
    assert source.passages(choose, words(4), words=6).split() == ["Ann", "sings", "in", "the"]
    assert asked == [6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("most", [0, 3, 9, 14, 100])
def test_the_central_units_are_as_many_as_the_words_hold_and_at_least_one(most: int) -> None:
    text = f"Songs of the hall\n\n{TEXT} Ann sings in the hall on Monday."
    told = {unit.start: unit for unit in extraction_units(text) if not unit.heading}
    chosen = by_centrality(text, most)
    assert chosen == sorted(chosen)
    assert {*chosen} <= told.keys()
    left = most - sum(length_in_words(told[start].text) for start in chosen)
    assert chosen
    assert left >= 0 or len(chosen) == 1
    assert all(length_in_words(told[start].text) > left for start in told.keys() - {*chosen})
