"""What a prefix attaches to: our own stacks, or any Hugging Face encoder-decoder with the attention interface.

Both are hooked at the same two places, the encoder's and the decoder's stack: a forward pre-hook adds one keyword
argument with the prefix of that call. Our stacks hand it to their layers; transformers' models pass unknown keyword
arguments on to the attention function, which is ours while attached. Nothing is kept between hook and attention, so
that recomputing layers (gradient checkpointing) sees what the first run saw.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from precis.errors import UserError
from precis.nn.normalizers import Normalizer
from precis.nn.prefix import StackPrefix, TakesPrefix
from precis.tuning.interface import ARGUMENT, IMPLEMENTATION, PLACE, Place, register
from precis.tuning.prefix import Site, SiteShape

Normalizers = Mapping[Site, Sequence[Normalizer]]
ForEncoder = Callable[[Tensor], StackPrefix]
ForDecoder = Callable[[Tensor], StackPrefix]


@final
@dataclass(frozen=True)
class Attention:
    """One attention of a base, with the linear maps that make its keys and values."""

    module: nn.Module
    key: nn.Linear
    value: nn.Linear
    heads: int

    @property
    def shape(self) -> tuple[int, int]:
        """Heads and the width of one."""
        return self.heads, self.key.out_features // self.heads


class Host(ABC):
    """A base as prefixes see it.

    Attributes:
        attentions: those of each site, from the lowest layer.
    """

    def __init__(self, model: PreTrainedModel, attentions: Mapping[Site, tuple[Attention, ...]]) -> None:
        self.model = model
        self.attentions = attentions
        self._handles: list[RemovableHandle] = []

    @property
    def shapes(self) -> dict[Site, SiteShape]:
        """Layers, heads and head width of each site."""
        return {site: SiteShape(len(found), *found[0].shape) for site, found in self.attentions.items()}

    @property
    def width(self) -> int:
        """Width of the states that keys are made from."""
        return self.attentions[Site.ENCODER][0].key.in_features

    @abstractmethod
    def install(self, *, encoder: ForEncoder, decoder: ForDecoder, normalizers: Normalizers) -> None:
        """Hook the stacks and set the normalizers.

        Args:
            encoder: from which tokens are real (b s) to the encoder's prefix.
            decoder: from target positions (1 t) to the decoder's prefix.
        """

    @abstractmethod
    def remove(self) -> None:
        """Undo `install` exactly."""

    def _hook(self, stack: nn.Module, name: str, make: Callable[[Mapping[str, Any]], StackPrefix]) -> None:
        signature = inspect.signature(stack.forward)

        def add(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            given = signature.bind_partial(*args, **kwargs).arguments
            return args, {**kwargs, name: make(given)}

        self._handles.append(stack.register_forward_pre_hook(add, with_kwargs=True))

    def _unhook(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


@final
class OwnHost(Host):
    """A model whose stacks take a prefix themselves (`precis.nn.prefix.TakesPrefix`)."""

    def __init__(self, model: PreTrainedModel, encoder: nn.Module, decoder: nn.Module) -> None:
        assert isinstance(encoder, TakesPrefix)
        assert isinstance(decoder, TakesPrefix)
        super().__init__(
            model,
            {
                Site.ENCODER: tuple(_own_attention(m) for m in encoder.self_attentions()),
                Site.CROSS: tuple(_own_attention(m) for m in decoder.cross_attentions()),
                Site.DECODER: tuple(_own_attention(m) for m in decoder.self_attentions()),
            },
        )
        self._encoder, self._decoder = encoder, decoder
        self._before: list[tuple[nn.Module, Any]] = []

    def install(self, *, encoder: ForEncoder, decoder: ForDecoder, normalizers: Normalizers) -> None:
        for site, chosen in normalizers.items():
            for attention, normalizer in zip(self.attentions[site], chosen, strict=True):
                self._before.append((attention.module, attention.module.normalize))
                attention.module.normalize = normalizer  # type: ignore[assignment]

        def for_encoder(given: Mapping[str, Any]) -> StackPrefix:
            states = next(iter(given.values()))
            valid = given.get("valid")
            return encoder(_all_true(states) if valid is None else valid)

        def for_decoder(given: Mapping[str, Any]) -> StackPrefix:
            return decoder(_positions(next(iter(given.values())), given.get("cache")))

        self._hook(self._encoder, "prefix", for_encoder)
        self._hook(self._decoder, "prefix", for_decoder)

    def remove(self) -> None:
        self._unhook()
        for module, normalizer in self._before:
            module.normalize = normalizer
        self._before.clear()


@final
class HuggingFaceHost(Host):
    """A model that looks its attention function up by name (transformers' attention interface)."""

    def __init__(
        self,
        model: PreTrainedModel,
        encoder: nn.Module,
        decoder: nn.Module,
        attentions: Mapping[Site, tuple[Attention, ...]],
    ) -> None:
        super().__init__(model, attentions)
        self._encoder, self._decoder = encoder, decoder
        self._before: list[tuple[Any, str | None]] = []

    def install(self, *, encoder: ForEncoder, decoder: ForDecoder, normalizers: Normalizers) -> None:
        register()
        # encoder and decoder may have configurations of their own (T5)
        parts = (m for m in self.model.modules() if isinstance(m, PreTrainedModel))
        configs = {id(m.config): m.config for m in parts}
        self._before = [(config, config._attn_implementation) for config in configs.values()]
        self.model.set_attn_implementation(IMPLEMENTATION)
        # transformers 5.17 passes over a stack's configuration that is of the model's own class
        for config in configs.values():
            config._attn_implementation_internal = IMPLEMENTATION
        for site, found in self.attentions.items():
            for layer, attention in enumerate(found):
                place = Place(site, layer, normalizers[site][layer])
                attention.module.__dict__[PLACE] = place  # a plain attribute: neither weight nor module

        def for_encoder(given: Mapping[str, Any]) -> StackPrefix:
            return encoder(_valid(given))

        def for_decoder(given: Mapping[str, Any]) -> StackPrefix:
            return decoder(_positions(_states(given), given.get("past_key_values")))

        self._hook(self._encoder, ARGUMENT, for_encoder)
        self._hook(self._decoder, ARGUMENT, for_decoder)

    def remove(self) -> None:
        self._unhook()
        for found in self.attentions.values():
            for attention in found:
                attention.module.__dict__.pop(PLACE, None)
        for config, implementation in self._before:
            config._attn_implementation_internal = implementation
        self._before.clear()


def find_host(model: PreTrainedModel) -> Host:
    """How prefixes attach to this model.

    Raises:
        UserError: it is no encoder-decoder, or its attention cannot be reached.
    """
    name = type(model).__name__
    stacks = [module for module in model.modules() if isinstance(module, TakesPrefix)]
    encoders = [stack for stack in stacks if not stack.cross_attentions()]
    decoders = [stack for stack in stacks if stack.cross_attentions()]
    if len(encoders) == 1 and len(decoders) == 1:
        encoder, decoder = encoders[0], decoders[0]
        assert isinstance(encoder, nn.Module)
        assert isinstance(decoder, nn.Module)
        return OwnHost(model, encoder, decoder)
    if not getattr(model.config, "is_encoder_decoder", False):
        raise UserError(f"{name} is no encoder-decoder; prefixes attach to models like BART, T5 or ZCodePP")
    encoder, decoder = model.get_encoder(), model.get_decoder()
    self_attentions = [_attention(m) for m in encoder.modules() if _is_attention(m)]
    inside = [m for m in decoder.modules() if _is_attention(m)]
    own = [_attention(m) for m in inside if m.is_causal]
    crossed = [_attention(m) for m in inside if not m.is_causal]
    reachable = model._can_set_attn_implementation() and self_attentions and len(own) == len(crossed) > 0
    if not reachable:
        raise UserError(
            f"{name} does not use transformers' attention interface, so prefixes cannot reach its attention; "
            "BART, mBART, Pegasus and T5 do"
        )
    return HuggingFaceHost(
        model,
        encoder,
        decoder,
        {Site.ENCODER: tuple(self_attentions), Site.CROSS: tuple(crossed), Site.DECODER: tuple(own)},
    )


def _is_attention(module: nn.Module) -> bool:
    """Modules that call the attention function name these two for it."""
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
        f"{type(module).__name__}: its key and value maps were not found among {sorted(linear)}; "
        "prefixes know BART, mBART, Pegasus and T5"
    )


