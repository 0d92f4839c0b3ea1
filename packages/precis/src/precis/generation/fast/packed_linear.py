"""Weight matrices in the fastest layout for few rows.

A decoding step multiplies every matrix of the decoder by a few rows, so it ideally takes the time to read the weights
once. For 2 to 8 rows on some processors (AMD's), MKL's matrix product is slower. oneDNN with weights in its own blocked
layout is not. For a single row, the product with the transposed matrix reads at full speed if there are more outputs
than inputs.

    rows    fp32 on a CPU                               bf16 on a CPU          int8 (CPU only)         CUDA
    1       transposed (wide matrices), else as it is   oneDNN's blocks where  8-bit weights, a scale  as it is
    2..     oneDNN's blocks, else as it is              the CPU has bf16       for each output

An encoder multiplies all tokens of a batch at once, with copies of its matrices while it reads the batch
(`PackedEncoder`). The choice is a rule, not a measurement at startup, since summaries must not depend on the load of
the machine. `generation.fast.fast_decoder` describes the lifetime of copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import RLock
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from precis_text.config import Settings
from precis_text.errors import UserError


@final
@dataclass(frozen=True, kw_only=True)
class AsGiven(Settings):
    """Weights in the model's own dtype."""


@final
@dataclass(frozen=True, kw_only=True)
class BFloat16(Settings):
    """Decoder weights, keys and values in bf16: half the memory traffic. Operators keep hidden states in bf16, too."""


@final
@dataclass(frozen=True, kw_only=True)
class Int8(Settings):
    """Weights in 8 bits with a scale for each output, hidden states in 7 bits with a scale for each call (CPU only).

    7 bits, because products of 8-bit states overflow the 16-bit sums of processors without VNNI. All rows of a call
    share its scale, so a summary may change with the other documents in its batch.
    """


_MANY_ROWS = 256  # rows of an encoder, which multiplies all tokens at once

Linear = Callable[[Tensor], Tensor]  # x W^T + b for a few rows: (b i) -> (b o)
Weights = AsGiven | BFloat16 | Int8


def states_dtype(weights: Weights, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of hidden states between the matrices, for a model of `dtype`."""
    return {BFloat16: torch.bfloat16, Int8: torch.float32}.get(type(weights), dtype)


def pack(
    weight: Float[Tensor, "o i"], bias: Float[Tensor, " o"] | None, *, rows: int, weights: Weights
) -> Linear:
    """Prepare a matrix for products with `rows` rows at a time; other numbers of rows work too.

    Raises:
        UserError: if `weights` is `Int8`, and this device or build of torch does not support it.
    """
    weight = weight.detach()
    if isinstance(weights, Int8):
        if weight.device.type != "cpu" or not has_int8():
            raise UserError(
                f"int8 weights need a CPU and torch with fbgemm, not device {weight.device.type}; use BFloat16()"
            )
        return _int8(_quantized(weight.float(), None if bias is None else bias.detach().float()))
    dtype = states_dtype(weights, weight.dtype)
    weight, bias = weight.to(dtype), None if bias is None else bias.detach().to(dtype)
    plain = partial(F.linear, weight=weight, bias=bias)
    if weight.device.type != "cpu" or dtype not in (torch.float32, torch.bfloat16):
        return plain
    if dtype is torch.float32 and rows == 1:
        outputs, inputs = weight.shape
        return _transposed(weight, bias) if outputs > inputs else plain
    if has_onednn(dtype):
        return _blocked(_ops().mkldnn._reorder_linear_weight(weight.contiguous(), rows), bias)
    return plain


def pack_together(*linears: nn.Linear, rows: int, weights: Weights) -> Linear:
    """Pack several matrices as one: the outputs of each, one after the other."""
    matrices, biases = zip(*((linear.weight.detach(), linear.bias) for linear in linears), strict=True)
    weight = torch.cat(matrices) if matrices[1:] else matrices[0]
    return pack(weight, None if biases[0] is None else torch.cat(biases), rows=rows, weights=weights)


def pack_keys(key: nn.Linear, value: nn.Linear, weights: Weights) -> Linear:
    """Pack the matrices of keys and values as one, for all tokens of a source; `Int8` leaves them as given."""
    kept = AsGiven() if isinstance(weights, Int8) else weights
    both = pack_together(key, value, rows=_MANY_ROWS, weights=kept)
    return lambda source: both(source.to(states_dtype(kept, source.dtype)))


def _transposed(weight: Float[Tensor, "o i"], bias: Tensor | None) -> Linear:
    columns = weight.t().contiguous()
    if bias is None:
        return lambda states: torch.mm(states, columns)
    return lambda states: torch.addmm(bias, states, columns)


def _blocked(weight: Tensor, bias: Tensor | None) -> Linear:
    """Return the product with weights in oneDNN's blocks, by the operator that torch.compile uses."""
    product = _ops().mkldnn._linear_pointwise
    return lambda states: product(states, weight, bias, "none", [], "")


def _int8(packed: Any) -> Linear:
    product = _ops().quantized.linear_dynamic
    return lambda states: product(states, packed, True)


def _quantized(weight: Float[Tensor, "o i"], bias: Tensor | None) -> Any:
    """Quantize to symmetric 8-bit rows in the layout of torch's own int8 product."""
    scales = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny).double() / 127
    zeros = torch.zeros(weight.shape[0], dtype=torch.long)
    with warnings.catch_warnings():  # quantized tensors are deprecated for users; the operators are not
        warnings.simplefilter("ignore")
        rows = torch.quantize_per_channel(weight.contiguous(), scales, zeros, 0, torch.qint8)
        return _ops().quantized.linear_prepack(rows, bias)


