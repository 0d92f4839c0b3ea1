"""The adapter of `--model writer` as its package ships it, from a run of `precis tune`.

    python -m experiments.scripts.packaged_adapter --run RUN [--out FOLDER]

FOLDER is by default the package's `adapter`. The matrices are stored in float16, half the size. The licence is that of
the most demanding training text (`packages/precis-model-writer/README.md` lists the texts).
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from precis.generation.adapters import BasePlace, write_base
from precis.generation.model_metadata import ModelUse
from precis.storage.seal import check_sealed, write_folder
from precis.tuning.adapter_folder import RECORD
from precis.tuning.low_rank import TENSORS

PACKAGED = Path(__file__).parents[2] / "packages/precis-model-writer/src/precis_model_writer/adapter"
_LICENCE = "cc-by-sa-4.0"


def package(adapter: Path, out: Path) -> None:
    """Write a sealed folder with what using an adapter needs, and nothing about the machine that trained it."""
    check_sealed(adapter)
    tensors = {name: tensor.to(torch.float16) for name, tensor in load_file(adapter / TENSORS).items()}

    def write(folder: Path) -> None:
        save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
        for name in (RECORD, "adapter_config.json"):
            shutil.copyfile(adapter / name, folder / name)
        ModelUse(licence=_LICENCE, languages=("en",)).save(folder)
        write_base(BasePlace(model="writer"), folder)

    write_folder(out, write)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=PACKAGED)
    asked = parser.parse_args()
    package(asked.run / "adapter", asked.out)


if __name__ == "__main__":
    main()
