"""What is written does not hang on the autocast that surrounds it: greedy, beams, drafts, int8, prefixes, both loops.

Validation during a bf16 run is such a place, and so is a caller's own `torch.autocast`. Autocast to bf16 works on any
CPU; where the processor does not multiply in bf16 it is slow and no less binding.
"""

from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from transformers import PreTrainedModel

from precis.generation.decoder_batches import AUTOMATIC, Drafting, Fast, Generate, Loop
from precis.generation.fast.packed_linear import BFloat16, Int8, Weights, has_int8
from precis.generation.summarizer import Summarizer
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.tuning import Prefix, method
from precis_text.decoding_settings import GenerationSettings
from tests.tiny_models import documents, our_tokenizer, tiny
from tests.tuning.bases import attach_loud

DOCUMENTS = documents(3)


def drafting(kind: str) -> PreTrainedModel:
    """A random model with two predicting streams or more."""
    if kind == "zcodepp":
        plain, _ = tiny("zcodepp", seed=3)
        plain.config.future_tokens = 3
        torch.manual_seed(3)
        return ZCodePPForConditionalGeneration(plain.config).eval()
    torch.manual_seed(4)
    tokenizer = our_tokenizer()
    config = ProphetNetConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=256,
        ngram=3,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.bos_token_id,
    )
    return ProphetNetForConditionalGeneration(config).eval()


def bf16() -> AbstractContextManager[None]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def written(
    model: PreTrainedModel, loop: Loop, surrounding: AbstractContextManager[None], *, beams: int = 1
) -> list[str]:
    summarizer = Summarizer(model, our_tokenizer(), loop=loop)
    settings = GenerationSettings(min_tokens=14, max_tokens=14, beams=beams)
    with surrounding:
        return [one.text for one in summarizer.summarize(DOCUMENTS, settings=settings)]


@pytest.mark.many_steps
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("loop", [AUTOMATIC, Fast(), Fast(weights=BFloat16()), Generate()])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_autocast_changes_no_summary(kind: str, loop: Loop, beams: int) -> None:
    model = drafting(kind)
    assert written(model, loop, bf16(), beams=beams) == written(model, loop, nullcontext(), beams=beams)


@pytest.mark.long
@pytest.mark.skipif(not has_int8(), reason="this build of torch has no int8 product")
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_autocast_changes_no_summary_of_int8_weights(kind: str) -> None:
    model, loop = drafting(kind), Fast(weights=Int8())
    assert written(model, loop, bf16(), beams=2) == written(model, loop, nullcontext(), beams=2)


@pytest.mark.long
@pytest.mark.parametrize("weights", [Fast().weights, BFloat16()])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_autocast_changes_no_draft(kind: str, weights: Weights) -> None:
    model, loop = drafting(kind), Drafting(weights=weights)
    assert written(model, loop, bf16()) == written(model, loop, nullcontext())


@pytest.mark.long
@pytest.mark.parametrize("loop", [AUTOMATIC, Generate()])
@pytest.mark.parametrize("kind", ["zcodepp", "bart", "t5"])
def test_autocast_changes_no_summary_of_a_prefix(kind: str, loop: Loop) -> None:
    model, tokenizer = tiny(kind, positions=256)
    attach_loud(model, method("hierblock+softsa", Prefix(length=4)))
    summarizer = Summarizer(model, tokenizer, loop=loop)
    settings = GenerationSettings(min_tokens=14, max_tokens=14)
    plain = [one.text for one in summarizer.summarize(DOCUMENTS, settings=settings)]
    with bf16():
        assert [one.text for one in summarizer.summarize(DOCUMENTS, settings=settings)] == plain


@pytest.mark.parametrize("loop", [Fast(), Generate()])
def test_a_model_held_in_bf16_is_decoded_inside_autocast_and_outside(loop: Loop) -> None:
    model = drafting("zcodepp").bfloat16()
    assert written(model, loop, bf16(), beams=2) == written(model, loop, nullcontext(), beams=2)