@cache
def has_onednn(dtype: torch.dtype) -> bool:
    """Return whether oneDNN's blocked product exists and is correct for `dtype`, checked once on a small matrix."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        if dtype is torch.bfloat16 and not _ops().mkldnn._is_mkldnn_bf16_supported():
            return False
        weight, rows = torch.arange(32.0).view(8, 4).to(dtype), torch.arange(12.0).view(3, 4).to(dtype)
        product = _blocked(_ops().mkldnn._reorder_linear_weight(weight, 3), None)(rows)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.allclose(product.float(), F.linear(rows, weight).float(), rtol=1e-2)


@cache
def has_int8() -> bool:
    """Return whether torch's 8-bit product exists and is correct, checked once on a small matrix."""
    try:
        weight, rows = torch.eye(4), torch.arange(12.0).view(3, 4)
        product = _int8(_quantized(weight, None))(rows)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.allclose(product, rows, atol=0.2)


def _ops() -> Any:
    return torch.ops


def packs_encoder(encoder: nn.Module, weights: Weights) -> bool:
    """Return whether a copy of the encoder's matrices is faster: in 8 bits, or fp32 in oneDNN's blocks."""
    if isinstance(weights, Int8):
        return True
    first = next(encoder.parameters())
    return first.device.type == "cpu" and first.dtype is torch.float32 and has_onednn(torch.float32)


# Two loops may decode with one model in separate threads.
_LOCKS: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()


@final
class PackedEncoder:
    """Copies of an encoder's matrices, which replace its own while it reads."""

    def __init__(self, encoder: nn.Module, weights: Weights) -> None:
        self._encoder = encoder
        self._lock = _LOCKS.setdefault(encoder, RLock())
        kept = weights if isinstance(weights, Int8) else AsGiven()
        with self._lock:
            self._own: dict[str, nn.Linear] = {
                name: module
                for name, module in encoder.named_modules()
                if type(module) is nn.Linear and not is_changed(module)
            }
            self._packed: dict[str, nn.Module] = {
                name: _PackedLinear(pack(module.weight, module.bias, rows=_MANY_ROWS, weights=kept))
                for name, module in self._own.items()
            }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the encoder use the copies for the duration; other threads that read wait.

        A matrix that has since been replaced or got hooks stays.
        """
        with self._lock:
            free = [
                name
                for name, module in self._own.items()
                if self._encoder.get_submodule(name) is module and not is_changed(module)
            ]
            try:
                for name in free:
                    self._put(name, self._packed[name])
                yield
            finally:
                for name in free:
                    self._put(name, self._own[name])

    def _put(self, name: str, module: nn.Module) -> None:
        parent, _, child = name.rpartition(".")
        setattr(self._encoder.get_submodule(parent), child, module)


@final
class _PackedLinear(nn.Module):
    def __init__(self, packed: Linear) -> None:
        super().__init__()
        self._product = packed

    def forward(self, states: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        return self._product(states.float()).to(states.dtype)


def is_changed(module: nn.Module) -> bool:
    """Return whether a module differs from its class: it has hooks, or its own `forward`."""
    return bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))
