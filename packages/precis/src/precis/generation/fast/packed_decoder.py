"""The model interface of fast decoding: packed matrices, and a read of some tokens over given caches.

Each supported model has one file that implements its decoder's read (`packed_zcodepp.py`, `packed_prophetnet.py`). A
decoding step reads one token of each beam; drafting reads several tokens of one document, and the streams predict ahead
from each. Caches grow (`Steps`) or have a fixed shape (`static_shapes.py`); a `PackedDecoder` works with both. Search,
blocking and stopping are independent of the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from transformers import PreTrainedModel

from precis.generation.fast.compiled_step import CompiledStep
from precis.generation.fast.key_value_cache import Keys, Source, SourceCache, Target, TargetCache
from precis.generation.fast.packed_linear import Linear, Weights, is_changed, pack, pack_keys, states_dtype
from precis.nn.attention import MultiHeadAttention, split_heads
from precis.nn.normalizers import Softmax

Pack = Callable[..., Linear]
Apply = Callable[[Tensor], Tensor]


class PackedDecoder(ABC):
    """A decoder and its head, with copies of the model's matrices in a layout for few rows.

    Hidden states have rows (s*b*m): by state, then by document, then by token.

    Args:
        rows: typical number of rows in a step (documents times beams).

    Attributes:
        known: module types that the model's decoder may contain.
        dtype: dtype of hidden states, keys and values.
        source_attentions: each layer's attention to the source.
        layers: the layers for operators; with a compiled step, which has its own copies, packed at first use.
        tables: modules of the model that a step reads from; they are not copied.
    """

    known: ClassVar[tuple[type[nn.Module], ...]]
    source_attentions: Sequence[MultiHeadAttention]
    layers: Any
    tables: Sequence[nn.Module]

    def __init__(self, model: Any, *, rows: int, weights: Weights) -> None:
        self.dtype: torch.dtype = states_dtype(weights, model.lm_head.weight.dtype)
        self.embedding = model.get_input_embeddings()
        self._model, self._rows, self._weights = model, rows, weights
        self._step = CompiledStep.of(model, weights)

    def _pack_now(self) -> None:
        """Pack what operators need, unless a step is compiled: a graph of a step must not record that."""
        if self._step is None:
            _ = self.head, self.layers

    @cached_property
    def head(self) -> Linear:
        """The product with the vocabulary's matrix."""
        return pack(self._model.lm_head.weight, None, rows=self._rows, weights=self._weights)

    @cached_property
    def _source_products(self) -> list[Linear]:
        """The product of the source with the matrices of keys and values, for each layer."""
        return [pack_keys(each.key, each.value, self._weights) for each in self.source_attentions]

    def source_keys(self, source: Float[Tensor, "b s d"]) -> Keys:
        """Compute the keys and values of the documents for each layer."""
        heads = self.source_attentions[0].heads
        both = [product(source).to(self.dtype).chunk(2, dim=-1) for product in self._source_products]
        return [(split_heads(k, heads).contiguous(), split_heads(v, heads).contiguous()) for k, v in both]

    @abstractmethod
    def check(self, steps: int) -> None:
        """Raise ValueError if the decoder cannot read `steps` tokens."""

    @abstractmethod
    def by_distance(self, furthest: int) -> Shaped[Tensor, "*n r"]:
        """Return the attention input for the distances `furthest` to 0; see `Target.entries`."""

    @abstractmethod
    def _start(self, tokens: Int[Tensor, "b m"], target: Target, drafts: int) -> Float[Tensor, "sbm d"]:
        """Compute the states that `CompiledStep` starts from."""

    @abstractmethod
    def _states(
        self, tokens: Int[Tensor, "b m"], source: Source, target: Target, *, drafts: int
    ) -> Float[Tensor, "sbm d"]:
        """Compute last hidden states: those that predict the next token, then those of each drafting stream."""

    def read(
        self,
        tokens: Int[Tensor, "b m"],
        source: Source,
        target: Target,
        *,
        parents: Int[Tensor, "b k"] | None = None,
        drafts: int = 0,
    ) -> tuple[Float[Tensor, "b m v"], Float[Tensor, "n bm d"]]:
        """Read tokens of each document: one of each beam, or several of a document without beams.

        Args:
            parents: the beam of the last step that each beam continues; if None, each continues itself.
            drafts: number of streams that predict ahead.

        Returns:
            Logits of the token after each of them, in fp32 and in memory that the caller owns, and the hidden states
            that predict 1 to `drafts` tokens farther.
        """
        target.advance(tokens.shape[1], parents)
        step = None if drafts else self._step
        if step is not None and (logits := step(tokens, source, target, self._start)) is not None:
            return logits, logits.new_empty(0, tokens.numel(), 0)
        states = self._states(tokens, source, target, drafts=drafts).unflatten(0, (drafts + 1, -1))
        logits = self.head(states[0]).float().unflatten(0, (-1, tokens.shape[1]))
        return logits, states[1:]


