"""Z-Code++ in its first pre-training phase: replaced-token detection and span recovery on one encoder.

    masked ids   -> generator -> the masked tokens (MLM, Eq. 1), and samples in the masked places (Eq. 2)
    sampled ids  -> encoder   -> was this token replaced? (RTD, Eq. 3)
    ids without spans -> encoder -> decoder -> the spans (CSP, Eq. 5)

The encoder of the last two lines is one module. Its token table is E_D = sg(E_G) + E_delta (Eq. 4), also for the
decoder and its head; so only MLM updates E_G, and RTD and CSP update E_delta. `finished` adds the two and returns the
plain model for fine-tuning. For DeBERTa's code, and our differences from it, see docs/adr/0003.
"""

from dataclasses import dataclass, replace
from typing import Protocol, TypedDict, Unpack, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from precis.models.outputs import predicting_states
from precis.models.zcodepp.configuration_zcodepp import (
    ZCodePPConfig,
    ZCodePPPreTrainingConfig,
    build_encoder,
    build_encoder_layer,
)
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration, ZCodePPModel
from precis.models.zcodepp.zcodepp_encoder import ZCodePPPreTrainedModel
from precis.nn.embeddings import DisentangledEmbedding, TokenEmbedding
from precis.nn.vocabulary_scores import (
    EnhancedMaskDecoder,
    MaskedTokenHead,
    ReplacedTokenHead,
    VocabularyScores,
)


class GeneratorOptions(TypedDict, total=False):
    """The shape of a generator; see `ZCodePPPreTrainingConfig`."""

    generator_layers: int
    generator_mask_decoder: bool
    generator_positions: int


@runtime_checkable
class MaskedTokens(Protocol):
    """The generator's input; every row is a full block, without padding.

    Attributes:
        original_ids: (b n) the text.
        masked_ids: (b n) the text with [MASK] in the chosen places.
        places: (b k) the chosen positions, the same number in every row.
        draws: (b k) random numbers in [0, 1) that determine the samples.
    """

    @property
    def original_ids(self) -> Int[Tensor, "b n"]: ...
    @property
    def masked_ids(self) -> Int[Tensor, "b n"]: ...
    @property
    def places(self) -> Int[Tensor, "b k"]: ...
    @property
    def draws(self) -> Float[Tensor, "b k"]: ...


@runtime_checkable
class CorruptedSpans(Protocol):
    """The input of span recovery: (b s) ids with sentinels, their mask, and the (b t) decoder ids.

    Row lengths are None if the host does not know them.
    """

    @property
    def input_ids(self) -> Int[Tensor, "b s"]: ...
    @property
    def attention_mask(self) -> Tensor | None: ...
    @property
    def source_lengths(self) -> tuple[int, ...] | None: ...
    @property
    def decoder_input_ids(self) -> Int[Tensor, "b t"]: ...


@dataclass(frozen=True, kw_only=True)
class PreTrainingOutput:
    """The results of one pass; a part that was not requested is None.

    Attributes:
        mlm_scores: (b k v) at the chosen places.
        replaced_ids: (b n) the text with samples in the chosen places.
        rtd_logits: (b n), positive for "replaced".
        csp_scores: (b s t v) of the next token, and of the decoder's predicting streams.
        attenuation: the configuration's gamma, which weights these streams.
    """

    mlm_scores: VocabularyScores | None = None
    replaced_ids: Int[Tensor, "b n"] | None = None
    rtd_logits: Float[Tensor, "b n"] | None = None
    csp_scores: VocabularyScores | None = None
    attenuation: float = 1.0


class MaskedTokenGenerator(nn.Module):
    """A small DeBERTa with a masked-language-model head; it owns the shared token table E_G."""

    def __init__(self, config: ZCodePPPreTrainingConfig) -> None:
        super().__init__()
        width, enhanced = config.hidden_size, config.generator_mask_decoder
        layers = config.generator_layers - enhanced  # the mask decoder's layer is its last
        plain = ZCodePPConfig(**{**config.finished().shape(), "chunk_length": None, "encoder_layers": layers})
        self.embedding = TokenEmbedding(
            config.vocab_size, width, table_width=width, padding_id=config.pad_token_id or 0,
            norm_eps=config.layer_norm_eps, dropout=config.dropout,
        )  # fmt: skip
        self.encoder = build_encoder(plain)
        self.mask_decoder = (
            EnhancedMaskDecoder(build_encoder_layer(plain), width=width, longest=config.generator_positions)
            if enhanced
            else None
        )
        self.head = MaskedTokenHead(width, config.vocab_size, norm_eps=config.layer_norm_eps)

    @property
    def table(self) -> nn.Embedding:
        """The token table E_G."""
        tokens = self.embedding.tokens
        assert isinstance(tokens, nn.Embedding)
        return tokens

    def forward(self, ids: Int[Tensor, "b n"], places: Int[Tensor, "b k"]) -> VocabularyScores:
        """Compute scores (b k v) at the places; other places get no vocabulary scores."""
        valid = torch.ones_like(ids, dtype=torch.bool)
        states = self.encoder(self.embedding(ids, valid), valid, padded=False)
        if self.mask_decoder is not None:
            states = self.mask_decoder(states, None, self.encoder.positions)
        chosen = states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))  # (b k d)
        return self.head(chosen, self.table.weight)


