"""Open a checkpoint of fairseq without running what somebody else may have put into it.

A `.pt` is a pickle. torch's restricted unpickler makes tensors, plain containers and the classes named here, and calls
nothing else; a file that needs more is refused.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from precis.errors import UserError


class _Record:
    """Stands for the meters of fairseq 0.9, which its checkpoints hold as objects; they are not used."""


_METERS = tuple(f"fairseq.meters.{name}" for name in ("AverageMeter", "TimeMeter", "StopwatchMeter"))


def read_checkpoint(file: str | Path) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
    """Weights by fairseq's names, and the options that the model was trained with; `.safetensors` hold none.

    Raises:
        UserError: the file is missing or damaged, holds other objects, or no weights.
    """
    path = Path(file)
    if not path.is_file():
        raise UserError(
            f"{file}: is a folder, not a checkpoint" if path.is_dir() else f"{file}: no such file"
        )
    allowed: list[Any] = [argparse.Namespace, *((_Record, meter) for meter in _METERS)]
    try:
        if path.suffix == ".safetensors":
            return load_file(path), {}
        with torch.serialization.safe_globals(allowed):
            whole = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, SafetensorError) as error:
        reason = (str(error) or "it ends too early").splitlines()[0]
        raise UserError(f"{file}: cannot be read: {reason}") from error
    except Exception as error:  # torch raises the unpickler's own error, whose module is not imported here
        raise UserError(
            f"{file}: holds more than tensors and plain values, and is not opened; where you trust its author, save "
            "its weights with safetensors.torch.save_file and give that file"
        ) from error
    state = whole.get("model") if isinstance(whole, dict) else None
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise UserError(f"{file}: has no 'model' with weights: not a checkpoint of fairseq")
    options = whole.get("args")
    return state, vars(options) if isinstance(options, argparse.Namespace) else {}
