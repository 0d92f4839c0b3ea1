"""Disentangled attention on CUDA by the library disentangled-flash: training and inference, memory linear in length.

Its Triton kernels look up position scores in products with the tables, redraw dropout in the backward pass, and
write the gradients of the tables without atomic additions, so every run gives the same numbers.

Batches use its packed form, whose kernels take lengths as arguments; the backward pass of the padded form is
recompiled for each shape. torch.compile skips both, since it would make a graph for each length. The library
scales position scores with the rest, so our tables, which are scaled already, are divided by the scale.
"""

import importlib.util
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.disentangled.inputs import Operands
from precis.nn.padding import Documents
from precis.nn.relative_positions import LogBuckets, OffsetRows

_WIDTHS = (32, 64, 128)
_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_LONGEST = 8192
# The longest length is rounded up to this, so that there are few plans and few specialized kernels.
_STEP = 64
_PROGRAMS = 1 << 16  # a CUDA grid has fewer rows than this
_PLACES = 1 << 31  # the kernels' offsets are 32 bits wide


@cache
def is_available() -> bool:
    """Return whether the library is installed and an NVIDIA device is available."""
    found = all(importlib.util.find_spec(name) is not None for name in ("disentangled_flash", "triton"))
    return found and torch.version.hip is None and torch.cuda.is_available()


@cache
def _is_new_enough(index: int | None) -> bool:
    """Return whether the device is an Ampere or newer; if None, the current device."""
    return torch.cuda.get_device_capability(index) >= (8, 0)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def serves(device: torch.device) -> bool:
    """Return whether the library supports tensors on this device."""
    return device.type == "cuda" and is_available() and _is_new_enough(device.index)


@final
@dataclass(frozen=True)
class Plan:
    """The map from distances to rows of a table, for one maximum length.

    Attributes:
        rows: the rows of the table in use, from the lowest on.
        places: the row of each distance from -(n-1) to n-1, relative to the lowest.
        band: the library's columns of distances for gradients without atomics.
    """

    rows: slice
    places: Int[Tensor, " o"]
    band: Any


@lru_cache(maxsize=256)
def plan(buckets: LogBuckets, longest: int, device: torch.device) -> Plan:
    """Compute the plan, once for each length."""
    from disentangled_flash.position import gradient_band

    with torch.inference_mode(False):  # else later passes could not save them for gradients
        descending, used = OffsetRows(buckets).places(longest, device)
        places = descending.flip(0)
        return Plan(used, places, gradient_band(places, device))


def takes(operands: Operands, *, longest: int, sequences: int) -> bool:
    """Return whether the kernels support the operands: `sequences` documents of `longest` tokens at most."""
    queries, buckets = operands.queries, operands.options.offsets.buckets
    batch, heads, length, width = queries.shape
    if width not in _WIDTHS or queries.dtype not in _TYPES or not 0 < longest <= _LONGEST:
        return False
    columns = 2 * max(buckets.max_distance, buckets.span) + width  # more than any of their tables
    return sequences * heads < _PROGRAMS and batch * heads * length * columns < _PLACES


