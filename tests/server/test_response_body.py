"""The sentences of an extract in JSON: as the summary shows them, with the places of the text that was sent."""

from dataclasses import replace

from precis.generation.summarizer import Summary
from precis.server.response_body import answer, read_note
from precis_text.selection import join_units
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
