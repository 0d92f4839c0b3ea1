"""The two ways through attention: one fused kernel over all keys, or weights in the open, part by part.

Both are exact; `attend` chooses. The fused way copies keys where a prefix stands before them; the open way does not,
which is what counts when one token at a time is decoded, and it serves every normalizer and learnt biases.
"""

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.alignment import aligned, empty_aligned
from precis.nn.dropout import dropout as drop
from precis.nn.normalizers import Normalizer, Softmax
from precis.nn.prefix import PrefixColumns, before

# Up to this many queries (a step of decoding, a draft) a prefix is attended to beside the keys; with more the fused
# kernel is worth a copy.
_BESIDE_UP_TO = 8


@final
@dataclass(frozen=True)
class OwnKeys:
    """A key and a value for each query that it alone sees: the predicting states of ProphetNet's Eqs. 8 and 9."""

    keys: Float[Tensor, "b h i e"]
    values: Float[Tensor, "b h i e"]

    def rows(self, start: int, stop: int) -> "OwnKeys":
        """Those of some of the queries."""
        return OwnKeys(self.keys[..., start:stop, :], self.values[..., start:stop, :])


def can_fuse(
    queries: Tensor,
    own: OwnKeys | None,
    prefix: PrefixColumns | None,
    scores: Float[Tensor, "#b #h i j"] | None,
    normalize: Normalizer,
    dropout: float,
) -> bool:
    """Whether a fused kernel can, and should, do it; on the CPU it has no dropout, and torch's detour is slow."""
    if dropout and queries.device.type == "cpu":
        return False
    if not isinstance(normalize, Softmax) or own is not None or (scores is not None and scores.requires_grad):
        return False
    return prefix is None or (prefix.observe is None and queries.shape[-2] > _BESIDE_UP_TO)


def fused(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    prefix: PrefixColumns | None,
    scores: Float[Tensor, "#b #h i j"] | None,
    mask: Bool[Tensor, "#b #h #i j"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h i e"]:
    """Softmax attention in one kernel; arguments are those of `attend`, `scores` its bias."""
    width = queries.shape[-1]
    columns = 0
    if prefix is not None:
        columns = prefix.length
        queries, keys, values = before(prefix, queries, keys, values)
    queries, keys, values = _of_one_type(queries, keys, values)
    additive = _additive(scores, mask, columns, queries)
    mixed = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=additive, dropout_p=dropout, scale=scale
    )
    return mixed[..., :width]


def in_parts(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    own: OwnKeys | None,
    prefix: PrefixColumns | None,
    scores: Float[Tensor, "#b #h i _"] | None,
    mask: Bool[Tensor, "#b #h #i _"] | None,
    normalize: Normalizer,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h i e"]:
    """Scores side by side (prefix, keys, own), weights over all of them, values part by part."""
    queries = queries * scale
    total = queries @ keys.transpose(-1, -2)
    if own is not None:
        total = torch.cat([total, (queries * own.keys).sum(-1, keepdim=True)], dim=-1)
    total = masked(total, scores, mask)
    first = 0
    if prefix is not None:
        first = prefix.length
        total = torch.cat([prefix.scores(queries), total], dim=-1)
    weights = normalize(total)
    if prefix is not None and prefix.observe is not None:
        told = prefix.observe(weights)
        weights = weights if told is None else told
    weights = drop(weights, dropout, training=dropout > 0.0)
    mixed = weights[..., first : first + keys.shape[-2]] @ values
    if own is not None:
        mixed = mixed + weights[..., -1:] * own.values
    return mixed + prefix.mix(weights[..., :first]) if prefix is not None else mixed


def masked(
    total: Float[Tensor, "b h i j"],
    scores: Float[Tensor, "#b #h #i j"] | None,
    mask: Bool[Tensor, "#b #h #i j"] | None,
) -> Float[Tensor, "b h i j"]:
    """Dot products with the bias added, the dtype's minimum where a query may not attend."""
    if scores is not None:
        total = total + scores
    return total if mask is None else total.masked_fill(~mask, torch.finfo(total.dtype).min)


def _of_one_type(*states: Tensor) -> tuple[Tensor, ...]:
    """Cast as autocast would do it: a mask that it cast itself would lose its alignment, and its lowest numbers."""
    kind = states[0].device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return states
    if any(x.dtype == torch.float64 for x in states):
        return states
    return tuple(x.to(torch.get_autocast_dtype(kind)) for x in states)


def _must_align(device: torch.device) -> bool:
    """Kernels for the CPU read numbers wherever they lie."""
    return device.type != "cpu"


def _additive(
    scores: Float[Tensor, "#b #h i j"] | None,
    mask: Bool[Tensor, "#b #h #i j"] | None,
    columns: int,
    queries: Float[Tensor, "b h i e"],
) -> Float[Tensor, "#b #h #i p+j"] | None:
    """Bias and mask as the one additive tensor that the fused kernels take, zero in the first columns: a prefix's."""
    if scores is None and mask is None:
        return None
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
