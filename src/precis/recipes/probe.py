"""Look into a model while it reads documents and is shown their summaries: attention and its spectrum.

    OUT/attention.json, prefix-share.png      what was read, and how much attention each layer gives to the prefix
    OUT/attention-SITE.png, SITE/layer-N.csv  mean matrices (Figures 1 and 6 of the discourse paper)
    OUT/spectrum.json, .csv, .png             cumulative singular values of prefix attention (Figure 7)

Layers are counted from 1. Nothing is drawn at random.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from precis.data.batches import in_order
from precis.data.pairs import Pair
from precis.data.tokenized import TokenizedPairs
from precis.errors import UserError
from precis.evaluation.probe_plots import draw_maps, draw_shares, draw_spectra, write_map, write_table
from precis.evaluation.probes import AttentionMap, MeanAttention, MeanSpectrum, Spectrum, pooled
from precis.generation.loading import LoadedModel, load_model
from precis.generation.reading import input_limit, output_limit
from precis.models.zcodepp_config import ZCodePPConfig
from precis.recipes.sources import percent
from precis.training.sealed import write_atomically
from precis.tuning.adapter import is_adapter
from precis.tuning.attach import Attachment, Matrices, attach, load_adapter
from precis.tuning.discourse import LOWER_SHARE, Tuning, lower_layers
from precis.tuning.prefix import NoPrefix, Site

Tell = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # what, documents done, of

MOST_SOURCE = 512
"""Tokens of a document that are read unless more are asked for: a matrix grows with their square."""
MOST_TARGET = 128
ADAPTER_FOLDER = "adapter"
"""Where a run folder has its adapter."""

SITE_NAMES = {
    Site.ENCODER: "encoder self-attention",
    Site.CROSS: "cross-attention",
    Site.DECODER: "decoder self-attention",
}
_SOURCE, _TARGET = "source token", "target token"
_AXES = {
    Site.ENCODER: (_SOURCE, _SOURCE),
    Site.CROSS: (_TARGET, _SOURCE),
    Site.DECODER: (_TARGET, _TARGET),
}


@dataclass(frozen=True)
class Reading:
    """A model with documents as it reads them.

    Attributes:
        rows: token ids, cut where they are too long.
        facts: what was read and cut, for the record.
    """

    loaded: LoadedModel
    rows: TokenizedPairs
    batch_size: int
    facts: Mapping[str, Any]


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
    max_source: int | None = None,
    max_target: int | None = None,
    instruction: str | None = None,
    batch_size: int = 4,
    tell: Tell = lambda _: None,
) -> Reading:
    """Load a model and tokenize what it is to read.

    Args:
        max_source, max_target: longer texts are cut, which is counted and told; None: 512 and 128, or the model's limit.
        instruction: put before every document; None: as the model was trained.

    Raises:
        UserError: the model cannot be loaded or is shorter than asked for, or there are no pairs.
    """
    loaded = load_model(model)
    longest = _longest_source(loaded)
    source = _limit("--max-source", max_source, MOST_SOURCE, longest)
    target = _limit("--max-target", max_target, MOST_TARGET, output_limit(loaded.model.config))
    before = loaded.use.instruction if instruction is None else instruction
    rows = TokenizedPairs.from_pairs(
        pairs,
        loaded.tokenizer,
        max_source=source,
        max_target=target,
        decoder_start_token_id=loaded.model.config.decoder_start_token_id,
        instruction=before,
    )
    facts = {
        "model": str(model),
        "documents": len(rows),
        "max_source": source,
        "documents_cut": rows.truncated_sources,
        "max_target": target,
        "summaries_cut": rows.truncated_targets,
        "source_tokens": int(rows.source_lengths.sum()),
        "target_tokens": int(rows.target_lengths.sum()),
        "instruction": before,
    }
    for what, cut, limit in (
        ("documents", rows.truncated_sources, source),
        ("summaries", rows.truncated_targets, target),
    ):
        if cut:
            tell(f"{cut:,} of {len(rows):,} {what} ({percent(cut, len(rows))}) are cut to {limit} tokens")
    return Reading(loaded, rows, batch_size, facts)


def _longest_source(loaded: LoadedModel) -> int | None:
    """The longest input whose matrices are whole: local layers of fusion-in-encoder show chunks."""
    config = loaded.model.config
    if isinstance(config, ZCodePPConfig) and config.chunk_length is not None:
        return config.chunk_length
    return input_limit(config, loaded.tokenizer, trained=loaded.use.max_source)


def _limit(option: str, asked: int | None, usual: int, longest: int | None) -> int:
    if asked is None:
        return usual if longest is None else min(usual, longest)
    if longest is not None and asked > longest:
        raise UserError(
            f"{option} {asked}: this model's matrices go up to {longest} tokens; use at most that"
        )
    return asked


def find_adapter(folder: str | Path) -> Path:
    """The folder of an adapter: itself, or the one in a run folder.

    Raises:
        UserError: there is none.
    """
    path = Path(folder)
    for place in (path, path / ADAPTER_FOLDER):
        if is_adapter(place):
            return place
    raise UserError(f"{folder}: no adapter here; looked for adapter.json and {ADAPTER_FOLDER}/adapter.json")


@contextmanager
def carrying(reading: Reading, adapter: str | Path | None) -> Iterator[Attachment]:
    """Inside, the model carries the adapter, or nothing but what looks at its attention.

    Raises:
        UserError: the adapter belongs to another model, or the model cannot carry one.
    """
    model = reading.loaded.model
    if adapter is None:
        attachment = attach(model, Tuning(prefix=NoPrefix()))
    else:
        attachment = load_adapter(model, find_adapter(adapter))
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
    for batch in in_order(reading.rows, batch_size=reading.batch_size, pad_token_id=pad):
        place = batch.to(model.device)
        with attachment.attention() as matrices:
            model(
                input_ids=place.input_ids,
                attention_mask=place.attention_mask,
                labels=place.labels,
                use_cache=False,
            )
        done += len(batch.input_ids)
        progress(name, done, len(reading.rows))
        sources, targets = batch.attention_mask.sum(1), (batch.labels >= 0).sum(1)
        yield Seen(matrices, sources, targets)


Maps = dict[Site, dict[int, AttentionMap]]


def mean_attention(
    reading: Reading, adapter: str | Path | None, *, progress: Progress = lambda *_: None
) -> Maps:
    """The mean matrix of every site and layer."""
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


def write_attention(maps: Maps, out: Path, *, facts: Mapping[str, Any], adapter: str | Path | None) -> None:
    """All files of the attention probe."""
    named = str(adapter) if adapter is not None else None
    read = f"{facts['documents']:,} documents, mean over heads"
    for site, layers in maps.items():
        queries, keys = _AXES[site]
        title = f"{SITE_NAMES[site]}: {read}"
        draw_maps(layers, out / f"attention-{site.value}.png", title=title, queries=queries, keys=keys)
        for layer, found in layers.items():
            write_map(out / site.value / f"layer-{layer}.csv", found)
    shares = {
        SITE_NAMES[site]: {layer: found.prefix_share for layer, found in layers.items() if found.prefix}
        for site, layers in maps.items()
    }
    shares = {site: layers for site, layers in shares.items() if layers}
    if shares:
        draw_shares(shares, out / "prefix-share.png", title=f"Prefix attention: {read}")
    sites = {site.value: [_map_record(*item) for item in layers.items()] for site, layers in maps.items()}
    _write_json(out / "attention.json", {**facts, "adapter": named, "sites": sites})


def _map_record(layer: int, found: AttentionMap) -> dict[str, Any]:
    queries, columns = found.weights.shape
    return {
        "layer": layer,
        "prefix_columns": found.prefix,
        "prefix_share": round(found.prefix_share, 6),
        "queries": queries,
        "keys": columns - found.prefix,
    }


Spectra = dict[str, dict[int, Spectrum]]
"""By adapter, by layer from 1; layers without a prefix are left out."""


def prefix_spectra(
    reading: Reading,
    adapters: Sequence[str | Path],
    *,
    site: Site = Site.ENCODER,
    progress: Progress = lambda *_: None,
) -> Spectra:
    """The spectrum of every layer's prefix columns at one site, with each of several adapters of the same base.

    Raises:
        UserError: an adapter is of another base, or has no prefix at that site.
    """
    names = _names(adapters)
    found: Spectra = {}
    for name, adapter in zip(names, adapters, strict=True):
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


def _names(adapters: Sequence[str | Path]) -> list[str]:
    """Short names for a legend: of its run where the folder is called "adapter"; whole paths where these clash."""
    paths = [Path(adapter) for adapter in adapters]
    short = [
        (path.resolve().parent if path.name == ADAPTER_FOLDER else path.resolve()).name for path in paths
    ]
    if len(set(short)) == len(short):
        return short
    if len(set(paths)) < len(paths):
        raise UserError("the same adapter is given twice")
    return [str(path) for path in paths]


def write_spectra(
    spectra: Spectra,
    out: Path,
    *,
    layers: int,
    site: Site,
    facts: Mapping[str, Any],
    lower_share: float = LOWER_SHARE,
) -> dict[str, dict[str, Spectrum]]:
    """All files of the spectrum probe; lower and upper layers pooled, as they are drawn.

    Args:
        layers: of the whole stack.
        lower_share: part of it that is lower, in (0, 1].
    """
    border = lower_layers(layers, lower_share)
    groups = {"lower": range(1, border + 1), "upper": range(border + 1, layers + 1)}
    pools: dict[str, dict[str, Spectrum]] = {}
    for group, members in groups.items():
        for name, found in spectra.items():
            inside = [spectrum for layer, spectrum in found.items() if layer in members]
            if inside:
                pools.setdefault(group, {})[name] = pooled(inside)
    title = f"Prefix columns of {SITE_NAMES[site]}, {facts['documents']:,} documents"
    panels = {f"{group} layers ({_span(groups[group])})": found for group, found in pools.items()}
    draw_spectra(panels, out / "spectrum.png", title=title)
    rows: list[tuple[str, str, Spectrum]] = [
        (name, str(layer), spectrum) for name, found in spectra.items() for layer, spectrum in found.items()
    ]
    rows += [(name, group, spectrum) for group, found in pools.items() for name, spectrum in found.items()]
    header = ["adapter", "layers", "index", "singular_value", "cumulative", "cumulative_energy"]
    write_table(out / "spectrum.csv", header, (line for row in rows for line in _spectrum_lines(*row)))
    spans = {group: [members.start, members.stop - 1] for group, members in groups.items() if members}
    record = {"site": site.value, "layers": layers, "groups": spans}
    described = [
        {
            "adapter": name,
            "layers": where,
            "matrices": s.matrices,
            "empty": s.empty,
            "components_for_90%": s.rank,
        }
        for name, where, s in rows
    ]
    _write_json(out / "spectrum.json", {**facts, **record, "spectra": described})
    return pools


def _span(members: range) -> str:
    return str(members.start) if len(members) == 1 else f"{members.start}-{members.stop - 1}"


def _spectrum_lines(name: str, layers: str, spectrum: Spectrum) -> Iterator[list[object]]:
    if not spectrum.matrices:
        return
    columns = zip(spectrum.values, spectrum.cumulative, spectrum.energy, strict=True)
    for index, numbers in enumerate(columns):
        yield [name, layers, index + 1, *(f"{number:.8g}" for number in numbers)]


def _write_json(file: Path, record: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
