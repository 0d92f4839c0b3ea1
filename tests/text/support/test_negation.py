"""A negation is added or dropped where the source says the same words the other way round."""

from __future__ import annotations

import math

import pytest

from precis_text.language import languages
from precis_text.support.negation import Said, Turned, added, left_out
from precis_text.support.placed_words import words_of


def turned(text: str, code: str = "en") -> Turned:
    return Turned(words_of(text), languages()[code])


def said(*texts: str) -> Said:
    return Said([turned(text) for text in texts])


@pytest.mark.parametrize(
    ("text", "negations", "denials"),
    [
        ("The mill does not turn.", ["not"], ["not"]),
        ("The mill doesn't turn.", ["doesn't"], ["doesn't"]),
        ("Nobody came and nothing moved.", ["Nobody", "nothing"], ["Nobody", "nothing"]),
        ("The mill turns.", [], []),
        ("The mill lacks oil.", [], ["lacks"]),
        ("The mill failed to turn.", ["failed"], ["failed"]),
        ("The mill failed, to our grief.", ["failed"], ["failed"]),
        ("The mill failed us to the end.", [], ["failed"]),
        ("The mill failed.", [], ["failed"]),
        ("Not only the mill turns.", [], ["Not"]),
        ("It is a mill of oats and not only of rye.", [], ["not"]),
        ("Only the mill did not turn.", ["not"], ["not"]),
        ("See room no 12 of the mill.", [], ["no"]),
        ("See no room 12 of the mill.", ["no"], ["no"]),
        ("The answer is no", ["no"], ["no"]),
    ],
)
def test_words_negate_or_deny(text: str, negations: list[str], denials: list[str]) -> None:
    sentence = turned(text)
    assert [sentence.words[at].text for at in sentence.negations] == negations
    assert [sentence.words[at].text for at in sentence.doubtful] == denials


def test_not_of_english_is_no_word_of_other_languages() -> None:
    german = turned("Die Mühle doesn't mahlt nicht.", "de")
    assert [german.words[at].text for at in german.negations] == ["nicht"]


@pytest.mark.parametrize(
    ("text", "is_limited"),
    [
        ("Not all mills turn.", True),
        ("The mills of Olm turn, and one does not all day.", True),
        ("The mill may turn or not.", True),
        ("The mill does not turn.", False),
        ("It closed after a storm, not after work.", True),
        ("It closed after a storm not after work.", False),
        ("Not in all of them", False),
        ("Not", False),
    ],
)
def test_some_negations_only_limit_or_contrast(text: str, is_limited: bool) -> None:
    sentence = turned(text)
    assert [sentence.is_limited(at) for at in sentence.negations] == [is_limited]


def test_neighbours_are_words_with_content_on_both_sides() -> None:
    sentence = turned("Old mills grind oats and do not harm people or green fields.")
    at = sentence.negations[0]
    assert [sentence.words[each].text for each in sentence.near(at, 3)] == ["oats", "harm", "people"]
    assert [sentence.words[each].text for each in sentence.near(at, 100)] == [
        "Old", "mills", "grind", "oats", "harm", "people", "green", "fields",
    ]  # fmt: skip
    assert [sentence.words[each].text for each in sentence.near(0, 1)] == ["mills"]


@pytest.mark.parametrize(
    ("text", "is_turned"),
    [
        ("not MILL", True),
        ("not one or MILL", True),
        ("not one or two MILL", False),
        ("MILL not", True),
        ("MILL is not", False),
    ],
)
def test_a_denial_counts_near_before_a_word_or_right_behind_it(text: str, is_turned: bool) -> None:
    sentence = turned(text)
    assert sentence.is_turned([word.text for word in sentence.words].index("MILL")) == is_turned


def test_german_denials_come_later() -> None:
    for text, expected in (("Mühle ist da nicht", True), ("Mühle ist da jetzt nicht", False)):
        assert turned(text, "de").is_turned(0) == expected


def test_shares_weigh_rare_words_more_and_unknown_ones_most() -> None:
    source = said("The mill turns.", "The mill grinds oats.", "The wheel is not broken.", "It does not rust.")
    common, rare = math.log(5 / 2) + 0.1, math.log(5) + 0.1
    mill, oats = "mill", turned("oats").stems[0]
    assert source.shares({mill}, mill) == (1.0, 0.0)
    assert source.shares({mill, "zaba"}, mill) == pytest.approx((common / (common + rare), 0.0))
    assert source.shares({mill, oats}, mill) == pytest.approx((1.0, 0.0))
    both = {mill, *turned("broken").stems}
    expected = (common / (common + rare), rare / (common + rare))
    assert source.shares(both, "broken") == pytest.approx(expected)
    assert said().shares({mill}, mill) == (0.0, 0.0)


def changes(summary: str, *source: str) -> tuple[list[str], list[str]]:
    """The negations that a summary adds to a source, and the words that it no longer negates."""
    ours, theirs = turned(summary), said(*source)
    return (
        [word.text for word in added(ours, theirs)],
        [word.text for word in left_out(ours, theirs.sentences, theirs)],
    )


MILL = "The old mill of the village grinds oats."
NO_MILL = "The old mill of the village does not grind oats."


@pytest.mark.parametrize(
    ("summary", "source", "added_words", "dropped"),
    [
        (NO_MILL, [MILL], ["not"], []),
        (MILL, [MILL], [], []),
        (NO_MILL, [NO_MILL], [], []),
        (MILL, [NO_MILL], [], ["grinds"]),
        ("Not all old mills of the village grind oats.", [MILL], [], []),
        (NO_MILL, ["The old mill of the village refuses to grind oats."], [], []),
        (NO_MILL, ["Ferries cross the sound."], [], []),
        ("Not.", [MILL], [], []),
        (NO_MILL, [MILL, "The mill does not rust.", "The new mill does not grind oats."], ["not"], []),
        (NO_MILL, [NO_MILL, MILL], [], []),
        ("The road is available.", ["The road is unavailable."], [], []),
        ("The road is not available.", ["The road is unavailable."], [], []),
        ("The road is not available.", ["The road is available."], ["not"], []),
        ("Ferries grind.", [NO_MILL], [], []),  # other words around it
        ("The mill never grinds oats.", [NO_MILL], [], []),
        ("Oats are what it grinds.", ["The mill grinds oats.", NO_MILL], [], []),
        ("The wheel turns and a mill grinds oats.", ["Wheels turn.", "The mill never grinds oats."], [], ["grinds"]),
    ],
)  # fmt: skip
def test_negations_that_a_summary_adds_or_drops_are_found(
    summary: str, source: list[str], added_words: list[str], dropped: list[str]
) -> None:
    assert changes(summary, *source) == (added_words, dropped)
