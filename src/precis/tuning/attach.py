"""Put a prefix on a base model and take it off again.

    attachment = attach(model, method("hierblock", Prefix(length=100)))
    ...                                   # train: only the prefix has gradients
    attachment.save("adapter")
    attachment.detach()                   # the base as it was

    load_adapter(model, "adapter")

The base is frozen, but it stays in the mode that `model.train()` gives it. So its dropout is on while the prefix is
trained, as in Li & Liang's code. Gradient checkpointing works only in that mode. Leave its `use_reentrant` False, as
transformers does. With True each layer goes back through the reparametrising network, or through the prefix's dropout,
and torch refuses the second layer ("backward through the graph a second time").

With `NoPrefix` (sparse attention alone) the base is not frozen: it is fine-tuned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from precis.errors import UserError
from precis.nn.prefix import Observe
from precis.tuning.adapter import Adapter, BaseRecord, describe_base, folded, in_float16
from precis.tuning.base_model import Attention, BaseModel, find_base
from precis.tuning.discourse import Tuning
from precis.tuning.prefix import FromTokens, NoPrefix, Prefix, Site
from precis.tuning.stacks import Prefixes

_SLACK = 1 << 22  # numbers
_CHILD = "precis_prefixes"  # the prefix among the base's modules
_HANDLE = "precis_attachment"  # the attachment among the base's attributes
_POSITIONS = (
    "max_position_embeddings",
    "max_encoder_position_embeddings",
    "max_decoder_position_embeddings",
    "decoder_positions",
)

Matrices = dict[tuple[Site, int], Float[Tensor, "b h i p+j"]]
"""Attention weights by site and layer, prefix columns first."""


@final
@dataclass(frozen=True)
class ParameterCount:
    """Counts of trained, stored and frozen numbers.

    Attributes:
        trainable: parameters that an optimizer changes, the reparametrising network included.
        stored: numbers that a saved adapter holds.
        base: parameters of the base.
    """

    trainable: int
    stored: int
    base: int

    @property
    def stored_share(self) -> float:
        """Stored numbers as a share of the base's parameters: the paper's "0.1% to 2%"."""
        return self.stored / self.base


@final
class Attachment:
    """A prefix on a base model; made by `attach` and `load_adapter`."""

    def __init__(self, base: BaseModel, prefixes: Prefixes, record: BaseRecord | None = None) -> None:
        model = base.model
        self.model = model
        self.prefixes = prefixes
        self._base, self._record = base, record
        self._segments: list[Tensor | None] = []
        self._trained = {name: p.requires_grad for name, p in model.named_parameters()}
        self._install()

    @property
    def tuning(self) -> Tuning:
        """The settings of the prefix."""
        return self.prefixes.tuning

    def _install(self) -> None:
        if not isinstance(self.tuning.prefix, NoPrefix):
            self.model.requires_grad_(False)
        device = next(self.model.parameters()).device
        self.prefixes.to(device).train(self.model.training)
        self.model.add_module(_CHILD, self.prefixes)
        self._base.install(self.prefixes)
        self._entries = [
            self.model.register_forward_pre_hook(self._take_segments, with_kwargs=True),
            self.model.register_forward_hook(self._drop_segments, always_call=True),
        ]
        self.model.__dict__[_HANDLE] = self

    def detach(self) -> None:
        """Leave the base exactly as it was before. This object keeps the prefix, which can still be saved.

        Raises:
            UserError: if it is not attached any more.
        """
        if attached(self.model) is not self:
            raise UserError("this prefix is not attached to its model any more")
        self._base.remove()
        for entry in self._entries:
            entry.remove()
        del self.model.__dict__[_HANDLE]
        delattr(self.model, _CHILD)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self._trained[name])

    def swap(self, adapter: Adapter) -> Attachment:
        """Put another adapter on the same base in place of this one.

        Raises:
            UserError: if it belongs to another base, or its tensors are not those that its settings ask for. Then
                this one stays.
        """
        record = self.base()
        adapter.check(record, rounded=self._record is None and in_float16(self.model))
        prefixes = _prefixes_of(adapter, self._base)
        self.detach()
        return Attachment(self._base, prefixes, record)

    def base(self) -> BaseRecord:
        """The record of the base. Making it reads all weights, which takes a second for 400 million."""
        frozen = not isinstance(self.tuning.prefix, NoPrefix)
        if self._record is not None and frozen:
            return self._record
        return describe_base(self.model, self.prefixes.shapes, self._trained)

    def adapter(self) -> Adapter:
        """The prefix as it is now, folded."""
        return Adapter(self.tuning, self.base(), self.prefixes.folded())

    def save(self, folder: str | Path) -> None:
        """Write the adapter to a folder: keys, values, settings and the base's record, but not the base."""
        self.adapter().save(folder)

    def count(self) -> ParameterCount:
        """Count trained, stored and frozen parameters."""
        own = {id(p) for p in self.prefixes.parameters()}
        trainable = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        base = sum(p.numel() for p in self.model.parameters() if id(p) not in own)
        return ParameterCount(trainable, sum(t.numel() for t in self.prefixes.folded().values()), base)

    @contextmanager
    def segments(self, source: Int[Tensor, "b s"]) -> Iterator[None]:
        """Within the context the encoder uses these segments, one a token, instead of equal parts: for `generate`.

        A forward call takes them as `model(..., source_segments=...)` instead.
        """
        self.prefixes.source_segments = source
        try:
            yield
        finally:
            self.prefixes.source_segments = None

    @contextmanager
    def attention(self) -> Iterator[Matrices]:
        """Within the context the weights of every attention are collected (Figures 1, 6 and 7).

        Use it around one forward pass in evaluation mode; a later pass replaces the matrices. Local layers of
        fusion-in-encoder give the matrices of chunks.
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
        """Keep `source_segments` of a forward call for the encoder, since the model's own code does not know them."""
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


