"""Adapters on disk: a folder with the folded keys and values, and a record of the base model.

    adapter.safetensors    "site.layer.keys" and "site.layer.values", each (heads, columns, head width)
    adapter.json           the settings, and the base: its class, shapes and a checksum of its weights

The weights of the base are not saved.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from precis.storage.model_files import ADAPTER_RECORD, adapter_in, read_header
from precis.storage.seal import check_sealed, write_folder
from precis.tuning.discourse import Tuning
from precis.tuning.prefix import Direct, NoPrefix, Site, SiteShape
from precis_text.bounded_io import MAX_BYTES, check_inside, parse_json, read_bounded
from precis_text.config import Settings
from precis_text.errors import UserError

TENSORS, RECORD = "adapter.safetensors", ADAPTER_RECORD
_FORMAT = 1


@final
@dataclass(frozen=True, kw_only=True)
class BaseRecord(Settings):
    """The base model that an adapter belongs to.

    Attributes:
        architecture: the name of the model class.
        shapes: layers, heads and head width of each site in the order of `Site`, such as "12x16x64".
        digest: SHA-256 of its weights in bfloat16, so that float32 and bfloat16 copies have the same digest.
    """

    architecture: str
    shapes: tuple[str, ...]
    digest: str

    def check(self, found: BaseRecord, *, name: str, rounded: bool = False) -> None:
        """Check that a base is the one that an adapter was trained on.

        Args:
            name: the adapter's name for the error message.
            rounded: whether the weights are float16, so that a different digest does not prove a different base.

        Raises:
            UserError: if class, shapes or weights differ; the message names both.
        """
        for what, own, other in (
            ("model class", self.architecture, found.architecture),
            ("layers x heads x width", ", ".join(self.shapes), ", ".join(found.shapes)),
            ("weights (digest)", self.digest[:12], found.digest[:12]),
        ):
            if own != other:
                remedy = "load it on the base it was trained on"
                if rounded and what.startswith("weights"):
                    remedy = "float16 weights cannot be checked, so load the base in float32 or bfloat16"
                raise UserError(
                    f"{name} was trained on {self.architecture} and does not fit this "
                    f"{found.architecture}: {what} {own} against {other}; {remedy}"
                )


def describe_base(model: nn.Module, shapes: Mapping[Site, SiteShape], weights: Iterable[str]) -> BaseRecord:
    """Return the record of a base model.

    Args:
        shapes: the shapes of its sites; empty for an adapter that has none.
        weights: names of its parameters, without those of a prefix.
    """
    return BaseRecord(
        architecture=type(model).__name__,
        shapes=tuple(
            f"{s.layers}x{s.heads}x{s.head_width}" for s in (shapes[site] for site in Site if site in shapes)
        ),
        digest=_digest(model, weights),
    )


def in_float16(model: nn.Module) -> bool:
    """Return whether any weight is float16. It rounds differently from bfloat16, so the digest may differ."""
    return any(parameter.dtype is torch.float16 for parameter in model.parameters())


@torch.no_grad()
def _digest(model: nn.Module, names: Iterable[str]) -> str:
    parameters = dict(model.named_parameters())
    digest = hashlib.sha256()
    for name in sorted(names):
        weight = parameters[name]
        digest.update(f"{name} {tuple(weight.shape)}\n".encode())
        digest.update(
            weight.detach().to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy().tobytes()
        )
    return digest.hexdigest()


def folded(tuning: Tuning) -> Tuning:
    """Return the same settings with keys and values as the parameters, as saved on disk."""
    if isinstance(tuning.prefix, NoPrefix):
        return tuning
    return replace(tuning, prefix=replace(tuning.prefix, keys=Direct()))


@final
@dataclass(frozen=True)
class Adapter:
    """A trained prefix without its base; error messages call it `name`."""

    tuning: Tuning
    base: BaseRecord
    tensors: Mapping[str, Tensor]
    name: str = "this adapter"

    def check(self, base: BaseRecord, *, rounded: bool = False) -> None:
        """Check that a base is the one that the adapter was trained on; see `BaseRecord.check`."""
        self.base.check(base, name=self.name, rounded=rounded)

    def save(self, folder: str | Path) -> None:
        """Write both files to a folder with checksums; replace an adapter that is already there.

        Raises:
            UserError: if `folder` contains anything other than an adapter.
            OSError, SafetensorError: if it cannot be written. The previous content is then unchanged.
        """
        write_folder(Path(folder), self.write_files)

    def write_files(self, folder: Path) -> None:
        """Write both files into an existing folder; the caller adds the checksums."""
        record = {"format": _FORMAT, "base": self.base.to_dict(), "tuning": self.tuning.to_dict()}
        save_file(dict(self.tensors), folder / TENSORS)
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read the adapter in a folder, or in the `adapter/` of a run folder.

        Raises:
            UserError: if there is none, its checksums do not match, or a file cannot be read.
        """
        folder = adapter_in(folder)
        check_inside(folder)
        check_sealed(folder)
        record = read_record(folder)
        if "tuning" not in record:
            raise UserError(
                f"{folder}: is a low-rank adapter, not a prefix; use it with --model, or in precis.generation"
            )
        tensors = read_adapter_tensors(folder / TENSORS)
        try:
            tuning, base = Tuning.from_dict(record["tuning"]), BaseRecord.from_dict(record["base"])
        except (UserError, TypeError, ValueError, AttributeError) as problem:
            raise UserError(f"{folder / RECORD} cannot be used ({problem}); copy the adapter again") from None
        return cls(tuning=tuning, base=base, tensors=tensors, name=f"the adapter {folder}")


read_adapter = Adapter.read


def read_adapter_tensors(file: Path) -> dict[str, Tensor]:
    """Return an adapter's tensors in float32.

    Raises:
        UserError: if the file cannot be read, or a tensor is of another type than float32 and float16, or not finite.
    """
    try:
        headers = read_header(file)
    except UserError as problem:
        reason = str(problem).removeprefix(f"{file}: ")
        raise UserError(f"{file} cannot be read ({reason}); copy the adapter again") from None
    for name, header in headers.items():
        if header.dtype not in ("F32", "F16"):
            raise UserError(
                f"{file}: {name!r} is {header.dtype}, not float32 or float16; copy the adapter again"
            )
    try:
        tensors = {name: tensor.float() for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as problem:
        raise UserError(f"{file} cannot be read ({problem}); copy the adapter again") from None
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise UserError(f"{file}: {name!r} contains NaN or infinity; copy the adapter again")
    return tensors


def read_record(folder: Path) -> dict[str, Any]:
    """Return the content of an adapter's record; raise `UserError` if it is missing, damaged or of another version."""
    file = folder / RECORD
    try:
        record = parse_json(read_bounded(file, limit=MAX_BYTES))
        form = record["format"]
        record["base"], "tuning" in record or record["low_rank"]
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{file} is damaged ({problem!r}); copy the adapter again") from None
    if form != _FORMAT:
        raise UserError(f"{file} has format {form}; this version of precis reads format {_FORMAT}")
    return record