class ZCodePPForPreTraining(ZCodePPPreTrainedModel):
    """Generator, discriminator and decoder, for `precis.objectives.replaced_tokens`."""

    config_class = ZCodePPPreTrainingConfig
    config: ZCodePPPreTrainingConfig

    def __init__(self, config: ZCodePPPreTrainingConfig) -> None:
        super().__init__(config)
        self.generator = MaskedTokenGenerator(config)
        self.model = ZCodePPModel(config)
        self.model.set_input_embeddings(DisentangledEmbedding(self.generator.table))
        self.replaced_head = ReplacedTokenHead(config.hidden_size, norm_eps=config.layer_norm_eps)
        self.post_init()

    @classmethod
    def around(
        cls, model: ZCodePPForConditionalGeneration, **generator: Unpack[GeneratorOptions]
    ) -> "ZCodePPForPreTraining":
        """Resume the pre-training of a finished model. Its table becomes E_G, and E_delta starts at zero. Generator and
        detection head are new.

        Args:
            generator: see `ZCodePPPreTrainingConfig`.
        """
        whole = cls(ZCodePPPreTrainingConfig(**model.config.shape(), **generator))
        table = model.get_input_embeddings().weight
        assert isinstance(table, Tensor)
        with torch.no_grad():
            whole.generator.table.weight.copy_(table)
        _copy_body(model.model, whole.model)
        return whole

    def get_input_embeddings(self) -> nn.Module:
        return self.generator.table

    @property
    def discriminator_table(self) -> DisentangledEmbedding:
        """The token table E_D."""
        table = self.model.get_input_embeddings()
        assert isinstance(table, DisentangledEmbedding)
        return table

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, DisentangledEmbedding):
            if not getattr(module.delta, "_is_hf_initialized", False):
                module.delta.zero_()
        else:
            super()._init_weights(module)

    def forward(
        self,
        masked: MaskedTokens | None = None,
        replaced_ids: Int[Tensor, "b n"] | None = None,
        spans: CorruptedSpans | None = None,
        detect: bool = True,
    ) -> PreTrainingOutput:
        """Compute the requested parts. Masked tokens run the generator. Its samples, or given `replaced_ids`, run the
        discriminator unless `detect` is off. Spans run encoder and decoder.

        One call may do all three, so that data-parallel wrappers see every parameter used once.
        """
        output = PreTrainingOutput(replaced_ids=replaced_ids)
        if masked is not None:
            output = self._propose(masked)
        if detect and output.replaced_ids is not None:
            states = self.model.encoder(output.replaced_ids).last_hidden_state
            output = replace(output, rtd_logits=self.replaced_head(states))
        if spans is not None:
            output = replace(output, csp_scores=self._recover(spans), attenuation=self.config.attenuation)
        return output

    def _propose(self, masked: MaskedTokens) -> PreTrainingOutput:
        scores = self.generator(masked.masked_ids, masked.places)
        sampled = sample_all(scores, masked.draws)
        return PreTrainingOutput(
            mlm_scores=scores, replaced_ids=masked.original_ids.scatter(1, masked.places, sampled)
        )

    def _recover(self, spans: CorruptedSpans) -> VocabularyScores:
        output = self.model(
            input_ids=spans.input_ids, attention_mask=spans.attention_mask, source_lengths=spans.source_lengths,
            decoder_input_ids=spans.decoder_input_ids, all_streams=True, use_cache=False,
        )  # fmt: skip
        return VocabularyScores.of(predicting_states(output, self.config), self.discriminator_table.weight)

    @torch.no_grad()
    def finished(self) -> ZCodePPForConditionalGeneration:
        """Return the plain model with the table E_D = E_G + E_delta, without generator and detection head."""
        model = ZCodePPForConditionalGeneration(self.config.finished())
        _copy_body(self.model, model.model)
        table = model.get_input_embeddings().weight
        assert isinstance(table, Tensor)
        table.copy_(self.discriminator_table.weight)
        return model


_TABLE = "encoder.embedding.tokens."


def _copy_body(source: ZCodePPModel, target: ZCodePPModel) -> None:
    """Copy all weights except the token table, whose form differs between the two."""
    body = {name: t for name, t in source.state_dict().items() if not name.startswith(_TABLE)}
    left = target.load_state_dict(body, strict=False)
    assert not left.unexpected_keys
    assert all(name.startswith(_TABLE) for name in left.missing_keys)


def sample_all(scores: VocabularyScores, draws: Float[Tensor, "b k"]) -> Int[Tensor, "b k"]:
    """Run `sample` on scores (b k v), piece by piece."""
    given = draws.flatten()
    found: list[Tensor] = []
    start = 0
    for logits in scores.in_pieces():
        found.append(sample(logits, given[start : start + len(logits)]))
        start += len(logits)
    return torch.cat(found).view_as(draws)


def sample(logits: Float[Tensor, "... v"], draws: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Draw one token for each place from softmax(logits) at temperature 1, by inverting the distribution function.

    The caller passes the random numbers, so that neither the number of processes nor the micro-batches change the
    samples. A token that equals the original counts as original afterwards (DeBERTa's code, ELECTRA).
    """
    cumulated = logits.float().softmax(dim=-1).cumsum(dim=-1)
    total = cumulated[..., -1:]
    # Rounding may leave the last sum slightly off 1: scale draws to it and keep them below it, so that none falls
    # past the end or on a token with zero probability.
    threshold = torch.minimum(draws[..., None].to(total.dtype) * total, torch.nextafter(total, total * 0))
    # NaN compares as past the end; the loss of such a step is NaN too, which training detects.
    return torch.searchsorted(cumulated, threshold, right=True)[..., 0].clamp(max=logits.shape[-1] - 1)
