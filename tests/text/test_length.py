"""A wished length: a window while decoding, whole sentences afterwards."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precis.generation.input_plan import sentence_end_ids
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.length import (
    Length,
    Sentences,
    Tokens,
    Trimmed,
    Words,
    chosen_length,
    decoding_window,
    make_length,
    tokens_per_word,
    trim,
)
from precis_text.sentences import split_sentences
from precis_text.words import length_in_words
from tests.tiny_models import our_tokenizer

THREE = "The pool reopens on Monday. Entry is free. Children need an adult with them."


def test_sentences_beyond_the_goal_are_dropped_whole() -> None:
    assert trim(THREE, Sentences(count=2), ended=True).text == "The pool reopens on Monday. Entry is free."
    assert trim(THREE, Words(count=9), ended=True).text == "The pool reopens on Monday. Entry is free."
    assert trim(THREE, Words(count=7), ended=True).text == "The pool reopens on Monday."


@pytest.mark.parametrize("cap", [Sentences(count=1), Sentences(count=2), Words(count=9)])
def test_a_text_trimmed_to_whole_sentences_is_finished_though_its_end_was_missing(cap: Any) -> None:
    trimmed = trim(f"{THREE} Its end is", cap, ended=False)
    assert THREE.startswith(trimmed.text)
    assert trimmed.finished


def test_a_single_sentence_without_its_end_is_unfinished_unless_the_model_ended_it() -> None:
    assert not trim("The pool is", Sentences(count=2), ended=False).finished
    assert trim("The pool is", Sentences(count=2), ended=True).finished


def test_a_first_sentence_that_is_too_long_is_cut_at_a_words_end_and_said_to_be_unfinished() -> None:
    trimmed = trim(THREE, Words(count=2), ended=True)
    assert (trimmed.text, trimmed.finished) == ("The pool", False)


def test_a_sentence_is_not_cut_behind_a_function_word() -> None:
    sentence = (
        "The council spoke of the pool, and of the people who swim there in every single week of the year."
    )
    assert (
        trim(sentence, Words(count=11), ended=True).text == "The council spoke of the pool, and of the people"
    )
    assert trim(sentence, Words(count=7), ended=True).text == "The council spoke of the pool"
    assert (
        trim(
            "Der Rat sprach von dem Bad und von den Leuten, die dort schwimmen, und sie waren da.",
            Words(count=7),
            ended=True,
        ).text
        == "Der Rat sprach von dem Bad"
    )


def test_an_unfinished_last_sentence_is_dropped() -> None:
    trimmed = trim("Entry is free. Children need", Sentences(count=5), ended=False)
    assert (trimmed.text, trimmed.finished) == ("Entry is free.", True)


def test_an_unfinished_only_sentence_is_kept_and_said_to_be_unfinished() -> None:
    trimmed = trim("Children need", Words(count=9), ended=False)
    assert (trimmed.text, trimmed.finished) == ("Children need", False)


def test_without_a_goal_nothing_is_dropped() -> None:
    assert trim("Free entry. Children need", None, ended=False).text == "Free entry. Children need"
    assert not trim("Free entry. Children need", None, ended=False).finished
    assert trim("pool reopens", None, ended=True).finished


def test_line_breaks_inside_what_is_kept_stay() -> None:
    text = "Entry is free.\nThe pool reopens. Children need an adult."
    assert trim(text, Sentences(count=2), ended=True).text == "Entry is free.\nThe pool reopens."


@given(st.text(max_size=80), st.integers(1, 6), st.booleans())
def test_what_is_kept_is_a_beginning_of_the_text(text: str, count: int, ended: bool) -> None:
    for cap in (Words(count=count), Sentences(count=count), Tokens(count=count)):
        assert text.startswith(trim(text, cap, ended=ended).text)


@given(st.text(max_size=120), st.integers(1, 30), st.booleans())
def test_no_text_is_above_its_cap(text: str, count: int, ended: bool) -> None:
    assert length_in_words(trim(text, Words(count=count), ended=ended).text) <= count
    assert len(split_sentences(trim(text, Sentences(count=count), ended=ended).text)) <= count


def window(
    settings: GenerationSettings, ratio: float = 1.5, document: int = 4000, **asked: int
) -> GenerationSettings:
    return decoding_window(settings, make_length(**asked), ratio=ratio, document=document)  # type: ignore[arg-type]


def test_the_window_leaves_room_to_finish_the_last_sentence() -> None:
    found = window(GenerationSettings(beams=3), words=50)
    assert (found.beams, found.min_tokens, found.no_repeat_ngram) == (3, 0, 0)
    assert 50 * 1.5 < found.max_tokens < 50 * 3


@pytest.mark.parametrize("asked", [{"words": 20}, {"sentences": 1}, {"tokens": 40}])
def test_no_cap_holds_the_end_mark_back_not_even_by_the_models_own_minimum(asked: dict[str, int]) -> None:
    own = GenerationSettings(min_tokens=56, max_tokens=142)
    assert window(own, **asked).min_tokens in (0, 56)
    assert window(own, **asked).min_tokens <= window(own, **asked).max_tokens // 2
    assert window(GenerationSettings(max_tokens=142), **asked).min_tokens == 0


def test_least_words_hold_the_end_mark_back_and_block_repeats() -> None:
    found = window(GenerationSettings(max_tokens=60), min_words=40)
    assert (found.min_tokens, found.no_repeat_ngram) == (60, 3)
    assert found.max_tokens > 60
    assert window(GenerationSettings(no_repeat_ngram=2), min_words=4).no_repeat_ngram == 2
    both = window(GenerationSettings(), min_words=20, words=30)
    assert both.min_tokens == 30 < both.max_tokens


def test_a_short_document_bounds_what_is_written() -> None:
    assert window(GenerationSettings(), words=5000, document=100).max_tokens < 300
    assert window(GenerationSettings(), words=5000, document=100) == window(
        GenerationSettings(), words=5000, document=120
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"words": 5, "tokens": 1}, "one of words, sentences and tokens, not words=5 and tokens=1"),
        ({"words": 0}, "0 words is empty"),
        ({"words": 10**9}, "words=1000000000 is above the limit of 20,000"),
        ({"sentences": 10**4}, "sentences=10000 is above the limit of 1,000"),
        ({"tokens": 10**6}, "tokens=1000000 is above the limit of 32,768"),
        ({"words": 5, "min_words": 6}, "min_words=6 is more than words=5"),
        ({"min_words": -1}, "min_words=-1"),
    ],
)
def test_lengths_that_make_no_sense_are_refused(asked: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_length(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked",
    [{"words": 5, "min_words": 2}, {"sentences": 2, "short": "write"}, {"tokens": 7}, {"min_words": 3}, {}],
)
def test_the_options_of_a_length_make_it_again(asked: dict[str, Any]) -> None:
    length = make_length(**asked)
    assert make_length(**length.options()) == length
    options: dict[str, object] = {**length.options()}
    assert {name: options[name] for name in asked} == asked


def test_a_length_is_a_value_or_options_and_never_both() -> None:
    assert chosen_length(None, {"words": 5}) == Length(cap=Words(count=5))
    assert chosen_length(Length(min_words=2), {}) == Length(min_words=2)
    with pytest.raises(UserError, match="length and words exclude each other; give one of them"):
        chosen_length(Length(), {"words": 5})


def test_a_length_names_an_option_that_it_lacks() -> None:
    with pytest.raises(TypeError, match="'word'; a length has words, sentences, tokens, min_words, short"):
        make_length(word=5)  # type: ignore[call-arg]


@pytest.mark.parametrize(("tokens", "expected"), [(4, 1.0), (5, 1.25), (7, 2.0), (40, 4.0)])
def test_tokens_a_word_come_in_steps(tokens: int, expected: float) -> None:
    assert tokens_per_word(tokens, "one two three four") == expected


def test_sentence_ends_are_known_to_the_tokenizer() -> None:
    tokenizer = our_tokenizer()
    assert {tokenizer.decode([end]).strip() for end in sentence_end_ids(tokenizer)} >= {".", "?"}


def test_a_cap_in_sentences_holds_exactly_so_many() -> None:
    text = "Ann sings. Bob dances."
    assert [Sentences(count=count).holds(text, tokens=0) for count in (1, 2, 3)] == [False, True, True]


def test_the_least_words_may_be_20000_and_no_more() -> None:
    assert Length(min_words=20_000).min_words == 20_000
    with pytest.raises(UserError, match="above the limit of 20,000"):
        Length(min_words=20_001)


def test_the_room_of_sentences_is_80_tokens_each_unless_the_model_wants_more() -> None:
    length = make_length(sentences=2, short="write")
    rooms = [
        decoding_window(GenerationSettings(max_tokens=most), length, ratio=1.0, document=999).max_tokens
        for most in (20, 500)
    ]
    assert rooms == [160, 500]


def test_the_models_own_least_tokens_stay_where_the_least_words_need_fewer() -> None:
    settings = GenerationSettings(min_tokens=30, max_tokens=100)
    length = make_length(words=100, min_words=10, short="write")
    assert decoding_window(settings, length, ratio=1.0, document=999).min_tokens == 30


def test_least_words_alone_leave_room_for_twice_as_many_tokens() -> None:
    settings = GenerationSettings(max_tokens=12)
    found = decoding_window(settings, make_length(min_words=10), ratio=1.0, document=999)
    assert (found.min_tokens, found.max_tokens) == (10, 20)


def test_a_sentence_of_exactly_the_words_of_the_cap_stays_and_is_finished() -> None:
    assert trim("Ann sings loudly.", Words(count=3), ended=True) == Trimmed(
        "Ann sings loudly.", finished=True
    )
    assert not trim("Ann sings loudly.", Words(count=2), ended=True).finished


def test_a_short_document_leaves_room_for_itself_and_a_sentence() -> None:
    """The summary may be as long as the document, rounded up to a power of two, and finish its last sentence."""
    found = decoding_window(GenerationSettings(), make_length(words=200), ratio=1.0, document=100)
    assert found.max_tokens == 128 + 80
