"""The attention function and the mask function that transformers' models call while a prefix is attached.

Both have to be registered: with an attention function of an unknown name and no mask function, transformers makes no
masks at all, and padding and the causal rule vanish without a word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, sdpa_mask

from precis.errors import UserError
from precis.nn.attention import attend
from precis.nn.normalizers import Normalizer
from precis.nn.padding import padding_mask
from precis.nn.prefix import StackPrefix
from precis.nn.score_bias import DenseBias
from precis.tuning.prefix import Site

IMPLEMENTATION = "precis_prefix"
"""The name under which both functions are registered."""
ARGUMENT = "precis_prefix"
"""The keyword argument by which a stack's prefix travels to its attentions."""
PLACE = "precis_place"
"""The attribute of an attention module that says where it is."""


@final
@dataclass(frozen=True)
class Place:
    """Where an attention module is, and how its layer normalises."""

    site: Site
    layer: int
    normalizer: Normalizer


def register() -> None:
    """Make both functions known to transformers; doing it again changes nothing."""
    AttentionInterface.register(IMPLEMENTATION, attention_function)
    AttentionMaskInterface.register(IMPLEMENTATION, mask_function)


def attention_function(
    module: nn.Module,
    query: Float[Tensor, "b h i e"],
    key: Float[Tensor, "b h j e"],
    value: Float[Tensor, "b h j e"],
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Float[Tensor, "#b h i j"] | None = None,
    precis_prefix: StackPrefix | None = None,
    **_: Any,
) -> tuple[Float[Tensor, "b i h e"], None]:
    """`attend`, with the prefix of this module's place.

    Raises:
        UserError: the model does not hand keyword arguments on to its attention.
    """
    place: Place | None = getattr(module, PLACE, None)
    if place is None or precis_prefix is None:
        raise UserError(
            f"{type(module).__name__} was called without the prefix's arguments; this model cannot carry prefixes"
        )
    layer = precis_prefix.layer(place.layer)
    mask = _boolean(attention_mask)
    mixed = attend(
        query,
        key,
        value,
        bias=DenseBias(position_bias) if position_bias is not None else None,
        mask=mask,
        prefix=layer.cross_attention if place.site is Site.CROSS else layer.self_attention,
        normalize=place.normalizer.bound(mask=mask, training=module.training),
        scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
        dropout=dropout,
    )
    return mixed.transpose(1, 2).contiguous(), None


def _boolean(mask: Tensor | None) -> Bool[Tensor, "b #h #i j"] | None:
    """A mask that a caller made himself may be additive."""
    if mask is None or mask.dtype == torch.bool:
        return mask
    return mask >= 0 if mask.is_floating_point() else mask.bool()


def mask_function(
    *,
    batch_size: int,
    q_length: int,
    kv_length: int,
    mask_function: Callable[..., Any],
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    attention_mask: Bool[Tensor, "b j"] | None = None,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Bool[Tensor, "b 1 #i j"] | None:
    """True where a query may attend; None: everywhere. It says nothing of prefix columns.

    Padding alone takes one row, not one a query.
    """
    padded = attention_mask is not None and not bool(attention_mask.all())
    if mask_function is bidirectional_mask_function:
        if not padded:
            return None
        assert attention_mask is not None
        return padding_mask(attention_mask[:, kv_offset : kv_offset + kv_length])
    step = q_length == 1 and isinstance(q_offset, int) and kv_length == q_offset + 1
    if step and not padded:
        return None  # everything in the cache lies in the past
    options.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    return sdpa_mask(
        batch_size=batch_size,
        q_length=q_length,
        kv_length=kv_length,
        q_offset=q_offset,
        kv_offset=kv_offset,
        mask_function=mask_function,
        attention_mask=attention_mask,
        device=device,
        **options,
    )
