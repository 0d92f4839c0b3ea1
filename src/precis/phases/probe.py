"""Look into a model while it reads documents and is shown their summaries: attention and its spectrum.

Layers are counted from 1. Nothing is drawn at random. Segments of blocked prefixes are equal parts of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from precis.data.batches.bucketed import in_order
from precis.data.batches.tokenized import Segmenter, TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import UnitSegmenter
from precis.errors import UserError
from precis.evaluation.probes import AttentionMap, MeanAttention, MeanSpectrum, Spectrum
from precis.generation.adapters import ADAPTER_FOLDER, find_parts
from precis.generation.loading import LoadedModel, load_model, model_use
from precis.generation.model_use import ModelUse
from precis.generation.reading import input_limit, output_limit, units_of_prefix
from precis.models.family import FamilyConfig
from precis.objectives.sequence_to_sequence import segments_of
from precis.phases.sources import percent
from precis.telling import Tell, silent
from precis.tuning.attach import Attachment, Matrices, attach, load_adapter
from precis.tuning.discourse import Tuning, most_segments
from precis.tuning.hosts import find_host
from precis.tuning.prefix import NoPrefix, Site

Progress = Callable[[str, int, int], None]  # what, documents done, of

MOST_SOURCE = 512
"""Tokens of a document that are read unless more are asked for: a matrix grows with their square."""
MOST_TARGET = 128
SOURCE, TARGET = "source token", "target token"
SITE_NAMES = {
    Site.ENCODER: "encoder self-attention",
    Site.CROSS: "cross-attention",
    Site.DECODER: "decoder self-attention",
}


@dataclass(frozen=True)
class Reading:
    """A model with documents as it reads them.

    Attributes:
        adapters: adapters that it is to carry, one after the other.
        rows: token ids, cut where they are too long.
        tokenize: makes them again, with the segments that are asked for.
        facts: what was read and cut, for the record.
    """

    loaded: LoadedModel
    adapters: tuple[Path, ...]
    rows: TokenizedPairs
    tokenize: Callable[[Segmenter | None], TokenizedPairs]
    batch_size: int
    facts: Mapping[str, Any]

    @property
    def tokens(self) -> dict[str, list[str]]:
        """The tokens of the first document and of what the decoder reads, as words are shown."""
        target = self.rows.target(0).tolist()
        read = [self.loaded.model.config.decoder_start_token_id, *target[:-1]]
        return {SOURCE: self._shown(self.rows.source(0).tolist()), TARGET: self._shown(read)}

    def _shown(self, ids: Sequence[int]) -> list[str]:
        tokenizer = self.loaded.tokenizer
        names = tokenizer.convert_ids_to_tokens(list(ids))
        return [tokenizer.decode([token]).strip() or name for token, name in zip(ids, names, strict=True)]

    def rows_for(self, attachment: Attachment) -> TokenizedPairs:
        """The rows with the segments that a prefix of blocks wants, where those are not equal parts."""
        kind = units_of_prefix(attachment.model)
        if kind is None:
            return self.rows
        count, tokenizer = most_segments(attachment.tuning), self.loaded.tokenizer
        return self.tokenize(UnitSegmenter(kind, count, tokenizer, self.facts["instruction"]))


@dataclass(frozen=True)
class Seen:
    """The matrices of one batch, with the real tokens of each row."""

    matrices: Matrices
    sources: Int[Tensor, " b"]
    targets: Int[Tensor, " b"]

    def queries(self, site: Site) -> Int[Tensor, " b"]:
        """How many tokens ask."""
        return self.sources if site is Site.ENCODER else self.targets

    def keys(self, site: Site) -> Int[Tensor, " b"]:
        """How many tokens are attended to."""
        return self.targets if site is Site.DECODER else self.sources


def read_for_probing(
    model: str | Path,
    pairs: Sequence[Pair],
    *,
    adapters: Sequence[str | Path] = (),
    max_source: int | None = None,
    max_target: int | None = None,
    task: str | None = None,
    instruction: str | None = None,
    batch_size: int = 4,
    tell: Tell = silent,
) -> Reading:
    """Load a model without its adapters and tokenize what it is to read.

    Args:
        model: a base, or a run folder of `precis tune`, which knows its base and stands for its own adapter where none
            is given.
        adapters: adapters of that base.
        max_source, max_target: longer texts are cut, counted and told; if None, 512 and 128, or the model's limit.
        task: a task whose instruction is put before every document, if the model was grounded with instructions.
        instruction: text put before every document; if None, what training put there.

    Raises:
        UserError: the model cannot be loaded or is shorter than asked for, there are no pairs, or the adapters were
            trained under different instructions.
    """
    parts = [find_parts(model, adapter) for adapter in adapters] or [find_parts(model)]
    loaded = load_model(parts[0].base)
    uses = [model_use(part.base, part.adapter) for part in parts]
    before = _instruction(uses, task) if instruction is None else instruction
    longest = _longest_source(loaded, uses)
    source = _limit("--max-source", max_source, MOST_SOURCE, longest)
    target = _limit("--max-target", max_target, MOST_TARGET, output_limit(loaded.model.config))

    def tokenize(segmenter: Segmenter | None) -> TokenizedPairs:
        return TokenizedPairs.from_pairs(
            pairs,
            loaded.tokenizer,
            max_source=source,
            max_target=target,
            decoder_start_token_id=loaded.model.config.decoder_start_token_id,
            instruction=before,
            segmenter=segmenter,
        )

    rows = tokenize(None)
    facts = {"model": str(model), **_facts(rows, source, target), "instruction": before}
    for what, cut, limit in (
        ("documents", rows.truncated_sources, source),
        ("summaries", rows.truncated_targets, target),
    ):
        if cut:
            tell(f"{cut:,} of {len(rows):,} {what} ({percent(cut, len(rows))}) are cut to {limit} tokens")
    found = tuple(part.adapter for part in parts if part.adapter is not None)
    return Reading(loaded, found, rows, tokenize, batch_size, facts)


def _facts(rows: TokenizedPairs, max_source: int, max_target: int) -> dict[str, Any]:
    return {
        "documents": len(rows),
        "max_source": max_source,
        "documents_cut": rows.truncated_sources,
        "max_target": max_target,
        "summaries_cut": rows.truncated_targets,
        "source_tokens": int(rows.source_lengths.sum()),
        "target_tokens": int(rows.target_lengths.sum()),
    }


def _instruction(uses: Sequence[ModelUse], task: str | None) -> str:
    found = sorted({use.instruction_for(task) for use in uses})
    if len(found) > 1:
        raise UserError(
            f"the adapters were trained under different instructions, {found[0]!r} and {found[1]!r}; "
            "choose one for all with --instruction"
        )
    return found[0]


def _longest_source(loaded: LoadedModel, uses: Sequence[ModelUse]) -> int | None:
    """The longest input whose matrices are whole: local layers of fusion-in-encoder show chunks."""
    config = loaded.model.config
    if isinstance(config, FamilyConfig) and config.local_chunk is not None:
        return config.local_chunk
    trained = [use.max_source for use in uses if use.max_source is not None]
    return input_limit(config, loaded.tokenizer, trained=min(trained, default=None))


def _limit(option: str, asked: int | None, usual: int, longest: int | None) -> int:
    if asked is None:
        return usual if longest is None else min(usual, longest)
    if longest is not None and asked > longest:
        raise UserError(
            f"{option} {asked}: this model's matrices go up to {longest} tokens; use at most that"
        )
    return asked


@contextmanager
def carrying(reading: Reading, adapter: Path | None) -> Iterator[Attachment]:
    """Inside, the model carries the adapter, or nothing but what looks at its attention.

    Raises:
        UserError: the adapter belongs to another model, or the model cannot carry one.
    """
    model = reading.loaded.model
    nothing = Tuning(prefix=NoPrefix())
    attachment = attach(model, nothing) if adapter is None else load_adapter(model, adapter)
    try:
        yield attachment
    finally:
        attachment.detach()


@torch.no_grad()
def passes(
    reading: Reading, attachment: Attachment, *, name: str, progress: Progress = lambda *_: None
) -> Iterator[Seen]:
    """What each batch's attention looks like: one pass in evaluation mode, the decoder shown the true summary."""
    model, done = reading.loaded.model, 0
    pad = model.config.pad_token_id
    for batch in in_order(reading.rows_for(attachment), batch_size=reading.batch_size, pad_token_id=pad):
        place = batch.to(model.device)
        with attachment.attention() as matrices:
            model(
                input_ids=place.input_ids,
                attention_mask=place.attention_mask,
                labels=place.labels,
                use_cache=False,
                **segments_of(place),
            )
        done += len(batch.input_ids)
        progress(name, done, len(reading.rows))
        sources, targets = batch.attention_mask.sum(1), (batch.labels >= 0).sum(1)
        yield Seen(matrices, sources, targets)


