"""Encoders of one size from transformers, with random weights, as functions of token ids.

    name -> (configuration, what turns ids and an attention mask into states)

Sizes: 256 wide, 6 layers, 4 heads, feed-forward 1024, vocabulary 8000 unless a benchmark says otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from precis_text.config import Settings

VOCABULARY = 8000


@dataclass(frozen=True, kw_only=True)
class Size(Settings):
    """The size that all encoders of a benchmark share."""

    width: int = 256
    layers: int = 6
    heads: int = 4
    positions: int = 16_384

    @property
    def inner(self) -> int:
        return 4 * self.width


def deberta_config(size: Size) -> Any:
    """Return the configuration with DeBERTa-v3's attention: shared position projections, 256 log buckets up to 512."""
    from transformers import DebertaV2Config

    return DebertaV2Config(
        vocab_size=VOCABULARY,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.inner,
        relative_attention=True,
        position_buckets=256,
        max_relative_positions=-1,
        max_position_embeddings=512,
        pos_att_type=["c2p", "p2c"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def _deberta(size: Size) -> nn.Module:
    from transformers import DebertaV2Model

    return DebertaV2Model(deberta_config(size))


def _like_bart(size: Size) -> dict[str, Any]:
    """Return the settings that have the same names in BART and in models derived from it."""
    return {
        "vocab_size": VOCABULARY,
        "d_model": size.width,
        "encoder_layers": size.layers,
        "encoder_attention_heads": size.heads,
        "encoder_ffn_dim": size.inner,
        "dropout": 0.0,
    }


def _bart(size: Size) -> nn.Module:
    from transformers import BartConfig
    from transformers.models.bart.modeling_bart import BartEncoder

    positions = {"max_position_embeddings": size.positions}
    return BartEncoder(BartConfig(**_like_bart(size), **positions, attn_implementation="sdpa"))


def _longt5(size: Size) -> nn.Module:
    from transformers import LongT5Config, LongT5EncoderModel

    config = LongT5Config(
        vocab_size=VOCABULARY,
        d_model=size.width,
        d_kv=size.width // size.heads,
        d_ff=size.inner,
        num_layers=size.layers,
        num_heads=size.heads,
        encoder_attention_type="transient-global",
        dropout_rate=0.0,
    )
    return LongT5EncoderModel(config)


def _led(size: Size) -> nn.Module:
    from transformers import LEDConfig
    from transformers.models.led.modeling_led import LEDEncoder

    positions = {"max_encoder_position_embeddings": size.positions}
    return LEDEncoder(LEDConfig(**_like_bart(size), **positions, attention_window=512))


def _pegasus_x(size: Size) -> nn.Module:
    from transformers import PegasusXConfig
    from transformers.models.pegasus_x.modeling_pegasus_x import PegasusXEncoder

    own = {"max_position_embeddings": size.positions, "block_size": 512, "stagger_local_blocks": True}
    return PegasusXEncoder(PegasusXConfig(**_like_bart(size), **own))


def _precis(size: Size, chunk: int | None) -> nn.Module:
    from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
    from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoder

    config = ZCodePPConfig(
        vocab_size=VOCABULARY,
        hidden_size=size.width,
        num_attention_heads=size.heads,
        intermediate_size=size.inner,
        encoder_layers=size.layers,
        chunk_length=chunk,
        global_layers=1,
        dropout=0.0,
        attention_dropout=0.0,
    )
    return ZCodePPEncoder(config)


_ENCODERS: dict[str, Callable[[Size], nn.Module]] = {
    "precis": lambda size: _precis(size, None),
    "precis-fusion": lambda size: _precis(size, 256),
    "transformers": _deberta,
    "bart": _bart,
    "longt5": _longt5,
    "led": _led,
    "pegasus-x": _pegasus_x,
}
NAMES = tuple(_ENCODERS)


def build(name: str, size: Size) -> nn.Module:
    """Build an encoder with random weights.

    Args:
        name: one of `NAMES`.
    """
    return _ENCODERS[name](size)


def states_of(encoder: nn.Module, ids: Tensor, mask: Tensor | None) -> Tensor:
    """Compute the last hidden states, with global attention for LED's first token, as its documentation requires."""
    options = {}
    if type(encoder).__name__ == "LEDEncoder":
        options["global_attention_mask"] = (ids.new_zeros(ids.shape)).index_fill_(1, ids.new_zeros(1), 1)
    output: Tensor = encoder(input_ids=ids, attention_mask=mask, **options).last_hidden_state
    return output
