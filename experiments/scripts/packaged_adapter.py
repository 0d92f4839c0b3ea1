"""The adapter of `--model writer` as its package ships it, from a run of `precis tune`.

    python -m experiments.scripts.packaged_adapter --run RUN [--rank 16] [--out FOLDER]

RUN is a run, or the folder of an adapter, and FOLDER is by default the package's `adapter`. The matrices are stored in
float16, half the size. `--rank` cuts each product B A to its best approximation of that rank (by singular values). The
licence is that of the most demanding training text (`packages/precis-model-writer/README.md` lists the texts).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from precis.generation.adapters import BasePlace, write_base
from precis.generation.model_metadata import ModelUse
from precis.storage.seal import check_sealed, write_folder
from precis.tuning.adapter_folder import RECORD
from precis.tuning.low_rank import TENSORS

PACKAGED = Path(__file__).parents[2] / "packages/precis-model-writer/src/precis_model_writer/adapter"
_LICENCE = "cc-by-sa-4.0"
_CONFIG = "adapter_config.json"  # PEFT's record
_A, _B = "lora_A", "lora_B"


def package(adapter: Path, out: Path, *, rank: int | None = None) -> None:
    """Write a sealed folder with what using an adapter needs, and nothing about the machine that trained it.

    Args:
        rank: the rank of each product; if None, that of the adapter.
    """
    check_sealed(adapter)
    record, config = (json.loads((adapter / name).read_text()) for name in (RECORD, _CONFIG))
    tensors = load_file(adapter / TENSORS)
    if rank is not None:
        tensors = cut(tensors, rank, trained=record["low_rank"]["rank"])
        _tell_rank(record["low_rank"], config, rank)

    def write(folder: Path) -> None:
        half = {name: tensor.to(torch.float16).contiguous() for name, tensor in tensors.items()}
        save_file(half, folder / TENSORS, metadata={"format": "pt"})
        for name, values in ((RECORD, record), (_CONFIG, config)):
            (folder / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        ModelUse(licence=_LICENCE, languages=("en",)).save(folder)
        write_base(BasePlace(model="writer"), folder)

    write_folder(out, write)


def cut(tensors: dict[str, Tensor], rank: int, *, trained: int) -> dict[str, Tensor]:
    """Return the matrices of the products that are the nearest to B A among those of a lower rank (Eckart, Young).

    Raises:
        SystemExit: if the rank is not between 1 and the trained one.
    """
    if not 1 <= rank <= trained:
        raise SystemExit(f"--rank {rank} must be from 1 to {trained}, the rank of the adapter")
    found = {}
    for name in (each for each in tensors if _A in each):
        (left, top), (right, bottom) = (
            torch.linalg.qr(matrix.double()) for matrix in (tensors[name.replace(_A, _B)], tensors[name].T)
        )
        u, values, v = torch.linalg.svd(top @ bottom.T)
        roots = values[:rank].sqrt()
        found[name] = (right @ v[:rank].T * roots).T
        found[name.replace(_A, _B)] = left @ u[:, :rank] * roots
    return found


def _tell_rank(low_rank: dict[str, Any], config: dict[str, Any], rank: int) -> None:
    """Write a rank into both records, with the alpha that leaves alpha / rank as it was."""
    alpha = low_rank["alpha"] * rank / low_rank["rank"]
    low_rank.update(rank=rank, alpha=alpha)
    config.update(r=rank, lora_alpha=alpha)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--out", type=Path, default=PACKAGED)
    asked = parser.parse_args()
    inner = asked.run / "adapter"
    package(inner if inner.is_dir() else asked.run, asked.out, rank=asked.rank)


if __name__ == "__main__":
    main()
