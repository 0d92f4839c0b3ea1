"""Marks of annotated units: nobody reads them, and they say where units begin."""

from pathlib import Path

import pytest

from precis.data.packs.text_sources import read_texts
from precis.data.pairs.pair import BadRowError, Columns, pair_of
from precis.data.text.encoding import encode_documents
from precis.data.text.segments import Marked, Sentences, document_units
from precis_text.control_characters import (
    UNIT_MARK,
    join_parts,
    main_part,
    mark_units,
    marked_starts,
    readable,
    remove_marks,
    unit_starts,
)
from precis_text.errors import UserError
from precis_text.row import Row
from tests.tiny_models import our_tokenizer

TEXT = "Ann: I (really) don't know, because\nnobody told me. Bo: Me neither."
UNITS = ["I ( really ) do n't know ,", "because nobody told me .", "Me neither ."]


def test_a_mark_stands_before_each_unit_and_taking_them_out_gives_the_text() -> None:
    marked = mark_units(TEXT, UNITS)
    assert marked.split(UNIT_MARK)[1:] == [
        "Ann: I (really) don't know, ",
        "because\nnobody told me. ",
        "Bo: Me neither.",
    ]
    assert remove_marks(marked) == TEXT
    assert mark_units(marked, UNITS) == marked
    assert marked_starts(marked) == unit_starts(TEXT, UNITS)


def test_what_stands_before_the_first_mark_goes_with_the_first_unit() -> None:
    assert marked_starts(f"Ann: {UNIT_MARK}I know, {UNIT_MARK}you too.") == (5, 13)
    found = document_units(f"Ann: {UNIT_MARK}I know, {UNIT_MARK}you too.", our_tokenizer(), Marked())
    assert (found[0], found[-1], set(found)) == (0, 1, {0, 1})


def test_an_empty_unit_begins_where_the_next_does() -> None:
    assert marked_starts(f"{UNIT_MARK}a{UNIT_MARK}{UNIT_MARK}b") == (0, 1)


def test_text_to_pre_train_on_has_no_marks(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(mark_units(TEXT, UNITS))
    assert list(read_texts([tmp_path / "text.txt"])) == [TEXT]


def test_no_model_and_no_reader_sees_a_mark() -> None:
    tokenizer = our_tokenizer()
    marked = mark_units(TEXT, UNITS)
    assert encode_documents([marked], tokenizer) == encode_documents([TEXT], tokenizer)
    assert readable(marked) == TEXT
    assert document_units(marked, tokenizer, Sentences()) == document_units(TEXT, tokenizer, Sentences())


def test_only_the_first_of_a_documents_separators_counts() -> None:
    document = join_parts("Ann sings.\x1fBob listens.", "It\x1frains.")
    assert readable(document) == "Ann sings. Bob listens. [SEP] It\x1frains."
    assert main_part(document) == "It\x1frains."


def test_tokens_have_the_unit_that_is_marked() -> None:
    tokenizer = our_tokenizer()
    found = document_units(mark_units(TEXT, UNITS), tokenizer, Marked(), instruction="Summarize:")
    text = f"Summarize: {TEXT}"
    second, third = text.index("because"), text.index("Bo:")
    for unit, (begin, end) in zip(
        found, tokenizer(text, return_offsets_mapping=True)["offset_mapping"], strict=True
    ):
        if text[begin:end].strip():
            place = end - len(text[begin:end].lstrip())
            assert unit == (place >= second) + (place >= third), text[begin:end]
    assert set(found) == {0, 1, 2}


def test_a_document_without_marks_is_refused_where_they_are_needed() -> None:
    with pytest.raises(UserError, match=r"Ann: I \(really\).* contains no unit marks.*--units-column"):
        document_units(TEXT, our_tokenizer(), Marked())


@pytest.mark.parametrize("units", [UNITS, [[unit, 0, "elaboration"] for unit in UNITS]])
def test_a_column_of_units_marks_the_document(units: list[str | list[str | int]]) -> None:
    row = Row("line 1", {"document": TEXT, "summary": "They do not know.", "edus": units})
    pair = pair_of(row, Columns(units="edus"), need_summary=True)
    assert pair.document == mark_units(TEXT, UNITS)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "no column 'edus' for the units; .*--units-column"),
        ({"edus": "Ann"}, "'edus' must hold a list of the document's units"),
        ({"edus": []}, "'edus' must hold a list of the document's units"),
        ({"edus": ["Somebody else"]}, "'edus': unit 1 of 1 is 'Somebody else'"),
    ],
)
def test_a_column_that_holds_no_units_of_the_document_is_a_bad_row(
    values: dict[str, str | list[str]], words: str
) -> None:
    row = Row("line 1", {"document": TEXT, "summary": "They do not know.", **values})
    with pytest.raises(BadRowError, match=words):
        pair_of(row, Columns(units="edus"), need_summary=True)
