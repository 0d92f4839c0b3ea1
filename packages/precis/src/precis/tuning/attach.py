"""Attach a prefix to a base model and detach it again.

    attachment = attach(model, method("hierblock", Prefix(length=100)))
    ...                                   # train: only the prefix has gradients
    attachment.save("adapter")
    attachment.detach()                   # the base is as before

    load_adapter(model, "adapter")

The base is frozen, but it keeps the mode that `model.train()` sets. So its dropout is on while the prefix is trained,
as in Li & Liang's code. Gradient checkpointing works only in that mode. Leave its `use_reentrant` False, as
transformers does. With True each layer backpropagates through the reparametrising network or the prefix's dropout.
torch then refuses the second layer ("backward through the graph a second time").

With `NoPrefix` (sparse attention only) the base is not frozen: it is fine-tuned.
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

from precis.nn.prefix_columns import Observe
from precis.tuning.adapter_folder import Adapter, BaseRecord, describe_base, folded, in_float16
from precis.tuning.base_model import Attention, BaseModel, find_base
from precis.tuning.discourse import Tuning
from precis.tuning.prefix import FromTokens, NoPrefix, Prefix, Site
from precis.tuning.stack_prefixes import Prefixes
from precis_text.errors import UserError

_SLACK = 1 << 22  # numbers
_CHILD = "precis_prefixes"  # the module of the base that holds the prefix
_HANDLE = "precis_attachment"  # the attribute of the base that holds the attachment
_POSITIONS = (
    "max_position_embeddings", "max_encoder_position_embeddings", "max_decoder_position_embeddings",
    "decoder_positions",
)  # fmt: skip

Matrices = dict[tuple[Site, int], Float[Tensor, "b h i pj"]]
"""Attention weights by site and layer, prefix columns first."""


@final
@dataclass(frozen=True)
class ParameterCount:
    """Counts of trained, stored and frozen numbers.

    Attributes:
        trainable: parameters that the optimizer changes, including the reparametrising network.
        stored: numbers in a saved adapter.
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
        """Restore the base exactly and keep the prefix, to save it; raise `UserError` if it is no longer attached."""
        if attached(self.model) is not self:
            raise UserError("this prefix is no longer attached to its model; attach it again first")
        self._base.remove()
        for entry in self._entries:
            entry.remove()
        del self.model.__dict__[_HANDLE]
        delattr(self.model, _CHILD)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self._trained[name])

    def swap(self, adapter: Adapter) -> Attachment:
        """Replace this adapter with another one on the same base.

        Raises:
            UserError: if it belongs to another base, or its tensors do not match its settings. This adapter then
                stays attached.
        """
        record = self.base()
        adapter.check(record, rounded=self._record is None and in_float16(self.model))
        prefixes = _prefixes_of(adapter, self._base)
        self.detach()
        return Attachment(self._base, prefixes, record)

    def base(self) -> BaseRecord:
        """Return the record of the base. It reads all weights: one second for 400 million."""
        frozen = not isinstance(self.tuning.prefix, NoPrefix)
        if self._record is not None and frozen:
            return self._record
        return describe_base(self.model, self.prefixes.shapes, self._trained)

    def adapter(self) -> Adapter:
        """Return the current prefix as an adapter, folded."""
        return Adapter(self.tuning, self.base(), self.prefixes.folded())

    def save(self, folder: str | Path) -> None:
        """Write the adapter to a folder: keys, values, settings and the record of the base, without the base."""
        self.adapter().save(folder)

    def count(self) -> ParameterCount:
        """Count trained, stored and frozen parameters."""
        own = {id(p) for p in self.prefixes.parameters()}
        trainable = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        base = sum(p.numel() for p in self.model.parameters() if id(p) not in own)
        return ParameterCount(trainable, sum(t.numel() for t in self.prefixes.folded().values()), base)

    @contextmanager
    def segments(self, source: Int[Tensor, "b s"]) -> Iterator[None]:
        """Make the encoder use these segments, one a token, within the context instead of equal parts.

        Use it around `generate`. A forward call takes `model(..., source_segments=...)` instead.
        """
        self.prefixes.source_segments = source
        try:
            yield
        finally:
            self.prefixes.source_segments = None

    @contextmanager
    def attention(self) -> Iterator[Matrices]:
        """Collect the weights of every attention within the context (Figures 1, 6 and 7).

        Use it around one forward pass in evaluation mode; a later pass replaces the matrices. Local layers of
        fusion-in-encoder give one matrix per chunk.
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
        """Keep the `source_segments` of a forward call for the encoder; the model's own code does not accept them."""
        self._segments.append(self.prefixes.source_segments)
        if "source_segments" in kwargs:
            kwargs = dict(kwargs)
            self.prefixes.source_segments = kwargs.pop("source_segments")
        return args, kwargs

    def _drop_segments(self, *_: Any) -> None:
        self.prefixes.source_segments = self._segments.pop()

    def __deepcopy__(self, _: Any) -> Attachment:
        raise UserError(
            "a model with an attached prefix cannot be copied; save the adapter and load it on a copy"
        )


