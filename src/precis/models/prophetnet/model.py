"""ProphetNet: a Transformer whose decoder predicts the next n tokens at each place (Qi et al., 2020).

The main stream reads the target, n predicting streams guess ahead of it (`precis.nn.streams`). Logits come from the
predicting streams alone, as in the released code: to write text the main stream and stream 0 are enough, and the
others are not computed. For training all n are (section 2.2), and `generation.lean.drafting` lets them draft.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

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
from precis.models.prophetnet.config import (
    ProphetNetConfig,
    build_stream_decoder,
)
from precis.models.prophetnet.encoder import ProphetNetEncoder, ProphetNetPreTrainedModel
from precis.nn.attention_weights import AttentionWeights, in_order
from precis.nn.padding import is_padded
from precis.nn.stream_decoder import Observer, StreamDecoder
from precis.nn.streams import StreamLayout, ahead, whole_target
from precis.nn.vocabulary_scores import VocabularyScores


class ProphetNetModel(ProphetNetPreTrainedModel):
    """Encoder and decoder without a head; both read one token table."""

    def __init__(self, config: ProphetNetConfig) -> None:
        super().__init__(config)
        self.encoder = ProphetNetEncoder(config)
        self.decoder = build_stream_decoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def get_encoder(self, modality: str | None = None) -> ProphetNetEncoder:
        return self.encoder

    def get_decoder(self) -> StreamDecoder:
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
        decoder_position_ids: Int[Tensor, "b t"] | None = None,
        all_streams: bool = True,
        source_lengths: Sequence[int] | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> FutureStatesOutput | tuple[Any, ...]:
        """Encode (unless `encoder_outputs` is given) and decode.

        `last_hidden_state` (b t d) is the main stream's; `future_states` (b n t d) are the predicting streams', stream
        0 first, from which the head makes logits.

        Args:
            decoder_attention_mask: (b, past + t) of real target tokens, or a full (b 1 t j) mask.
            past_key_values: what was decoded before; used whenever given, returned when `use_cache` is on.
            decoder_position_ids: where in its text each decoder input stands, counted from 0, when the target is made
                of spans of a longer text (section 2.4); else they stand side by side.
            all_streams: False: of the predicting streams compute stream 0 alone, which predicts the next token.
            source_lengths: of the source's rows, see `ProphetNetEncoder`.
            output_attentions: give the weights of each layer too, before dropout, by the plain path.

        Raises:
            ValueError: no target is given, or inputs are too long.
        """
        output_attentions = self._choice("output_attentions", output_attentions)
        hidden = self._choice("output_hidden_states", output_hidden_states)
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids,
                attention_mask,
                inputs_embeds,
                source_lengths=source_lengths,
                output_attentions=output_attentions,
                output_hidden_states=hidden,
                return_dict=True,
            )
        encoded = as_output(encoder_outputs)
        cache = self._cache(past_key_values, use_cache)
        given = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        length = 0 if given is None else given.shape[1]
        streams = range(self.config.ngram if all_streams else 1)
        past = int(cache.get_seq_length()) if cache is not None else 0
        seen: list[Tensor] = []
        weights = AttentionWeights() if output_attentions else None
        main, predicting = self.decode(
            decoder_input_ids,
            encoded.last_hidden_state,
            layout=whole_target(past, length, streams, device=encoded.last_hidden_state.device),
            attention_mask=attention_mask,
            source_padded=is_padded(encoded.last_hidden_state.shape[1], source_lengths),
            decoder_attention_mask=decoder_attention_mask,
            decoder_inputs_embeds=decoder_inputs_embeds,
            positions=decoder_position_ids,
            cache=cache,
            observe=seen.append if hidden else None,
            weights=weights,
        )
        output = FutureStatesOutput(
            last_hidden_state=main,
            past_key_values=cache,
            decoder_hidden_states=tuple(seen) or None,
            decoder_attentions=in_order(weights.self_attention) if weights else None,
            cross_attentions=in_order(weights.cross_attention) if weights else None,
            decoder_ngram_attentions=by_stream(weights.predicting_self, len(streams)) if weights else None,
            ngram_cross_attentions=by_stream(weights.predicting_cross, len(streams)) if weights else None,
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            encoder_attentions=encoded.attentions,
            future_states=predicting.unflatten(1, (len(streams), length)),
        )
        return output if self._choice("return_dict", return_dict) else output.to_tuple()

    def _cache(self, given: EncoderDecoderCache | None, use_cache: bool | None) -> EncoderDecoderCache | None:
        if self.decoder.gradient_checkpointing and self.training:
            return given  # layers run twice and would enter their keys twice
        if given is None and self._choice("use_cache", use_cache):
            return new_cache(self.config)
        return given

    def decode(
        self,
        decoder_input_ids: Int[Tensor, "b t"] | None,
        source_states: Float[Tensor, "b s d"],
        *,
        layout: StreamLayout,
        attention_mask: Tensor | None,
        source_padded: bool | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_inputs_embeds: Float[Tensor, "b t d"] | None = None,
        positions: Int[Tensor, "b t"] | None = None,
        cache: EncoderDecoderCache | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b p d"]]:
        """Main states and those of the layout; main keys enter the cache, if there is one.

        Raises:
            ValueError: no target is given, or it is longer than the table of positions.
        """
        if decoder_inputs_embeds is None:
            if decoder_input_ids is None:
                raise ValueError("the decoder needs decoder_input_ids (or labels, from which they are made)")
            decoder_inputs_embeds = self.get_input_embeddings()(decoder_input_ids)
        return self.decoder(
            decoder_inputs_embeds,
            source_states,
            layout=layout,
            source_valid=attention_mask.bool() if attention_mask is not None else None,
            source_padded=source_padded,
            positions=positions,
            mask=target_mask(decoder_attention_mask),
            cache=cache,
            observe=observe,
            weights=weights,
        )


class ProphetNetForConditionalGeneration(TiedHead, ProphetNetPreTrainedModel, GenerationMixin):
    """Summarizes, asks questions: the language-model head is tied to the token table."""

    _tied_weights_keys = {"lm_head.weight": "model.encoder.tokens.weight"}  # noqa: RUF012

    def __init__(self, config: ProphetNetConfig) -> None:
        super().__init__(config)
        self.model = ProphetNetModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As of transformers; a folder or hub name of transformers' own ProphetNet or XLM-ProphetNet is converted.

        Raises:
            UserError: transformers' kind, and no safetensors, weights of another model, or a `config` of another shape.
        """
        from precis.models.prophetnet.weights import (  # a sibling that builds on this module
            HUB_OPTIONS,
            TRANSFORMERS_TYPES,
            load_transformers,
            read_settings,
        )

        place = pretrained_model_name_or_path
        if place is not None:
            hub = {name: value for name, value in kwargs.items() if name in HUB_OPTIONS}
            settings = read_settings(place, **hub)
            if settings is not None and settings.get("model_type") in TRANSFORMERS_TYPES:
                return load_transformers(cls, place, **kwargs)
        return super().from_pretrained(place, *args, **kwargs)

    @property
    def future_streams(self) -> range:
        """The streams that training predicts with, the next token's (0) first."""
        return range(self.config.ngram)

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
        decoder_position_ids: Int[Tensor, "b t"] | None = None,
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
        """Logits, and with `labels` (-100 is ignored) the future n-gram loss (Eq. 11 with the configuration's gamma).

        The loss is that of all streams, `output.future_logits`. `output.logits` are stream 0's alone: with more than
        one stream their cross-entropy is a part of the loss, not the loss.

        Args:
            decoder_attention_mask, past_key_values, decoder_position_ids, source_lengths, output_attentions: see
                `ProphetNetModel`.
            all_streams: compute every stream and return `future_logits`; by default only when labels are given.
            make_logits: False: the output has `scores` alone, for a loss that makes logits piece by piece.
            num_items_in_batch: what to divide the summed loss by; None: the real targets of the batch.

        Raises:
            UserError: a Trainer's loss would leave streams out.
            ValueError: inputs are missing or too long, or labels are given for a target of spans, whose ends the loss
                of this model does not know.
        """
        if labels is None and self.training and self.future_streams.stop > 1:
            refuse_a_loss_elsewhere(num_items_in_batch, all_streams)
        if labels is not None and decoder_position_ids is not None and self.future_streams.stop > 1:
            raise ValueError(
                "labels with decoder_position_ids: streams would look over the ends of spans; leave labels out and use "
                "precis.objectives.FutureTokens().of_spans"
            )
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
            use_cache = False
        every = labels is not None if all_streams is None else all_streams
        output = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            decoder_position_ids=decoder_position_ids,
            all_streams=every,
            source_lengths=source_lengths,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        if not make_logits:
            return FutureTokensOutput(scores=VocabularyScores.of(output.future_states, self.lm_head.weight))
        future = self.lm_head(output.future_states)  # (b n t v)
        logits, *others = future.unbind(1)
        loss = None
        if labels is not None:
            gamma = self.config.attenuation
            loss = future_loss([logits, *others], labels, gamma=gamma, items=num_items_in_batch)
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
            future_logits=future if every else None,
        )
        return result if self._choice("return_dict", return_dict) else result.to_tuple()

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
        layout = ahead(past, length, range(streams + 1), device=source_states.device)
        _, states = self.model.decode(
            decoder_input_ids, source_states, layout=layout, attention_mask=attention_mask, cache=cache
        )
        by_stream = states.unflatten(1, (streams + 1, length))
        return self.lm_head(by_stream[:, 0]), by_stream[:, 1:]
