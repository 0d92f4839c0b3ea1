"""Stage "exactness": every way of disentangled attention against fp64, values and gradients, with and without padding.

The reference is written from the equations, in blocks of rows, in fp64, on the same rounded inputs. An error is the
norm of the difference over the norm of the reference, over all documents' real tokens. There is one error for values,
and the largest of the five gradients' (queries, keys, values, both position tables). A way is wrong if it is not
finite. It is also wrong if its error is more than twice the plain path's and twice the number format's step.
"""

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from benchmarks.gpu.notes import Row
from benchmarks.gpu.race import StageRun
from precis.nn.attention import attend
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.disentangled.inputs import Operands
from precis.nn.relative_positions import LogBuckets, OffsetRows
from precis_text.errors import UserError

Inputs = tuple[
    Tensor, ...
]  # queries, keys, values (b h n e), position keys and queries (h r e), tables scaled
Way = Callable[[Inputs, Tensor | None], Tensor]

HEADS, WIDTH, DOCUMENTS = 4, 64, 2
SCALE = (3 * WIDTH) ** -0.5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
BUCKETS = LogBuckets(256, 512)
_BLOCK = 512
_TIMES, _STEPS = 2.0, 2.0
_NOTHING = 1e-9

# Kernels are compiled for most lengths and formats, which may exceed the time limit: the lengths at which the way
# changes come first, in both formats.
FIRST_LENGTHS = (1, 2, 65, 128, 512, 513, 1025, 8192)
MORE_LENGTHS = (400, 511, 1024, 2047, 8191, 127, 129, 700, 1023, 1279, 2048, 3001, 7, 64, 1281, 4096, 4097)
# FlexAttention is compiled again for some of them.
FLEX_LENGTHS = (512, 2047, 8192)
TOY_LENGTHS, TOY_FLEX_LENGTHS = (1, 2, 65), (33,)

_PLAIN = "plain"
_CHOSEN = "attend"
# name -> where it is, and whether gradients go through it: those that `attend` may take on a card, and on the CPU
_ON_CARD = {
    _CHOSEN: ("precis.nn.attention", "attend", True),
    "flash": ("precis.nn.disentangled.flash", "attend_flash", True),
    "open": ("precis.nn.disentangled.saved_scores", "attend_openly", True),
    "recomputing": ("precis.nn.disentangled.recompute", "attend_recomputing", True),
}
_ON_CPU = {
    _CHOSEN: _ON_CARD[_CHOSEN],
    "open": _ON_CARD["open"],
    "recomputing": _ON_CARD["recomputing"],
    "keeping": ("precis.nn.disentangled.saved_scores", "attend_keeping", True),
    "bands": ("benchmarks.gpu.exactness", "in_bands", False),
}
_FLEX = "flex"
_WAYS = {**_ON_CARD, **_ON_CPU, _FLEX: ("precis.nn.disentangled.flex", "attend_flex", False)}


def stage(run: StageRun) -> None:
    """Measure a row for every format, length and way."""
    torch.set_float32_matmul_precision("highest")
    ways = _ON_CARD if run.device.on_card else _ON_CPU
    for length in TOY_LENGTHS if run.dry else FIRST_LENGTHS:
        for name in DTYPES:
            _cell(run, name, length, [_PLAIN, *ways])
    for length in TOY_FLEX_LENGTHS if run.dry else FLEX_LENGTHS:
        for name in DTYPES:
            _cell(run, name, length, [_PLAIN, _FLEX])
    for length in () if run.dry else MORE_LENGTHS:
        for name in DTYPES:
            _cell(run, name, length, [_PLAIN, *ways])


def _cell(run: StageRun, dtype: str, length: int, names: Sequence[str]) -> None:
    cell = f"{dtype}, {length} tokens"
    asked = [name for name in names if not run.notes.has(cell, name)]
    if not asked or run.notes.has(cell, "reference"):
        return
    if run.left <= 0:
        for name in asked:
            run.notes.add(cell, name, left_out="no time was left")
        return
    cases: list[_Case] = []
    with run.guarded(cell, "reference"):
        cases += (_Case(length, DTYPES[dtype], run.device.kind, padded=p) for p in (False, True))
    if not cases:
        return
    step = torch.finfo(DTYPES[dtype]).eps
    for name in asked:
        run.attempt(cell, name, lambda name=name: _row(run, cell, name, cases, step, dtype, length))  # type: ignore[misc]
    cases.clear()
    run.device.clean()


