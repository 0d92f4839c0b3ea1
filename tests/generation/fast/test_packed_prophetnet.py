"""The fast loop writes what `generate` writes with a ProphetNet, and computes no stream but the first."""

import pytest
import torch

from precis.generation.fast.fast_decoder import FastDecoder, why_not
from precis.generation.fast.packed_linear import AsGiven, BFloat16
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from tests.fast_cases import prophet
from tests.fast_cases import prophet_documents as documents
from tests.fast_cases import prophet_settings as settings


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_beams": 4, "length_penalty": 1.2, "early_stopping": True, "min_new_tokens": 5},
        {"num_beams": 3, "length_penalty": 0.6, "early_stopping": False},
    ],
    ids=["greedy", "beams", "patient beams"],
)
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(prophet(0), id="2"),
        pytest.param(prophet(1, ngram=3), id="3"),
        pytest.param(prophet(2, buckets=8), id="few buckets", marks=pytest.mark.many_steps),
    ],
)
def test_tokens_are_those_of_generate(
    model: ProphetNetForConditionalGeneration, options: dict[str, float | bool]
) -> None:
    config = settings(**options)
    for seed in range(2):
        given = documents(seed)
        expected = model.generate(**given, generation_config=config).tolist()
        found = FastDecoder(model, AsGiven())(given, config)
        assert [row[: len(tokens)] for row, tokens in zip(expected, found, strict=True)] == found


@pytest.mark.long
def test_long_texts_outgrow_the_first_room_of_the_cache() -> None:
    model, config = prophet(3), settings(max_new_tokens=80, min_new_tokens=80, no_repeat_ngram_size=0)
    given = documents(0)
    assert (
        FastDecoder(model, AsGiven())(given, config)
        == model.generate(**given, generation_config=config).tolist()
    )


@pytest.mark.parametrize("model", [prophet(0), prophet(2, buckets=8)], ids=["plain", "few buckets"])
def test_bfloat16_writes_tokens_that_fp32_finds_as_good_but_for_rounding(
    model: ProphetNetForConditionalGeneration,
) -> None:
    given, config = documents(1), settings(no_repeat_ngram_size=0, min_new_tokens=18)
    rows = torch.tensor(FastDecoder(model, BFloat16())(given, config))
    with torch.no_grad():
        logits = model(**given, decoder_input_ids=rows[:, :-1]).logits
    logits[..., config.eos_token_id] = -torch.inf  # held back until the last token
    chosen = logits.gather(-1, rows[:, 1:, None]).squeeze(-1)
    short = logits.amax(-1) - chosen  # the second best is 0.5 and more below the best at most places
    assert short.max() < 0.2
    assert (short == 0).float().mean() > 0.9


def test_it_is_chosen_but_not_where_the_model_was_changed() -> None:
    model = prophet()
    assert why_not(model, settings()) is None
    handle = model.get_decoder().layers[0].register_forward_hook(lambda *_: None)
    assert why_not(model, settings()) == "its modules have hooks or a replaced forward"
    handle.remove()
    model.lm_head = torch.nn.Linear(16, 30)
    assert why_not(model, settings()) == "its head is not a plain matrix"
    assert why_not(model.train(), settings()) == "the model is in training mode"
