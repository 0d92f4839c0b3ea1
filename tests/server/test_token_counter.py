"""Tokens are counted as the model has them, in every script, without the model."""

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import NoReturn

import pytest
from tokenizers import Tokenizer, models, normalizers
from transformers import PreTrainedTokenizerBase

from precis.server.limits import ApiError, Limits
from precis.server.token_counter import ByBytes, ByTokenizer, counter_of
from tests.tiny_models import tiny

SCRIPTS = {
    "English": "The harbour council met on Monday, and 12 members voted against the plan. ",
    "Russian": "Совет гавани собрался в понедельник. ",
    "Finnish": "Satamaneuvosto kokoontui maanantaina suunnitelmasta. ",
    "Chinese": "港口委员会星期一开会。",
    "Hindi": "बंदरगाह परिषद की बैठक सोमवार को हुई। ",
    "noise": "xqzkvj wqrtpl 0x7f3a9e; ",
    "spaces": "a          b\n\n\n\n",
    "accents": "e\u0301te\u0301 ",
}


@pytest.fixture(scope="module")
def default_tokenizer() -> PreTrainedTokenizerBase:
    from precis.generation.model_loader import load_model
    from precis.generation.model_location import default_model

    return load_model(str(default_model())).tokenizer


@pytest.mark.parametrize("script", SCRIPTS)
def test_counts_are_those_of_the_model_and_the_lower_bound_holds(
    default_tokenizer: PreTrainedTokenizerBase, script: str
) -> None:
    text = SCRIPTS[script] * 20
    counter = counter_of(default_tokenizer)
    whole = len(default_tokenizer(text, add_special_tokens=False)["input_ids"])
    assert counter.count([text]) == [whole]
    assert 0 < counter.at_least(text) <= whole


def test_russian_is_refused_where_its_tokens_exceed_the_limit(
    default_tokenizer: PreTrainedTokenizerBase,
) -> None:
    counter, text = counter_of(default_tokenizer), SCRIPTS["Russian"] * 20  # one token a byte
    counts = counter.count([text])
    limits = Limits(tokens=counts[0] - 1, queue=100_000)
    limits.check([text], counter, param="text")  # its lower bound does not refuse it
    with pytest.raises(ApiError, match=f"document 1 has {counts[0]:,} tokens"):
        limits.check_tokens(counts, param="text")


def test_a_document_of_too_many_words_is_refused_without_counting() -> None:
    class Never(ByBytes):
        def count(self, texts: Sequence[str]) -> NoReturn:
            raise AssertionError

    with pytest.raises(ApiError, match="document 1 has at least 200 tokens"):
        Limits(tokens=199, queue=1000).check(["a " * 200], Never(), param="text")


def test_counting_beside_the_model_does_not_disturb_it() -> None:
    _, tokenizer = tiny("zcodepp")
    counter, text = ByTokenizer(tokenizer), "Ann sings in the hall. " * 50
    whole = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    stop, wrong = threading.Event(), []

    def use() -> None:
        while not stop.is_set():
            if len(tokenizer(text, truncation=True, max_length=7)["input_ids"]) != 7:
                wrong.append("cut elsewhere")

    thread = threading.Thread(target=use)
    thread.start()
    try:
        found = {counter.count([text])[0] for _ in range(200)}
    finally:
        stop.set()
        thread.join()
    assert (found, wrong) == ({whole}, [])


def test_the_lower_bound_holds_for_long_tokens_that_normalizing_makes_of_twice_as_many_characters() -> None:
    own = Tokenizer(models.Unigram([("\u00e9" * 10, -1.0), ("\u00e9", -9.0), ("<unk>", -20.0)], unk_id=2))
    own.normalizer = normalizers.NFC()
    counter = ByTokenizer(SimpleNamespace(backend_tokenizer=own))
    word = "e\u0301" * 10 * 50
    assert counter.at_least(word) == counter.count([word])[0] == 50
