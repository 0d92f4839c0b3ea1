"""The base model that a prefix attaches to: one of ours, or any encoder-decoder with transformers' attention interface.

Both have hooks at the same two places, the encoder's and the decoder's stack. A forward pre-hook adds one keyword
argument: the prefix for that call. Our stacks pass it to their layers. Models of transformers pass unknown keyword
arguments to the attention function, which is ours while a prefix is attached. No state is kept between hook and
attention, so recomputed layers (gradient checkpointing) see the same prefix as in the first pass.

transformers looks up an attention function and a mask function by one name. Register both: without a mask function of
that name transformers makes no masks, and silently ignores padding and the causal rule.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import bidirectional_mask_function, sdpa_mask

from precis.nn.attention import attend
from precis.nn.normalizers import Normalizer
from precis.nn.padding import padding_mask
from precis.nn.prefix_columns import StackPrefix, TakesPrefix
from precis.nn.score_bias import DenseBias
from precis.tuning.prefix import Site, SiteShape
from precis.tuning.stack_prefixes import Prefixes
from precis_text.errors import UserError

_NAME = "precis_prefix"  # both functions, and the argument that carries the prefix from stack to attention
_PLACE = "precis_place"  # the attribute of an attention module that holds its place

Arguments = Mapping[str, Any]


@final
@dataclass(frozen=True)
class Attention:
    """One attention of a base model, with the linear maps that compute its keys and values."""

    module: nn.Module
    key: nn.Linear
    value: nn.Linear
    heads: int


Attentions = Mapping[Site, tuple[Attention, ...]]


class BaseModel(ABC):
    """An encoder-decoder that can take prefixes; `attentions` are those of each site, from the lowest layer."""

    argument: ClassVar[str]

    def __init__(
        self, model: PreTrainedModel, encoder: nn.Module, decoder: nn.Module, attentions: Attentions
    ) -> None:
        self.model = model
        self.attentions = attentions
        self._encoder, self._decoder = encoder, decoder
        self._undo = ExitStack()

    @property
    def shapes(self) -> dict[Site, SiteShape]:
        """Layers, heads and head width of each site."""
        return {
            site: SiteShape(len(found), found[0].heads, found[0].key.out_features // found[0].heads)
            for site, found in self.attentions.items()
        }

    @property
    def width(self) -> int:
        """Width of the hidden states that keys are computed from."""
        return self.attentions[Site.ENCODER][0].key.in_features

    def install(self, prefixes: Prefixes) -> None:
        """Add hooks to the stacks, and set the normaliser of every attention from its layer's plan."""
        self._prepare()
        for site, attentions in self.attentions.items():
            for layer, (attention, choice) in enumerate(zip(attentions, prefixes.plan(site), strict=True)):
                self._place(attention.module, _Place(site, layer, choice.normalizer))
        self._hook(self._encoder, lambda given: prefixes.encoder(self._valid(given)))
        self._hook(self._decoder, lambda given: prefixes.decoder(self._positions(given)))

    def remove(self) -> None:
        """Undo `install` exactly."""
        self._undo.close()

    def _hook(self, stack: nn.Module, make: Callable[[Arguments], StackPrefix]) -> None:
        signature = inspect.signature(stack.forward)

        def add(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            given = signature.bind_partial(*args, **kwargs).arguments
            return args, {**kwargs, self.argument: make(given)}

        self._undo.callback(stack.register_forward_pre_hook(add, with_kwargs=True).remove)

    @abstractmethod
    def _prepare(self) -> None:
        """Change settings of the whole model."""

    @abstractmethod
    def _place(self, module: nn.Module, place: _Place) -> None:
        """Set the normaliser of an attention."""

    @abstractmethod
    def _valid(self, given: Arguments) -> Tensor:
        """Return a mask of real tokens (b s), from the arguments of the encoder's stack."""

    @abstractmethod
    def _positions(self, given: Arguments) -> Tensor:
        """Return the target positions (1 t), from the arguments of the decoder's stack; a prefix shifts none."""


@final
class OwnModel(BaseModel):
    """A model whose stacks take a prefix themselves (`precis.nn.prefix_columns.TakesPrefix`)."""

    argument = "prefix"

    def _prepare(self) -> None:
        """Change nothing: the stacks take prefixes themselves."""

    def _place(self, module: nn.Module, place: _Place) -> None:
        self._undo.callback(setattr, module, "normalize", module.normalize)
        module.normalize = place.normalizer  # type: ignore[assignment]

    def _valid(self, given: Arguments) -> Tensor:
        valid: Tensor | None = given.get("valid")
        return _all_true(next(iter(given.values()))) if valid is None else valid

    def _positions(self, given: Arguments) -> Tensor:
        return _following(next(iter(given.values())), given.get("cache"))


@final
class TransformersModel(BaseModel):
    """A model that looks up its attention function by name (transformers' attention interface)."""

    argument = _NAME

    def _prepare(self) -> None:
        AttentionInterface.register(_NAME, _attention_function)
        AttentionMaskInterface.register(_NAME, _mask_function)
        # encoder and decoder may have their own configurations (T5)
        parts = (m for m in self.model.modules() if isinstance(m, PreTrainedModel))
        configs = {id(m.config): m.config for m in parts}
        for config in configs.values():
            before = config._attn_implementation
            self._undo.callback(setattr, config, "_attn_implementation_internal", before)
        self.model.set_attn_implementation(_NAME)
        # transformers 5.17 skips a stack's configuration of the same class as the model's
        for config in configs.values():
            config._attn_implementation_internal = _NAME

    def _place(self, module: nn.Module, place: _Place) -> None:
        own = module.__dict__  # a plain attribute: neither weight nor module
        own[_PLACE] = place
        self._undo.callback(own.pop, _PLACE, None)

    def _valid(self, given: Arguments) -> Tensor:
        mask: Tensor | None = given.get("attention_mask")
        if mask is None:
            return _all_true(_states(given))
        if mask.dim() != 2:
            raise UserError(
                f"attention_mask of shape {tuple(mask.shape)}: prefixes need one entry per token, (batch, tokens)"
            )
        return mask.bool()

    def _positions(self, given: Arguments) -> Tensor:
        return _following(_states(given), given.get("past_key_values"))


def find_base(model: PreTrainedModel) -> BaseModel:
    """Find the attentions that prefixes attach to; raise `UserError` for other models, or attention out of reach."""
    name = type(model).__name__
    stacks = [module for module in model.modules() if isinstance(module, TakesPrefix)]
    encoders = [stack for stack in stacks if not stack.cross_attentions()]
    decoders = [stack for stack in stacks if stack.cross_attentions()]
    if len(encoders) == 1 and len(decoders) == 1:
        found = {
            Site.ENCODER: encoders[0].self_attentions(),
            Site.CROSS: decoders[0].cross_attentions(),
            Site.DECODER: decoders[0].self_attentions(),
        }
        (encoder, decoder) = encoders[0], decoders[0]
        assert isinstance(encoder, nn.Module)
        assert isinstance(decoder, nn.Module)
        own = {site: tuple(_own_attention(m) for m in modules) for site, modules in found.items()}
        return OwnModel(model, encoder, decoder, own)
    if not getattr(model.config, "is_encoder_decoder", False):
        raise UserError(
            f"{name} is not an encoder-decoder; prefixes attach to models like BART, T5 or ZCodePP"
        )
    encoder, decoder = model.get_encoder(), model.get_decoder()
    inside = [_attention(m) for m in decoder.modules() if _is_attention(m)]
    attentions = {
        Site.ENCODER: tuple(_attention(m) for m in encoder.modules() if _is_attention(m)),
        Site.CROSS: tuple(a for a in inside if not a.module.is_causal),
        Site.DECODER: tuple(a for a in inside if a.module.is_causal),
    }
    alike = len(attentions[Site.CROSS]) == len(attentions[Site.DECODER])
    if not (model._can_set_attn_implementation() and all(attentions.values()) and alike):
        raise UserError(
            f"{name} does not use transformers' attention interface, so prefixes cannot reach its attention; "
            "BART, mBART, Pegasus and T5 do"
        )
    return TransformersModel(model, encoder, decoder, attentions)


def _is_attention(module: nn.Module) -> bool:
    """Return whether a module has the two attributes of those that call the attention function."""
    return isinstance(getattr(module, "is_causal", None), bool) and hasattr(module, "scaling")


def _attention(module: nn.Module) -> Attention:
    linear = {name: part for name, part in module.named_children() if isinstance(part, nn.Linear)}
    _check_kind(module)
    for key, value in (("k_proj", "v_proj"), ("k", "v"), ("key", "value")):
        if key in linear and value in linear:
            width = getattr(module, "head_dim", None) or getattr(module, "key_value_proj_dim", None)
            if isinstance(width, int):
                return Attention(module, linear[key], linear[value], linear[key].out_features // width)
    raise UserError(
        f"{type(module).__name__}: its key and value maps are not among {sorted(linear)}; "
        "prefixes support BART, mBART, Pegasus and T5"
    )


def _check_kind(module: nn.Module) -> None:
    """Refuse variants that `attend` does not compute: they would fail later, or differ from the base."""
    name, groups = type(module).__name__, getattr(module, "num_key_value_groups", 1)
    if groups > 1:
        raise UserError(
            f"{name}: {groups} query heads share a key head (grouped-query attention), but a prefix has keys for every "
            "query head; use a base with as many key heads as query heads, like BART, mBART, Pegasus and T5"
        )
    cap = getattr(module, "attn_logit_softcapping", None)
    if cap is not None:
        raise UserError(
            f"{name}: its scores are capped at {cap:g}, which attention with prefixes does not support; use a base "
            "like BART, mBART, Pegasus or T5"
        )


def _own_attention(module: nn.Module) -> Attention:
    key, value = module.get_submodule("key"), module.get_submodule("value")
    assert isinstance(key, nn.Linear)
    assert isinstance(value, nn.Linear)
    heads = module.heads
    assert isinstance(heads, int)
    return Attention(module, key, value, heads)


def _states(given: Mapping[str, Any]) -> Tensor:
    """Return the token ids (b n) or the embeddings (b n d) that a stack was called with."""
    for name in ("input_ids", "inputs_embeds"):
        if isinstance(given.get(name), Tensor):
            return given[name]
    raise ValueError("a stack was called without input_ids and without inputs_embeds")


def _all_true(states: Tensor) -> Tensor:
    return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)


def _following(states: Tensor, cache: Any) -> Tensor:
    """Return the positions after those of a cache (1 t)."""
    past = cache.get_seq_length() if cache is not None else 0
    return (torch.arange(states.shape[1], device=states.device) + past)[None]


@final
@dataclass(frozen=True)
class _Place:
    """The place of an attention module, and the normaliser of its layer."""

    site: Site
    layer: int
    normalizer: Normalizer


def _attention_function(
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
    """Call `attend` with the prefix of this module's place; transformers passes the arguments by these names."""
    place: _Place | None = getattr(module, _PLACE, None)
    if place is None or precis_prefix is None:
        raise UserError(
            f"{type(module).__name__} was called without the prefix's arguments; this model does not support prefixes"
        )
    layer = precis_prefix.layer(place.layer)
    mask = attention_mask
    if mask is not None and mask.dtype != torch.bool:  # the caller's mask may be additive
        mask = mask >= 0 if mask.is_floating_point() else mask.bool()
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


def _mask_function(
    *,
    q_length: int,
    kv_length: int,
    mask_function: Callable[..., Any],
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    attention_mask: Bool[Tensor, "b j"] | None = None,
    **others: Any,
) -> Bool[Tensor, "b 1 #i j"] | None:
    """Return True where a query may attend, or None if everywhere; prefix columns are not included.

    For padding only, one row serves all queries. `others` are arguments that only `sdpa_mask` reads.
    """
    padded = attention_mask is not None and not bool(attention_mask.all())
    if mask_function is bidirectional_mask_function:
        if not padded:
            return None
        assert attention_mask is not None
        return padding_mask(attention_mask[:, kv_offset : kv_offset + kv_length])
    step = q_length == 1 and isinstance(q_offset, int) and kv_length == q_offset + 1
    if step and not padded:
        return None  # everything in the cache is in the past
    whole = {**others, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    return sdpa_mask(
        q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
        mask_function=mask_function, attention_mask=attention_mask, **whole,
    )  # fmt: skip
