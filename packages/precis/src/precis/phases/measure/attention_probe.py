"""Record a model's attention and its spectrum while it reads documents with their summaries.

Layers are counted from 1. Nothing is random. Segments of blocked prefixes are equal parts of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from precis.data.batches.length_buckets import in_order
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import UnitSegmenter
from precis.evaluation.probes import AttentionMap, MeanAttention, MeanSpectrum, Spectrum
from precis.generation.input_plan import input_limit, output_limit, units_of_prefix
from precis.generation.model_loader import LoadedModel, load_model
from precis.generation.model_location import locate, names_apart
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify, silent
from precis.models.family import FamilyConfig
from precis.objectives.sequence_to_sequence import segments_of
from precis.phases.data.run_pairs import percent
from precis.phases.measure.evaluation_inputs import Progress
from precis.tuning.attach import Attachment, attach, load_adapter
from precis.tuning.discourse import Tuning, most_segments
from precis.tuning.prefix import NoPrefix, Site
from precis_text.errors import UserError

MOST_SOURCE = 512
"""Default limit of a document's tokens: a matrix grows with their square."""
MOST_TARGET = 128
SOURCE, TARGET = "source token", "target token"
SITE_NAMES = {
    Site.ENCODER: "encoder self-attention",
    Site.CROSS: "cross-attention",
    Site.DECODER: "decoder self-attention",
}


@dataclass(frozen=True)
class ProbedModel:
    """A model with tokenized documents.

    Attributes:
        adapters: adapters to attach, one after the other.
        rows: token ids, truncated to the limits.
        tokenize: tokenizes again, with the given segments.
        facts: what was read and truncated, for the record.
    """

    loaded: LoadedModel
    adapters: tuple[Path, ...]
    rows: TokenizedPairs
    tokenize: Callable[[UnitSegmenter | None], TokenizedPairs]
    batch_size: int
    facts: Mapping[str, Any]

    @property
    def tokens(self) -> dict[str, list[str]]:
        """The tokens of the first document and of the decoder's input, as displayed."""
        tokenizer = self.loaded.tokenizer
        shifted = [self.loaded.model.config.decoder_start_token_id, *self.rows.targets[0].tolist()[:-1]]
        ids = {SOURCE: self.rows.sources[0].tolist(), TARGET: shifted}
        return {
            what: [tokenizer.decode([one]).strip() or tokenizer.convert_ids_to_tokens(one) for one in found]
            for what, found in ids.items()
        }

    def rows_for(self, attachment: Attachment) -> TokenizedPairs:
        """Return the rows with the segments that a blocked prefix needs, if those are not equal parts."""
        kind = units_of_prefix(attachment.model)
        if kind is None:
            return self.rows
        count, tokenizer = most_segments(attachment.tuning), self.loaded.tokenizer
        return self.tokenize(UnitSegmenter(kind, count, tokenizer, self.facts["instruction"]))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The attention of one site and layer, from 1, in one batch: prefix columns come first.

    Attributes:
        weights: (b h i p+j) attention.
        prefix: the number of prefix columns.
        queries, keys: the number of real tokens of each row, without padding.
    """

    site: Site
    layer: int
    weights: Float[Tensor, "b h i pj"]
    prefix: int
    queries: Int[Tensor, " b"]
    keys: Int[Tensor, " b"]


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
    notify: Notify = silent,
) -> ProbedModel:
    """Load a model without its adapters and tokenize its input.

    Args:
        model: a base, or a run folder of `precis tune`, which names its base and provides the default adapter.
        adapters: adapters of that base.
        max_source, max_target: limits; longer texts are truncated and counted. If None, 512 and 128, or the model's
            limit.
        task: a task whose instruction is put before every document, if the model was grounded with instructions.
        instruction: text put before every document; if None, the one from training.

    Raises:
        UserError: the model cannot be loaded or reads less than requested, `pairs` is empty, or the adapters were
            trained with different instructions.
    """
    parts = [locate(model, adapter) for adapter in adapters] or [locate(model)]
    loaded = load_model(parts[0].without_adapter())
    uses = [part.use for part in parts]
    before = _instruction(uses, task) if instruction is None else instruction
    longest = _longest_source(loaded, uses)
    source = _limit("--max-source", max_source, MOST_SOURCE, longest)
    target = _limit("--max-target", max_target, MOST_TARGET, output_limit(loaded.model.config))

    def tokenize(segmenter: UnitSegmenter | None) -> TokenizedPairs:
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
    facts = {
        "model": str(model), "documents": len(rows), "max_source": source,
        "documents_cut": rows.truncated_sources, "max_target": target,
        "summaries_cut": rows.truncated_targets, "source_tokens": int(rows.sources.lengths.sum()),
        "target_tokens": int(rows.targets.lengths.sum()), "instruction": before,
    }  # fmt: skip
    for what, cut, limit in (
        ("documents", rows.truncated_sources, source),
        ("summaries", rows.truncated_targets, target),
    ):
        if cut:
            notify(
                f"{cut:,} of {len(rows):,} {what} ({percent(cut, len(rows))}) are truncated to {limit} tokens"
            )
    found = tuple(part.adapter for part in parts if part.adapter is not None)
    return ProbedModel(loaded, found, rows, tokenize, batch_size, facts)


def _instruction(uses: Sequence[ModelUse], task: str | None) -> str:
    found = sorted({use.instruction_for(task) for use in uses})
    if len(found) > 1:
        raise UserError(
            f"the adapters were trained with different instructions, {found[0]!r} and {found[1]!r}; "
            "choose one for all with --instruction"
        )
    return found[0]


def _longest_source(loaded: LoadedModel, uses: Sequence[ModelUse]) -> int | None:
    """Return the longest input with complete matrices: local layers of fusion-in-encoder show chunks."""
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
            f"{option} {asked}: this model's matrices cover up to {longest} tokens; use at most that"
        )
    return asked


@contextmanager
def carrying(reading: ProbedModel, adapter: Path | None) -> Iterator[Attachment]:
    """Attach the adapter, or only the recorder of attention, while the body runs.

    Raises:
        UserError: the adapter belongs to another model, or the model does not support adapters.
    """
    model = reading.loaded.model
    attachment = attach(model, Tuning(prefix=NoPrefix())) if adapter is None else load_adapter(model, adapter)
    try:
        yield attachment
    finally:
        attachment.detach()


@torch.no_grad()
def passes(
    reading: ProbedModel, attachment: Attachment, *, name: str, progress: Progress = lambda *_: None
) -> Iterator[Seen]:
    """Yield the attention of one forward pass per batch in evaluation mode; the decoder reads the true summary."""
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
        for (site, layer), weights in matrices.items():
            yield Seen(
                site=site,
                layer=layer + 1,
                weights=weights,
                prefix=_columns(attachment, site, layer),
                queries=sources if site is Site.ENCODER else targets,
                keys=targets if site is Site.DECODER else sources,
            )


def _columns(attachment: Attachment, site: Site, layer: int) -> int:
    """Return the number of an attention's prefix columns; `layer` is counted from 0."""
    table, prefix = attachment.prefixes.table(site), attachment.tuning.prefix
    if table is None or table.row(layer) is None or isinstance(prefix, NoPrefix):
        return 0
    return prefix.length