def attached(model: nn.Module) -> Attachment | None:
    """The attachment of a model, if it has one."""
    found = model.__dict__.get(_HANDLE)
    assert found is None or isinstance(found, Attachment)
    return found


def attach(model: PreTrainedModel, tuning: Tuning) -> Attachment:
    """Put a new prefix on a base model and freeze the base.

    Args:
        model: BART, mBART, Pegasus, T5 or another encoder-decoder of transformers with the attention interface, or one
            of ours. It is changed in place until `detach`.

    Raises:
        UserError: if the model cannot carry prefixes or carries one, or the settings ask for layers that it lacks.

    Examples:
        >>> model = precis.Summarizer.from_pretrained("runs/news").model
        >>> attachment = attach(model, precis.method("uniblock", precis.Prefix(length=4)))
        >>> attachment.save("adapter")  # after training
        >>> attachment.detach()  # the base is as it was
    """
    base = _without_prefix(model)
    prefixes = Prefixes(tuning, base.shapes, width=base.width)
    prefix = tuning.prefix
    if not isinstance(prefix, NoPrefix) and isinstance(prefix.keys, FromTokens):
        made = _columns_from_tokens(base, prefix, prefix.keys.ids)  # of all sites and layers
        prefixes.fill({name: made[name] for name in prefixes.folded()})
    return Attachment(base, prefixes)


def load_adapter(
    model: PreTrainedModel, adapter: str | Path | Adapter, *, base: BaseRecord | None = None
) -> Attachment:
    """Put a saved adapter on its base.

    Args:
        adapter: its folder, or what `read_adapter` found there.
        base: the record (`record_of`) of a model from before it was cast to float16. If None, the record is made from
            the weights as they are.

    Raises:
        UserError: if there is no adapter, it belongs to another base, or float16 leaves that open.

    Examples:
        >>> model = precis.Summarizer.from_pretrained("runs/news").model
        >>> attachment = load_adapter(model, "adapter")
        >>> attachment.tuning.prefix.length
        4
    """
    if not isinstance(adapter, Adapter):
        adapter = Adapter.read(adapter)
    found = _without_prefix(model)
    adapter.check(base or record_of(model), rounded=base is None and in_float16(model))
    return Attachment(found, _prefixes_of(adapter, found), base)


