"""The prefixes of a whole model as one module, which gives the base's stacks their columns in each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from precis.nn.prefix_columns import Observe, PrefixBlocks, PrefixColumns, StackPrefix
from precis.tuning.discourse import (
    Blocked,
    Hierarchical,
    Layer,
    Tuning,
    Uniform,
    blocks,
    equal_parts,
    expected_parts,
    given_parts,
    most_segments,
)
from precis.tuning.prefix import NoPrefix, PrefixTable, Site, SiteShape
from precis_text.errors import UserError

Look = Callable[[Site, int], Observe]
"""Makes the function that receives the attention weights of a site and layer."""

Shapes = Mapping[Site, SiteShape]
Segmenter = Callable[[int], Int[Tensor, "#b #i"]]
"""Gives the segment of each query for a number of segments."""


@final
class Prefixes(nn.Module):
    """Trainable columns for the sites of one base, under a layer plan.

    Its parameters are in the base's module tree while it is attached, so that optimizers, devices, data parallelism and
    checkpoints find them.

    Args:
        width: width of the base's hidden states, for the reparametrising network.

    Raises:
        UserError: if the base lacks a layer that the settings name.
    """

    def __init__(self, tuning: Tuning, shapes: Shapes, *, width: int) -> None:
        super().__init__()
        self.tuning = tuning
        self.shapes = dict(shapes)
        self.tables = nn.ModuleDict()
        if not isinstance(tuning.prefix, NoPrefix):
            for name in tuning.prefix.sites:
                self.tables[name] = PrefixTable(tuning.prefix, shapes[Site(name)], width=width)
        self.look: Look | None = None  # set while attention is observed
        self.source_segments: Tensor | None = None  # set by the caller, for the next encoding

    def table(self, site: Site) -> PrefixTable | None:
        """Return the columns of a site, or None."""
        if site.value not in self.tables:
            return None
        found = self.tables[site.value]
        assert isinstance(found, PrefixTable)
        return found

    def plan(self, site: Site) -> tuple[Layer, ...]:
        """Return the settings of each layer at a site; cross-attention follows the decoder's plan."""
        plan: Uniform | Hierarchical = self.tuning.encoder if site is Site.ENCODER else self.tuning.decoder
        return plan.plan(self.shapes[site].layers)

    def encoder(self, valid: Bool[Tensor, "b s"]) -> StackPrefix:
        """Return the encoder's columns for one call.

        Args:
            valid: True at real tokens. Without given segments, segments are equal parts of these.

        Raises:
            UserError: if the given segments do not fit, or no layer reads them, or none are given and the prefix was
                trained with segments made of units.
        """
        given = self._given(valid)
        most = most_segments(self.tuning)

        def segments(count: int) -> Int[Tensor, "b s"]:
            return equal_parts(valid, count) if given is None else given * count // most

        return StackPrefix(self._columns(Site.ENCODER, segments, valid.device))

    def _given(self, valid: Bool[Tensor, "b s"]) -> Int[Tensor, "b s"] | None:
        """Return the segments that the caller gave, checked, or None."""
        ids, units, count = self.source_segments, self.tuning.units, most_segments(self.tuning)
        if ids is None and units is not None:
            raise UserError(
                f"the segments of this prefix are {units}, which token ids do not show; summarize with "
                "precis.Summarizer, or give source_segments (precis.data.text.segments)"
            )
        if ids is not None and count == 1:
            raise UserError(
                "source_segments are given, but no encoder layer has blocks that use them; leave them out"
            )
        return None if ids is None else given_parts(ids, valid, count)

    def decoder(self, positions: Int[Tensor, "1 t"]) -> StackPrefix:
        """Return the decoder's columns for one call, at these positions of the target."""

        def segments(count: int) -> Int[Tensor, "1 t"]:
            return expected_parts(positions, count, length=self.tuning.target_length)

        device = positions.device
        return StackPrefix(
            self._columns(Site.DECODER, segments, device), self._columns(Site.CROSS, segments, device)
        )

    def _columns(
        self, site: Site, segments: Segmenter, device: torch.device
    ) -> tuple[PrefixColumns | None, ...]:
        table = self.table(site)
        made = table() if table is not None else None
        known: dict[int, PrefixBlocks] = {}  # layers share them
        columns: list[PrefixColumns | None] = []
        for index, choice in enumerate(self.plan(site)):
            row = table.row(index) if table is not None else None
            observe = self.look(site, index) if self.look is not None else None
            if made is None or row is None:
                columns.append(self._empty(site, observe, device) if observe is not None else None)
                continue
            keys, values = made[row].unbind(0)
            seen = self._blocks(choice, segments, keys.shape[-2], known)
            columns.append(PrefixColumns(keys, values, seen, observe))
        return tuple(columns)

    @staticmethod
    def _blocks(
        choice: Layer, segments: Segmenter, columns: int, known: dict[int, PrefixBlocks]
    ) -> PrefixBlocks | None:
        if not isinstance(choice.prefix, Blocked) or choice.prefix.segments == 1:
            return None  # one segment is ordinary prefix tuning
        count = choice.prefix.segments
        if count not in known:
            known[count] = blocks(segments(count), columns=columns, count=count)
        return known[count]

    def _empty(self, site: Site, observe: Observe, device: torch.device) -> PrefixColumns:
        shape = self.shapes[site]
        nothing = torch.zeros(shape.heads, 0, shape.head_width, device=device)
        return PrefixColumns(nothing, nothing, observe=observe)

    def folded(self) -> dict[str, Tensor]:
        """Return keys and values as saved: "site.layer.keys" and "site.layer.values", each (h p e)."""
        found: dict[str, Tensor] = {}
        for name, table in self.tables.items():
            assert isinstance(table, PrefixTable)
            for row, layer in zip(table.exact().detach().cpu(), table.layers, strict=True):
                for part, tensor in (("keys", row[0]), ("values", row[1])):
                    found[f"{name}.{layer}.{part}"] = tensor.clone(memory_format=torch.contiguous_format)
        return found

    @torch.no_grad()
    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Set keys and values from tensors named as by `folded`.

        Raises:
            UserError: if one is missing, has another shape, or belongs to a layer without a prefix.
        """
        known = set(self.folded())
        for key in tensors:
            if key not in known:
                raise UserError(f"the prefix does not have {key}; it was saved with other sites or layers")
        for name, table in self.tables.items():
            assert isinstance(table, PrefixTable)
            assert table.table is not None, "columns that a network computes cannot be set"
            for row, layer in enumerate(table.layers):
                for part, kind in enumerate(("keys", "values")):
                    _copy(table.table[row, part], tensors, f"{name}.{layer}.{kind}")


def _copy(into: Tensor, tensors: Mapping[str, Tensor], key: str) -> None:
    if key not in tensors:
        raise UserError(f"{key} of the prefix is missing; it was saved with other sites or layers")
    if tensors[key].shape != into.shape:
        raise UserError(
            f"the prefix's {key} has shape {tuple(tensors[key].shape)}; this base needs {tuple(into.shape)}"
        )
    into.copy_(tensors[key])