@torch.compiler.disable  # type: ignore[untyped-decorator]
def attend_flash(operands: Operands) -> Float[Tensor, "b h n e"]:
    """Compute mixed values, if `takes` is true. Padding queries give finite but meaningless numbers."""
    batch, _, length, _ = operands.queries.shape
    device, valid = operands.queries.device, operands.options.valid
    bounds = torch.arange(0, batch * length + 1, length, dtype=torch.int32, device=device)
    if valid is not None:
        # without gradients no kernel is compiled for a shape, so the device need not be queried
        spans = _span_bounds(valid, bounds) if torch.is_grad_enabled() else None
        if spans is None:
            return _attend_padded(operands, valid)
        bounds = spans
    # views, if the states come from a projection
    queries, keys, values = (
        x.transpose(1, 2).flatten(0, 1).transpose(0, 1)[None]
        for x in (operands.queries, operands.keys, operands.values)
    )
    tokens = replace(operands, queries=queries, keys=keys, values=values)
    mixed = attend_flash_packed(tokens, Documents(bounds, length))
    return mixed[0].unflatten(1, (batch, length)).transpose(0, 1)  # (h b*n e) -> (b h n e)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def attend_flash_packed(operands: Operands, documents: Documents) -> Float[Tensor, "1 h k e"]:
    """Compute mixed values of many documents in one row, each attending only to itself, in one launch."""
    from disentangled_flash.training import _kernels as library

    bounds, longest = documents.bounds, -(-documents.longest // _STEP) * _STEP
    tables, settings = _call(operands, longest=longest, sequences=len(bounds) - 1)
    tokens = (operands.queries[0], operands.keys[0], operands.values[0])
    mixed = library.training_attention_packed(*tokens, *tables, bounds, max_seqlen=longest, **settings)
    return mixed.unflatten(-1, (operands.queries.shape[1], -1)).transpose(0, 1)[None]  # (k h*e) -> (1 h k e)


def _span_bounds(valid: Bool[Tensor, "b n"], bounds: Int[Tensor, " b+1"]) -> Int[Tensor, " s"] | None:
    """Cut each row into the part before its document, the document, and the rest; None if a document has gaps.

    This waits for the device.
    """
    length = valid.shape[1]
    marks = valid.int()
    first, last = marks.argmax(1), length - marks.flip(1).argmax(1)
    if not bool(((marks.sum(1) == last - first) | ~valid.any(1)).all()):
        return None
    starts = bounds[:-1]
    cuts = torch.stack([starts, starts + first, starts + last], dim=1).flatten()
    return torch.cat([cuts, bounds[-1:]]).to(torch.int32)


def _attend_padded(operands: Operands, valid: Bool[Tensor, "b n"]) -> Float[Tensor, "b h n e"]:
    """Compute mixed values by the library's masked form, which allows gaps."""
    from disentangled_flash.training import _kernels as library

    batch, heads, length, _ = operands.queries.shape
    tables, settings = _call(operands, longest=length, sequences=batch, padded=True)
    states = (operands.queries, operands.keys, operands.values)
    mixed = library.training_attention(*states, *tables, valid.contiguous(), has_padding=True, **settings)
    return mixed.unflatten(-1, (heads, -1)).transpose(1, 2)  # (b n h*e) -> (b h n e)


def _call(
    operands: Operands, *, longest: int, sequences: int, padded: bool = False
) -> tuple[list[Float[Tensor, "h r e"] | Tensor | None], dict[str, Any]]:
    """Return arguments of both forms of the library's function other than states: tables, places and settings."""
    from disentangled_flash.position import pad_position_table

    queries, options = operands.queries, operands.options
    found = plan(options.offsets.buckets, longest, queries.device)
    given = (operands.position_keys, operands.position_queries)
    tables = [None if x is None else pad_position_table(x[:, found.rows] / options.scale) for x in given]
    settings: dict[str, Any] = {
        "score_scale": options.scale,
        "strict_fp32": True,
        "gradient_band": found.band,
        "dropout_p": options.dropout,
        "dropout_seed": _seed(queries.device) if options.dropout else None,
    }
    workload = (  # in the order of the library's WorkloadKey, without the phase
        longest,
        queries.shape[-1],
        sequences * queries.shape[1],
        found.rows.stop - found.rows.start,
        str(queries.dtype).removeprefix("torch."),
        *(x is not None for x in given),
        "strict",
        "padded" if padded else "packed",
        padded,
    )
    return [*tables, found.places], settings | launches(workload, queries.device, options.dropout > 0.0)


def launches(workload: tuple[Any, ...], device: torch.device, dropped: bool) -> dict[str, Any]:
    """Return tile sizes of each kernel, from the library's table or rule; else it would try all, for a minute."""
    from disentangled_flash.tuning import KernelConfig, length_family, occupancy_family, resolve_launch_config

    longest, width, programs, *others = workload
    fields = (length_family(longest), width, occupancy_family(programs), *others)
    number = device.index if device.index is not None else torch.cuda.current_device()
    learning = torch.is_grad_enabled()
    phases = {"forward_config": "training_forward" if learning or dropped else "inference"}
    if learning:
        phases |= {"dq_config": "backward_dq", "dkv_config": "backward_dkv"}
    return {
        name: KernelConfig(
            *resolve_launch_config(_profiles(), "auto", number, (*fields, phase, dropped), programs)
        )
        for name, phase in phases.items()
    }


@cache
def _profiles() -> int:
    """Register the library's tables of tile sizes and return their number."""
    from disentangled_flash.tuning import KernelTuningOptions, ProfileRegistry, register_profile_registry

    return register_profile_registry(ProfileRegistry.from_options(KernelTuningOptions()))


def _seed(device: torch.device) -> Int[Tensor, " 1"]:
    """Draw a seed from torch's own generator: a resumed run, or a recomputed layer, drops the same weights."""
    return torch.randint(2**62, (1,), device=device)
