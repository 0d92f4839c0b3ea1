"""A checker reads a document in chunks, and the chunk that supports a sentence most counts."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedModel

from precis.evaluation.support_checker import Checker
from precis_text.errors import UserError
from precis_text.units import extraction_units
from tests.tiny_models import documents, our_tokenizer


def classifier(labels: dict[int, str]) -> PreTrainedModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(our_tokenizer()),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=512,
        pad_token_id=our_tokenizer().pad_token_id,
        id2label=labels,
        initializer_range=0.5,
    )
    return BertForSequenceClassification(config).eval()


@torch.no_grad()
def probability(model: PreTrainedModel, label: int, chunk: str, sentence: str) -> float:
    inputs = our_tokenizer()(chunk, sentence, return_tensors="pt")
    return float(model(**inputs).logits.softmax(-1)[0, label])


def test_a_score_is_the_mean_over_sentences_of_the_best_chunk() -> None:
    model = classifier({0: "contradiction", 1: "neutral", 2: "entailment"})
    document = "\n".join(documents(3))
    summary = "Ann sings in the hall. Bob listens."
    checker = Checker(model, our_tokenizer(), limit=120, licence="MIT", batch_size=3)
    sentences = [unit.text for unit in extraction_units(summary)]
    room = checker._room(sentences)
    chunks = checker._chunks([unit.text for unit in extraction_units(document)], room=room)
    assert len(chunks) > 2
    assert " ".join(chunks).split() == document.split()
    best = [max(probability(model, 2, chunk, sentence) for chunk in chunks) for sentence in sentences]
    found = checker([document, "Ann sings."], [summary, ""], [[], []])["checker"]
    assert found[0] == pytest.approx(np.mean(best), abs=1e-5)
    assert np.isnan(found[1])


@pytest.mark.parametrize(
    ("labels", "chosen"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, 1),
        ({0: "entailment", 1: "not_entailment"}, 0),
        ({0: "UNSUPPORTED", 1: "SUPPORTED"}, 1),
        ({0: "inconsistent", 1: "consistent"}, 1),
    ],
)
def test_the_label_that_means_supported_is_found_by_name(labels: dict[int, str], chosen: int) -> None:
    assert Checker(classifier(labels), our_tokenizer(), limit=128, licence="")._yes == chosen


def test_labels_that_say_nothing_are_refused() -> None:
    with pytest.raises(UserError, match="labels are happy, sad"):
        Checker(classifier({0: "happy", 1: "sad"}), our_tokenizer(), limit=128, licence="")


def test_a_chunk_has_as_many_units_as_fit_and_a_longer_unit_is_a_chunk_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checker = Checker(classifier({0: "entailment", 1: "other"}), our_tokenizer(), limit=120, licence="MIT")
    monkeypatch.setattr(checker, "_count", lambda text: len(text.split()))
    units = ["one two", "three four", "five six", "seven eight nine ten", "end"]  # and one token each between
    assert checker._chunks(units, room=6) == ["one two three four", "five six", "seven eight nine ten", "end"]
    assert checker._chunks(units, room=5)[:2] == ["one two", "three four"]
    assert checker._chunks(units, room=8) == ["one two three four", "five six seven eight nine ten", "end"]
    assert checker._chunks(["one two"], room=1) == ["one two"]
    assert checker._chunks([], room=6) == []


def test_a_chunk_that_fills_its_room_fills_an_input_together_with_the_longest_sentence() -> None:
    checker = Checker(classifier({0: "entailment", 1: "other"}), our_tokenizer(), limit=120, licence="MIT")
    sentences = ["Ann sings in the hall.", "Bob listens."]
    beside = max(len(our_tokenizer()("", sentence)["input_ids"]) for sentence in sentences)
    assert checker._room(sentences) == 120 - beside


def test_a_batch_holds_texts_of_similar_length() -> None:
    model = classifier({0: "entailment", 1: "other"})
    checker = Checker(model, our_tokenizer(), limit=120, licence="MIT", batch_size=2)
    widths: list[int] = []
    model.register_forward_pre_hook(
        lambda _, __, inputs: widths.append(inputs["input_ids"].shape[1]), with_kwargs=True
    )
    long, short = "Ann sings in the hall. " * 4, "Ann sings."
    for longer in ((long, long), (long, short), (short, long)):
        widths.clear()
        found = checker._probabilities([(short, short), longer, (short, short), longer])
        assert widths == [len(our_tokenizer()(*texts)["input_ids"]) for texts in ((short, short), longer)]
        np.testing.assert_allclose(found[:2], found[2:], atol=1e-5)
        assert found[0] == pytest.approx(probability(model, 0, short, short), abs=1e-5)