def record_of(model: PreTrainedModel) -> BaseRecord:
    """The record that identifies a base without a prefix.

    Raises:
        UserError: if it cannot carry prefixes, or carries one.
    """
    return describe_base(model, _without_prefix(model).shapes, [name for name, _ in model.named_parameters()])


def reattach(model: PreTrainedModel, prefixes: Prefixes) -> Attachment:
    """Put prefixes back on the base that they were detached from.

    Raises:
        UserError: if it carries others.
    """
    return Attachment(_without_prefix(model), prefixes)


def _prefixes_of(adapter: Adapter, base: BaseModel) -> Prefixes:
    tuning = folded(adapter.tuning)
    with torch.device("meta"):  # before memory is taken for them
        wanted = sum(p.numel() for p in Prefixes(tuning, base.shapes, width=base.width).parameters())
    stored = sum(tensor.numel() for tensor in adapter.tensors.values())
    if wanted > 2 * stored + _SLACK:  # smaller differences are found, and named, when tensors are put in
        raise UserError(
            f"{adapter.name} has {stored:,} numbers and its settings ask for {wanted:,}; they are not of one adapter: "
            "copy it again"
        )
    prefixes = Prefixes(tuning, base.shapes, width=base.width)
    prefixes.fill(adapter.tensors)
    return prefixes


def _without_prefix(model: PreTrainedModel) -> BaseModel:
    if attached(model) is not None:
        raise UserError(f"{type(model).__name__} carries a prefix already; detach it first, or swap it")
    return find_base(model)


@torch.no_grad()
def _columns_from_tokens(base: BaseModel, prefix: Prefix, ids: Sequence[int]) -> dict[str, Tensor]:
    """Keys and values of a text that encoder and decoder read, as a prefix's tensors (Li & Liang, section 7.4).

    The text is repeated, or cut, to the prefix's length.
    """
    vocabulary = base.model.get_input_embeddings().num_embeddings
    for token in ids:
        if not 0 <= token < vocabulary:
            raise UserError(f"FromTokens: id {token} is not in the base's vocabulary of {vocabulary}")
    longest = _positions(base.model.config)
    if longest is not None and prefix.length > longest:
        raise UserError(
            f"FromTokens: a prefix of {prefix.length} columns begins as a text of so many tokens, and the base has "
            f"positions for {longest}; use a shorter prefix, or begin without words"
        )
    device = next(base.model.parameters()).device
    row = torch.tensor([list(islice(cycle(ids), prefix.length))], device=device)
    found: dict[str, Tensor] = {}
    with ExitStack() as undo:
        for site, attentions in base.attentions.items():
            for layer, attention in enumerate(attentions):
                for kind, linear in (("keys", attention.key), ("values", attention.value)):
                    name = f"{site.value}.{layer}.{kind}"
                    undo.callback(_keep(found, linear, attention, name, prefix.length).remove)
        for module in base.model.modules():
            undo.callback(setattr, module, "training", module.training)
        base.model.eval()
        base.model(input_ids=row, decoder_input_ids=row, use_cache=False)
    return found


def _positions(config: PreTrainedConfig) -> int | None:
    """The longest text that encoder and decoder have positions for, or None if there is no limit."""
    named = [getattr(config, name, None) for name in _POSITIONS]
    rows = min((count for count in named if isinstance(count, int) and count), default=None)
    if rows is not None and config.model_type.endswith("prophetnet"):
        return rows - 2  # row 0 is padding's, and predicting streams stand one ahead
    return rows


def _keep(found: dict[str, Tensor], linear: nn.Module, attention: Attention, name: str, length: int) -> Any:
    def keep(_: nn.Module, __: Any, output: Tensor) -> None:
        # chunks lie one behind the other, and predicting streams behind the main one: the first rows are the text's
        states = output.flatten(0, -2)[:length]
        if name not in found:  # position tables go through the same maps, later
            found[name] = states.unflatten(-1, (attention.heads, -1)).transpose(0, 1).float()

    return linear.register_forward_hook(keep)
