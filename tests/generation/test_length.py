"""A wished length: a window while decoding, whole sentences afterwards."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import our_tokenizer

from precis.data.tasks import GenerationSettings
from precis.generation.length import (
    SentenceFloor,
    Sentences,
    Words,
    decoding_window,
    sentence_end_ids,
    tokens_per_word,
    trim,
)

THREE = "The pool reopens on Monday. Entry is free. Children need an adult with them."


def test_sentences_beyond_the_goal_are_dropped_whole() -> None:
    assert trim(THREE, Sentences(count=2), ended=True).text == "The pool reopens on Monday. Entry is free."
    assert trim(THREE, Words(count=9), ended=True).text == "The pool reopens on Monday. Entry is free."
    assert trim(THREE, Words(count=7), ended=True).text == "The pool reopens on Monday."


def test_a_first_sentence_that_is_too_long_is_kept_whole() -> None:
    trimmed = trim(THREE, Words(count=2), ended=True)
    assert (trimmed.text, trimmed.finished) == ("The pool reopens on Monday.", True)


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
    for goal in (Words(count=count), Sentences(count=count)):
        assert text.startswith(trim(text, goal, ended=ended).text)


def test_the_window_leaves_room_to_finish_the_last_sentence() -> None:
    window = decoding_window(GenerationSettings(beams=3), Words(count=50), ratio=1.5)
    assert window.beams == 3
    assert window.min_tokens < 50 * 1.5 < window.max_tokens


@pytest.mark.parametrize(("tokens", "expected"), [(4, 1.0), (5, 1.25), (7, 2.0), (40, 4.0)])
def test_tokens_a_word_come_in_steps(tokens: int, expected: float) -> None:
    assert tokens_per_word(tokens, "one two three four") == expected


def test_the_end_mark_waits_for_enough_sentences() -> None:
    tokenizer = our_tokenizer()
    ends = sentence_end_ids(tokenizer)
    assert {tokenizer.decode([end]).strip() for end in ends} >= {".", "?"}
    stop, word = min(ends), tokenizer("pool", add_special_tokens=False)["input_ids"][0]
    floor = SentenceFloor(2, ends=ends, end_marks=[2, 4], max_tokens=5)
    scores = floor(torch.tensor([[1, word, stop, word], [1, stop, word, stop]]), torch.zeros(2, 5))
    assert scores[0].tolist() == [0.0, 0.0, -torch.inf, 0.0, -torch.inf]
    assert torch.equal(scores[1], torch.zeros(5))
    last = torch.tensor([[1, word, word, word, word]])  # the fifth token may be forced to be an end mark
    assert torch.equal(floor(last, torch.zeros(1, 5)), torch.zeros(1, 5))
