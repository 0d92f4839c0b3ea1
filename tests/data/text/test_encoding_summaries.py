"""ProphetNet's [X_SEP]: between lines of a target, a line break in what is written."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from precis.data.text.encoding import decode_summary, encode_summaries, sentence_mark
from precis.generation.generation_settings import control_tokens
from precis.generation.input_plan import line_end_ids

NAMES = ["[PAD]", "[unused0]", "[X_SEP]", "[UNK]", "[SEP]", "one", "two", "three"]


def words(*, mark: str | None) -> PreTrainedTokenizerFast:
    names = [mark if name == "[X_SEP]" and mark else name for name in NAMES]
    backend = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", 4)])
    declared = {"extra_special_tokens": [mark]} if mark else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", eos_token="[SEP]", **declared
    )


@pytest.mark.parametrize("mark", ["[X_SEP]", "[unused1]"])
def test_lines_of_a_target_have_the_mark_between_them(mark: str) -> None:
    assert sentence_mark(words(mark=mark)) == 2
    assert encode_summaries(["one two\n\nthree", "two"], words(mark=mark)) == [[5, 6, 2, 7, 4], [6, 4]]


def test_what_is_written_has_a_line_for_each_sentence() -> None:
    assert decode_summary([4, 5, 6, 2, 7, 4, 0], words(mark="[X_SEP]")) == "one two\nthree"


def test_an_unknown_word_of_a_target_stays() -> None:
    assert encode_summaries(["four one\ntwo"], words(mark="[X_SEP]")) == [[3, 5, 2, 6, 4]]


def test_the_mark_may_be_written_and_ends_a_line() -> None:
    assert 2 not in control_tokens(words(mark="[X_SEP]"))
    assert line_end_ids(words(mark="[X_SEP]")) == {2}


def test_without_a_declared_mark_nothing_changes() -> None:
    plain = words(mark=None)
    assert sentence_mark(plain) is None
    assert encode_summaries(["one two\nthree"], plain) == [[5, 6, 7, 4]]
    assert decode_summary([5, 6, 7, 4], plain) == "one two three"