@final
class Steps:
    """The decoding state of a batch: b documents with k beams each, in caches that grow."""

    def __init__(
        self,
        packed: PackedDecoder,
        source: Float[Tensor, "b s d"],
        valid: Bool[Tensor, "b s"] | None,
        *,
        beams: int,
        steps: int,
        drafts: int = 0,
    ) -> None:
        """Compute keys and values of the source, once.

        Args:
            source: the encoder's output.
            valid: True at real tokens of the source; if None, nothing is padded.
            steps: maximum number of tokens to read.
            drafts: maximum number of streams that predict ahead.

        Raises:
            ValueError: if the decoder has positions for fewer steps.
        """
        packed.check(steps)
        keys = packed.source_keys(source)
        self._packed, self._source = packed, SourceCache(keys, valid)
        self._target = TargetCache(keys, packed.by_distance(steps + drafts), beams=beams, steps=steps)

    def __call__(
        self, tokens: Int[Tensor, "b k"], parents: Int[Tensor, "b k"] | None
    ) -> Float[Tensor, "b k v"]:
        """Read one more token of each beam; see `PackedDecoder.read`."""
        return self._packed.read(tokens, self._source, self._target, parents=parents)[0]

    def look_ahead(
        self, tokens: Int[Tensor, "b m"], drafts: int
    ) -> tuple[Float[Tensor, "b m v"], Float[Tensor, "n bm d"]]:
        """Read several tokens and predict ahead from each; see `PackedDecoder.read`."""
        return self._packed.read(tokens, self._source, self._target, drafts=drafts)

    def guess(self, ahead: Float[Tensor, "n d"]) -> Float[Tensor, "n v"]:
        """Return fp32 logits of hidden states that predict ahead."""
        return self._packed.head(ahead).float()

    def forget(self, count: int) -> None:
        """Remove the last `count` tokens."""
        self._target.length -= count

    def keep(self, documents: Int[Tensor, " b"]) -> None:
        """Keep only these documents (rows of the current batch, ascending)."""
        self._source.keep(documents)
        self._target.keep(documents)


def heads_of(
    states: Float[Tensor, "sbm he"], *, documents: int, tokens: int, heads: int
) -> Float[Tensor, "b h sm e"]:
    """Split hidden states by document and head."""
    parts = states.view(-1, documents, tokens, heads, states.shape[-1] // heads)  # (s b m h e)
    return parts.permute(1, 3, 0, 2, 4).flatten(2, 3)


def rows_of(mixed: Float[Tensor, "b h sm e"], *, tokens: int) -> Float[Tensor, "sbm he"]:
    """Undo `heads_of`."""
    parts = mixed.unflatten(2, (-1, tokens)).permute(2, 0, 3, 1, 4)  # (s b m h e)
    return parts.reshape(-1, mixed.shape[1] * mixed.shape[3])


def why_not_as_known(model: PreTrainedModel, known: Sequence[type[nn.Module]]) -> str | None:
    """Return why packed matrices would compute something else than the model's modules; None if they would not.

    Args:
        model: a model with `model.encoder`, `model.decoder` and `lm_head`.
        known: module types that its decoder may contain.
    """
    if model.training:
        return "the model is in training mode"
    body, head, decoder = model.model, model.lm_head, model.get_decoder()
    strange = {type(m).__name__ for m in decoder.modules() if type(m) not in known}
    if strange:
        return f"its decoder contains {', '.join(sorted(strange))}"
    if _children(model) != {"model", "lm_head"} or _children(body) != {"encoder", "decoder"}:
        return "the model has additional modules"
    if type(head) is not nn.Linear or head.bias is not None:
        return "its head is not a plain matrix"
    if any(is_changed(module) for module in (model, body, head, *decoder.modules())):
        return "its modules have hooks or a replaced forward"
    attentions = [m for m in decoder.modules() if isinstance(m, MultiHeadAttention)]
    if not all(isinstance(m.normalize, Softmax) for m in attentions):
        return "its attention is not softmax"
    tensors = [head.weight, *decoder.parameters()]
    if len({(tensor.device, tensor.dtype) for tensor in tensors}) != 1:
        return "its weights have several dtypes or devices"
    return None if all(type(t) is nn.Parameter for t in tensors) else "its weights are not plain tensors"


def _children(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}
