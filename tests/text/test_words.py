"""Words in any script."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import tokenize

from precis_text.words import (
    _Kind,
    _kind,
    count_words,
    length_in_words,
    non_latin_share,
    unicode_words,
    word_ends,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Cat's 3.5 km_walk!", ["the", "cat", "s", "3", "5", "km", "walk"]),
        ("Кошка спит, 2 часа.", ["кошка", "спит", "2", "часа"]),
        ("猫が寝た。", ["猫", "が", "寝", "た"]),
        ("القطة نائمة؟", ["القطة", "نائمة"]),
        ("बिल्ली सोती है।", ["बिल्ली", "सोती", "है"]),
        ("กิน ข้าว", ["กิ", "น", "ข้", "า", "ว"]),
        ("고양이가 잔다", ["고양이가", "잔다"]),
        ("GPT-4は速い", ["gpt", "4", "は", "速", "い"]),
        ("Ａ１", ["a1"]),
        ("so\u00adft می\u200cخواهم", ["soft", "میخواهم"]),
        ("🙂 ... !?", []),
        ("", []),
    ],
)
def test_words_of_each_script(text: str, words: list[str]) -> None:
    assert unicode_words(text) == words


def test_composed_and_decomposed_accents_are_the_same_word() -> None:
    assert unicode_words("cafe\u0301") == unicode_words("café") == ["café"]


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_text_has_exactly_the_tokens_of_rouge_score(text: str) -> None:
    assert unicode_words(text) == tokenize.tokenize(text, None)


@given(st.lists(st.text(), max_size=4))
@settings(deadline=None)
def test_white_space_separates_words_whatever_stands_around_it(parts: list[str]) -> None:
    joined = unicode_words("\n".join(parts))
    assert joined == [word for part in parts for word in unicode_words(part)]


@pytest.mark.parametrize(
    ("text", "count"),
    [("Don't pay $3.50 - now!", 4), ("", 0), ("猫が 2匹", 4), ("Привет, как дела", 3), ("— … 🙂", 0)],
)
def test_length_counts_words_as_a_reader_does(text: str, count: int) -> None:
    assert count_words(text) == count


def test_non_latin_share_counts_letters_only() -> None:
    assert non_latin_share(["abc 123 !!"]) == 0
    assert non_latin_share(["çéß"]) == 0
    assert non_latin_share(["aб", "вг 99"]) == 0.75
    assert non_latin_share(["123"]) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The pool – reopens.", ["The", " pool", " –", " reopens."]),
        ("GPT-4は速い。", ["GPT-4", "は", "速", "い。"]),
        ("กิน ข้าว", ["กิ", "น", " ข้", "า", "ว"]),
        (" \n", []),
    ],
)
def test_a_limit_of_words_cuts_where_a_word_ends(text: str, words: list[str]) -> None:
    ends = [0, *word_ends(text)]
    assert [text[a:b] for a, b in pairwise(ends)] == words


@given(st.text(max_size=40))
def test_a_limit_of_words_never_counts_fewer_than_white_space_shows(text: str) -> None:
    assert length_in_words(text) >= len(text.split())


def test_letters_of_scripts_without_spaces_are_words_alone_and_all_others_join() -> None:
    """By the names of the letters, so that no range leaves out the first or the last of them."""
    alone = (
        *("THAI ", "LAO ", "MYANMAR ", "KHMER ", "TAI ", "NEW TAI ", "CJK ", "IDEOGRAPHIC ", "HANGZHOU "),
        *(
            "HIRAGANA ",
            "KATAKANA",
            "HENTAIGANA ",
            "BOPOMOFO ",
            "VERTICAL KANA ",
            "VERTICAL IDEOGRAPHIC ",
            "MASU ",
        ),
    )
    beside = (*range(0x3190, 0x31A0), *range(0x1D360, 0x1D380), *range(0x1AFF0, 0x1AFFF))  # marks and tallies
    for code in range(0x40000):
        letter = chr(code)
        if unicodedata.category(letter)[0] in "LN" and code not in beside:
            name = unicodedata.name(letter, "")
            assert (_kind(letter) is _Kind.ALONE) == name.startswith(alone), name or hex(code)
