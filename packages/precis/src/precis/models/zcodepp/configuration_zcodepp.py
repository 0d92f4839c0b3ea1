"""Configuration and construction of Z-Code++ models."""

from typing import Any

from precis.models.family import FamilyConfig
from precis.nn.attention import DisentangledSelfAttention, MultiHeadAttention, t5_attention
from precis.nn.blocks import (
    ACTIVATIONS,
    DecoderLayer,
    EncoderLayer,
    FanInFeedForward,
    FeedForward,
    GatedFeedForward,
)
from precis.nn.decoder import Decoder
from precis.nn.encoder import BucketedPositionEmbedding, Encoder, NgramConvolution, RelativePositionEmbedding
from precis.nn.layer_plan import dense_plan, fusion_plan
from precis.nn.relative_positions import CausalBuckets, LogBuckets, TwoWayBuckets


class ZCodePPConfig(FamilyConfig):
    """Shape of a Z-Code++ model; the defaults are the paper's large one.

    Args:
        vocab_size: token ids, sentinels included (DeBERTa's vocabulary: 128,100).
        embedding_size: width of the token table, projected to `hidden_size` if narrower; if None, the same.
        position_buckets, max_relative_positions: rows of the encoder's position table in one direction, and the
            distance from which all keys share one row (256 and 512 in DeBERTaV3; 0 buckets keep distances separate).
        relative_attention: if False, no position score is added, and the encoder does not know the order of words.
        encoder_positions: "disentangled" (DeBERTa, the paper), or "bucketed": plain attention with T5's learnt scores
            for buckets of distance, the baseline of the paper's ablation.
        encoder_buckets, encoder_max_distance: T5's buckets, for "bucketed".
        content_to_position, position_to_content: whether to add each of DeBERTa's two position scores.
        shared_position_keys: positions use the content's projections (v2/v3) instead of two of their own.
        decoder_feed_forward: "relu" (T5-1.0) or "gated-gelu" (T5-1.1).
        decoder_buckets, decoder_max_distance: T5's relative buckets.
        future_tokens: predicting streams added to the decoder (ProphetNet): number of tokens after the next one
            predicted at each place, in training and for drafting; 0 is the plain decoder.
        attenuation: gamma of ProphetNet's Eq. 10, for the model's own loss with these streams.
        chunk_length: fusion-in-encoder's l (256 or 512 in the paper); if None, every layer sees the whole input.
        global_layers: number of last encoder layers that see the whole input (the paper uses 1).
        hidden_act, convolution_act: an activation of `precis.nn.blocks.ACTIVATIONS`.
        convolution_kernel: size of DeBERTa-v2's convolution after the first layer; 0 for none (v3, Z-Code++).

    Examples:
        >>> config = ZCodePPConfig(vocab_size=1000, hidden_size=64, num_attention_heads=4, chunk_length=256)
        >>> config.local_chunk
        256
    """

    model_type = "zcodepp"
    fusion_limit = 32_768  # the global layer's cost grows with the square of the length
    attribute_map = {"num_hidden_layers": "encoder_layers", "d_model": "hidden_size"}  # noqa: RUF012

    vocab_size: int = 128_100
    hidden_size: int = 1024
    embedding_size: int | None = None
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    encoder_layers: int = 24
    decoder_layers: int = 24
    hidden_act: str = "gelu"
    relative_attention: bool = True
    encoder_positions: str = "disentangled"
    encoder_buckets: int = 32
    encoder_max_distance: int = 128
    position_buckets: int = 256
    max_relative_positions: int = 512
    content_to_position: bool = True
    position_to_content: bool = True
    shared_position_keys: bool = True
    norm_position_embeddings: bool = True
    layer_norm_eps: float = 1e-7
    decoder_intermediate_size: int | None = None
    decoder_feed_forward: str = "relu"
    decoder_buckets: int = 32
    decoder_max_distance: int = 128
    decoder_norm_eps: float = 1e-6
    future_tokens: int = 0
    chunk_length: int | None = None
    global_layers: int = 1
    convolution_kernel: int = 0
    convolution_groups: int = 1
    convolution_act: str = "tanh"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float = 0.1
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 1

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.check_heads("num_attention_heads")
        self.check_known("hidden_act", ACTIVATIONS)
        self.check_known("convolution_act", ACTIVATIONS)
        self.check_known("encoder_positions", ("disentangled", "bucketed"))
        self.check_known("decoder_feed_forward", ("relu", "gated-gelu"))
        if self.future_tokens < 0:
            raise ValueError(f"future_tokens={self.future_tokens}: use 0 (none) or more")

    @property
    def future_streams(self) -> range:
        """Stream 1 predicts the token after the next one, and so on; the decoder itself predicts the next."""
        return range(1, self.future_tokens + 1)

    @property
    def local_chunk(self) -> int | None:
        """Fusion-in-encoder's l; None if every layer sees the whole input."""
        return self.chunk_length

    def source_limit(self, trained: int | None, declared: int | None) -> int | None:
        """Return the length of the longest training input, since positions are relative; a model with a chunk length
        uses fusion-in-encoder, as in its training.
        """
        return trained if self.chunk_length is None else max(trained or 0, self.fusion_limit)


