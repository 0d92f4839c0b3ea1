"""Z-Code++: disentangled-attention encoder, T5-1.0 decoder, fusion-in-encoder for long documents.

Paper: He et al. 2023 (ACL), sections 2.2 and 2.3. The paper leaves the decoder open ("the same setting as T5"); we
take T5-1.0: pre-RMSNorm, ReLU, no biases, one bucketed relative bias for all layers. With 24+24 layers of 1024 that
counts 705.6 M parameters without embeddings, the paper's "710M". The encoder is DeBERTaV3 to the letter, so that its
public weights load.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions

from precis.models.encoder_decoder import (
    FutureStatesOutput,
    FutureTokensOutput,
    TiedHead,
    as_output,
    by_stream,
    future_loss,
    new_cache,
    refuse_a_loss_elsewhere,
    target_mask,
)
from precis.models.zcodepp.config import ZCodePPConfig, build_decoder
from precis.models.zcodepp.encoder import ZCodePPEncoder, ZCodePPPreTrainedModel
from precis.nn.attention_weights import AttentionWeights, in_order, watched
from precis.nn.decoder import Decoder
from precis.nn.padding import is_padded
from precis.nn.streams import StreamLayout, ahead, whole_target
from precis.nn.vocabulary_scores import VocabularyScores

# Size of a token's entries at the decoder's input, beside sublayer outputs of size one (docs/adr/0002).
TOKEN_SIZE = 0.2


class ZCodePPModel(ZCodePPPreTrainedModel):
    """Encoder and decoder without a head; the decoder reads the encoder's token table."""

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        if config.embedding_size not in (None, config.hidden_size):
            raise ValueError(
                f"embedding_size={config.embedding_size} with hidden_size={config.hidden_size}: the decoder needs "
                "token rows as wide as the model; leave embedding_size unset"
            )
        self.encoder = ZCodePPEncoder(config)
        self.decoder = build_decoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def get_encoder(self, modality: str | None = None) -> ZCodePPEncoder:
        return self.encoder

    def get_decoder(self) -> Decoder:
        return self.decoder

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Int[Tensor, "b t"] | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        decoder_inputs_embeds: Float[Tensor, "b t d"] | None = None,
        all_streams: bool = False,
        source_lengths: Sequence[int] | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> FutureStatesOutput | tuple[Any, ...]:
        """Encode (unless `encoder_outputs` is given) and decode.

        Args:
            decoder_attention_mask: (b, past + t) of real target tokens, or a full (b 1 t j) mask.
            past_key_values: what was decoded before; used whenever given, returned when `use_cache` is on.
            all_streams: compute the predicting streams too, if there are any.
            source_lengths: of the source's rows, see `ZCodePPEncoder`.
            output_attentions: give the weights of each layer too, before dropout, by the plain path.

        Raises:
            ValueError: no target is given.
        """
        output_attentions = self._choice("output_attentions", output_attentions)
        output_hidden_states = self._choice("output_hidden_states", output_hidden_states)
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids,
                attention_mask,
                inputs_embeds,
                source_lengths=source_lengths,
                output_attentions=output_attentions,
                output_hidden_states=output_hidden_states,
                return_dict=True,
            )
        encoded = as_output(encoder_outputs)
        target = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        length = 0 if target is None else target.shape[1]
        layout = None
        weights = AttentionWeights() if output_attentions else None
        if all_streams and self.config.future_tokens:
            past = int(past_key_values.get_seq_length()) if past_key_values is not None else 0
            numbers = range(1, self.config.future_tokens + 1)
            layout = whole_target(past, length, numbers, device=encoded.last_hidden_state.device)
        decoded = self.decode(
            decoder_input_ids,
            encoded.last_hidden_state,
            attention_mask=attention_mask,
            source_padded=is_padded(encoded.last_hidden_state.shape[1], source_lengths),
            decoder_attention_mask=decoder_attention_mask,
            decoder_inputs_embeds=decoder_inputs_embeds,
            past_key_values=past_key_values,
            layout=layout,
            use_cache=self._choice("use_cache", use_cache),
            output_hidden_states=output_hidden_states,
            weights=weights,
        )
        streams = self.config.future_tokens
        output = FutureStatesOutput(
            last_hidden_state=decoded.last_hidden_state[:, :length],
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=in_order(weights.self_attention) if weights else None,
            cross_attentions=in_order(weights.cross_attention) if weights else None,
            decoder_ngram_attentions=by_stream(weights.predicting_self, streams) if weights else None,
            ngram_cross_attentions=by_stream(weights.predicting_cross, streams) if weights else None,
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            encoder_attentions=encoded.attentions,
            future_states=None
            if layout is None
            else decoded.last_hidden_state[:, length:].unflatten(1, (-1, length)),
        )
        return output if self._choice("return_dict", return_dict) else output.to_tuple()

    def decode(
        self,
        decoder_input_ids: Int[Tensor, "b t"] | None,
        source_states: Float[Tensor, "b s d"],
        *,
        attention_mask: Tensor | None,
        source_padded: bool | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_inputs_embeds: Float[Tensor, "b t d"] | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        layout: StreamLayout | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        weights: AttentionWeights | None = None,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Target states from target ids, and behind them the predicting states of the layout; fills `past_key_values`
        when caching, and `weights`.

        Raises:
            ValueError: neither `decoder_input_ids` nor `decoder_inputs_embeds` is given.
        """
        if decoder_inputs_embeds is None:
            if decoder_input_ids is None:
                raise ValueError("the decoder needs decoder_input_ids (or labels, from which they are made)")
            decoder_inputs_embeds = self.get_input_embeddings()(decoder_input_ids)
        if self.decoder.gradient_checkpointing and self.training:
            use_cache = False  # layers run twice and would enter their keys twice
        if use_cache and past_key_values is None:
            past_key_values = new_cache(self.config)
        length, states = decoder_inputs_embeds.shape[1], decoder_inputs_embeds
        if layout is not None:
            assert self.decoder.streams is not None
            predicting = self.decoder.streams(layout.streams - 1)[None].expand(len(states), -1, -1)
            states = torch.cat([states, predicting], dim=1)
        states = states * (TOKEN_SIZE * self.config.hidden_size**0.5)
        seen: list[Tensor] = []
        observe = seen.append if output_hidden_states else None
        states = self.decoder(
            watched(states, length, observe),
            source_states,
            layout=layout,
            source_valid=attention_mask.bool() if attention_mask is not None else None,
            source_padded=source_padded,
            mask=target_mask(decoder_attention_mask),
            cache=past_key_values,
            observe=observe,
            weights=weights,
        )
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=states,
            past_key_values=past_key_values if use_cache else None,
            hidden_states=tuple(seen) if seen else None,
        )


class ZCodePPForConditionalGeneration(TiedHead, ZCodePPPreTrainedModel, GenerationMixin):
    """Summarizes, translates, answers: the language-model head is tied to the token table."""

    _tied_weights_keys = {"lm_head.weight": "model.encoder.embedding.tokens.weight"}  # noqa: RUF012

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.model = ZCodePPModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @classmethod
    def from_deberta(cls, folder: str, **overrides: Any) -> "ZCodePPForConditionalGeneration":
        """A model whose encoder is a DeBERTa-v2/v3 checkpoint and whose decoder is new (fusion layers use the
        encoder's own weights, Z-Code++ section 2.3).

        Args:
            folder: a local DeBERTa folder or a hub name.
            overrides: any `ZCodePPConfig` value, e.g. `decoder_layers=6, chunk_length=256`.
        """
        from precis.models.zcodepp.deberta import load_deberta  # a sibling that builds on this module

        return load_deberta(cls, folder, **overrides)

    @property
    def future_streams(self) -> range:
        """The streams that predict beside the decoder: 1 for the token after the next, and so on."""
        return range(1, self.config.future_tokens + 1)

    def look_ahead(
        self,
        decoder_input_ids: Int[Tensor, "b t"],
        source_states: Float[Tensor, "b s d"],
        *,
        streams: int,
        attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b n t d"]]:
        """Logits of the token after each given one, and the states that guess the `streams` tokens after that, for
        drafting; the head makes logits of them.
        """
        length = decoder_input_ids.shape[1]
        past = int(cache.get_seq_length()) if cache is not None else 0
        layout = None
        if streams:
            layout = ahead(past, length, range(1, streams + 1), device=source_states.device)
        states = self.model.decode(
            decoder_input_ids,
            source_states,
            layout=layout,
            attention_mask=attention_mask,
            past_key_values=cache,
        ).last_hidden_state
        return self.lm_head(states[:, :length]), states[:, length:].unflatten(1, (streams, length))

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Int[Tensor, "b t"] | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        decoder_inputs_embeds: Float[Tensor, "b t d"] | None = None,
        labels: Int[Tensor, "b t"] | None = None,
        all_streams: bool | None = None,
        source_lengths: Sequence[int] | None = None,
        make_logits: bool = True,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> FutureTokensOutput | tuple[Any, ...]:
        """Logits (b t v) and, with `labels` (-100 is ignored), the mean cross-entropy, or with predicting streams the
        future n-gram loss; the other arguments are those of `ZCodePPModel`. `all_streams` is on by default when labels
        are given. With `num_items_in_batch`, which transformers' Trainer gives, the sum is divided by that. Without
        `make_logits` the output has `scores` alone, for a loss that makes logits piece by piece.

        Raises:
            UserError: a Trainer's loss would leave the predicting streams out.
            ValueError: no target is given.
        """
        if labels is None and self.training and self.future_streams:
            refuse_a_loss_elsewhere(num_items_in_batch, all_streams)
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
            use_cache = False
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            all_streams=labels is not None if all_streams is None else all_streams,
            source_lengths=source_lengths,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        if not make_logits:
            streams = output.last_hidden_state[:, None]
            if output.future_states is not None:
                streams = torch.cat([streams, output.future_states], dim=1)
            return FutureTokensOutput(scores=VocabularyScores.of(streams, self.lm_head.weight))
        logits = self.lm_head(output.last_hidden_state)
        future = self.lm_head(output.future_states) if output.future_states is not None else None
        loss = None
        if labels is not None:
            streams = [logits, *(future.unbind(1) if future is not None else ())]
            loss = future_loss(streams, labels, gamma=self.config.attenuation, items=num_items_in_batch)
        result = FutureTokensOutput(
            loss=loss,
            logits=logits,
            past_key_values=output.past_key_values,
            decoder_hidden_states=output.decoder_hidden_states,
            decoder_attentions=output.decoder_attentions,
            cross_attentions=output.cross_attentions,
            decoder_ngram_attentions=output.decoder_ngram_attentions,
            ngram_cross_attentions=output.ngram_cross_attentions,
            encoder_last_hidden_state=output.encoder_last_hidden_state,
            encoder_hidden_states=output.encoder_hidden_states,
            encoder_attentions=output.encoder_attentions,
            future_logits=future,
        )
        return result if self._choice("return_dict", return_dict) else result.to_tuple()
