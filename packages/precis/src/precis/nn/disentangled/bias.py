"""The scores of disentangled attention, and the choice of a kernel for attention with them: by shape, device and mode.

    where                    | path
    -------------------------|--------------------------------------------------------------
    CPU with the C++ kernel  | fp32 and bf16 from 16 tokens on, both passes: `cpp_attention.attend_compiled`
                             | (`cpp_loader` documents when the kernel is available)
    CPU, no gradients        | from 64 tokens on, near band and far field: `bands.attend_in_bands`
    CPU, gradients           | from 64 to 1,024 tokens, weights kept: `saved_scores.attend_keeping`
    CPU, gradients           | above 1,024 tokens, scores recomputed: `recompute.attend_recomputing`
    CUDA, extra `cuda`       | from 128 to 8,192 tokens, heads of 32, 64 or 128, both passes: `flash.attend_flash`; a
                             | packed batch in one launch: `flash.attend_flash_packed`
    CUDA, no gradients       | from 512 tokens on, FlexAttention: `flex.attend_flex`
    elsewhere, gradients     | up to 4 GiB of scores, all stored: `saved_scores.attend_openly`; else recomputed
    else                     | the plain path of `attend`, which computes rows of scores

All paths give the plain path's numbers. The plain path also serves masks other than padding, documents
without tokens, and normalizers other than softmax. On the CPU the shape and the kernel decide, not
the processor: the same paths win with AVX2 and AVX-512. The dtypes of the tensors choose a path, which computes in
them: autocast is off inside, because it would change the dtypes of intermediate tensors.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from precis.nn.attention_rows import side_by_side, summed
from precis.nn.disentangled import cpp_loader, flash, flex
from precis.nn.disentangled.bands import attend_in_bands, is_available
from precis.nn.disentangled.cpp_attention import READABLE, attend_compiled
from precis.nn.disentangled.flash import attend_flash, attend_flash_packed
from precis.nn.disentangled.flex import attend_flex
from precis.nn.disentangled.inputs import Operands, Options
from precis.nn.disentangled.recompute import attend_recomputing
from precis.nn.disentangled.saved_scores import attend_keeping, attend_openly
from precis.nn.padding import Documents
from precis.nn.relative_positions import OffsetRows
from precis.nn.score_bias import ScoreBias

_COMPILED_FROM = 16
_BANDS_FROM = 64
# Below, launch time dominates every path, and short documents need no compilation.
_FLASH_FROM = 128
# The usual number of table rows: below, products with the tables are larger than the scores themselves.
_FLEX_FROM = 512
_KEEP_FROM = 64
_RECOMPUTE_ABOVE = 1024
# Bytes of one tensor of all scores; a layer keeps two to three of them, and its backward pass makes four. The bound is
# the same on every device, so that a run resumed elsewhere computes the same; batches of 16,384 tokens with 12 heads
# stay below it up to 10,000 tokens.
_OPEN_BYTES = 1 << 32
# Up to this number of query rows all offsets are expanded and shifted into place (2N-1 columns); beyond it the table's
# own columns are gathered, which costs less than the expansion.
_SHIFT_LIMIT = 512


@final
@dataclass(frozen=True)
class DisentangledBias(ScoreBias):
    """Content-to-position and position-to-content scores of disentangled attention (DeBERTa Eq. 4).

        c2p(i, j) = q_i . K_r[delta(i, j)]        p2c(i, j) = k_j . Q_r[delta(i, j)]

    The paper writes delta(j, i) for p2c; the released code and weights use delta(i, j), and we follow them.

    Attributes:
        position_keys, position_queries: the tables, multiplied by the layer's 1/sqrt(3e); None omits that part.
        offsets: the table row of each distance; shared by the layers of a pass.
    """

    position_keys: Float[Tensor, "h r e"] | None
    position_queries: Float[Tensor, "h r e"] | None
    offsets: OffsetRows

    def operands(
        self,
        queries: Float[Tensor, "b h n e"],
        keys: Float[Tensor, "b h n e"],
        values: Float[Tensor, "b h n e"],
        *,
        valid: Bool[Tensor, "b n"] | None,
        scale: float,
        dropout: float,
    ) -> Operands:
        """Return the record that every path receives."""
        options = Options(self.offsets, valid, scale, dropout)
        return Operands(queries, keys, values, self.position_keys, self.position_queries, options)

    def fused(
        self,
        queries: Float[Tensor, "b h i e"],
        keys: Float[Tensor, "b h j e"],
        values: Float[Tensor, "b h j e"],
        *,
        mask: Bool[Tensor, "#b #h #i #j"] | None,
        scale: float,
        dropout: float,
        documents: Documents | None = None,
    ) -> Float[Tensor, "b h i e"] | None:
        if torch.compiler.is_exporting():
            return None  # an exported program uses only standard operators
        padding_only = mask is None or (mask.dim() == 4 and mask.shape[1:] == (1, 1, keys.shape[-2]))
        if not padding_only or not queries.shape == keys.shape == values.shape:
            return None
        valid = mask[:, 0, 0].expand(len(queries), -1) if mask is not None else None
        operands = self.operands(queries, keys, values, valid=valid, scale=scale, dropout=dropout)
        if not operands.is_of_one_type:
            return None
        with _without_autocast(queries.device):
            if documents is not None:
                return _packed(operands, documents)
            return _on_cpu(operands) if queries.device.type == "cpu" else _elsewhere(operands)

    def rows(
        self, start: int, stop: int, queries: Float[Tensor, "b h n e"], keys: Float[Tensor, "b h n e"]
    ) -> Float[Tensor, "b h i n"]:
        length = keys.shape[-2]
        if torch.compiler.is_exporting() or (start == 0 and stop == length and length <= _SHIFT_LIMIT):
            return self._shifted(queries, keys)
        return self._gathered(start, stop, queries, keys)

    def _shifted(self, queries: Tensor, keys: Tensor) -> Float[Tensor, "b h n n"]:
        """Compute all rows at once: a column for each of the 2n-1 offsets, then a shift by a copy, without a gather."""
        rows = self.offsets.descending(keys.shape[-2] - 1, keys.device)  # column c holds distance n-1-c
        parts = []
        if self.position_keys is not None:
            by_offset = queries @ self.position_keys[:, rows].transpose(-1, -2)  # (b h i 2n-1)
            parts.append(_in_columns(by_offset))
        if self.position_queries is not None:
            by_offset = keys @ self.position_queries[:, rows.flip(0)].transpose(-1, -2)  # (b h j 2n-1)
            parts.append(_in_columns(by_offset).transpose(-1, -2))
        return summed(parts)

    def _gathered(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "b h i n"]:
        """Compute rows of a long input: gather near the diagonal; farther keys share the rows `OffsetRows.ends`."""
        length, device = keys.shape[-2], keys.device
        asking, reach = queries[..., start:stop, :], self.offsets.buckets.saturation
        first, last = max(0, start - reach), min(length, stop + reach)
        places = torch.arange(length, device=device)
        distance = places[start:stop, None] - places[None, first:last]
        widest = min(length - 1, reach + stop - start)
        index = self.offsets.descending(widest, device)[widest - distance]
        near = self._near(asking, keys[..., first:last, :], index)
        if last - first == length:
            return near
        ends = self.offsets.ends(device)
        past = self._far(asking, keys[..., :first, :], ends[0])
        future = self._far(asking, keys[..., last:, :], ends[1])
        return side_by_side([past, near, future])

    def _near(self, queries: Tensor, keys: Tensor, index: Int[Tensor, "i j"]) -> Float[Tensor, "b h i j"]:
        batch, heads = queries.shape[:2]
        parts = []
        if self.position_keys is not None:
            by_row = queries @ self.position_keys.transpose(-1, -2)  # (b h i r)
            parts.append(by_row.gather(-1, index.expand(batch, heads, *index.shape)))
        if self.position_queries is not None:
            by_row = keys @ self.position_queries.transpose(-1, -2)  # (b h j r)
            parts.append(by_row.gather(-1, index.T.expand(batch, heads, *index.T.shape)).transpose(-1, -2))
        return summed(parts)

    def _far(self, queries: Tensor, keys: Tensor, row: Int[Tensor, ""]) -> Float[Tensor, "b h i j"]:
        """Compute scores beyond the table: c2p is one number per query and p2c one number per key."""
        total = queries.new_zeros(*queries.shape[:-1], keys.shape[-2])
        if self.position_keys is not None:
            total = total + (queries * self.position_keys[:, row, None]).sum(-1)[..., None]
        if self.position_queries is not None:
            total = total + (keys * self.position_queries[:, row, None]).sum(-1)[..., None, :]
        return total


def _in_columns(by_offset: Float[Tensor, "b h n offsets"]) -> Float[Tensor, "b h n n"]:
    """Return out[i, j] = by_offset[i, j - i + n - 1].

    In the flattened rows that element has index i * (2n - 2) + (j + n - 1). Dropping the first n - 1 numbers and
    reading rows of 2n - 2 moves column j into place.
    """
    length = by_offset.shape[-2]
    if length == 1:
        return by_offset
    flat = by_offset.flatten(-2)[..., length - 1 : length - 1 + length * (2 * length - 2)]
    return flat.unflatten(-1, (length, 2 * length - 2))[..., :length]


def _on_cpu(operands: Operands) -> Float[Tensor, "b h n e"] | None:
    length, valid = operands.queries.shape[-2], operands.options.valid
    learning = operands.is_learning
    compiled = length >= _COMPILED_FROM and _is_for_the_kernel(operands.queries)
    if not compiled and length < (_KEEP_FROM if learning else _BANDS_FROM):
        return None
    if valid is not None and (torch.compiler.is_compiling() or not valid.any(-1).all()):
        return None  # a pass that is being compiled cannot read mask values
    if compiled:
        return attend_compiled(operands)
    if learning:
        return attend_recomputing(operands) if length > _RECOMPUTE_ABOVE else attend_keeping(operands)
    if operands.options.dropout or not is_available():
        return None
    return attend_in_bands(operands).mixed.transpose(0, 1)


def _elsewhere(operands: Operands) -> Float[Tensor, "b h n e"] | None:
    queries = operands.queries
    batch, heads, length, _ = queries.shape
    served = length >= _FLASH_FROM and flash.serves(queries.device)
    if served and flash.takes(operands, longest=length, sequences=3 * batch):
        return attend_flash(operands)
    if operands.is_learning:
        held = batch * heads * length**2 * queries.element_size() <= _OPEN_BYTES
        return attend_openly(operands) if held else attend_recomputing(operands)
    if not operands.options.dropout and length >= _FLEX_FROM and flex.serves(queries.device):
        return attend_flex(operands)
    return None


def _packed(operands: Operands, documents: Documents) -> Float[Tensor, "1 h k e"] | None:
    """Attend to all documents in one launch."""
    sequences = len(documents.bounds) - 1
    if documents.longest < _FLASH_FROM:
        return None
    if not flash.takes(operands, longest=documents.longest, sequences=sequences):
        return None
    return attend_flash_packed(operands, documents)


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _is_for_the_kernel(queries: Tensor) -> bool:
    """Return whether the C++ kernel is available and supports the queries; torch.compile cannot trace it."""
    readable = queries.device.type == "cpu" and queries.dtype in READABLE
    return readable and not torch.compiler.is_compiling() and cpp_loader.is_ready("disentangled")