def _check_kind(module: nn.Module) -> None:
    """Refuse what `attend` does not compute: it would fail later, or answer otherwise than the base does."""
    name, groups = type(module).__name__, getattr(module, "num_key_value_groups", 1)
    if groups > 1:
        raise UserError(
            f"{name}: {groups} query heads share a key head (grouped-query attention), and a prefix has keys for every "
            "query head; use a base with as many key heads as query heads, like BART, mBART, Pegasus and T5"
        )
    cap = getattr(module, "attn_logit_softcapping", None)
    if cap is not None:
        raise UserError(
            f"{name}: its scores are capped at {cap:g}, which the attention of prefixes does not do; use a base like "
            "BART, mBART, Pegasus or T5"
        )


def _own_attention(module: nn.Module) -> Attention:
    key, value = module.get_submodule("key"), module.get_submodule("value")
    assert isinstance(key, nn.Linear)
    assert isinstance(value, nn.Linear)
    heads = module.heads
    assert isinstance(heads, int)
    return Attention(module, key, value, heads)


def _states(given: Mapping[str, Any]) -> Tensor:
    """Token ids (b n) or embeddings (b n d), whichever a stack was given."""
    for name in ("input_ids", "inputs_embeds"):
        if isinstance(given.get(name), Tensor):
            return given[name]
    raise ValueError("a stack was called without input_ids and without inputs_embeds")


def _all_true(states: Tensor) -> Tensor:
    return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)


def _valid(given: Mapping[str, Any]) -> Tensor:
    mask = given.get("attention_mask")
    if mask is None:
        return _all_true(_states(given))
    if mask.dim() != 2:
        raise UserError(
            f"attention_mask of shape {tuple(mask.shape)}: prefixes need one entry a token, (batch, tokens)"
        )
    return mask.bool()


def _positions(states: Tensor, cache: Any) -> Tensor:
    """(1 t): where these target tokens stand; a prefix moves none of them."""
    past = cache.get_seq_length() if cache is not None else 0
    return (torch.arange(states.shape[1], device=states.device) + past)[None]
