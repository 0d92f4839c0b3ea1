"""Documents of two parts: one separator token between them, whatever the tokenizer calls it."""

from dataclasses import replace

import pytest
from transformers import PreTrainedTokenizerBase

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.encoding import encode_documents
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis.generation.input_plan import DocumentEncoder, pieces
from precis_text.control_characters import SEPARATOR, join_parts, main_part, readable
from precis_text.errors import UserError
from tests.tiny_models import our_tokenizer, tiny

ANSWER, PASSAGE = "the old mill", "Bob says that [SEP] the old mill burned. Ann was not there."
BOTH = join_parts(ANSWER, PASSAGE)


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    return our_tokenizer()


def test_the_separator_is_one_token_between_the_parts_and_letters_stay_letters(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    (ids,) = encode_documents([BOTH], tokenizer)
    sep = tokenizer.sep_token_id
    first = tokenizer(ANSWER, add_special_tokens=False)["input_ids"]
    assert ids[0] == tokenizer.cls_token_id
    assert ids[1 : len(first) + 2] == [*first, sep]
    assert [place for place, token in enumerate(ids) if token == sep] == [len(first) + 1, len(ids) - 1]
    assert ids == tokenizer(ANSWER, PASSAGE)["input_ids"]  # as our tokenizer puts two texts together


def test_a_document_of_one_part_is_tokenized_as_ever(tokenizer: PreTrainedTokenizerBase) -> None:
    texts = [PASSAGE, BOTH, "", ANSWER]
    ids = encode_documents(texts, tokenizer)
    assert [ids[row] for row in (0, 2, 3)] == [tokenizer(texts[row])["input_ids"] for row in (0, 2, 3)]


def test_a_tokenizer_without_separator_gives_its_end_mark() -> None:
    _, t5 = tiny("t5")
    assert t5.sep_token_id is None
    (ids,) = encode_documents([BOTH], t5)
    first = t5(ANSWER, add_special_tokens=False)["input_ids"]
    assert ids == [*first, t5.eos_token_id, *t5(PASSAGE)["input_ids"]]


def test_a_tokenizer_with_neither_is_refused() -> None:
    _, t5 = tiny("t5")
    end = t5.eos_token
    try:
        t5.eos_token = None
        with pytest.raises(UserError, match="neither a separator nor an end mark"):
            encode_documents([BOTH], t5)
    finally:
        t5.eos_token = end


def test_the_first_mark_alone_divides() -> None:
    assert join_parts(f"a{SEPARATOR}b", "c") == f"a b{SEPARATOR}c"
    assert main_part(BOTH) == PASSAGE
    assert main_part(PASSAGE) == PASSAGE
    assert readable(BOTH) == f"{ANSWER} [SEP] {PASSAGE}"
    assert len(BOTH.split()) == len(ANSWER.split()) + len(PASSAGE.split())


def test_training_and_decoding_read_the_same_tokens(tokenizer: PreTrainedTokenizerBase) -> None:
    for instruction in ("", "Ask for this:"):
        data = TokenizedPairs.from_pairs(
            [Pair(BOTH, "What burned?")],
            tokenizer,
            max_source=512,
            max_target=64,
            decoder_start_token_id=tokenizer.bos_token_id,
            instruction=instruction,
        )
        assert data.sources[0].tolist() == DocumentEncoder(tokenizer, instruction)(BOTH).ids


def test_every_piece_of_a_long_passage_comes_with_the_answer(tokenizer: PreTrainedTokenizerBase) -> None:
    whole = DocumentEncoder(tokenizer)(join_parts(ANSWER, PASSAGE * 9))
    lead = [tokenizer.cls_token_id, *tokenizer(ANSWER, add_special_tokens=False)["input_ids"]]
    parts = pieces(whole, 64, ends=frozenset())
    assert len(parts) > 2
    for part in parts:
        assert part.ids[: len(lead) + 1] == [*lead, tokenizer.sep_token_id]
    assert [token for part in parts for token in part.body] == list(whole.body)


def test_a_cut_passage_keeps_its_answer_and_its_end_mark(tokenizer: PreTrainedTokenizerBase) -> None:
    pair = Pair(BOTH, "What burned?")
    (whole,) = encode_documents([BOTH], tokenizer)
    data = TokenizedPairs.from_pairs(
        [pair, replace(pair, document=PASSAGE)],
        tokenizer,
        max_source=len(whole) - 4,
        max_target=64,
        decoder_start_token_id=tokenizer.bos_token_id,
    )
    assert data.sources[0].tolist() == [*whole[:-5], whole[-1]]
    assert data.truncated_sources >= 1


def test_the_mark_never_becomes_a_piece_of_a_vocabulary() -> None:
    texts = [join_parts(f"Ann {n}", f"Bob {n} sings and Ann {n} listens.") for n in range(50)]
    with pytest.warns(UserWarning, match="the vocabulary is smaller"):
        made = train_tokenizer(texts, vocab_size=700)
    assert not [piece for piece in made.get_vocab() if SEPARATOR in piece]
