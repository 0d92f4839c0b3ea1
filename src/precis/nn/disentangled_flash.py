"""Disentangled attention on CUDA by the library disentangled-flash: training and inference, memory linear in length.

Its Triton kernels look position scores up in products with the tables, draw dropout again in the backward pass, and
write the gradients of the tables without atomic additions, so that the same numbers come out in every run.

Every batch goes through its packed form, rows of padding apart: there lengths are arguments of the kernels, while the
padded form is compiled anew for each shape that training meets. The library scales position scores with the rest, so
that our tables, which are scaled already, are divided by the scale.
"""

import importlib.util
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.relative_positions import LogBuckets
from precis.nn.score_bias import DisentangledBias

_WIDTHS = (32, 64, 128)
_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_LONGEST = 8192
# The longest length is rounded up to this: few plans are made, and the kernels meet few kinds of numbers.
_STEP = 64
_PROGRAMS = 1 << 16  # a CUDA grid has fewer rows than this
_PLACES = 1 << 31  # the kernels' offsets are 32 bits wide


@cache
def is_available() -> bool:
    """Whether the library is installed and this machine's NVIDIA device can run it (Ampere or newer)."""
    found = all(importlib.util.find_spec(name) is not None for name in ("disentangled_flash", "triton"))
    if not found or torch.version.hip is not None or not torch.cuda.is_available():
        return False
    return torch.cuda.get_device_capability() >= (8, 0)


def serves(device: torch.device) -> bool:
    """Whether tensors there may go to the library."""
    return device.type == "cuda" and is_available()


@final
@dataclass(frozen=True)
class Plan:
    """How distances find rows of a table, for one greatest length.

    Attributes:
        rows: the rows of the table that are used, from the lowest on.
        places: for the distances -(n-1) to n-1 the row, counted from the lowest.
        band: the library's columns of distances for gradients without atomics.
    """

    rows: slice
    places: Int[Tensor, " o"]
    band: Any


@lru_cache(maxsize=256)
def plan(buckets: LogBuckets, longest: int, device: torch.device) -> Plan:
    """Waits for the device once for each length and keeps what it found."""
    from disentangled_flash.position import gradient_band

    found = buckets(torch.arange(1 - longest, longest, device=device))
    lowest, highest = int(found[0]), int(found[-1])
    places = (found - lowest).to(torch.int32)
    return Plan(slice(lowest, highest + 1), places, gradient_band(places, device))


def takes(queries: Float[Tensor, "b h n e"], bias: DisentangledBias, *, longest: int, sequences: int) -> bool:
    """Whether the kernels can read these: `sequences` documents of `longest` tokens at most."""
    batch, heads, length, width = queries.shape
    if width not in _WIDTHS or queries.dtype not in _TYPES or not 0 < longest <= _LONGEST:
        return False
    columns = (
        2 * max(bias.buckets.max_distance, bias.buckets.span) + width
    )  # more than any of their tables has
    return sequences * heads < _PROGRAMS and batch * heads * length * columns < _PLACES


