"""What of a document's tokens is text, and what a tokenizer has put around it."""

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import (
    BartConfig,
    LEDConfig,
    LongT5Config,
    MT5Config,
    PreTrainedConfig,
    ProphetNetConfig,
    SwitchTransformersConfig,
    T5Config,
    UMT5Config,
)

from precis.data.text.encoding import control_ids, encode_documents
from precis.data.text.segments import UNIT_KINDS
from precis.generation.input_plan import (
    DocumentEncoder,
    Encoded,
    assumed_limit,
    choose,
    input_limit,
    line_end_ids,
    output_limit,
    pieces,
    position_limit,
    sentence_end_ids,
    units_of_prefix,
    wanted_limit,
)
from precis.generation.summary import How, Long
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.tuning import Prefix, attach, method
from precis_text.control_characters import join_parts
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, tiny


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


@pytest.mark.parametrize(
    ("length", "limit", "long", "fusion", "how"),
    [
        (100, 100, None, 0, "whole"),
        (100, 100, "truncate", 0, "whole"),
        (10**9, None, "chunk", 0, "whole"),
        (101, 100, None, 0, "chunk"),
        (101, 100, None, 101, "fie"),
        (102, 100, None, 101, "chunk"),
        (102, 100, "fie", 101, "fie"),
        (101, 100, "chunk", 200, "chunk"),
        (101, 100, "truncate", 200, "truncate"),
    ],
)
def test_an_input_is_read_whole_if_it_fits_else_as_is_asked_else_by_fusion_if_that_fits_else_in_pieces(
    length: int, limit: int | None, long: Long | None, fusion: int, how: How
) -> None:
    assert choose(length, limit, long=long, fusion_limit=fusion) == how


@pytest.mark.parametrize(("long", "says"), [("fie", "only Z-Code"), ("passages", "only causal")])
def test_ways_to_read_that_the_model_lacks_are_refused_however_short_the_input(long: Long, says: str) -> None:
    with pytest.raises(UserError, match=says):
        choose(1, 100, long=long, fusion_limit=0)


def test_the_trained_length_counts_before_the_tokenizers_and_both_within_the_table() -> None:
    words = bert_tokenizer()
    bart = BartConfig(max_position_embeddings=600)
    for declared, trained, limit in (
        (10**30, None, 600),
        (10**30, 500, 500),
        (400, 500, 500),
        (400, None, 400),
        (999_999, 700, 600),
    ):
        words.model_max_length = declared
        assert input_limit(bart, words, trained=trained) == limit
    words.model_max_length = 512
    assert input_limit(T5Config(), words, trained=1024) == 1024  # it was tuned beyond its pre-training
    words.model_max_length = 10**6
    assert input_limit(T5Config(), words, trained=None) is None
    words.model_max_length = 10**6 - 1
    assert input_limit(T5Config(), words, trained=None) == 10**6 - 1


def test_a_position_table_limits_what_is_read_and_written() -> None:
    prophet = ProphetNetConfig(max_position_embeddings=512)
    assert (position_limit(BartConfig(max_position_embeddings=600)), position_limit(T5Config())) == (
        600,
        None,
    )
    assert position_limit(prophet) == 511  # row 0 is for padding
    assert (output_limit(BartConfig(max_position_embeddings=600)), output_limit(T5Config())) == (598, None)


@pytest.mark.parametrize(("rows", "most"), [(600, 600), (None, 131_072), (200_000, 131_072)])
def test_a_user_may_ask_for_8_tokens_up_to_what_the_model_can_read(rows: int | None, most: int) -> None:
    config = T5Config() if rows is None else BartConfig(max_position_embeddings=rows)
    for wanted in (8, most):
        assert wanted_limit(config, wanted) == wanted
    for wanted in (7, most + 1):
        with pytest.raises(UserError, match=rf"max_source={wanted}: this model reads 8 to {most:,} tokens"):
            wanted_limit(config, wanted)


