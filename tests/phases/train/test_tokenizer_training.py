"""Another model's vocabulary with our control tokens: ids stay, marks are there, and texts read as before."""

from types import SimpleNamespace
from typing import cast

import pytest
from transformers import PreTrainedTokenizerBase

from precis.data.text.unigram_tokenizer import SENTINELS, sentinel
from precis.phases.train.pretraining import words_of
from precis.phases.train.tokenizer_training import adopt_tokenizer
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, our_tokenizer, tiny

TEXT = "ann sings in the hall."


def given(kind: str) -> PreTrainedTokenizerBase:
    return {"t5": lambda: tiny("t5")[1], "bert": bert_tokenizer, "ours": our_tokenizer}[kind]()  # type: ignore[operator]


@pytest.mark.parametrize(("kind", "added"), [("t5", 2 + SENTINELS), ("bert", SENTINELS), ("ours", 0)])
def test_what_lacks_is_added_behind_the_vocabulary(kind: str, added: int) -> None:
    old = given(kind)
    new = adopt_tokenizer(old, name=kind)
    assert len(new) == len(old) + added
    assert {token: new.get_vocab()[token] for token in old.get_vocab()} == old.get_vocab()
    words = words_of(new)
    assert words.sentinels == SENTINELS
    marks = {words.pad, words.cls, words.sep, words.mask, *range(words.first_sentinel, len(new))}
    assert len(marks) == 4 + SENTINELS  # no two are the same
    assert marks.isdisjoint(words.pieces)
    assert new.convert_tokens_to_ids(sentinel(99)) == words.first_sentinel + 99 == len(new) - 1


@pytest.mark.parametrize("kind", ["t5", "bert", "ours"])
def test_a_text_has_its_old_ids_between_both_marks(kind: str) -> None:
    old = given(kind)
    new = adopt_tokenizer(old, name=kind)
    inner = old(TEXT, add_special_tokens=False)["input_ids"]
    assert new(TEXT)["input_ids"] == [new.cls_token_id, *inner, new.sep_token_id]
    assert new.decode(new(TEXT)["input_ids"], skip_special_tokens=True) == old.decode(inner)
    assert not {new.mask_token_id, new.convert_tokens_to_ids(sentinel(0))} & {
        *new("[MASK] and [M0] typed")["input_ids"]
    }


def test_a_tokenizer_that_is_not_fast_is_refused() -> None:
    slow = cast(PreTrainedTokenizerBase, SimpleNamespace())
    with pytest.raises(UserError, match="google/slow: is not a fast tokenizer"):
        adopt_tokenizer(slow, name="google/slow")
