"""Stages "attention" and "encoder": ours against transformers and disentangled-flash, bf16, batches of 16,384 tokens.

Forward is without gradients, as inference is; forward+backward gives the gradients of inputs (attention) or of all
weights (encoder). Before attention is timed, the contenders' values are compared.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu.peers import (
    FLASH,
    OURS,
    SIZE,
    THEIRS,
    TOKENS,
    TOY_SIZE,
    TOY_TOKENS,
    encoder_pass,
    encoders,
    layer_pass,
    layers,
)
from benchmarks.gpu.race import Build, StageRun, race

LENGTHS, TOY_LENGTHS = (512, 2048, 8192, 128), (32,)  # those with goals first
WAYS = {"forward": False, "forward+backward": True}
_DTYPE = torch.bfloat16


def cell(what: str, length: int) -> str:
    """Return the name of a cell's rows, in both stages."""
    return f"{what} {length}"


def attention(run: StageRun) -> None:
    """Time one layer of self-attention."""
    _stage(run, _layer_builds, alike=(OURS, THEIRS, FLASH))


def encoder(run: StageRun) -> None:
    """Time three layers of encoders."""
    _stage(run, _encoder_builds, alike=())


def _stage(run: StageRun, builds: Callable[..., dict[str, Build]], *, alike: tuple[str, ...]) -> None:
    cells = [(what, n) for n in (TOY_LENGTHS if run.dry else LENGTHS) for what in WAYS]
    for number, (what, length) in enumerate(cells):
        batch = max(1, (TOY_TOKENS if run.dry else TOKENS) // length)
        torch.manual_seed(0)
        race(
            cell(what, length),
            builds(run, length, batch, WAYS[what]),
            run,
            seconds=max(0.0, run.left) / (len(cells) - number) / 2,  # the other half is for getting ready
            about={"tokens": length, "batch": batch, "dtype": "bf16"},
            alike=alike if what == "forward" else (),
        )


def _layer_builds(run: StageRun, length: int, batch: int, learns: bool) -> dict[str, Build]:
    size = TOY_SIZE if run.dry else SIZE
    shape: dict[str, Any] = {
        "batch": batch,
        "length": length,
        "learns": learns,
        "device": run.device,
        "dtype": _DTYPE,
    }
    return {
        name: lambda made=made: layer_pass(made(), size, **shape)  # type: ignore[misc]
        for name, made in layers(size, **shape).items()
    }


def _encoder_builds(run: StageRun, length: int, batch: int, learns: bool) -> dict[str, Build]:
    size = TOY_SIZE if run.dry else SIZE
    shape: dict[str, Any] = {"length": length, "learns": learns, "device": run.device}
    return {
        name: lambda made=made: encoder_pass(made(), batch=batch, **shape)  # type: ignore[misc]
        for name, made in encoders(size, dtype=_DTYPE, **shape).items()
    }