Maps = dict[Site, dict[int, AttentionMap]]
"""By site, by layer from 1."""


def mean_attention(reading: Reading, *, progress: Progress = lambda *_: None) -> Maps:
    """The mean matrix of every site and layer, with the first adapter, if there is one."""
    adapter = reading.adapters[0] if reading.adapters else None
    sums: dict[tuple[Site, int], MeanAttention] = {}
    with carrying(reading, adapter) as attachment:
        for seen in passes(reading, attachment, name="attention", progress=progress):
            for (site, layer), weights in seen.matrices.items():
                if (site, layer) not in sums:
                    sums[site, layer] = MeanAttention(_columns(attachment, site, layer))
                sums[site, layer].add(weights, queries=seen.queries(site), keys=seen.keys(site))
    maps: Maps = {}
    for site, layer in sorted(sums, key=lambda place: (list(Site).index(place[0]), place[1])):
        maps.setdefault(site, {})[layer + 1] = sums[site, layer].result()
    return maps


def _columns(attachment: Attachment, site: Site, layer: int) -> int:
    """How many prefix columns an attention has."""
    table = attachment.prefixes.table(site)
    if table is None or table.row(layer) is None or isinstance(attachment.tuning.prefix, NoPrefix):
        return 0
    return attachment.tuning.prefix.length


