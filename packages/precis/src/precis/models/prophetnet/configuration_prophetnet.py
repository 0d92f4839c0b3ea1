"""Configuration and construction of ProphetNet models."""

from typing import Any

from precis.models.family import FamilyConfig
from precis.nn.attention import scaled_attention
from precis.nn.blocks import ACTIVATIONS, FeedForward
from precis.nn.relative_positions import CausalBuckets
from precis.nn.stream_decoder import StreamDecoder, StreamDecoderLayer
from precis.nn.transformer import AbsolutePositions, PostNormEncoder, PostNormEncoderLayer


class ProphetNetConfig(FamilyConfig):
    """Shape of a ProphetNet; the defaults are the released large one (391 M parameters).

    The model type is precis's own: transformers has a ProphetNet with the same weights, which computes the predicting
    streams differently (see `tests/parity/test_prophetnet.py`).

    Args:
        ngram: predicting streams, n in the paper: number of tokens predicted at each place, the next one included.
        attenuation: gamma of Eq. 10, for the model's own loss: stream k has weight gamma^k, normalised to sum to one
            (the paper takes 1.0 for 2 streams and 0.5 for 3; with 0 only the next token counts).
        decoder_buckets, decoder_max_distance: T5's relative buckets, with scores linear in the query's hidden state.
        max_position_embeddings: rows of the absolute position table, padding's included: a document may have one
            token less.
        decoder_positions: rows of the decoder's table (by default the same): a summary may have two tokens less.
        init_std: standard deviation of new weights; the released 0.02 suits its 1,024 columns.
        position_std: standard deviation of new absolute positions; if None, `init_std`.
        hidden_act: an activation of `precis.nn.blocks.ACTIVATIONS`.

    Examples:
        >>> config = ProphetNetConfig(vocab_size=1000, hidden_size=64, encoder_attention_heads=4, ngram=3)
        >>> config.future_streams  # 0 predicts the next token
        range(0, 3)
    """

    model_type = "precis-prophetnet"
    end_mark = (
        "sep_token"  # ends the texts of transformers' ProphetNet, although its tokenizer does not declare it
    )
    start_mark = "eos_token"
    attribute_map = {  # noqa: RUF012
        "num_hidden_layers": "encoder_layers",
        "num_attention_heads": "encoder_attention_heads",
        "d_model": "hidden_size",
    }

    vocab_size: int = 30_522
    hidden_size: int = 1024
    encoder_layers: int = 12
    decoder_layers: int = 12
    encoder_attention_heads: int = 16
    decoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_ffn_dim: int = 4096
    hidden_act: str = "gelu"
    ngram: int = 2
    decoder_buckets: int = 32
    decoder_max_distance: int = 128
    max_position_embeddings: int = 512
    decoder_positions: int | None = None
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.1
    init_std: float = 0.02
    position_std: float | None = None
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 2

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.check_heads("encoder_attention_heads")
        self.check_heads("decoder_attention_heads")
        if self.ngram < 1:
            raise ValueError(
                f"ngram={self.ngram}: a ProphetNet has one predicting stream or more; the paper uses 2"
            )
        self.check_known("hidden_act", ACTIVATIONS)

    @property
    def future_streams(self) -> range:
        """Stream 0 predicts the next token; the main stream predicts nothing."""
        return range(self.ngram)

    @property
    def source_rows(self) -> int:
        """Tokens that the encoder's position table covers; row 0 is for padding."""
        return self.max_position_embeddings - 1

    @property
    def target_rows(self) -> int:
        """Longest target in tokens: the last predicting state needs a position after its main one."""
        return (self.decoder_positions or self.max_position_embeddings) - 2


def build_post_norm_encoder(config: ProphetNetConfig) -> PostNormEncoder:
    """Build the original Transformer's encoder."""
    layers = [
        PostNormEncoderLayer(
            scaled_attention(
                config.hidden_size, heads=config.encoder_attention_heads, dropout=config.attention_dropout
            ),
            _feed_forward(config, config.encoder_ffn_dim),
            width=config.hidden_size,
            dropout=config.dropout,
        )
        for _ in range(config.encoder_layers)
    ]
    return PostNormEncoder(
        layers,
        positions=AbsolutePositions(config.max_position_embeddings, config.hidden_size),
        width=config.hidden_size,
        dropout=config.dropout,
    )


def build_stream_decoder(config: ProphetNetConfig) -> StreamDecoder:
    """Build the layers over main and predicting streams."""

    def attention() -> Any:
        return scaled_attention(
            config.hidden_size, heads=config.decoder_attention_heads, dropout=config.attention_dropout
        )

    layers = [
        StreamDecoderLayer(
            attention(),
            attention(),
            _feed_forward(config, config.decoder_ffn_dim),
            width=config.hidden_size,
            buckets=config.decoder_buckets,
            dropout=config.dropout,
        )
        for _ in range(config.decoder_layers)
    ]
    return StreamDecoder(
        layers, streams=config.ngram, width=config.hidden_size, dropout=config.dropout,
        positions=AbsolutePositions(config.decoder_positions or config.max_position_embeddings, config.hidden_size),
        buckets=CausalBuckets(config.decoder_buckets, config.decoder_max_distance),
    )  # fmt: skip


def _feed_forward(config: ProphetNetConfig, inner: int) -> FeedForward:
    return FeedForward(
        config.hidden_size,
        inner,
        activation=config.hidden_act,
        activation_dropout=config.activation_dropout,
        dropout=config.dropout,
    )
