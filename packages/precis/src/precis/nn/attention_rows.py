"""Two exact paths through attention: one fused kernel over all keys, or explicit weights, part by part.

`attend` chooses. The fused path copies keys if a prefix precedes them. The explicit path does not,
which matters when decoding one token at a time, and it supports every normalizer and learnt biases.

torch's fused CUDA kernels load several numbers at once: rows of an additive mask must start at multiples of 16
bytes ("aligned" below). If the first number or a row starts elsewhere, they fail with "misaligned address", for
some lengths only, and the process cannot use the device any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.dropout import dropout as drop
from precis.nn.normalizers import Normalizer
from precis.nn.prefix_columns import PrefixColumns, before

# Up to this number of queries (a step of decoding, a draft) prefix and keys are attended to separately; with more,
# the fused kernel is worth a copy.
_BESIDE_UP_TO = 8
# A row's size is a multiple of this: 16 bytes at 2 bytes per number; for wider dtypes it is more than required.
_ELEMENTS = 8


@final
@dataclass(frozen=True)
class OwnKeys:
    """A key and a value per query, hidden from other queries: the predicting states of ProphetNet's Eqs. 8 and 9."""

    keys: Float[Tensor, "b h i e"]
    values: Float[Tensor, "b h i e"]

    def rows(self, start: int, stop: int) -> "OwnKeys":
        """Return the own keys of the queries `start` to `stop`."""
        return OwnKeys(self.keys[..., start:stop, :], self.values[..., start:stop, :])


@final
@dataclass(frozen=True)
class AttentionRows:
    """A range of an attention's query rows: the arguments of `attend`, and the bias's scores (b h i j), for them."""

    queries: Float[Tensor, "b h i e"]
    keys: Float[Tensor, "b h j e"]
    values: Float[Tensor, "b h j e"]
    own: OwnKeys | None
    prefix: PrefixColumns | None
    scores: Float[Tensor, "#b #h i _"] | None
    mask: Bool[Tensor, "#b #h #i _"] | None
    normalize: Normalizer
    scale: float
    dropout: float

    def mixed(self) -> Float[Tensor, "b h i e"]:
        """Return the mixed values, by the fused kernel if possible, else in parts."""
        return self._fused() if self._can_fuse() else self._in_parts()

    def _can_fuse(self) -> bool:
        """Return whether to use a fused kernel; on the CPU it lacks dropout, and torch's replacement is slow."""
        if self.dropout and self.queries.device.type == "cpu":
            return False
        is_learnt = self.scores is not None and self.scores.requires_grad
        if not self.normalize.is_softmax or self.own is not None or is_learnt:
            return False
        return self.prefix is None or (self.prefix.observe is None and self.queries.shape[-2] > _BESIDE_UP_TO)

    def _fused(self) -> Float[Tensor, "b h i e"]:
        """Compute softmax attention in one kernel."""
        states, columns = (self.queries, self.keys, self.values), 0
        if self.prefix is not None:
            columns = self.prefix.length
            states = before(self.prefix, *states)
        queries, keys, values = _of_one_type(*states)
        mixed = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=_additive(self.scores, self.mask, columns, queries),
            dropout_p=self.dropout,
            scale=self.scale,
        )
        return mixed[..., : self.queries.shape[-1]]

    def _in_parts(self) -> Float[Tensor, "b h i e"]:
        """Concatenate scores (prefix, keys, own), normalize all of them, and mix values part by part."""
        own, prefix, first = self.own, self.prefix, 0
        queries = self.queries * self.scale
        total = queries @ self.keys.transpose(-1, -2)
        if own is not None:
            total = torch.cat([total, (queries * own.keys).sum(-1, keepdim=True)], dim=-1)
        if self.scores is not None:
            total = total + self.scores
        if self.mask is not None:
            total = total.masked_fill(~self.mask, torch.finfo(total.dtype).min)
        if prefix is not None:
            first = prefix.length
            total = torch.cat([prefix.scores(queries), total], dim=-1)
        weights = self.normalize(total)
        if prefix is not None and prefix.observe is not None:
            told = prefix.observe(weights)
            weights = weights if told is None else told
        weights = drop(weights, self.dropout, training=self.dropout > 0.0)
        mixed = weights[..., first : first + self.keys.shape[-2]] @ self.values
        if own is not None:
            mixed = mixed + weights[..., -1:] * own.values
        return mixed + prefix.mix(weights[..., :first]) if prefix is not None else mixed


