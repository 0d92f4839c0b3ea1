"""Whether a checkpoint that verifies is one that this run can have written.

Sums say that files are as they were sealed. They do not say that weights are numbers of the model's own type, nor that
the optimizer's state is there: a manifest can be made for anything.
"""

import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from precis.errors import UserError
from precis.files import DamagedError
from precis.model_files import TensorHeader, read_header
from precis.training.tensors import state_tensors

_Record = TypeVar("_Record")
_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def record_from(kind: type[_Record], values: Mapping[str, Any]) -> _Record:
    """A dataclass from JSON, each value of the type that its field says; counts are not negative.

    Raises:
        ValueError: a value is of another type.
        TypeError: a name is unknown or missing.
    """
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not _is_of(value, hints[name]):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
    return kind(**values)


def check_weights(model: nn.Module, file: Path, *, finite: bool = True) -> None:
    """Refuse weights of another type than the model's, or not finite. Names and shapes are looked at when they are
    put in: those of another model are no damage.

    Args:
        finite: whether they have to be; those of a run that says itself that it diverged do not.

    Raises:
        DamagedError: naming the first such tensor.
    """
    expected = state_tensors(model)
    for name, header in _header(file).items():
        if name in expected:
            _check_type(file, name, header, _TYPES.get(expected[name].dtype))
    if finite:
        _check_finite(file)


def check_optimizer(model: nn.Module, file: Path, *, has_stepped: bool, finite: bool = True) -> None:
    """Refuse an optimizer's state of another type than its parameters', not finite, or missing.

    Args:
        has_stepped: whether the optimizer has made a step, so that it has a state.
        finite: as of `check_weights`.

    Raises:
        DamagedError: naming the first such tensor.
    """
    parameters = dict(model.named_parameters())
    found = _header(file)
    if has_stepped and not found:
        raise DamagedError(f"{file.name} is empty, after steps that were made")
    for key, header in found.items():
        kind, _, name = key.partition("/")
        if kind == "step":
            _check_type(file, key, header, "F32")
        elif name in parameters:
            _check_type(file, key, header, _TYPES.get(parameters[name].dtype))
    if finite:
        _check_finite(file)


def _header(file: Path) -> dict[str, TensorHeader]:
    try:
        return read_header(file)
    except UserError as error:
        raise DamagedError(str(error).removeprefix(f"{file.parent}/")) from None


def _check_type(file: Path, name: str, header: TensorHeader, wanted: str | None) -> None:
    if wanted is not None and header.dtype != wanted:
        raise DamagedError(f"{name!r} in {file.name} is {header.dtype} and not {wanted}")


def _check_finite(file: Path) -> None:
    try:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (no mapping)
                tensor: Tensor = tensors.get_tensor(name)
                if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                    raise DamagedError(f"{name!r} in {file.name} is not finite (NaN or infinity)")
    except SafetensorError as error:
        raise DamagedError(f"{file.name} cannot be read ({error})") from None


def _is_of(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, choice) for choice in arguments)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(item, arguments[1]) for item in value.values())
    if hint is types.NoneType:
        return value is None
    if hint is bool or isinstance(value, bool):
        return hint is bool and isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and value >= 0
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, hint)
