"""Fingerprint a model: its location, and digests of the files that determine its summaries.

Resumed work compares fingerprints, so that no file mixes summaries of two models.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from precis.generation.adapters import Parts
from precis.generation.model_loader import find_model
from precis.storage.seal import has_seal, sealed_digests

_DECIDE = (".safetensors", ".json", ".txt", ".model", ".jinja")  # files of a model folder that loading reads


def made_with(parts: Parts) -> dict[str, str]:
    """Return the fingerprint of a model and its adapter, which determine the predictions."""
    place = find_model(parts.base)
    made = {"model": str(place.resolve()) if isinstance(place, Path) else place, "weights": _digest(place)}
    if parts.adapter is not None:
        made |= {"adapter": str(parts.adapter.resolve()), "adapter_weights": _digest(parts.adapter)}
    return made


def _digest(place: Path | str) -> str:
    """Return a digest of the weights, the tokenizer, the settings and the decoding settings.

    A sealed folder was just checked against its seal, so its digests come from the seal.
    """
    if not isinstance(place, Path):
        return ""
    if has_seal(place):
        return hashlib.sha256(json.dumps(sealed_digests(place), sort_keys=True).encode()).hexdigest()[:16]
    whole = hashlib.sha256()
    for file in sorted(file for file in place.iterdir() if file.suffix in _DECIDE and file.is_file()):
        whole.update(f"{file.name} {file.stat().st_size}\n".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()[:16]
