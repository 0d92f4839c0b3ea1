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
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions

from precis.models.encoder_decoder import (
    FutureStatesOutput,
    FutureTokensOutput,
    TiedHead,
    as_output,
    future_loss,
    new_cache,
    refuse_attention_weights,
    target_mask,
)
from precis.models.zcodepp_config import ZCodePPConfig, build_decoder, build_encoder
from precis.nn.attention import FanInLinear
from precis.nn.decoder import Decoder
from precis.nn.embeddings import FanInEmbedding, TokenEmbedding
from precis.nn.padding import is_padded
from precis.nn.streams import StreamLayout, ahead, whole_target
from precis.nn.vocabulary_scores import VocabularyScores

# Size of a token's entries at the decoder's input, beside sublayer outputs of size one (docs/adr/0002).
TOKEN_SIZE = 0.2


class ZCodePPPreTrainedModel(PreTrainedModel):
    """Saving, loading and initialisation that all Z-Code++ models share."""

    config_class = ZCodePPConfig
    config: ZCodePPConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # whole stacks: what their layers share (position table, source states) stays on the stack's device
    _no_split_modules = ["Encoder", "Decoder"]  # noqa: RUF012

    def _choice(self, name: str, given: bool | None) -> bool:
        """An option of a call, or the configuration's when the call does not say."""
        return bool(getattr(self.config, name)) if given is None else given

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """DeBERTa's N(0, 0.02) for the encoder's layers; the token table and T5's decoder bring their own spreads."""
        if isinstance(module, FanInLinear):
            init.normal_(module.weight, std=module.std)
        elif isinstance(module, FanInEmbedding):
            init.normal_(module.weight, std=module.std)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        else:
            super()._init_weights(module)


class ZCodePPEncoder(ZCodePPPreTrainedModel):
    """Token ids to states; what `generate` calls once per document."""

    def __init__(self, config: ZCodePPConfig) -> None:
        super().__init__(config)
        self.embedding = TokenEmbedding(
            config.vocab_size,
            config.hidden_size,
            table_width=config.embedding_size or config.hidden_size,
            padding_id=config.pad_token_id or 0,
            norm_eps=config.layer_norm_eps,
            dropout=config.dropout,
        )
        self.stack = build_encoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding.tokens = value

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s d"] | None = None,
        source_lengths: Sequence[int] | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """Encode a padded batch.

        Args:
            attention_mask: (b s), non-zero at real tokens; None when nothing is padded.
                With fusion-in-encoder pad on the right: chunks are cut by position.
            inputs_embeds: rows looked up by the caller, in place of `input_ids`.
            source_lengths: real tokens of each row, padding on the right, where they are known: no GPU is waited for.

        Raises:
            ValueError: neither or both of `input_ids` and `inputs_embeds` are given, attention weights are asked for,
                or `source_lengths` do not fit.
        """
        refuse_attention_weights(output_attentions)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds, not both and not neither")
        rows = self.embedding.tokens(input_ids) if inputs_embeds is None else inputs_embeds
        valid = (
            attention_mask.bool()
            if attention_mask is not None
            else torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
        )
        embedded = self.embedding.finish(rows, valid)
        seen = [embedded] if self._choice("output_hidden_states", output_hidden_states) else None
        states = self.stack(
            embedded,
            valid,
            padded=False if attention_mask is None else None,
            lengths=source_lengths,
            observe=seen.append if seen is not None else None,
        )
        output = BaseModelOutput(last_hidden_state=states, hidden_states=tuple(seen) if seen else None)
        return output if self._choice("return_dict", return_dict) else output.to_tuple()


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

        Raises:
            ValueError: no target is given, or attention weights are asked for.
        """
        refuse_attention_weights(output_attentions)
        output_hidden_states = self._choice("output_hidden_states", output_hidden_states)
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids,
                attention_mask,
                inputs_embeds,
                source_lengths=source_lengths,
                output_hidden_states=output_hidden_states,
                return_dict=True,
            )
        encoded = as_output(encoder_outputs)
        target = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        length = 0 if target is None else target.shape[1]
        layout = None
        if all_streams and self.config.future_tokens:
            past = int(past_key_values.get_seq_length()) if past_key_values is not None else 0
            streams = range(1, self.config.future_tokens + 1)
            layout = whole_target(past, length, streams, device=encoded.last_hidden_state.device)
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
        )
        output = FutureStatesOutput(
            last_hidden_state=decoded.last_hidden_state[:, :length],
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
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
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Target states from target ids, and behind them the predicting states of the layout; fills `past_key_values`
        when caching.

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
        seen = [states[:, :length]] if output_hidden_states else None
        states = self.decoder(
            states,
            source_states,
            layout=layout,
            source_valid=attention_mask.bool() if attention_mask is not None else None,
            source_padded=source_padded,
            mask=target_mask(decoder_attention_mask),
            cache=past_key_values,
            observe=None if seen is None else lambda states: seen.append(states[:, :length]),
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
        from precis.models.pretrained_weights import load_deberta  # a sibling that builds on this module

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
        """
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
            encoder_last_hidden_state=output.encoder_last_hidden_state,
            encoder_hidden_states=output.encoder_hidden_states,
            future_logits=future,
        )
        return result if self._choice("return_dict", return_dict) else result.to_tuple()
