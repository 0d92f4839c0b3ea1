"""Prefixes on a base and off again.

    attachment = attach(model, method("hierblock", Prefix(length=100)))
    ...                                   # train: only the prefix has gradients
    attachment.save("adapter")
    attachment.detach()                   # the base as it was

    load_adapter(model, "adapter")

The base is frozen, but it stays in the mode that `model.train()` gives it: its dropout is on while the prefix is
trained, as in Li & Liang's code, and gradient checkpointing works only in that mode. Leave its `use_reentrant` False,
as transformers does: with True each layer goes back through the reparametrising network, or through the prefix's
dropout, and torch refuses the second layer ("backward through the graph a second time").

A base without a prefix (`NoPrefix`, sparse attention alone) is not frozen: it is fine-tuned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from precis.errors import UserError
from precis.nn.prefix import Observe
from precis.tuning.adapter import Adapter, BaseRecord, describe_base, folded, in_float16
from precis.tuning.discourse import Tuning
from precis.tuning.hosts import Host, find_host
from precis.tuning.prefix import FromTokens, NoPrefix, Site
from precis.tuning.stacks import Prefixes
from precis.tuning.tokens import columns_from_tokens

_SLACK = 1 << 22  # numbers
CHILD = "precis_prefixes"
"""The name of the prefix among the base's modules while it is attached."""

Matrices = dict[tuple[Site, int], Float[Tensor, "b h i p+j"]]
"""Attention weights by site and layer, prefix columns first."""


@final
@dataclass(frozen=True)
class ParameterCount:
    """How many numbers are trained, kept and frozen.

    Attributes:
        trainable: what an optimizer changes, the reparametrising network included.
        stored: what a saved adapter holds.
        base: parameters of the base.
    """

    trainable: int
    stored: int
    base: int

    @property
    def stored_share(self) -> float:
        """Stored parameters as a share of the base's: the paper's "0.1% to 2%"."""
        return self.stored / self.base


