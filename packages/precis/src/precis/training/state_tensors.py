"""Model and optimizer state as flat dictionaries of named tensors, the format of safetensors, and checks of their files
before a run resumes.

Frozen parameters (``requires_grad`` is off) are not part of a run's state: they never change, and a checkpoint without
them is smaller.

Checksums prove that files are unchanged, not that weights are finite and have the model's type, nor that the
optimizer's state is complete. `check_weights` and `check_optimizer` check that.
"""

import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn, optim

from precis.storage.model_files import TensorHeader, read_header
from precis.storage.seal import DamagedError
from precis_text.errors import UserError

_Record = TypeVar("_Record")
_TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip
_KINDS = ("exp_avg", "exp_avg_sq", "step")  # AdamW's state per parameter


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return trainable parameters and persistent buffers on the CPU by name, tied ones once, by their first name."""
    return {name: tensor.cpu().contiguous() for name, tensor in _untied_state(model).items()}


def load_model_tensors(
    model: nn.Module, tensors: Mapping[str, Tensor], *, origin: str, finite: bool = True
) -> None:
    """Copy saved tensors into `model` in place, so that ties and the optimizer's references stay valid.

    Args:
        finite: require finite tensors.

    Raises:
        UserError: a name or a shape does not fit, so the tensors belong to another model; or they have another type,
            or are not finite.
    """
    expected = _untied_state(model)
    _check_fit({n: t.shape for n, t in expected.items()}, tensors, origin=origin)
    for name, own in expected.items():
        found = tensors[name]
        if found.dtype != own.dtype:
            raise UserError(
                f"{origin} is damaged: {name!r} is {found.dtype} instead of {own.dtype}; use another one"
            )
        if finite and found.is_floating_point() and not torch.isfinite(found).all():
            raise UserError(f"{origin} is damaged: {name!r} is not finite (NaN or infinity); use another one")
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])


def optimizer_tensors(model: nn.Module, optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer's tensors on the CPU as ``<kind>/<parameter name>``: ``exp_avg/encoder.weight``.

    A parameter that has not been stepped yet, while others have (objectives take turns, the later one was skipped),
    gets the zeros of its first step. So a checkpoint has a state for every parameter, or for none.
    """
    steps = {name: optimizer.state.get(parameter, {}) for name, parameter in model.named_parameters()}
    usual = next((state for state in steps.values() if state), None)
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = steps[name]
        if not state and usual is not None and parameter.requires_grad:
            state = {
                kind: torch.zeros_like(value if kind == "step" else parameter)
                for kind, value in usual.items()
            }
        found |= {f"{kind}/{name}": value.detach().cpu().contiguous() for kind, value in state.items()}
    return found


def load_optimizer_tensors(
    model: nn.Module, optimizer: optim.Optimizer, tensors: Mapping[str, Tensor], *, origin: str
) -> None:
    """Load the state saved by `optimizer_tensors`; each tensor moves to its parameter's device.

    Raises:
        UserError: a parameter's state is missing, unknown, or has another shape.
    """
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    by_name: dict[str, dict[str, Tensor]] = {}
    by_kind: dict[str, dict[str, Tensor]] = {kind: {} for kind in _KINDS} if tensors else {}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("/")
        by_name.setdefault(name, {})[kind] = tensor.clone()  # the optimizer would modify the caller's tensors
        by_kind.setdefault(kind, {})[name] = tensor
    for kind, found in by_kind.items():
        wanted = {name: torch.Size() if kind == "step" else shapes[name] for name in ordered}
        _check_fit(wanted if kind in _KINDS else {}, found, origin=f"{origin}, {kind} of its optimizer,")
    state = {index: by_name[name] for index, name in enumerate(ordered) if name in by_name}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def not_finite(model: nn.Module) -> str | None:
    """Return the name of the first state tensor that contains NaN or infinity; None if all are finite.

    Frozen tensors are not checked, since training does not change them.
    """
    found = _untied_state(model)
    if not found:
        return None
    device = next(iter(found.values())).device
    verdicts = torch.stack([torch.isfinite(tensor).all().to(device) for tensor in found.values()]).tolist()
    return next((name for name, is_finite in zip(found, verdicts, strict=True) if not is_finite), None)


