"""Blocked decoder prefixes on models with predicting streams."""

from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from precis.models import (
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    ZCodePPConfig,
    ZCodePPForConditionalGeneration,
)
from precis.models.outputs import new_cache
from precis.tuning import MethodSettings, Prefix, attach, method

SIZES = {"vocab_size": 40, "hidden_size": 16, "encoder_layers": 1, "decoder_layers": 2}


def zcodepp() -> ZCodePPForConditionalGeneration:
    return ZCodePPForConditionalGeneration(
        ZCodePPConfig(**SIZES, num_attention_heads=2, intermediate_size=24, future_tokens=1)
    )


def prophet() -> ProphetNetForConditionalGeneration:
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    inner = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
    return ProphetNetForConditionalGeneration(ProphetNetConfig(**SIZES, **heads, **inner, ngram=2))


@pytest.mark.parametrize("make", [zcodepp, prophet])
@torch.no_grad()
def test_a_stream_has_the_segment_of_the_last_place_it_sees_in_training_and_in_drafting(
    make: Callable[[], PreTrainedModel],
) -> None:
    torch.manual_seed(0)
    model = make().eval()
    settings = MethodSettings(encoder_segments=1, decoder_segments=3, target_length=12)
    attached = attach(model, method("uniblock", Prefix(length=6), settings))
    for parameter in attached.prefixes.parameters():
        torch.nn.init.normal_(parameter)
    model.eval()
    ids, target = torch.randint(5, 40, (2, 9)), torch.randint(5, 40, (2, 12))
    forced = model(input_ids=ids, decoder_input_ids=target, all_streams=True).future_logits[:, -1]
    source = model.get_encoder()(input_ids=ids).last_hidden_state
    cache, drafted = new_cache(model.config), []
    for place in range(target.shape[1]):
        _, ahead = model.look_ahead(target[:, place : place + 1], source, streams=1, cache=cache)
        drafted.append(model.lm_head(ahead[:, 0]))
    drafted = torch.cat(drafted, dim=1)  # type: ignore[assignment]
    torch.testing.assert_close(drafted[:, :-1], forced[:, 1:], atol=1e-5, rtol=1e-5)  # type: ignore[call-overload]
