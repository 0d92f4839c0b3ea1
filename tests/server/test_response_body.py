"""The sentences of an extract in JSON: as the summary shows them, with the places of the text that was sent."""

from dataclasses import replace
from typing import Any

import pytest

from precis.generation.summarizer import Summary
from precis.server.response_body import answer, read_note
from precis_text.forms.form import FormLine
from precis_text.selection import join_units
from precis_text.support.write_or_quote import SummarySentence
from precis_text.units import extraction_units

LONG = " ".join(f"Sentence {number} of hers is here." for number in range(14))
CHAT = f"[10:30] <ann> {LONG}\n[10:31] <ben> It rains.\n[10:32] <ann> Bring a coat."


def test_the_sentences_of_a_chat_have_their_speakers_and_places() -> None:
    units = [extraction_units(CHAT)[place] for place in (3, 4, 14)]
    text = join_units(CHAT, units)
    assert text == "ann: Sentence 3 of hers is here. Sentence 4 of hers is here.\nben: It rains."
    summary = Summary(
        text=text,
        document_tokens=99,
        tokens_read=99,
        summary_tokens=9,
        finished=True,
        mode="extract",
        places=tuple((unit.start, unit.stop) for unit in units),
    )
    found = answer(0, CHAT, summary, support=True)["sentences"]
    assert [sentence["text"] for sentence in found] == [
        "ann: Sentence 3 of hers is here.",
        "Sentence 4 of hers is here.",
        "ben: It rains.",
    ]
    for sentence in found:
        assert text[sentence["start"] : sentence["end"]] == sentence["text"]
        (passage,) = sentence["support"]
        assert (
            sentence["text"].removeprefix("ann: ").removeprefix("ben: ")
            in CHAT[passage["start"] : passage["end"]]
        )


def test_the_note_says_how_much_of_a_document_was_read() -> None:
    whole = Summary(text="It rains.", document_tokens=3000, tokens_read=3000, summary_tokens=9)
    assert read_note(whole) == "All 3,000 tokens of the document were read."
    assert read_note(replace(whole, how="fie")).endswith("were read in connected chunks.")
    assert read_note(replace(whole, how="chunk", pieces=3)).endswith("were read in 3 pieces.")
    part = replace(whole, tokens_read=1000)
    assert read_note(part) == "Only 1,000 of the document's 3,000 tokens were read; 2,000 were not."
    assert read_note(replace(whole, kept=True)).endswith("so it is returned unchanged.")
    assert answer(0, CHAT, part, support=False, other="It seems.")["read"]["note"].endswith(
        "were not. It seems."
    )
    assert [answer(0, CHAT, each, support=False)["read"]["complete"] for each in (whole, part)] == [
        True,
        False,
    ]


def test_without_support_sentences_have_their_places_alone() -> None:
    summary = Summary(text="It rains. Bob left.", document_tokens=9, tokens_read=9, summary_tokens=9)
    found = answer(1, CHAT, summary, support=False)
    assert found["sentences"] == [
        {"start": 0, "end": 9, "text": "It rains."}, {"start": 10, "end": 19, "text": "Bob left."},
    ]  # fmt: skip
    assert (found["index"], found["words"], "unchecked" in found) == (1, 4, False)
    marked = answer(1, CHAT, replace(summary, text="It rains. She met Carl."), support=True)
    assert [[mark["text"] for mark in each["marks"]] for each in marked["sentences"]] == [[], ["Carl"]]
    assert marked["sentences"][0]["support"][0]["text"] == "ben: It rains."
    nothing = replace(summary, text="The text says nothing.", answered=False)
    told = {"start": 0, "end": 22, "text": "The text says nothing."}
    assert answer(0, CHAT, nothing, support=False)["sentences"] == [told]
    with_support = answer(0, CHAT, nothing, support=True)
    assert with_support["sentences"] == [{**told, "support": [], "marks": []}]
    assert with_support["unchecked"] == {}


def _summary(text: str, **facts: Any) -> Summary:
    return Summary(text=text, document_tokens=9, tokens_read=9, summary_tokens=9, **facts)


def _places(summary: Summary, *, support: bool = False) -> list[tuple[int, int, str]]:
    """Return the places of sentences, each of which is the summary's own text there."""
    found = answer(0, CHAT, summary, support=support)["sentences"]
    for each in found:
        assert summary.text[each["start"] : each["end"]] == each["text"]
    return [(each["start"], each["end"], each["text"]) for each in found]


def test_lines_that_say_the_same_have_a_place_each_and_a_cut_one_has_what_is_left() -> None:
    lines = tuple(FormLine(shown, 0, 9) for shown in ("It rains.", "It rains.", "Bob left."))
    assert _places(_summary("It rains.\n- It rains.\n- Bob left.", lines=lines)) == [
        (0, 9, "It rains."), (12, 21, "It rains."), (24, 33, "Bob left."),
    ]  # fmt: skip
    assert _places(_summary(" It ra ", lines=lines[:1])) == [(1, 6, "It ra")]


def test_a_line_has_what_is_known_of_its_place_and_with_support_the_words_there() -> None:
    start = CHAT.index("It rains.")
    line = FormLine("ben: It rains.", start, start + 9, time="10:31", speaker="ben", turn=2)
    summary = _summary("- ben: It rains.", lines=(line,))
    facts = {"start": 2, "end": 16, "text": "ben: It rains.", "time": "10:31", "speaker": "ben", "turn": 2}
    without = answer(0, CHAT, summary, support=False)
    assert (without["sentences"], "unchecked" in without) == ([facts], False)
    passage = {"start": start, "end": start + 9, "text": "It rains."}
    with_support = answer(0, CHAT, summary, support=True)
    assert with_support["sentences"] == [{**facts, "support": [passage], "marks": []}]
    assert with_support["unchecked"] == {}


@pytest.mark.parametrize("support", [False, True])
def test_each_sentence_of_a_writer_has_its_origin_however_the_text_was_divided(support: bool) -> None:
    own = (
        SummarySentence("It rains.", "quoted", reason="it has another number"),
        SummarySentence("Bring a coat. Bring two.", "written"),
    )
    text = "So it is: It rains. Bring a coat. Bring two. 1986 was cold."
    found = answer(0, CHAT, _summary(text, sentences=own, adapted=True), support=support)
    told = {each["text"]: (each.get("origin"), each.get("reason")) for each in found["sentences"]}
    assert told == {
        "So it is: It rains.": ("quoted", "it has another number"), "Bring a coat.": ("written", None),
        "Bring two.": ("written", None), "1986 was cold.": (None, None),
    }  # fmt: skip
    assert found["adapted"] is True
    assert all(("support" in each) is support for each in found["sentences"])
    if support:  # a mark at the beginning of its sentence
        assert [mark["text"] for mark in found["sentences"][-1]["marks"]] == ["1986"]


def test_a_document_that_is_its_own_summary_supports_each_sentence_by_itself() -> None:
    text = "It rains. Bob left. It rains."
    found = answer(0, text, _summary(text, kept=True), support=True)["sentences"]
    assert [each["start"] for each in found] == [0, 10, 20]
    assert [[passage["start"] for passage in each["support"]] for each in found] == [[0], [10], [20]]