def attached(model: nn.Module) -> Attachment | None:
    """Return the attachment of a model, or None."""
    found = model.__dict__.get(_HANDLE)
    assert found is None or isinstance(found, Attachment)
    return found


def attach(model: PreTrainedModel, tuning: Tuning) -> Attachment:
    """Attach a new prefix to a base model and freeze the base.

    Args:
        model: BART, mBART, Pegasus, T5 or another encoder-decoder of transformers with the attention interface, or one
            of ours. It is changed in place until `detach`.

    Raises:
        UserError: if the model does not support prefixes or has one, or the settings name layers that it lacks.

    Examples:
        >>> model = precis.Summarizer.from_pretrained("runs/news").model
        >>> attachment = attach(model, precis.method("uniblock", precis.Prefix(length=4)))
        >>> attachment.save("adapter")  # after training
        >>> attachment.detach()  # the base is as before
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
    """Attach a saved adapter to its base.

    Args:
        adapter: its folder, or the result of `read_adapter`.
        base: the record (`record_of`) of the model before it was cast to float16. If None, the record is computed from
            the current weights.

    Raises:
        UserError: if the adapter is missing or belongs to another base, or float16 weights prevent the check.

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
    """Return the record that identifies a base; raise `UserError` if it cannot take prefixes, or has one."""
    return describe_base(model, _without_prefix(model).shapes, [name for name, _ in model.named_parameters()])


def reattach(model: PreTrainedModel, prefixes: Prefixes) -> Attachment:
    """Attach prefixes again to the base that they were detached from; raise `UserError` if it has another prefix."""
    return Attachment(_without_prefix(model), prefixes)


def _prefixes_of(adapter: Adapter, base: BaseModel) -> Prefixes:
    tuning = folded(adapter.tuning)
    with torch.device("meta"):  # before it allocates their memory
        wanted = sum(p.numel() for p in Prefixes(tuning, base.shapes, width=base.width).parameters())
    stored = sum(tensor.numel() for tensor in adapter.tensors.values())
    if wanted > 2 * stored + _SLACK:  # `fill` finds and names smaller differences
        raise UserError(
            f"{adapter.name} contains {stored:,} numbers, but its settings need {wanted:,}; its files do not belong "
            "together: copy it again"
        )
    prefixes = Prefixes(tuning, base.shapes, width=base.width)
    prefixes.fill(adapter.tensors)
    return prefixes


def _without_prefix(model: PreTrainedModel) -> BaseModel:
    if attached(model) is not None:
        raise UserError(f"{type(model).__name__} already has a prefix; detach it first, or swap it")
    return find_base(model)


@torch.no_grad()
def _columns_from_tokens(base: BaseModel, prefix: Prefix, ids: Sequence[int]) -> dict[str, Tensor]:
    """Return keys and values that encoder and decoder compute for a text, as tensors (Li & Liang, section 7.4).

    The text is repeated or truncated to the prefix's length.
    """
    vocabulary = base.model.get_input_embeddings().num_embeddings
    for token in ids:
        if not 0 <= token < vocabulary:
            raise UserError(f"FromTokens: id {token} is not in the base's vocabulary of {vocabulary}")
    longest = _positions(base.model.config)
    if longest is not None and prefix.length > longest:
        raise UserError(
            f"FromTokens: {prefix.length} columns need a text of {prefix.length} tokens, but the base has positions "
            f"for {longest}; use a shorter prefix, or start without words"
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
    """Return the longest text that encoder and decoder have positions for, or None without a limit."""
    named = [getattr(config, name, None) for name in _POSITIONS]
    rows = min((count for count in named if isinstance(count, int) and count), default=None)
    if rows is not None and config.model_type.endswith("prophetnet"):
        return rows - 2  # row 0 is for padding, and predicting streams are one position ahead
    return rows


def _keep(found: dict[str, Tensor], linear: nn.Module, attention: Attention, name: str, length: int) -> Any:
    def keep(_: nn.Module, __: Any, output: Tensor) -> None:
        # chunks come one after the other, predicting streams after the main one: the first rows are the text's
        states = output.flatten(0, -2)[:length]
        if name not in found:  # position tables go through the same maps later
            found[name] = states.unflatten(-1, (attention.heads, -1)).transpose(0, 1).float()

    return linear.register_forward_hook(keep)
