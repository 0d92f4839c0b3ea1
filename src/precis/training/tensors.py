"""Model and optimizer state as flat dictionaries of named tensors, the form safetensors keeps.

What is frozen (``requires_grad`` is off) is no state of a run: it is as it was loaded, and a checkpoint without it is
as small as what is trained.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn, optim

from precis.errors import UserError

_KINDS = ("exp_avg", "exp_avg_sq", "step")  # what AdamW keeps of each parameter


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Trainable parameters and persistent buffers by name, tied ones once, under their first name; on the CPU."""
    return {name: tensor.cpu().contiguous() for name, tensor in _untied_state(model).items()}


def state_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What `model_tensors` keeps, by name, as it is in the model: for a look at types and shapes."""
    return _untied_state(model)


def load_model_tensors(
    model: nn.Module, tensors: Mapping[str, Tensor], *, origin: str, finite: bool = True
) -> None:
    """Copy saved tensors into `model`, in place, so that ties and the optimizer's references stay.

    Args:
        finite: whether they have to be.

    Raises:
        UserError: a name or a shape does not fit: the tensors belong to another model; or they are of another type,
            or not finite.
    """
    expected = _untied_state(model)
    _check_fit({n: t.shape for n, t in expected.items()}, tensors, origin=origin)
    _check_numbers(expected, tensors, origin=origin, finite=finite)
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])


def optimizer_tensors(model: nn.Module, optimizer: optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's tensors, on the CPU, as ``<kind>/<parameter name>``: ``exp_avg/encoder.weight``.

    A parameter that was in no step yet, while others were (objectives that take turns, the later one skipped), has the
    zeros that its first step would begin with: so a checkpoint has something for every parameter, or for none.
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
    """Give the optimizer the state saved by `optimizer_tensors`; each tensor moves to its parameter's device.

    Raises:
        UserError: a parameter's state is missing, unknown, or of another shape.
    """
    names = {parameter: name for name, parameter in model.named_parameters()}
    ordered = [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    by_name: dict[str, dict[str, Tensor]] = {}
    by_kind: dict[str, dict[str, Tensor]] = {kind: {} for kind in _KINDS} if tensors else {}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("/")
        by_name.setdefault(name, {})[kind] = tensor.clone()  # the optimizer would change the caller's tensors
        by_kind.setdefault(kind, {})[name] = tensor
    for kind, found in by_kind.items():
        wanted = {name: torch.Size() if kind == "step" else shapes[name] for name in ordered}
        _check_fit(wanted if kind in _KINDS else {}, found, origin=f"{origin}, {kind} of its optimizer,")
    state = {index: by_name[name] for index, name in enumerate(ordered) if name in by_name}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def not_finite(model: nn.Module) -> str | None:
    """The name of the first state tensor that holds NaN or infinity; None if all are finite.

    What is frozen is not looked at: training leaves it as it was loaded.
    """
    floats = {name: t for name, t in _untied_state(model).items() if t.is_floating_point() and t.numel()}
    if not floats:
        return None
    device = next(iter(floats.values())).device
    verdicts = torch.stack([torch.isfinite(tensor).all().to(device) for tensor in floats.values()]).tolist()
    return next((name for name, is_finite in zip(floats, verdicts, strict=True) if not is_finite), None)


def size_in_bytes(model: nn.Module) -> int:
    """Bytes of one checkpoint of `model` trained by AdamW: its state and two moments of what is trained."""
    weights = sum(t.numel() * t.element_size() for t in _untied_state(model).values())
    moments = sum(2 * p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    return weights + moments


def _untied_state(model: nn.Module) -> dict[str, Tensor]:
    """The model's own state tensors that are not frozen, each once. safetensors refuses two names for one storage."""
    kept: dict[str, Tensor] = {}
    frozen = {n for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    seen: set[tuple[object, ...]] = set()
    for name, tensor in model.state_dict().items():
        if name not in frozen and _identity(tensor) not in seen:
            seen.add(_identity(tensor))
            kept[name] = tensor.detach()
    return kept


def _identity(tensor: Tensor) -> tuple[object, ...]:
    """Equal for two names of one tensor. Empty tensors share address 0 without being tied."""
    if tensor.numel() == 0 or tensor.is_meta:
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride())


def _check_fit(expected: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], *, origin: str) -> None:
    missing, unknown = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    if missing or unknown:
        what = f"it has no {missing[0]!r}" if missing else f"it has {unknown[0]!r}, which this model lacks"
        raise UserError(
            f"{origin} belongs to another model: {what} ({len(missing)} missing, {len(unknown)} unknown)"
        )
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise UserError(
                f"{origin} belongs to another model: {name!r} is {tuple(tensors[name].shape)} there and "
                f"{tuple(shape)} here"
            )


def _check_numbers(
    expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor], *, origin: str, finite: bool
) -> None:
    for name, own in expected.items():
        found = tensors[name]
        if found.dtype != own.dtype:
            raise UserError(
                f"{origin} is damaged: {name!r} is {found.dtype}, here {own.dtype}; use another one"
            )
        if finite and found.is_floating_point() and not torch.isfinite(found).all():
            raise UserError(f"{origin} is damaged: {name!r} is not finite (NaN or infinity); use another one")
