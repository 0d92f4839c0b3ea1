"""A model that writes makes forms too: what it reads, and what becomes of its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from precis.generation.summary import NOTHING, Summary
from precis.generation.written_forms import written_forms
from precis_text.errors import UserError
from precis_text.forms.form_choice import make_form
from precis_text.length import Length, make_length

DOCUMENT = (
    "The town will replace its two ferries. The council voted on Tuesday. The old ferries were built in 1986.\n\n"
    "Spare parts are made by hand. The captain likes them.\n\nThe boats cost 6 million crowns. Tickets stay cheap."
)


class Writer:
    """A model that writes three sentences, and remembers what it read."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.length: Length | None = None

    def __call__(self, texts: list[str], *, length: Length) -> Iterator[Summary]:
        self.read, self.length = texts, length
        for text in texts:
            tokens = len(text.split())
            yield Summary(
                text="One. Two more. Three.", document_tokens=tokens, tokens_read=tokens, summary_tokens=4
            )


def made(
    kind: str, about: str | None = None, documents: Any = (DOCUMENT,), **lengths: Any
) -> tuple[Writer, list]:
    writer, form = Writer(), make_form(type=kind, about=about)
    found = written_forms(
        writer,
        lambda text: len(text.split()),
        documents,
        form,
        make_length(**lengths),
        together=2,
        skip_empty=False,
    )
    return writer, [*found]


def test_key_points_are_the_sentences_as_a_list_within_the_cap() -> None:
    assert made("key-points")[1][0].text == "- One.\n- Two more.\n- Three."
    assert made("key-points", words=5)[1][0].text == "- One.\n- Two more."


def test_the_form_sets_the_length() -> None:
    assert made("tldr")[0].length == make_length(sentences=2)
    assert made("headline")[0].length == make_length(sentences=1)
    assert made("tldr", words=9)[0].length == make_length(words=9)


def test_with_a_question_the_model_reads_only_the_answer() -> None:
    writer, (found,) = made("paragraph", about="What do the boats cost?")
    assert "The boats cost 6 million crowns." in writer.read[0]
    assert "captain" not in writer.read[0]
    assert found.document_tokens == found.tokens_read == len(DOCUMENT.split())


def test_without_an_answer_the_model_writes_nothing() -> None:
    writer, (found,) = made("tldr", about="What do penguins eat?")
    assert writer.read == []
    assert (found.answered, found.mode) == (False, "extract")
    assert found.text == 'No sentence shares enough words with "What do penguins eat?".'


def test_a_teaser_is_written_from_the_opening() -> None:
    writer, _ = made("teaser")
    assert writer.read[0].startswith("The town will replace")
    assert "6 million" not in writer.read[0]


def test_an_outline_needs_no_writing_and_keeps_the_order() -> None:
    writer, found = made(
        "outline", documents=["Ann sings in the hall today.", "Bob sleeps under the old tree."]
    )
    assert writer.read == []
    assert [each.text for each in found] == [
        "- Ann sings in the hall today.",
        "- Bob sleeps under the old tree.",
    ]
    assert found[0].places == ((0, 28),)


def test_an_empty_document_is_named() -> None:
    with pytest.raises(UserError, match="document 2 is empty"):
        made("tldr", documents=["Ann sings.", " "])


def test_the_summary_of_nothing_counts_nothing() -> None:
    assert (NOTHING.text, NOTHING.document_tokens, NOTHING.tokens_read, NOTHING.summary_tokens) == (
        "",
        0,
        0,
        0,
    )
    assert not NOTHING.truncated
    assert Summary(text="a", document_tokens=3, tokens_read=2, summary_tokens=1).truncated
