"""Writes the output files of the probes.

OUT/attention.json, prefix-share.png      what was read, and each layer's share of attention on the prefix
OUT/attention-SITE.png, SITE/layer-N.csv  mean matrices (Figures 1 and 6 of the discourse paper)
OUT/spectrum.json, .csv, .png             cumulative singular values of prefix attention (Figure 7)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from precis.evaluation.probe_plots import draw_maps, draw_shares, draw_spectra
from precis.evaluation.probes import AttentionMap, Spectrum, pooled
from precis.phases.measure.attention_probe import SITE_NAMES, SOURCE, TARGET, Maps, ProbedModel, Spectra
from precis.phases.output_folders import writing_to
from precis.storage.atomic import write_file, write_json
from precis.tuning.base_model import find_base
from precis.tuning.discourse import LOWER_SHARE, lower_layers
from precis.tuning.prefix import Site
from precis_text.row import pluralize

_AXES = {Site.ENCODER: (SOURCE, SOURCE), Site.CROSS: (TARGET, SOURCE), Site.DECODER: (TARGET, TARGET)}


def write_attention(maps: Maps, reading: ProbedModel, out: Path) -> None:
    """Write all files of the attention probe."""
    facts = {**reading.facts, "adapter": next(map(str, reading.adapters), None)}
    tokens = reading.tokens if facts["documents"] == 1 else None  # means over documents have positions only
    if tokens is not None:
        facts["tokens"] = tokens
    read = f"{_read(facts)}, mean over heads"
    with writing_to(out, doing="writing a probe to"):
        for site, layers in maps.items():
            queries, keys = _AXES[site]
            title = f"{SITE_NAMES[site]}: {read}"
            draw_maps(
                layers,
                out / f"attention-{site.value}.png",
                title=title,
                queries=queries,
                keys=keys,
                query_tokens=tokens[queries] if tokens else (),
                key_tokens=tokens[keys] if tokens else (),
            )
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
        write_json(out / "attention.json", {**facts, "sites": sites})


def _map_record(layer: int, found: AttentionMap) -> dict[str, Any]:
    queries, columns = found.weights.shape
    return {
        "layer": layer, "prefix_columns": found.prefix, "prefix_share": round(found.prefix_share, 6),
        "queries": queries, "keys": columns - found.prefix,
    }  # fmt: skip


def write_spectra(
    spectra: Spectra, reading: ProbedModel, out: Path, *, site: Site, lower_share: float = LOWER_SHARE
) -> dict[str, dict[str, Spectrum]]:
    """Write the spectrum probe's files; return the pools of lower (a share in (0, 1]) and upper layers, as drawn."""
    facts, layers = reading.facts, find_base(reading.loaded.model).shapes[site].layers
    border = lower_layers(layers, lower_share)
    groups = {"lower": range(1, border + 1), "upper": range(border + 1, layers + 1)}
    pools: dict[str, dict[str, Spectrum]] = {}
    for group, members in groups.items():
        for name, found in spectra.items():
            inside = [spectrum for layer, spectrum in found.items() if layer in members]
            if inside:
                pools.setdefault(group, {})[name] = pooled(inside)
    with writing_to(out, doing="writing a probe to"):
        title = f"Prefix columns of {SITE_NAMES[site]}: {_read(facts)}"
        panels = {f"{group} layers ({_span(groups[group])})": found for group, found in pools.items()}
        draw_spectra(panels, out / "spectrum.png", title=title)
        rows: list[tuple[str, str, Spectrum]] = [
            (name, str(layer), spectrum)
            for name, found in spectra.items()
            for layer, spectrum in found.items()
        ]
        rows += [
            (name, group, spectrum) for group, found in pools.items() for name, spectrum in found.items()
        ]
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
        write_json(out / "spectrum.json", {**facts, **record, "spectra": described})
    return pools


def _read(facts: Mapping[str, Any]) -> str:
    cut = facts["documents_cut"]
    tail = f" ({cut:,} truncated to {facts['max_source']} tokens)" if cut else ""
    return f"{pluralize(facts['documents'], 'document')}{tail}"


def _span(members: range) -> str:
    return str(members.start) if len(members) == 1 else f"{members.start}-{members.stop - 1}"


def _spectrum_lines(name: str, layers: str, spectrum: Spectrum) -> Iterator[list[object]]:
    if not spectrum.matrices:
        return
    columns = zip(spectrum.values, spectrum.cumulative, spectrum.energy, strict=True)
    for index, numbers in enumerate(columns):
        yield [name, layers, index + 1, *(f"{number:.8g}" for number in numbers)]


def write_table(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file to a temporary name and rename it; None is an empty cell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_file(file, content.getvalue())


def write_map(file: Path, found: AttentionMap) -> None:
    """Write a matrix as CSV: a row per query with its number of documents; columns p1.. (prefix), k1.. (input)."""
    inputs = found.weights.shape[1] - found.prefix
    names = [f"p{n + 1}" for n in range(found.prefix)] + [f"k{n + 1}" for n in range(inputs)]
    rows = (
        [query + 1, int(documents), *(f"{weight:.6g}" for weight in weights)]
        for query, (documents, weights) in enumerate(zip(found.documents, found.weights, strict=True))
    )
    write_table(file, ["query", "documents", *names], rows)
