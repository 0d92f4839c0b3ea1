"""An encoder-decoder as programs for torch.export: the encoder, a first step, a next step.

    encoder      input_ids, attention_mask                              -> last_hidden_state
    first step   input_ids, encoder_hidden_states, encoder_attention_mask -> logits, keys and values of each layer
    next step    input_ids, encoder_attention_mask, those keys and values -> logits, the target's keys and values

The batch, source and target axes are dynamic. The first step computes the source's keys and values once.
Inputs and outputs have the names of Hugging Face's Optimum, which other runtimes read.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from precis.models.unit_scorer import UNIT_FEATURES, UnitScorer

_OPEN = torch.export.Dim.DYNAMIC
_ROWS, _TARGET = 2, 3  # sizes of the example; a size of 1 would make the axis static
_EACH_LAYER = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")


@dataclass(frozen=True)
class Program:
    """A module with example inputs.

    Attributes:
        axes: the dynamic axes of each input.
        inputs, outputs: their names, in order.
    """

    module: nn.Module
    examples: tuple[Any, ...]
    axes: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class EncoderPass(nn.Module):
    """The encoder: ids and mask to hidden states; `fused` uses fusion-in-encoder."""

    def __init__(self, model: PreTrainedModel, *, fused: bool) -> None:
        super().__init__()
        self.encoder: Any = model.get_encoder()
        self._fused = fused

    def forward(
        self, input_ids: Int[Tensor, "b s"], attention_mask: Int[Tensor, "b s"]
    ) -> Float[Tensor, "b s d"]:
        with self.encoder.fused() if self._fused else nullcontext():
            output = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
        states: Tensor = output.last_hidden_state
        return states


class FirstStep(nn.Module):
    """The first decoder step: logits of the first tokens, and the keys and values for later steps."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model: Any = model

    def forward(
        self,
        input_ids: Int[Tensor, "b t"],
        encoder_hidden_states: Float[Tensor, "b s d"],
        encoder_attention_mask: Int[Tensor, "b s"],
    ) -> tuple[Tensor, ...]:
        cache = _new_cache(self.model)
        logits = _step(self.model, input_ids, encoder_hidden_states, encoder_attention_mask, cache)
        source = cache.cross_attention_cache.layers
        kept = zip(cache.self_attention_cache.layers, source, strict=True)
        return (logits, *(x for own, other in kept for x in (own.keys, own.values, other.keys, other.values)))


class NextStep(nn.Module):
    """A later decoder step: logits of further tokens, from the cached keys and values."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model: Any = model

    def forward(
        self, input_ids: Int[Tensor, "b t"], encoder_attention_mask: Int[Tensor, "b s"], past: list[Tensor]
    ) -> tuple[Tensor, ...]:
        cache = _new_cache(self.model)
        for layer in range(len(past) // 4):
            own, source = past[4 * layer : 4 * layer + 2], past[4 * layer + 2 : 4 * layer + 4]
            cache.self_attention_cache.update(own[0], own[1], layer)
            cache.cross_attention_cache.update(source[0], source[1], layer)
            cache.is_updated[layer] = True
        keys = past[2]
        unread = keys.new_zeros(keys.shape[0], keys.shape[2], self.model.config.hidden_size)
        logits = _step(self.model, input_ids, unread, encoder_attention_mask, cache)
        return (logits, *(x for one in cache.self_attention_cache.layers for x in (one.keys, one.values)))


def _new_cache(model: Any) -> EncoderDecoderCache:
    return EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))


def _step(model: Any, ids: Tensor, states: Tensor, mask: Tensor, cache: EncoderDecoderCache) -> Tensor:
    output = model(
        decoder_input_ids=ids,
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        past_key_values=cache,
        use_cache=True,
    )
    logits: Tensor = output.logits
    return logits


def encoder(model: PreTrainedModel, *, length: int, fused: bool = False) -> Program:
    """Return the encoder with an example of `length` tokens, which determines whether it reads in chunks."""
    ids, mask = _source(length)
    return Program(
        EncoderPass(model, fused=fused).eval(),
        (ids, mask),
        ({0: _OPEN, 1: _OPEN}, {0: _OPEN, 1: _OPEN}),
        ("input_ids", "attention_mask"),
        ("last_hidden_state",),
    )


def decoder_steps(model: PreTrainedModel) -> tuple[Program, Program]:
    """Return the first step and the next step."""
    ids, mask = _source(9)
    states = torch.randn(*ids.shape, model.config.hidden_size)
    target = ids[:, :_TARGET].contiguous()  # a program does not store strides
    first = FirstStep(model).eval()
    with torch.no_grad():
        _, *past = first(target, states, mask)
    open_rows = {0: _OPEN, 1: _OPEN}
    names = [f"{layer}.{part}" for layer in range(len(past) // 4) for part in _EACH_LAYER]
    own = [name for name in names if "decoder" in name]
    return (
        Program(
            first,
            (target, states, mask),
            (open_rows, open_rows, open_rows),
            ("input_ids", "encoder_hidden_states", "encoder_attention_mask"),
            ("logits", *(f"present.{name}" for name in names)),
        ),
        Program(
            NextStep(model).eval(),
            (target, mask, past),
            (open_rows, open_rows, [{0: _OPEN, 2: _OPEN} for _ in past]),
            ("input_ids", "encoder_attention_mask", *(f"past_key_values.{name}" for name in names)),
            ("logits", *(f"present.{name}" for name in own)),
        ),
    )


class ScorerPass(nn.Module):
    """The unit scorer: the units of one document to their logits and the log of a summary's words."""

    def __init__(self, scorer: UnitScorer) -> None:
        super().__init__()
        self.scorer = scorer

    def forward(
        self, vectors: Float[Tensor, "b u dd"], facts: Float[Tensor, "b u f"], valid: Bool[Tensor, "b u"]
    ) -> tuple[Tensor, Tensor]:
        logits, words = self.scorer(vectors, facts, valid)
        return logits, words


def unit_scorer(scorer: UnitScorer) -> Program:
    """Return the head that scores units."""
    open_rows = {0: _OPEN, 1: _OPEN}
    examples = (
        torch.randn(_ROWS, 5, 2 * scorer.shape.states),
        torch.randn(_ROWS, 5, UNIT_FEATURES),
        torch.ones(_ROWS, 5, dtype=torch.bool),
    )
    names = ("vectors", "facts", "valid")
    return Program(
        ScorerPass(scorer).eval(), examples, (open_rows, open_rows, open_rows), names, ("logits", "words")
    )


def _source(length: int) -> tuple[Tensor, Tensor]:
    ids = torch.arange(_ROWS * length).view(_ROWS, length) % 7 + 1
    return ids, torch.ones_like(ids)