Spectra = dict[str, dict[int, Spectrum]]
"""By adapter, by layer from 1; layers without a prefix are left out."""


def prefix_spectra(
    reading: Reading,
    *,
    site: Site = Site.ENCODER,
    progress: Progress = lambda *_: None,
) -> Spectra:
    """The spectrum of every layer's prefix columns at one site, with each of the adapters.

    Raises:
        UserError: there is none, one is of another base, or has no prefix at that site.
    """
    if not reading.adapters:
        raise UserError(
            f"{reading.facts['model']}: carries no prefix, so there is no spectrum; give --adapter"
        )
    found: Spectra = {}
    for name, adapter in zip(_names(reading.adapters), reading.adapters, strict=True):
        sums: dict[int, MeanSpectrum] = {}
        with carrying(reading, adapter) as attachment:
            if attachment.prefixes.table(site) is None:
                raise UserError(
                    f"{adapter}: has no prefix in the {SITE_NAMES[site]}, so it has no spectrum there"
                )
            for seen in passes(reading, attachment, name=name, progress=progress):
                for (place, layer), weights in seen.matrices.items():
                    columns = _columns(attachment, place, layer)
                    if place is site and columns:
                        mean = sums.setdefault(layer + 1, MeanSpectrum(columns))
                        mean.add(weights, queries=seen.queries(site))
        found[name] = {layer: sums[layer].result() for layer in sorted(sums)}
    return found


def _names(adapters: Sequence[Path]) -> list[str]:
    """Short names for a legend: the run's where the folder is called "adapter"; whole paths where these clash."""
    whole = [adapter.resolve() for adapter in adapters]
    if len(set(whole)) < len(whole):
        raise UserError("the same adapter is given twice")
    short = [(path.parent if path.name == ADAPTER_FOLDER else path).name for path in whole]
    return short if len(set(short)) == len(short) else [str(path) for path in whole]


def stack_layers(reading: Reading, site: Site) -> int:
    """How many layers the stack of a site has."""
    return find_host(reading.loaded.model).shapes[site].layers
