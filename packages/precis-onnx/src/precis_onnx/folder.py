"""Opens an exported folder: validates it, then opens its sessions and its tokenizer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
from tokenizers import Tokenizer

from precis_text.cores import default_threads
from precis_text.errors import UserError
from precis_text.tokenizer_growth import check_growth
from precis_text.unit_ranker import RANKER_FILE, UnitRanker

SETTINGS, SEAL, TOKENIZER = "onnx.json", "seal.json", "tokenizer.json"
ENCODER, DECODER, SCORER = "encoder_model.onnx", "decoder_model_merged.onnx", "scorer_model.onnx"
_FORMAT = 1
_MOST_BYTES = 1 << 26  # of a JSON file


@dataclass(frozen=True)
class Exported:
    """An opened folder.

    Attributes:
        settings: the content of `onnx.json`.
        encoder: None if a ranker chooses sentences and nothing is written.
        decoder, scorer: None if the model does not write, or does not choose sentences.
        ranker: chooses sentences without the encoder, if the model has one.
    """

    settings: dict[str, Any]
    tokenizer: Tokenizer
    encoder: onnxruntime.InferenceSession | None
    decoder: onnxruntime.InferenceSession | None
    scorer: onnxruntime.InferenceSession | None
    ranker: UnitRanker | None


def open_folder(folder: str | Path, *, threads: int = 0) -> Exported:
    """Open a folder written by `precis export onnx`.

    Args:
        threads: cores to use; 0 for `precis_text.cores.default_threads`.

    Raises:
        UserError: if it is not one, a file has changed since the export, or onnxruntime cannot run it.
    """
    place = Path(folder)
    if not (place / SETTINGS).is_file():
        raise UserError(f"{place}: no {SETTINGS} here; give a folder written by `precis export onnx`")
    sealed = _check_seal(place)
    settings = _read_json(place / SETTINGS)
    if settings.get("format") != _FORMAT:
        raise UserError(
            f"{place / SETTINGS}: has format {settings.get('format')}, but must have {_FORMAT}; export the model again"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or default_threads()
    options.log_severity_level = 3
    options.enable_mem_pattern = False  # it stores every length, and lengths seldom repeat

    def session(name: str) -> onnxruntime.InferenceSession | None:
        if not (place / name).exists():
            return None
        if name not in sealed:
            raise UserError(f"{place / name}: was added after the export, {SEAL} does not list it; remove it")
        try:
            return onnxruntime.InferenceSession(
                str(place / name), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class for each status
            raise UserError(f"{place / name}: cannot be loaded: {str(error).splitlines()[0]}") from error

    encoder = session(ENCODER)
    ranker = UnitRanker.load(place) if RANKER_FILE in sealed else None
    if encoder is None and ranker is None:
        raise UserError(f"{place}: {ENCODER} is missing; export the model again")
    tokenizer = _tokenizer(place / TOKENIZER)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Exported(settings, tokenizer, encoder, session(DECODER), session(SCORER), ranker)


def _tokenizer(file: Path) -> Tokenizer:
    values = _read_json(file)
    try:
        check_growth(values)
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no type of its own
        raise UserError(f"{file}: cannot be loaded: {error}; export the model again") from error


def _check_seal(place: Path) -> frozenset[str]:
    """Check the SHA-256 of every sealed file, and that the necessary files are sealed; return the names."""
    if not (place / SEAL).is_file():
        raise UserError(f"{place}: {SEAL} is missing; copy the folder or export the model again")
    files = _read_json(place / SEAL).get("files")
    if not isinstance(files, dict):
        raise UserError(f"{place / SEAL}: is damaged; copy the folder again")
    for name, entry in files.items():
        file = place / name
        if Path(name).is_absolute() or ".." in Path(name).parts or not file.is_file() or file.is_symlink():
            raise UserError(f"{place}: {name} is missing or outside the folder; copy the folder again")
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if not isinstance(entry, dict) or digest != entry.get("sha256"):
            raise UserError(f"{file}: has changed since the export; copy it again")
    reads = RANKER_FILE if RANKER_FILE in files else ENCODER
    for name in (SETTINGS, reads, TOKENIZER):
        if name not in files:
            raise UserError(f"{place}: {SEAL} does not list {name}; export the model again")
    return frozenset(files)


def _read_json(file: Path) -> dict[str, Any]:
    if file.stat().st_size > _MOST_BYTES:
        raise UserError(f"{file}: is larger than {_MOST_BYTES >> 20} MiB; copy it again")
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: invalid JSON: {error}") from error
    if not isinstance(found, dict):
        raise UserError(f"{file}: is not a JSON object")
    return found