def size_in_bytes(model: nn.Module) -> int:
    """Return the bytes of a checkpoint of `model` trained by AdamW: its state and two moments per trained weight."""
    weights = sum(t.numel() * t.element_size() for t in _untied_state(model).values())
    moments = sum(2 * p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    return weights + moments


def _untied_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the model's state tensors that are not frozen, once each: safetensors refuses two names for a storage."""
    kept: dict[str, Tensor] = {}
    frozen = {n for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    seen: set[tuple[object, ...]] = set()
    for name, tensor in model.state_dict().items():
        if name not in frozen and _identity(tensor) not in seen:
            seen.add(_identity(tensor))
            kept[name] = tensor.detach()
    return kept


def _identity(tensor: Tensor) -> tuple[object, ...]:
    """Return a key that is equal for two names of one tensor. Empty tensors share address 0 without being tied."""
    if tensor.numel() == 0:
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride())


def _check_fit(expected: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], *, origin: str) -> None:
    missing, unknown = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or unknown:
        what = (
            f"it lacks {missing[0]!r}" if missing else f"it contains {unknown[0]!r}, which this model lacks"
        )
        raise UserError(
            f"{origin} belongs to another model: {what} ({len(missing)} missing, {len(unknown)} unknown)"
        )
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise UserError(
                f"{origin} belongs to another model: {name!r} has shape {tuple(tensors[name].shape)} instead of "
                f"{tuple(shape)}"
            )


def record_from(kind: type[_Record], values: Mapping[str, Any]) -> _Record:
    """Build a dataclass from JSON; each value must have its field's type, and counts must not be negative.

    Raises:
        ValueError: a value has another type.
        TypeError: a name is unknown or missing.
    """
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not _is_of(value, hints[name]):
            raise ValueError(f"{name} is {str(value)[:40]!r}")
    return kind(**values)


def check_weights(model: nn.Module, file: Path, *, finite: bool = True) -> None:
    """Refuse weights that do not have the model's type, or are not finite. Loading checks names and shapes: weights
    of another model are not damaged.

    Args:
        finite: require finite weights; those of a run marked as diverged need not be.

    Raises:
        DamagedError: a tensor is refused; the message names the first one.
    """
    expected = _untied_state(model)
    for name, header in _header(file).items():
        if name in expected:
            _check_type(file, name, header, _TYPES.get(expected[name].dtype))
    if finite:
        _check_finite(file)


def check_optimizer(file: Path, *, has_stepped: bool, finite: bool) -> None:
    """Refuse an optimizer's state that is not fp32, as all trained parameters are, is not finite, or is missing.

    Args:
        has_stepped: whether the optimizer has made a step and so has a state.
        finite: as in `check_weights`.

    Raises:
        DamagedError: a tensor is refused; the message names the first one.
    """
    found = _header(file)
    if has_stepped and not found:
        raise DamagedError(f"{file.name} is empty, although the optimizer has made steps")
    for key, header in found.items():
        _check_type(file, key, header, "F32")
    if finite:
        _check_finite(file)


def _header(file: Path) -> dict[str, TensorHeader]:
    try:
        return read_header(file)
    except UserError as error:
        raise DamagedError(str(error).removeprefix(f"{file.parent}/")) from None


def _check_type(file: Path, name: str, header: TensorHeader, wanted: str | None) -> None:
    if wanted is not None and header.dtype != wanted:
        raise DamagedError(f"{name!r} in {file.name} is {header.dtype}, not {wanted}")


def _check_finite(file: Path) -> None:
    try:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a mapping)
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
