"""Base of the encoder-decoders: passes, outputs, losses; a family adds its parts and its configuration."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from precis.models.family import FamilyConfig
from precis.models.outputs import (
    FutureStatesOutput,
    FutureTokensOutput,
    as_output,
    by_stream,
    chosen,
    future_loss,
    new_cache,
    predicting_states,
    refuse_a_loss_elsewhere,
    shifted_right,
    target_mask,
)
from precis.nn.attention_weights import AttentionWeights, in_order
from precis.nn.decoder import places_in
from precis.nn.padding import is_padded
from precis.nn.streams import StreamLayout, ahead, whole_target
from precis.nn.vocabulary_scores import VocabularyScores

Observer = Callable[[Tensor], None]


class SourceEncoder:
    """An encoder from token ids to hidden states; it also loads from the folder of a whole model."""

    config: FamilyConfig
    _keys_to_ignore_on_load_unexpected = (r"^(model\.)?decoder\.", r"^(lm_head|pooler|classifier)\.")

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Load as transformers does, and ignore the other weights of a whole model."""
        kwargs.setdefault("key_mapping", {r"^model\.encoder\.": "", r"^encoder\.": ""})
        return super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)  # type: ignore[misc]

    @abstractmethod
    def get_input_embeddings(self) -> nn.Module:
        """Return the token table."""

    @abstractmethod
    def encode(
        self,
        rows: Float[Tensor, "b s w"],
        attention_mask: Tensor | None,
        lengths: Sequence[int] | None,
        *,
        observe: Observer | None,
        weights: AttentionWeights | None,
    ) -> Float[Tensor, "b s d"]:
        """Compute last hidden states from token-table rows; `observe` receives the input and each layer's states."""

    def fused(self) -> AbstractContextManager[None]:
        """Use fusion-in-encoder inside the context, if the configuration has a `fusion_limit`."""
        raise NotImplementedError

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Float[Tensor, "b s w"] | None = None,
        source_lengths: Sequence[int] | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """Encode a batch padded on the right, since positions and chunks are counted from the first token.

        Args:
            attention_mask: (b s), non-zero at real tokens; None if nothing is padded.
            inputs_embeds: rows of the token table, in place of `input_ids`.
            source_lengths: real tokens of each row, if known; avoids waiting for a GPU.
            output_attentions: also return the weights (b h s s) of each layer, by the plain path.

        Raises:
            ValueError: if neither or both of `input_ids` and `inputs_embeds` are given, if `source_lengths` do not fit,
                padding on the left shifts chunks, or the input is longer than the position table.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give exactly one of input_ids and inputs_embeds")
        rows = self.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds
        seen: list[Tensor] = []
        watching = chosen(self.config, "output_hidden_states", output_hidden_states)
        weights = AttentionWeights() if chosen(self.config, "output_attentions", output_attentions) else None
        output = BaseModelOutput(
            last_hidden_state=self.encode(
                rows,
                attention_mask,
                source_lengths,
                observe=seen.append if watching else None,
                weights=weights,
            ),
            hidden_states=tuple(seen) or None,
            attentions=in_order(weights.self_attention) if weights is not None else None,
        )
        return output if chosen(self.config, "return_dict", return_dict) else output.to_tuple()


class EncoderDecoder:
    """Encoder and decoder without a head; both read one token table.

    A family provides `encoder`, `decoder` and `run_decoder`.
    """

    config: FamilyConfig
    encoder: Any
    decoder: Any
    training: bool

    def get_input_embeddings(self) -> nn.Module:
        """Return the token table."""
        table: nn.Module = self.encoder.get_input_embeddings()
        return table

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the token table."""
        self.encoder.set_input_embeddings(value)

    @abstractmethod
    def run_decoder(
        self,
        embedded: Float[Tensor, "b t d"],
        source_states: Float[Tensor, "b s d"],
        *,
        layout: StreamLayout | None,
        positions: Int[Tensor, "b t"] | None,
        observe: Observer | None,
        **given: Any,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b p d"]]:
        """Return main states and those of the layout; `given` holds arguments common to every decoder of `nn`."""

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Int[Tensor, "b t"] | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | list[Tensor] | None = None,
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

        `last_hidden_state` (b t d) is that of the main stream; `future_states` (b n t d) of the predicting streams.

        Args:
            decoder_attention_mask: (b, past + t) of real target tokens, or a full (b 1 t j) mask.
            past_key_values: cache of earlier steps; used whenever given, returned when `use_cache` is on.
            decoder_position_ids: position of each decoder input in its text, counted from 0, when the target consists
                of spans of a longer text (ProphetNet section 2.4); consecutive by default. Z-Code++ uses only
                distances and ignores them.
            all_streams: compute every predicting stream; otherwise only those that the next token needs.
            source_lengths, output_attentions: see `SourceEncoder`.

        Raises:
            ValueError: if no target is given, or an input is longer than the position table.
        """
        attentions = chosen(self.config, "output_attentions", output_attentions)
        hidden = chosen(self.config, "output_hidden_states", output_hidden_states)
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids, attention_mask, inputs_embeds, source_lengths=source_lengths,
                output_attentions=attentions, output_hidden_states=hidden, return_dict=True,
            )  # fmt: skip
        encoded = as_output(encoder_outputs)
        caching = chosen(self.config, "use_cache", use_cache)
        if self.decoder.gradient_checkpointing and self.training:
            caching = False  # layers run twice and would add their keys twice
        cache = new_cache(self.config) if caching and past_key_values is None else past_key_values
        target = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        length, layout = 0 if target is None else target.shape[1], None
        streams = self.config.future_streams if all_streams else range(self.config.future_streams.start, 1)
        if streams:
            past = places_in(cache) if cache is not None else 0
            layout = whole_target(past, length, streams, device=encoded.last_hidden_state.device)
        seen: list[Tensor] = []
        weights = AttentionWeights() if attentions else None
        main, predicting = self.decode(
            decoder_input_ids,
            encoded.last_hidden_state,
            layout=layout,
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
            past_key_values=cache if caching else None,
            decoder_hidden_states=tuple(seen) or None,
            decoder_attentions=in_order(weights.self_attention) if weights else None,
            cross_attentions=in_order(weights.cross_attention) if weights else None,
            decoder_ngram_attentions=by_stream(weights.predicting_self, len(streams)) if weights else None,
            ngram_cross_attentions=by_stream(weights.predicting_cross, len(streams)) if weights else None,
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            encoder_attentions=encoded.attentions,
            future_states=predicting.unflatten(1, (len(streams), length)) if streams else None,
        )
        return output if chosen(self.config, "return_dict", return_dict) else output.to_tuple()

    def decode(
        self,
        decoder_input_ids: Int[Tensor, "b t"] | None,
        source_states: Float[Tensor, "b s d"],
        *,
        layout: StreamLayout | None,
        attention_mask: Tensor | None,
        source_padded: bool | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_inputs_embeds: Float[Tensor, "b t d"] | None = None,
        positions: Int[Tensor, "b t"] | None = None,
        cache: EncoderDecoderCache | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b p d"]]:
        """Return main states and those of the layout; add the main keys to `cache`, if given.

        Raises:
            ValueError: if no target is given, or it is longer than the position table.
        """
        if decoder_inputs_embeds is None:
            if decoder_input_ids is None:
                raise ValueError("the decoder needs decoder_input_ids (or labels, from which they are made)")
            decoder_inputs_embeds = self.get_input_embeddings()(decoder_input_ids)
        return self.run_decoder(
            decoder_inputs_embeds,
            source_states,
            layout=layout,
            positions=positions,
            source_valid=attention_mask.bool() if attention_mask is not None else None,
            source_padded=source_padded,
            mask=target_mask(decoder_attention_mask),
            cache=cache,
            observe=observe,
            weights=weights,
        )


class TiedHead:
    """A generating model: `model` (encoder and decoder) and the head `lm_head`, tied to the token table.

    Attributes:
        leaves_logits: `forward` accepts `make_logits=False` and then returns `scores`.
    """

    leaves_logits = True
    config: FamilyConfig
    model: Any
    lm_head: nn.Linear
    training: bool

    @property
    def future_streams(self) -> range:
        """The predicting streams: 0 predicts the next token, 1 the token after it, and so on."""
        return self.config.future_streams

    def prepare_decoder_input_ids_from_labels(self, labels: Int[Tensor, "b t"]) -> Int[Tensor, "b t"]:
        """Shift labels right behind the start token; ignored positions become padding."""
        start = self.config.decoder_start_token_id
        return shifted_right(labels, start=start, padding=self.config.pad_token_id or 0)

    def forward(
        self,
        input_ids: Int[Tensor, "b s"] | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Int[Tensor, "b t"] | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | list[Tensor] | None = None,
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
        """Return logits of the next token and, with `labels` (-100 is ignored), the loss: the mean cross-entropy, or
        with predicting streams the future n-gram loss over all of them (ProphetNet Eq. 11, the configuration's gamma).

        Args:
            decoder_attention_mask, past_key_values, decoder_position_ids, source_lengths, output_attentions: see
                `EncoderDecoder`.
            all_streams: compute every stream and return `future_logits`; by default only when labels are given.
            make_logits: if False, the output has only `scores`, for a loss that computes logits in pieces.
            num_items_in_batch: divisor of the summed loss; if None, the number of real targets in the batch.

        Raises:
            UserError: if a Trainer's loss would ignore streams.
            ValueError: if inputs are missing or too long, or labels are given for a target of spans, whose ends this
                loss does not know.
        """
        predicts = self.future_streams.stop > 1
        if labels is None and self.training and predicts:
            refuse_a_loss_elsewhere(num_items_in_batch, all_streams)
        if labels is not None and decoder_position_ids is not None and predicts:
            raise ValueError(
                "labels with decoder_position_ids: streams would predict beyond the ends of spans; omit labels and use "
                "precis.objectives.FutureTokens().of_spans"
            )
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
            use_cache = False
        every = labels is not None if all_streams is None else all_streams
        states = self.model(
            input_ids=input_ids, attention_mask=attention_mask, decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask, encoder_outputs=encoder_outputs,
            past_key_values=past_key_values, inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds, decoder_position_ids=decoder_position_ids,
            all_streams=every, source_lengths=source_lengths, use_cache=use_cache,
            output_attentions=output_attentions, output_hidden_states=output_hidden_states, return_dict=True,
        )  # fmt: skip
        if not make_logits:
            scored = predicting_states(states, self.config)
            return FutureTokensOutput(scores=VocabularyScores.of(scored, self.lm_head.weight))
        future = None if states.future_states is None else self.lm_head(states.future_states)  # (b n t v)
        by_place = [] if future is None else list(future.unbind(1))
        if self.future_streams.start:  # the decoder itself predicts the next token
            by_place.insert(0, self.lm_head(states.last_hidden_state))
        loss = None
        if labels is not None:
            loss = future_loss(by_place, labels, gamma=self.config.attenuation, items=num_items_in_batch)
        carried = {
            name: v for name, v in states.items() if name not in ("last_hidden_state", "future_states")
        }
        output = FutureTokensOutput(
            loss=loss, logits=by_place[0], future_logits=future if every else None, **carried
        )
        return output if chosen(self.config, "return_dict", return_dict) else output.to_tuple()

    def look_ahead(
        self,
        decoder_input_ids: Int[Tensor, "b t"],
        source_states: Float[Tensor, "b s d"],
        *,
        streams: int,
        attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "b n t d"]]:
        """Return logits of the token after each given one, and states that predict the `streams` tokens after that."""
        length = decoder_input_ids.shape[1]
        past = places_in(cache) if cache is not None else 0
        numbers, layout = range(self.future_streams.start, streams + 1), None
        if numbers:
            layout = ahead(past, length, numbers, device=source_states.device)
        main, states = self.model.decode(
            decoder_input_ids, source_states, layout=layout, attention_mask=attention_mask, cache=cache
        )
        future = states.unflatten(1, (len(numbers), length))
        if self.future_streams.start:
            return self.lm_head(main), future
        return self.lm_head(future[:, 0]), future[:, 1:]