@final
class Attachment:
    """A prefix on a base; made by `attach` and `load_adapter`."""

    def __init__(
        self, model: PreTrainedModel, prefixes: Prefixes, host: Host, base: BaseRecord | None = None
    ) -> None:
        self.model = model
        self._base = base
        self.prefixes = prefixes
        self._host = host
        self._segments: list[Tensor | None] = []
        self._trained = {name: p.requires_grad for name, p in model.named_parameters()}
        self._install()

    @property
    def tuning(self) -> Tuning:
        """What is attached."""
        return self.prefixes.tuning

    def _install(self) -> None:
        if not isinstance(self.tuning.prefix, NoPrefix):
            self.model.requires_grad_(False)
        device = next(self.model.parameters()).device
        self.prefixes.to(device).train(self.model.training)
        self.model.add_module(CHILD, self.prefixes)
        self._host.install(
            encoder=self.prefixes.encoder,
            decoder=self.prefixes.decoder,
            normalizers={site: [layer.normalizer for layer in self.prefixes.plan(site)] for site in Site},
        )
        self._entries = [
            self.model.register_forward_pre_hook(self._take_segments, with_kwargs=True),
            self.model.register_forward_hook(self._drop_segments, always_call=True),
        ]
        self.model.__dict__[_HANDLE] = self

    def detach(self) -> None:
        """Leave the base exactly as it was before. The prefix lives on in this object, and can be saved.

        Raises:
            UserError: it is not attached any more.
        """
        if attached(self.model) is not self:
            raise UserError("this prefix is not attached to its model any more")
        self._host.remove()
        for entry in self._entries:
            entry.remove()
        del self.model.__dict__[_HANDLE]
        delattr(self.model, CHILD)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self._trained[name])

    def swap(self, adapter: Adapter) -> Attachment:
        """Another adapter on the same base, in place of this one.

        Raises:
            UserError: it belongs to another base, or its tensors are not those that its settings ask for; then this
                one stays.
        """
        base = self.base()
        adapter.check(base, rounded=self._base is None and in_float16(self.model))
        prefixes = _prefixes_of(adapter, self._host)
        self.detach()
        return Attachment(self.model, prefixes, _free_host(self.model), base)

    def base(self) -> BaseRecord:
        """What the base is, for an adapter's record. Reads all weights: a second for 400 million."""
        if self._base is not None and not isinstance(
            self.tuning.prefix, NoPrefix
        ):  # without one, weights change
            return self._base
        return describe_base(self.model, self.prefixes.shapes, self._trained)

    def adapter(self) -> Adapter:
        """The prefix as it is now, folded."""
        return Adapter(self.tuning, self.base(), self.prefixes.folded())

    def save(self, folder: str | Path) -> None:
        """Write the adapter: keys, values, settings and the base's record; never the base."""
        self.adapter().save(folder)

    def count(self) -> ParameterCount:
        """Trained, stored and frozen parameters."""
        own = {id(p) for p in self.prefixes.parameters()}
        trainable = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        base = sum(p.numel() for p in self.model.parameters() if id(p) not in own)
        return ParameterCount(trainable, sum(t.numel() for t in self.prefixes.folded().values()), base)

    @contextmanager
    def segments(self, source: Int[Tensor, "b s"]) -> Iterator[None]:
        """Inside, the encoder's segments are these, one a token, in place of equal parts: for `generate`.

        A forward call takes them as `model(..., source_segments=...)` instead.
        """
        self.prefixes.source_segments = source
        try:
            yield
        finally:
            self.prefixes.source_segments = None

    @contextmanager
    def attention(self) -> Iterator[Matrices]:
        """Inside, the weights of every attention are collected: Figures 1, 6 and 7.

        Use it around one forward pass in evaluation mode; a later pass replaces the matrices. Local layers of
        fusion-in-encoder give those of chunks.
        """
        matrices: Matrices = {}

        def look(site: Site, layer: int) -> Observe:
            def keep(weights: Tensor) -> None:
                matrices[site, layer] = weights.detach()

            return keep

        self.prefixes.look = look
        try:
            yield matrices
        finally:
            self.prefixes.look = None

    def _take_segments(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """`source_segments` of a forward call are for the encoder, not for the model's own code."""
        self._segments.append(self.prefixes.source_segments)
        if "source_segments" in kwargs:
            kwargs = dict(kwargs)
            self.prefixes.source_segments = kwargs.pop("source_segments")
        return args, kwargs

    def _drop_segments(self, *_: Any) -> None:
        self.prefixes.source_segments = self._segments.pop()

    def __deepcopy__(self, _: Any) -> Attachment:
        raise UserError(
            "a model that carries a prefix cannot be copied; save the adapter and load it on a copy"
        )


_HANDLE = "precis_attachment"


def attached(model: nn.Module) -> Attachment | None:
    """What is attached to a model, if anything."""
    found = model.__dict__.get(_HANDLE)
    assert found is None or isinstance(found, Attachment)
    return found


def attach(model: PreTrainedModel, tuning: Tuning) -> Attachment:
    """Put a new prefix on a base and freeze the base.

    Args:
        model: BART, mBART, Pegasus, T5 or another encoder-decoder of transformers with the attention interface, or one
            of ours. It is changed in place until `detach`.

    Raises:
        UserError: the model cannot carry prefixes or carries one, or the settings ask for layers it has not.

    Example:
        >>> model = precis.Summarizer.from_pretrained("runs/news").model
        >>> attachment = attach(model, precis.method("uniblock", precis.Prefix(length=4)))
        >>> attachment.save("adapter")  # after training
        >>> attachment.detach()  # the base is as it was
    """
    host = _free_host(model)
    prefixes = Prefixes(tuning, host.shapes, width=host.width)
    prefix = tuning.prefix
    if not isinstance(prefix, NoPrefix) and isinstance(prefix.keys, FromTokens):
        made = columns_from_tokens(host, prefix, prefix.keys.ids)  # of all sites and layers
        prefixes.fill({name: made[name] for name in prefixes.folded()})
    return Attachment(model, prefixes, host)


def load_adapter(model: PreTrainedModel, folder: str | Path, *, base: BaseRecord | None = None) -> Attachment:
    """Put a saved adapter on its base.

    Args:
        base: of a model that was cast to float16, its record from before (`record_of`); None: it is made of the
            weights as they are.

    Raises:
        UserError: there is no adapter, it belongs to another base, or float16 leaves that open.

    Example:
        >>> model = precis.Summarizer.from_pretrained("runs/news").model
        >>> attachment = load_adapter(model, "adapter")
        >>> attachment.tuning.prefix.length
        4
    """
    return _attach_adapter(model, Adapter.read(folder), base)


def attach_adapter(model: PreTrainedModel, adapter: Adapter) -> Attachment:
    """Put an adapter on its base.

    Raises:
        UserError: it belongs to another base.
    """
    return _attach_adapter(model, adapter)


def record_of(model: PreTrainedModel) -> BaseRecord:
    """What identifies a base that carries nothing.

    Raises:
        UserError: it cannot carry prefixes, or carries one.
    """
    return describe_base(model, _free_host(model).shapes, [name for name, _ in model.named_parameters()])


def reattach(model: PreTrainedModel, prefixes: Prefixes) -> Attachment:
    """Put prefixes back on the base that they were detached from.

    Raises:
        UserError: it carries others.
    """
    return Attachment(model, prefixes, _free_host(model))


def _attach_adapter(model: PreTrainedModel, adapter: Adapter, base: BaseRecord | None = None) -> Attachment:
    host = _free_host(model)
    adapter.check(base or record_of(model), rounded=base is None and in_float16(model))
    return Attachment(model, _prefixes_of(adapter, host), host, base)


def _prefixes_of(adapter: Adapter, host: Host) -> Prefixes:
    _check_room(adapter, host)
    prefixes = Prefixes(folded(adapter.tuning), host.shapes, width=host.width)
    prefixes.fill(adapter.tensors)
    return prefixes


def _check_room(adapter: Adapter, host: Host) -> None:
    """Refuse settings that ask for more numbers than the adapter has, before memory is taken for them."""
    with torch.device("meta"):
        wanted = sum(
            p.numel() for p in Prefixes(folded(adapter.tuning), host.shapes, width=host.width).parameters()
        )
    stored = sum(tensor.numel() for tensor in adapter.tensors.values())
    if wanted > 2 * stored + _SLACK:  # smaller differences are found, and named, when tensors are put in
        raise UserError(
            f"{adapter.name} has {stored:,} numbers and its settings ask for {wanted:,}; they are not of one adapter: "
            "copy it again"
        )


def _free_host(model: PreTrainedModel) -> Host:
    if attached(model) is not None:
        raise UserError(f"{type(model).__name__} carries a prefix already; detach it first, or swap it")
    return find_host(model)
