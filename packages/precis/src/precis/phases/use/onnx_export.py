"""Exports a model folder as ONNX files, which onnxruntime runs without torch."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from transformers import PreTrainedTokenizerFast

from precis.export import onnx_files, onnx_graphs
from precis.export.onnx_files import SETTINGS, settings_for, source_limits
from precis.generation.model_loader import LoadedModel, load_model
from precis.models.family import FamilyConfig
from precis.models.unit_scorer import load_scorer
from precis.phases.output_folders import folder_to_be
from precis.storage.seal import refuse_foreign, write_folder
from precis.tuning import attached
from precis_text.errors import UserError
from precis_text.unit_ranker import RANKER_FILE, has_ranker

ENCODER = "encoder_model.onnx"
DECODER = "decoder_model_merged.onnx"
SCORER = "scorer_model.onnx"
_SHORT = 9  # tokens of an example; no encoder splits it into chunks


@dataclass(frozen=True)
class Exported:
    """The result of an export: the ONNX files and their bytes, and the model's modes."""

    files: dict[str, int]
    modes: tuple[str, ...]


def export_onnx(model: str | Path, out: Path, *, int8: bool = False) -> Exported:
    """Write a model as ONNX files with its tokenizer and settings.

    Args:
        model: a run folder, a Hugging Face folder or a hub name.
        int8: quantize matrices to eight bits: a quarter of the size, slightly different numbers.

    Raises:
        UserError: the packages are missing, the model cannot be exported, or `out` contains something else.
    """
    onnx_files.need_onnx()
    folder_to_be(out)
    refuse_foreign(out)
    loaded = load_model(model, device="cpu")
    _check(loaded)
    settings = settings_for(loaded)
    made = _graphs(loaded)

    def write(place: Path) -> None:
        for name, graph in made.items():
            onnx_files.save(graph, place / name)
            if int8:
                onnx_files.quantize(place / name)
        (place / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        loaded.model.config.save_pretrained(place)
        if loaded.model.generation_config is not None:
            loaded.model.generation_config.save_pretrained(place)
        loaded.tokenizer.save_pretrained(place)
        if _is_ranked(loaded):
            shutil.copyfile(cast(Path, loaded.folder) / RANKER_FILE, place / RANKER_FILE)

    write_folder(out, write)
    names = [*made, *([RANKER_FILE] if _is_ranked(loaded) else [])]
    return Exported({name: (out / name).stat().st_size for name in names}, loaded.use.modes)


def _check(loaded: LoadedModel) -> None:
    if attached(loaded.model) is not None:
        raise UserError(
            f"{loaded.source}: cannot export a model with a prefix; name a model without an adapter"
        )
    if not isinstance(loaded.tokenizer, PreTrainedTokenizerFast):
        raise UserError(f"{loaded.source}: its tokenizer lacks tokenizer.json, which an exported model needs")
    if loaded.model.config.model_type == "led":
        raise UserError(
            f"{loaded.source}: cannot export LED's windowed attention; export a Z-Code++, ProphetNet, BART or T5"
        )


def _graphs(loaded: LoadedModel) -> dict[str, Any]:
    model, what = loaded.model, f"{loaded.source}: this {loaded.model.config.model_type!r} model"
    if _is_ranked(loaded) and "abstract" not in loaded.use.modes:
        return {}  # a ranker needs no graph
    made = {ENCODER: _encoder(loaded, what)}
    if "abstract" in loaded.use.modes:
        first, later = onnx_graphs.decoder_steps(model)
        made[DECODER] = onnx_files.either(
            onnx_files.flag("use_cache_branch"),
            onnx_files.traced(later, what),
            onnx_files.traced(first, what),
            outputs=first.outputs,
        )
    if "extract" in loaded.use.modes and loaded.folder is not None and not _is_ranked(loaded):
        scorer = load_scorer(loaded.folder, states=model.config.hidden_size)
        made[SCORER] = onnx_files.traced(onnx_graphs.unit_scorer(scorer), what)
    return made


def _is_ranked(loaded: LoadedModel) -> bool:
    """Return whether a ranker chooses the model's sentences, without its encoder."""
    return loaded.folder is not None and has_ranker(loaded.folder)


def _encoder(loaded: LoadedModel, what: str) -> Any:
    """Trace the encoder; if it reads long inputs in chunks, one file switches by length."""
    config, (whole, longest) = loaded.model.config, source_limits(loaded)
    chunk = config.local_chunk if isinstance(config, FamilyConfig) else None
    plain = onnx_files.traced(onnx_graphs.encoder(loaded.model, length=min(_SHORT, chunk or _SHORT)), what)
    fuses = longest > whole
    if chunk is None and not fuses:
        return plain
    border = whole if chunk is None else chunk
    cut = onnx_graphs.encoder(loaded.model, length=2 * (chunk or 256) + 3, fused=chunk is None)
    return onnx_files.either(
        onnx_files.longer_than("input_ids", border),
        onnx_files.traced(cut, what),
        plain,
        outputs=("last_hidden_state",),
    )