def test_an_instruction_may_leave_room_for_one_token_but_not_for_none() -> None:
    encoded = Encoded(head=(1, 2), body=(7, 8), tail=(3,))
    assert encoded.room(4) == 1
    with pytest.raises(
        UserError, match="an instruction of 2 tokens leaves no room in an input of 3; shorten it"
    ):
        encoded.room(3)


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        (ZCodePPConfig(), 512),
        (T5Config(), 512),
        (SwitchTransformersConfig(), 512),
        (MT5Config(), 1024),
        (UMT5Config(), 1024),
        (LongT5Config(), 4096),
        (BartConfig(), 1024),
    ],
)
def test_a_model_that_declares_no_limit_reads_what_its_kind_was_pre_trained_on(
    config: PreTrainedConfig, tokens: int
) -> None:
    assert assumed_limit(config) == tokens


def test_led_has_a_table_for_what_it_reads_and_another_for_what_it_writes() -> None:
    config = LEDConfig(max_encoder_position_embeddings=700, max_decoder_position_embeddings=90)
    assert (position_limit(config), output_limit(config)) == (700, 88)


def test_the_units_of_a_prefix_are_of_a_known_kind_or_refused() -> None:
    parts = method("uniblock", Prefix(length=2))
    for units, kind in ((None, None), ("turns", UNIT_KINDS["turns"])):
        model, _ = tiny("bart")
        assert units_of_prefix(model) is None
        attach(model, replace(parts, units=units))
        assert units_of_prefix(model) == kind
    model, _ = tiny("bart")
    attach(model, replace(parts, units="sentence"))
    with pytest.raises(UserError, match="unknown units 'sentence'; did you mean 'sentences'"):
        units_of_prefix(model)


def test_what_stands_around_the_text_is_in_the_segment_next_to_it() -> None:
    encoded = Encoded((1, 2), (5, 6, 7, 8), (3,), units=(0, 0, 4, 4))
    assert encoded.segments(2) == [0, 0, 0, 0, 1, 1, 1]
    assert encoded.part(1, 3).segments(2) == [0, 0, 0, 1, 1]
    assert Encoded((1,), (5, 6), (3,)).segments(2) == [0] * 4


@pytest.mark.parametrize(
    ("ends", "stops"),
    [
        ({3}, [8, 16, 18]),  # in the first half of the piece
        ({4}, [5, 13, 18]),
        ({4, 6, 9}, [7, 15, 18]),
        ({7, 16}, [8, 16, 18]),  # the last piece ends with the document
    ],
)
def test_a_piece_ends_after_the_last_sentence_that_ends_in_its_second_half(
    ends: set[int], stops: list[int]
) -> None:
    parts = pieces(Encoded((90,), tuple(range(18)), (91,)), 10, ends=frozenset(ends))
    assert [part.body[-1] + 1 for part in parts] == stops
    assert [token for part in parts for token in part.body] == [*range(18)]
    assert {(part.head, part.tail) for part in parts} == {((90,), (91,))}


def test_a_token_of_stops_and_closing_marks_alone_ends_a_sentence() -> None:
    texts = [".", "▁!", 'Ġ?"', ").", "。", '"', ")", "a.", "1.5", "▁"]
    tokenizer: Any = SimpleNamespace(get_vocab=lambda: dict(zip(texts, range(10), strict=True)))
    assert sentence_end_ids(tokenizer) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("name", ["\n", "Ċ", "<0x0A>"])
def test_line_breaks_of_all_kinds_of_tokenizers_are_known(name: str) -> None:
    vocabulary = {"a": 0, "[X_SEP]": 3, name: 7}
    for declared, ids in (([], {7}), (["[X_SEP]"], {3, 7})):
        tokenizer: Any = SimpleNamespace(
            get_vocab=lambda: vocabulary, all_special_tokens=declared, convert_tokens_to_ids=vocabulary.get
        )
        assert line_end_ids(tokenizer) == ids
