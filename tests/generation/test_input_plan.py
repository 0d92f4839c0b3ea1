"""What of a document's tokens is text, and what a tokenizer has put around it."""

import copy

import pytest

from precis.data.text.encoding import control_ids, encode_documents
from precis.generation.input_plan import DocumentEncoder, pieces
from precis_text.control_characters import join_parts
from tests.tiny_models import bert_tokenizer


def test_an_unknown_word_at_either_end_of_a_document_is_text() -> None:
    words = bert_tokenizer()
    encoded = DocumentEncoder(words)("☃ ann sings ☃ ☃")
    unknown = words.unk_token_id
    assert (encoded.head, encoded.tail) == ((words.cls_token_id,), (words.sep_token_id,))
    assert [token == unknown for token in encoded.body].count(True) == 3
    parts = pieces(encoded, 4, ends=frozenset())
    assert [token for part in parts for token in part.body] == list(encoded.body)


@pytest.mark.parametrize("instruction", ["", "☃ summarize ☃"])
def test_an_unknown_word_at_the_start_of_a_passage_comes_after_its_answer(instruction: str) -> None:
    words = bert_tokenizer()
    text = join_parts("ann", "☃ sings")
    (trained,) = encode_documents([f"{instruction} {text}" if instruction else text], words)
    assert DocumentEncoder(words, instruction)(text).ids == trained
    assert words.convert_ids_to_tokens(trained)[-4:] == ["[SEP]", "[UNK]", "sings", "[SEP]"]


def test_an_instruction_of_unknown_words_is_no_part_of_the_document() -> None:
    words = bert_tokenizer()
    encoded = DocumentEncoder(words, "☃ summarize ☃")("☃ ann")
    head = DocumentEncoder(words)("☃ summarize ☃")
    assert encoded.head == (*head.head, *head.body)
    assert words.convert_ids_to_tokens(encoded.body)[0] == "[UNK]"


@pytest.mark.parametrize(("text", "reads"), [("☃ ann", True), ("☃ ☃", False), ("\u200b", False)])
@pytest.mark.parametrize("instruction", ["", "☃ summarize"])
def test_a_document_of_unknown_words_alone_cannot_be_read(text: str, reads: bool, instruction: str) -> None:
    encode = DocumentEncoder(bert_tokenizer(), instruction)
    assert encode.reads(encode(text)) == reads


def test_an_end_mark_that_also_stands_for_unknown_words_stays_an_end_mark() -> None:
    words = copy.deepcopy(bert_tokenizer())
    assert words.unk_token_id not in control_ids(words)
    words.unk_token = words.sep_token  # as GPT-2's one mark is everything
    assert words.sep_token_id in control_ids(words)