def _of_one_type(*states: Tensor) -> tuple[Tensor, ...]:
    """Cast as autocast does; autocast itself would lose a mask's alignment and its lowest numbers."""
    kind = states[0].device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return states
    if any(x.dtype == torch.float64 for x in states):
        return states
    return tuple(x.to(torch.get_autocast_dtype(kind)) for x in states)


def _must_align(device: torch.device) -> bool:
    """Return whether the device's kernels need aligned rows; those for the CPU do not."""
    return device.type != "cpu"


def _additive(
    scores: Float[Tensor, "#b #h i j"] | None,
    mask: Bool[Tensor, "#b #h #i #j"] | None,
    columns: int,
    queries: Float[Tensor, "b h i e"],
) -> Float[Tensor, "#b #h #i pj"] | None:
    """Combine bias and mask in the additive tensor of the fused kernels, zero in the first columns: a prefix's."""
    if scores is None and mask is None:
        return None
    if (
        torch.compiler.is_exporting() and mask is not None
    ):  # one operator, instead of filling memory in place as below
        scores = scores if scores is not None else torch.zeros((), dtype=queries.dtype)
        scores = torch.where(mask, scores, torch.finfo(queries.dtype).min)
        return F.pad(scores, (columns, 0)) if columns else scores
    if scores is not None and mask is None and not columns and scores.dtype == queries.dtype:
        return aligned(scores) if _must_align(scores.device) else scores
    *rows, last = torch.broadcast_shapes(*(x.shape for x in (scores, mask) if x is not None))
    whole = empty_aligned((*rows, columns + last), queries)
    whole[..., :columns] = 0.0
    part = whole[..., columns:]
    if scores is None:
        part.zero_()
    else:
        part.copy_(scores)
    if mask is not None:
        part.masked_fill_(~mask, torch.finfo(queries.dtype).min)
    return whole


def empty_aligned(shape: Sequence[int], like: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """Make an uninitialised tensor whose rows are padded in memory to a multiple of 8 numbers."""
    columns = -(-shape[-1] // _ELEMENTS) * _ELEMENTS
    return like.new_empty((*shape[:-1], columns), dtype=dtype)[..., : shape[-1]]


def is_aligned(scores: Float[Tensor, "*n j"]) -> bool:
    """Return whether the data and every row start at a multiple of 8 numbers, and rows are contiguous."""
    *rows, last = scores.stride()
    starts = [scores.storage_offset(), *rows]
    return last == 1 and all(start % _ELEMENTS == 0 for start in starts)


def aligned(scores: Float[Tensor, "*n j"]) -> Float[Tensor, "*n j"]:
    """Return the same numbers with aligned rows, copied only if needed."""
    if torch.compiler.is_exporting():
        return scores  # other runtimes have their own kernels
    # the address of a tensor is not known during compilation
    if not torch.compiler.is_compiling() and is_aligned(scores):
        return scores
    return empty_aligned(scores.shape, scores).copy_(scores)


def summed(parts: Sequence[Float[Tensor, "*n j"]]) -> Float[Tensor, "*n j"]:
    """Add one or two tensors of one shape; the sum is aligned unless it has a gradient: learnt scores are not fused."""
    if _is_learning(parts):
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if len(parts) == 1:
        return aligned(parts[0])
    if torch.compiler.is_compiling():  # the compiler does not support a strided `out`
        return aligned(parts[0] + parts[1])
    return torch.add(*parts, out=empty_aligned(parts[0].shape, parts[0]))


def side_by_side(parts: Sequence[Float[Tensor, "*n _"]]) -> Float[Tensor, "*n j"]:
    """Concatenate along the last axis; the result is aligned unless it has a gradient."""
    if _is_learning(parts):
        return torch.cat(list(parts), dim=-1)
    if torch.compiler.is_compiling():
        return aligned(torch.cat(list(parts), dim=-1))
    shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    return torch.cat(list(parts), dim=-1, out=empty_aligned(shape, parts[0]))


def _is_learning(parts: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(part.requires_grad for part in parts)