def _row(
    run: StageRun, cell: str, name: str, cases: "list[_Case]", step: float, dtype: str, length: int
) -> dict[str, Any]:
    way, learns = way_of(name)
    errors = {"values": max(case.error_of_values(way) for case in cases)}
    if learns:
        errors["gradients"] = max(case.error_of_gradients(way) for case in cases)
    plain = next((r for r in run.notes.rows if (r["cell"], r["contender"]) == (cell, _PLAIN)), {})
    wrong = misses(errors, plain.get("errors"), step)
    return {
        "dtype": dtype,
        "tokens": length,
        "errors": errors,
        "step": step,
        **({"wrong": wrong} if wrong else {}),
    }


def misses(errors: dict[str, float], plain: dict[str, float] | None, step: float) -> str:
    """Return what is wrong with a way's errors, or "" if they are the plain path's, or rounding.

    Args:
        plain: errors of the plain path; None: it failed there, and only rounding is allowed.
        step: between 1 and the next number of the format.
    """
    found = []
    for what, error in errors.items():
        most = max(_STEPS * step, _TIMES * (plain or {}).get(what, 0.0))
        if not error <= most:  # NaN is wrong too
            found.append(f"{what} are off by {error:.2g} of their norm; {most:.2g} is allowed")
    return ", ".join(found)


def way_of(name: str) -> tuple[Way, bool]:
    """Return a way by name, and whether gradients pass through it.

    Raises:
        UserError: this version of precis lacks it.
    """
    if name == _PLAIN:
        return _plain, True
    module, function, learns = _WAYS[name]
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise UserError(f"not here: {error}") from error
    return (_chosen if name == _CHOSEN else _forced(found)), learns


def _chosen(inputs: Inputs, valid: Tensor | None) -> Tensor:
    """Attend in the way that `attend` chooses."""
    mask = None if valid is None else valid[:, None, None]
    return attend(*inputs[:3], bias=_bias(inputs), mask=mask, scale=SCALE)


def _plain(inputs: Inputs, valid: Tensor | None) -> Tensor:
    """Attend with every faster way refused."""
    with patch.object(DisentangledBias, "fused", lambda *_, **__: None):
        return _chosen(inputs, valid)


def _forced(function: Callable[[Operands], Tensor]) -> Way:
    return lambda inputs, valid: function(
        _bias(inputs).operands(*inputs[:3], valid=valid, scale=SCALE, dropout=0.0)
    )


def _bias(inputs: Inputs) -> DisentangledBias:
    position_keys, position_queries = inputs[3:]
    return DisentangledBias(position_keys, position_queries, OffsetRows(BUCKETS))


