"""Which way disentangled attention is computed: by shape, device and mode. All ways give the plain path's numbers.

    where                    | way
    -------------------------|--------------------------------------------------------------
    CPU with the C++ kernel  | fp32 and bf16 from 16 tokens on, both passes (`disentangled_cpp`; `kernels` says when it
                             | is there)
    CPU, no gradients        | from 64 tokens on, near band and far field (`disentangled_inference`)
    CPU, gradients           | from 64 to 1,024 tokens, weights kept (`disentangled_keeping`)
    CPU, gradients           | above 1,024 tokens, scores made again (`disentangled_training`)
    CUDA, extra `cuda`       | from 128 to 8,192 tokens, heads of 32, 64 or 128: the library disentangled-flash, both
                             | passes, a packed batch in one launch (`disentangled_flash`)
    CUDA, no gradients       | from 512 tokens on, FlexAttention (`disentangled_flex`)
    elsewhere, gradients     | all scores held (`disentangled_open`) up to 4 GiB of them, else made again
    else                     | the plain path of `attend`

The plain path is also taken where a mask is more than padding, where a document has no token at all, and for other
normalizers than softmax. Which way a shape takes on the CPU hangs on the kernel alone, not on the processor: the same
ways win with AVX2 and AVX-512. A way is chosen by the types of its tensors and computes in them: autocast, which would
cast what a way has made for itself, is off inside.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import TypedDict

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.disentangled import bands as disentangled_inference
from precis.nn.disentangled import flash as disentangled_flash
from precis.nn.disentangled import flex as disentangled_flex
from precis.nn.disentangled import kernels
from precis.nn.disentangled.bands import attend_in_bands
from precis.nn.disentangled.compiled import READABLE, attend_compiled
from precis.nn.disentangled.flash import attend_flash, attend_flash_packed
from precis.nn.disentangled.flex import attend_flex
from precis.nn.disentangled.gathered import attend_openly
from precis.nn.disentangled.keeping import attend_keeping
from precis.nn.disentangled.recompute import attend_recomputing
from precis.nn.padding import Documents
from precis.nn.score_bias import DisentangledBias

_COMPILED_FROM = 16
_BANDS_FROM = 64
# Below, a kernel waits for its launch in any way, and short documents need nothing compiled.
_FLASH_FROM = 128
# As many as a table usually has rows: below, products with the tables are larger than the scores themselves.
_FLEX_FROM = 512
_KEEP_FROM = 64
_RECOMPUTE_ABOVE = 1024
# Bytes of one tensor of all scores, of which a layer keeps two to three and its backward pass makes four. The bound is
# the same on every device, so that a run resumed elsewhere computes the same; batches of 16,384 tokens, 12 heads wide,
# stay below it up to 10,000 tokens.
_OPEN_BYTES = 1 << 32


class _Options(TypedDict):
    """What every way for training is told."""

    valid: Bool[Tensor, "b n"] | None
    scale: float
    dropout: float


def attend_disentangled(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    mask: Bool[Tensor, "#b #h #i n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"] | None:
    """`attend` with softmax by the fastest exact way; None: the plain path is to be taken."""
    if torch.compiler.is_exporting() or not _is_plain_self_attention(queries, keys, values, bias, mask):
        return None  # an exported program holds what every runtime has
    valid = mask[:, 0, 0].expand(len(queries), -1) if mask is not None else None
    way = _on_cpu if queries.device.type == "cpu" else _elsewhere
    with _plain_types(queries.device):
        return way(queries, keys, values, bias, valid=valid, scale=scale, dropout=dropout)


def attend_disentangled_packed(
    queries: Float[Tensor, "1 h k e"],
    keys: Float[Tensor, "1 h k e"],
    values: Float[Tensor, "1 h k e"],
    bias: DisentangledBias,
    *,
    documents: Documents,
    scale: float,
    dropout: float,
) -> Float[Tensor, "1 h k e"] | None:
    """`attend` with softmax for many documents in a row in one launch; None: each is to be attended to by itself."""
    longest, bounds = documents.longest, documents.bounds
    if longest < _FLASH_FROM or not _is_plain_self_attention(queries, keys, values, bias, None):
        return None
    if not disentangled_flash.takes(queries, bias, longest=longest, sequences=len(bounds) - 1):
        return None
    with _plain_types(queries.device):
        return attend_flash_packed(
            queries, keys, values, bias, bounds=bounds, longest=longest, scale=scale, dropout=dropout
        )


def _on_cpu(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"] | None:
    length, learning = queries.shape[-2], _is_learning(queries, keys, values, bias)
    compiled = length >= _COMPILED_FROM and _is_for_the_kernel(queries)
    if not compiled and length < (_KEEP_FROM if learning else _BANDS_FROM):
        return None
    if valid is not None and (torch.compiler.is_compiling() or not valid.any(-1).all()):
        return None  # a pass that is being compiled cannot ask what a mask holds
    if compiled:
        return attend_compiled(queries, keys, values, bias, valid=valid, scale=scale, dropout=dropout)
    if learning and length > _RECOMPUTE_ABOVE:
        return attend_recomputing(queries, keys, values, bias, valid=valid, scale=scale, dropout=dropout)
    if learning:
        return attend_keeping(queries, keys, values, bias, valid=valid, scale=scale, dropout=dropout)
    if dropout:
        return None
    if disentangled_inference.is_available():
        return attend_in_bands(queries, keys, values, bias, valid=valid, scale=scale).mixed.transpose(0, 1)
    return None


def _elsewhere(
    queries: Float[Tensor, "b h n e"],
    keys: Float[Tensor, "b h n e"],
    values: Float[Tensor, "b h n e"],
    bias: DisentangledBias,
    *,
    valid: Bool[Tensor, "b n"] | None,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h n e"] | None:
    batch, heads, length, _ = queries.shape
    options: _Options = {"valid": valid, "scale": scale, "dropout": dropout}
    served = length >= _FLASH_FROM and disentangled_flash.serves(queries.device)
    if served and disentangled_flash.takes(queries, bias, longest=length, sequences=3 * batch):
        return attend_flash(queries, keys, values, bias, **options)
    if _is_learning(queries, keys, values, bias):
        if batch * heads * length**2 * queries.element_size() <= _OPEN_BYTES:
            return attend_openly(queries, keys, values, bias, **options)
        return attend_recomputing(queries, keys, values, bias, **options)
    if not dropout and length >= _FLEX_FROM and disentangled_flex.serves(queries.device):
        return attend_flex(queries, keys, values, bias, valid=valid, scale=scale)
    return None


def _plain_types(device: torch.device) -> AbstractContextManager[object]:
    """No autocast: a way computes in the types that it is given."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _is_learning(queries: Tensor, keys: Tensor, values: Tensor, bias: DisentangledBias) -> bool:
    inputs = (queries, keys, values, bias.position_keys, bias.position_queries)
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)


def _is_for_the_kernel(queries: Tensor) -> bool:
    """Whether the C++ kernel is there and can read these; torch.compile cannot look into it."""
    readable = queries.device.type == "cpu" and queries.dtype in READABLE
    return readable and not torch.compiler.is_compiling() and kernels.is_ready("disentangled")


def _is_plain_self_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: DisentangledBias, mask: Tensor | None
) -> bool:
    """Scores of these very queries and keys, of one type, and at most padding as a mask."""
    same = bias.queries is queries and bias.keys is keys and queries.shape == keys.shape == values.shape
    tables = [t for t in (bias.position_keys, bias.position_queries) if t is not None]
    one_type = all(t.dtype == queries.dtype for t in (keys, values, *tables))
    padding_only = mask is None or (mask.dim() == 4 and mask.shape[1:] == (1, 1, keys.shape[-2]))
    return same and one_type and padding_only