Maps = dict[Site, dict[int, AttentionMap]]
"""Attention by site, by layer from 1."""


def mean_attention(reading: ProbedModel, *, progress: Progress = lambda *_: None) -> Maps:
    """Return the mean matrix of every site and layer, with the first adapter, if there is one."""
    sums: dict[Site, dict[int, MeanAttention]] = {site: {} for site in Site}
    with carrying(reading, next(iter(reading.adapters), None)) as attachment:
        for seen in passes(reading, attachment, name="attention", progress=progress):
            mean = sums[seen.site].setdefault(seen.layer, MeanAttention(seen.prefix))
            mean.add(seen.weights, queries=seen.queries, keys=seen.keys)
    return {
        site: {layer: found[layer].result() for layer in sorted(found)}
        for site, found in sums.items()
        if found
    }


Spectra = dict[str, dict[int, Spectrum]]
"""Spectra by adapter, by layer from 1; without layers that lack a prefix."""


def prefix_spectra(
    reading: ProbedModel, *, site: Site = Site.ENCODER, progress: Progress = lambda *_: None
) -> Spectra:
    """Compute the spectrum of every layer's prefix columns at one site, with each of the adapters.

    Raises:
        UserError: no adapter is given, one belongs to another base, or one lacks a prefix at that site.
    """
    if not reading.adapters:
        raise UserError(f"{reading.facts['model']}: does not have a prefix to analyse; give --adapter")
    names = names_apart(reading.adapters, option="--adapter")
    found: Spectra = {}
    for name, adapter in zip(names, reading.adapters, strict=True):
        sums: dict[int, MeanSpectrum] = {}
        with carrying(reading, adapter) as attachment:
            if attachment.prefixes.table(site) is None:
                raise UserError(f"{adapter}: lacks a prefix in the {SITE_NAMES[site]}; choose another --site")
            for seen in passes(reading, attachment, name=name, progress=progress):
                if seen.site is site and seen.prefix:
                    mean = sums.setdefault(seen.layer, MeanSpectrum(seen.prefix))
                    mean.add(seen.weights, queries=seen.queries)
        found[name] = {layer: sums[layer].result() for layer in sorted(sums)}
    return found