class _Case:
    """Inputs of one length and format, what they should give, and how far from that a way is."""

    def __init__(self, length: int, dtype: torch.dtype, kind: str, *, padded: bool) -> None:
        draw = torch.Generator().manual_seed(length)
        sizes = [(DOCUMENTS, HEADS, length, WIDTH)] * 3 + [(HEADS, BUCKETS.rows, WIDTH)] * 2
        spreads = [1.0] * 3 + [0.1] * 2
        drawn = [torch.randn(s, generator=draw) * spread for s, spread in zip(sizes, spreads, strict=True)]
        self._inputs = tuple(x.to(dtype).to(kind) for x in drawn)
        lengths = torch.tensor([length, max(1, length - length // 3) if padded else length])
        real = (torch.arange(length)[None] < lengths[:, None]).to(kind)
        self._valid = real if padded else None
        upstream = torch.randn(sizes[0], generator=draw).to(dtype).to(kind)
        self._upstream = upstream * real[:, None, :, None]  # padding gives nothing back
        self._real = real
        self._expected = self._exactly()

    def _exactly(self) -> tuple[Tensor, list[Tensor]]:
        inputs = [x.double().requires_grad_() for x in self._inputs]
        mixed = exact(inputs, self._valid)
        gradients = torch.autograd.grad(mixed, inputs, self._upstream.double())
        return mixed.detach(), [g.detach() for g in gradients]

    def error_of_values(self, way: Way) -> float:
        with torch.no_grad():
            found = way(self._inputs, self._valid)
        shown = self._real[:, None, :, None]
        return _error(found * shown, self._expected[0] * shown)

    def error_of_gradients(self, way: Way) -> float:
        inputs = tuple(x.detach().requires_grad_() for x in self._inputs)
        found = torch.autograd.grad(way(inputs, self._valid), inputs, self._upstream, allow_unused=True)
        pairs = zip(found, self._expected[1], strict=True)
        return max(_error(torch.zeros_like(e) if f is None else f, e) for f, e in pairs)


def _error(found: Tensor, expected: Tensor) -> float:
    """Return the error as a share of the norm.

    If the norm is zero (one key: no score has a gradient), return the absolute error; upstream gradients have spread 1.
    """
    off, norm = (x.square().mean().sqrt() for x in (found.double() - expected, expected))
    return float(off / norm) if norm > _NOTHING else float(off)


def in_bands(operands: Operands) -> Tensor:
    """Attend by the CPU's way without gradients, and return only the mixed values."""
    from precis.nn.disentangled.bands import attend_in_bands

    return attend_in_bands(operands).mixed.transpose(0, 1)


def exact(inputs: Sequence[Tensor], valid: Tensor | None) -> Tensor:
    """Compute softmax(scale q.k + c2p + p2c) @ v from the definition, in blocks of rows whose scores are recomputed."""
    length = inputs[0].shape[-2]
    places = torch.arange(length, device=inputs[0].device)
    index = BUCKETS(places[:, None] - places)  # (n n): the row of each pair

    def rows(start: int, stop: int, *given: Tensor) -> Tensor:
        queries, keys, values, position_keys, position_queries = given
        asking, near = queries[..., start:stop, :], index[start:stop]
        shape = (*asking.shape[:2], *near.shape)
        of_query = (asking @ position_keys.mT).gather(-1, near.expand(shape))  # (b h i n)
        turned = near.T.expand(*asking.shape[:2], *near.T.shape)
        of_key = (keys @ position_queries.mT).gather(-1, turned).mT
        scores = SCALE * asking @ keys.mT + of_query + of_key
        if valid is not None:
            scores = scores.masked_fill(~valid[:, None, None], float("-inf"))
        return scores.softmax(-1) @ values

    starts = range(0, length, _BLOCK)
    parts = [checkpoint(rows, s, min(s + _BLOCK, length), *inputs, use_reentrant=False) for s in starts]
    return torch.cat(parts, dim=-2)


def summary(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Summarize the rows for people: the largest error of every format and way, next to the plain path's.

    Wrong rows follow.
    """
    plain = {r["cell"]: r["errors"] for r in rows if r["contender"] == _PLAIN and "errors" in r}
    found = []
    for dtype, way in dict.fromkeys((r["dtype"], r["contender"]) for r in rows if "errors" in r):
        mine = [r for r in rows if r.get("dtype") == dtype and r["contender"] == way]
        said = [f"{len(mine)} lengths"]
        for what in mine[0]["errors"]:
            worst = max(mine, key=lambda r: r["errors"][what])
            beside = plain.get(worst["cell"], {}).get(what)
            compared = "" if beside is None or way == _PLAIN else f", plain {beside:.1e}"
            said.append(
                f"{what} off by at most {worst['errors'][what]:.1e}{compared} ({worst['tokens']} tokens)"
            )
        found.append((dtype, way, "; ".join(said)))
    left_out = Counter((r["contender"], r["left_out"]) for r in rows if "left_out" in r)
    return found + [("left out", way, f"{count} times: {why}") for (way, why), count in left_out.items()]
