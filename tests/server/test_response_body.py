"""The sentences of an extract in JSON: as the summary shows them, with the places of the text that was sent."""

from precis.generation.summarizer import Summary
from precis.server.response_body import answer
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