def attend_flash(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"]:
    """softmax(scale * q.k + position scores) @ v, where `takes` agrees.

    A query that is padding itself gets the mean of all values of its document: its result is for nobody.
    """
    batch, heads, length, _ = queries.shape
    if valid is not None:
        call = _Call.of(
            queries, bias, longest=length, sequences=batch, scale=scale, dropout=dropout, padded=True
        )
        mixed = call.padded(queries, keys, values, valid.contiguous())
    else:
        longest = -(-length // _STEP) * _STEP
        call = _Call.of(queries, bias, longest=longest, sequences=batch, scale=scale, dropout=dropout)
        bounds = torch.arange(0, batch * length + 1, length, dtype=torch.int32, device=queries.device)
        mixed = call.packed(_in_a_row(queries), _in_a_row(keys), _in_a_row(values), bounds)
    return mixed.view(batch, length, heads, -1).transpose(1, 2)  # (b*n h*e) -> (b h n e)


def attend_flash_packed(
    queries: Float[Tensor, "1 h k e"],
    keys: Float[Tensor, "1 h k e"],
    values: Float[Tensor, "1 h k e"],
    bias: DisentangledBias,
    *,
    bounds: Int[Tensor, " s"],
    longest: int,
    scale: float,
    dropout: float,
) -> Float[Tensor, "1 h k e"]:
    """The same for tokens of many documents in a row, each document by itself: one launch for all of them.

    Args:
        bounds: int32: where each document starts, then the end of the last; together they hold all k tokens.
        longest: as many tokens as the longest has.
    """
    longest = -(-longest // _STEP) * _STEP
    call = _Call.of(queries, bias, longest=longest, sequences=len(bounds) - 1, scale=scale, dropout=dropout)
    mixed = call.packed(queries[0], keys[0], values[0], bounds)
    return mixed.unflatten(-1, (queries.shape[1], -1)).transpose(0, 1)[None]  # (k h*e) -> (1 h k e)


@final
@dataclass(frozen=True)
class _Call:
    """What both forms of the library's function are given besides states."""

    tables: list[Float[Tensor, "h r e"] | None]
    plan: Plan
    longest: int
    settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        queries: Float[Tensor, "b h n e"],
        bias: DisentangledBias,
        *,
        longest: int,
        sequences: int,
        scale: float,
        dropout: float,
        padded: bool = False,
    ) -> "_Call":
        from disentangled_flash.position import pad_position_table

        found = plan(bias.buckets, longest, queries.device)
        given = (bias.position_keys, bias.position_queries)
        tables = [None if x is None else pad_position_table(x[:, found.rows] / scale) for x in given]
        settings: dict[str, Any] = {
            "score_scale": scale,
            "strict_fp32": True,
            "gradient_band": found.band,
            "dropout_p": dropout,
            "dropout_seed": _seed(queries.device) if dropout else None,
        }
        # in the order of the library's WorkloadKey, but for the phase
        workload = (
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
        return cls(tables, found, longest, settings | launches(workload, queries.device, dropout > 0.0))

    def packed(
        self,
        queries: Float[Tensor, "h k e"],
        keys: Float[Tensor, "h k e"],
        values: Float[Tensor, "h k e"],
        bounds: Int[Tensor, " s"],
    ) -> Float[Tensor, "k he"]:
        from disentangled_flash.training import _kernels as library

        states, table = (queries, keys, values), (*self.tables, self.plan.places)
        return library.training_attention_packed(
            *states, *table, bounds, max_seqlen=self.longest, **self.settings
        )

    def padded(
        self,
        queries: Float[Tensor, "b h n e"],
        keys: Float[Tensor, "b h n e"],
        values: Float[Tensor, "b h n e"],
        valid: Bool[Tensor, "b n"],
    ) -> Float[Tensor, "b n he"]:
        from disentangled_flash.training import _kernels as library

        states, table = (queries, keys, values), (*self.tables, self.plan.places)
        return library.training_attention(*states, *table, valid, has_padding=True, **self.settings)


def launches(workload: tuple[Any, ...], device: torch.device, dropped: bool) -> dict[str, Any]:
    """Tile sizes of each kernel, from the library's table or its rule: without them it tries out all, for a minute."""
    from disentangled_flash.tuning import KernelConfig, length_family, occupancy_family, resolve_launch_config

    longest, width, programs, *others = workload
    fields = (length_family(longest), width, occupancy_family(programs), *others)
    number = device.index if device.index is not None else torch.cuda.current_device()
    learning = torch.is_grad_enabled()
    phases = {"forward_config": "training_forward" if learning or dropped else "inference"}
    if learning:
        phases |= {"dq_config": "backward_dq", "dkv_config": "backward_dkv"}
    exact = None if torch.compiler.is_compiling() else programs
    return {
        name: KernelConfig(
            *resolve_launch_config(_profiles(), "auto", number, (*fields, phase, dropped), exact)
        )
        for name, phase in phases.items()
    }


@cache
def _profiles() -> int:
    """The library's number of its tables of tile sizes."""
    from disentangled_flash.tuning import KernelTuningOptions, ProfileRegistry, register_profile_registry

    return register_profile_registry(ProfileRegistry.from_options(KernelTuningOptions()))


def _seed(device: torch.device) -> Int[Tensor, " 1"]:
    """Of torch's own generator: a run that goes on, or a layer computed again, drops what it would have dropped."""
    return torch.randint(2**62, (1,), device=device)


def _in_a_row(states: Float[Tensor, "b h n e"]) -> Float[Tensor, "h b*n e"]:
    """Tokens of all documents; no copy of what a projection gave."""
    return states.transpose(1, 2).flatten(0, 1).transpose(0, 1)  # (b h n e) -> (b*n h e) -> (h b*n e)