class ZCodePPPreTrainingConfig(ZCodePPConfig):
    """A `ZCodePPConfig` and its generator, which has the same width, heads and table.

    Args:
        generator_layers: depth of the generator. Z-Code++ says 6 "following DeBERTaV3" for its large model; DeBERTa's
            code uses half of the discriminator's depth.
        generator_mask_decoder: use DeBERTa's enhanced mask decoder: the generator's last layer runs twice, with
            absolute positions.
        generator_positions: rows of its absolute position table.
    """

    model_type = "zcodepp-pretraining"

    generator_layers: int = 6
    generator_mask_decoder: bool = False
    generator_positions: int = 512

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        least = 2 if self.generator_mask_decoder else 1
        if self.generator_layers < least:
            raise ValueError(f"generator_layers={self.generator_layers} is too small; use {least} or more")

    def finished(self) -> ZCodePPConfig:
        """Return the configuration of the pre-trained model, without the generator."""
        return ZCodePPConfig(**{k: v for k, v in self.shape().items() if not k.startswith("generator_")})


def build_encoder(config: ZCodePPConfig) -> Encoder:
    """Build DeBERTa layers under the configuration's layer plan."""
    plan = (
        fusion_plan(
            config.encoder_layers, chunk_length=config.chunk_length, global_layers=config.global_layers
        )
        if config.chunk_length is not None
        else dense_plan(config.encoder_layers)
    )
    return Encoder(
        [build_encoder_layer(config) for _ in range(config.encoder_layers)],
        plan=plan,
        positions=_build_positions(config),
        convolution=_build_convolution(config) if config.convolution_kernel else None,
    )


def build_encoder_layer(config: ZCodePPConfig) -> EncoderLayer:
    """Build one DeBERTa layer."""
    width = config.hidden_size
    disentangled = config.relative_attention and config.encoder_positions == "disentangled"
    attention = DisentangledSelfAttention(
        width,
        heads=config.num_attention_heads,
        content_to_position=disentangled and config.content_to_position,
        position_to_content=disentangled and config.position_to_content,
        shared_position_keys=config.shared_position_keys,
        dropout=config.attention_dropout,
    )
    return EncoderLayer(
        attention,
        FeedForward(width, config.intermediate_size, activation=config.hidden_act),
        width=width,
        norm_eps=config.layer_norm_eps,
        dropout=config.dropout,
    )


def _build_positions(config: ZCodePPConfig) -> RelativePositionEmbedding | BucketedPositionEmbedding | None:
    if config.relative_attention and config.encoder_positions == "bucketed":
        buckets = TwoWayBuckets(config.encoder_buckets, config.encoder_max_distance)
        return BucketedPositionEmbedding(buckets, config.num_attention_heads)
    if not (config.relative_attention and (config.content_to_position or config.position_to_content)):
        return None
    return RelativePositionEmbedding(
        LogBuckets(config.position_buckets, config.max_relative_positions),
        config.hidden_size,
        norm_eps=config.layer_norm_eps if config.norm_position_embeddings else None,
        dropout=config.dropout,
    )


def _build_convolution(config: ZCodePPConfig) -> NgramConvolution:
    return NgramConvolution(
        config.hidden_size, kernel=config.convolution_kernel, groups=config.convolution_groups,
        activation=config.convolution_act, norm_eps=config.layer_norm_eps, dropout=config.dropout,
    )  # fmt: skip


def build_decoder(config: ZCodePPConfig) -> Decoder:
    """Build T5-1.0 layers (or with gated GELU) and their shared position bias."""
    width, heads = config.hidden_size, config.num_attention_heads
    inner = config.decoder_intermediate_size or config.intermediate_size

    def attention() -> MultiHeadAttention:
        return t5_attention(width, heads=heads, head_width=width // heads, dropout=config.attention_dropout)

    def feed_forward() -> FanInFeedForward | GatedFeedForward:
        if config.decoder_feed_forward == "gated-gelu":
            return GatedFeedForward(width, inner, dropout=config.dropout)
        return FanInFeedForward(width, inner, dropout=config.dropout)

    layers = [
        DecoderLayer(
            attention(),
            attention(),
            feed_forward(),
            width=width,
            norm_eps=config.decoder_norm_eps,
            dropout=config.dropout,
        )
        for _ in range(config.decoder_layers)
    ]
    return Decoder(
        layers,
        buckets=CausalBuckets(config.decoder_buckets, config.decoder_max_distance),
        heads=heads,
        width=width,
        norm_eps=config.decoder_norm_eps,
        dropout=config.dropout,
        streams=config.future_tokens,
    )
