"""Estimates the memory of a pre-training run without allocating it.

Parameters are counted on the meta device. Activations are measured on narrow models, and the rest is arithmetic: one
and two rows run through them, and the tensors that autograd keeps for the backward pass are summed. These models have
one and two layers of each kind, two vocabulary sizes and three widths. Layers of a stack are alike. A row's bytes grow
linearly with the width, with the size of a head unchanged. What all rows share (copies of weights in bf16, scores of
positions) grows with its square.

With several GPUs, weights, gradients and optimizer state are sharded (FSDP2, full sharding). Parameters outside layers,
mainly the token tables, are gathered for the whole step (`precis.training.processes`). One gathered layer at a time and
the allocator's overhead are not counted. Logits of many rows are computed in pieces (`precis.nn.vocabulary_scores`) but
counted as if all were kept: with a large vocabulary more rows fit. Data-parallel processes (DDP) hold everything, as
one GPU does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor, UntypedStorage, nn
from torch.autograd.graph import saved_tensors_hooks
from transformers import PreTrainedModel

from precis.data.batches.corruption import CorruptionIds
from precis.data.text.unigram_tokenizer import SENTINELS
from precis.models.family import enable_gradient_checkpointing
from precis.objectives.losses import BatchSource, stages_of
from precis.recipes.catalogue import shaped_config
from precis.recipes.pretraining_runs import PreTrainRun
from precis.training.processes import layers_of

GPUS = (1, 8, 128)
GPU_GIB = 80
_VOCABULARY = 2048
_WIDTHS = (1, 2, 3)  # three points of a parabola
_WIDE = ("hidden", "heads", "intermediate", "ffn")  # in the names of the settings that are widths


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """The parameters of a model, those outside its layers, and the bytes that autograd keeps.

    Attributes:
        activations: bytes for each row.
        shared: bytes that all rows have in common.
    """

    parameters: int
    tables: int
    activations: float
    shared: float


def memory_plan(run: PreTrainRun) -> str:
    """Format the plan as a table."""
    plain = measure(run)
    thin = measure(replace(run, gradient_checkpointing=True))
    fixed = 16 * plain.parameters  # fp32: weight, gradient, two moments of Adam
    lines = [
        f"{run.name}: {plain.parameters / 1e6:,.1f} M parameters in training, "
        f"fp32 weights, computed in {run.train.precision}",
        f"activations: {_kb(plain, run)} a token, {_kb(thin, run)} with gradient checkpointing "
        f"(--set gradient_checkpointing=true), rows of {run.block_length} tokens;",
        f"for all rows together {_gib(plain.shared).strip()}, {_gib(thin.shared).strip()} with gradient checkpointing",
        "",
        f"{'GPUs':>5}{'weights':>11}{'gradients':>11}{'optimizer':>11}{'gathered':>11}{'together':>11}"
        f"{f'rows in {GPU_GIB} GiB':>16}{'checkpointed':>14}{f'accumulation for {run.batch_size} rows':>34}",
    ]
    for gpus in GPUS:
        gathered = 8 * plain.tables if gpus > 1 else 0
        held = fixed / gpus + gathered
        left = GPU_GIB * 2**30 - held
        rows, more = (max(0, int((left - m.shared) // m.activations)) for m in (plain, thin))
        turns = f"{-(-run.batch_size // (gpus * rows))}" if rows else "does not fit"
        share = 4 * plain.parameters / gpus
        lines.append(
            f"{gpus:>5}{_gib(share)}{_gib(share)}{_gib(2 * share)}{_gib(gathered)}{_gib(held)}"
            f"{rows:>16,}{more:>14,}{turns:>34}"
        )
    lines += [
        "",
        "Bytes on each GPU with full sharding (FSDP2). Weights and gradients outside layers are gathered. One",
        "gathered layer at a time and the allocator's overhead are not counted. With plain data-parallel",
        "processes, each GPU needs the memory of the first row.",
    ]
    return "\n".join(lines)


def measure(run: PreTrainRun) -> MeasuredModel:
    """Measure the parameters of the run's model, and the bytes that autograd keeps; nothing of its size is built.

    Raises:
        UserError: the shape is impossible.
    """
    shape = run.model
    with torch.device("meta"):
        model = _model(run, (shape.encoder_layers, shape.decoder_layers, run.objective.own_layers))
        model.tie_weights()
    everything = sum(p.numel() for p in model.parameters())
    in_layers = sum(p.numel() for layer in layers_of(model) for p in layer.parameters())
    of_row, shared = _of_all_widths(run)
    # alternating updates keep one objective's activations at a time
    return MeasuredModel(
        parameters=everything,
        tables=everything - in_layers,
        activations=float(of_row.max()),
        shared=float(shared.max()),
    )


def _of_all_widths(run: PreTrainRun) -> np.ndarray:
    """Return the bytes for each row and those that rows share, of each objective: (2 o)."""
    wide = {name: value for name, value in vars(run.model).items() if any(part in name for part in _WIDE)}
    times = gcd(*wide.values())

    def of_width(factor: int) -> np.ndarray:
        narrow = {name: value // times * factor for name, value in wide.items()}
        return _of_all_layers(replace(run, model=replace(run.model, **narrow)))

    if times <= max(_WIDTHS):
        return of_width(times)
    # Lagrange's polynomial through the three widths
    return sum(
        of_width(at) * np.prod([(times - other) / (at - other) for other in _WIDTHS if other != at])
        for at in _WIDTHS
    )


def _of_all_layers(run: PreTrainRun) -> np.ndarray:
    """Return the bytes for each row and those that rows share, of each objective: (2 o)."""
    shape = run.model
    depth = (shape.encoder_layers, shape.decoder_layers, run.objective.own_layers)
    least = (1, 1, min(depth[2], 2))  # an enhanced mask decoder is a second layer of the generator
    one = total = _of_rows(run, least, _VOCABULARY)
    for which, layers in enumerate(depth):
        if layers != least[which]:
            deeper = [count + (index == which) for index, count in enumerate(least)]
            total = total + (layers - least[which]) * (_of_rows(run, deeper, _VOCABULARY) - one)
    wider = _of_rows(run, least, 2 * _VOCABULARY)
    return total + (shape.vocab_size / _VOCABULARY - 1) * (wider - one)


def _of_rows(run: PreTrainRun, depth: Sequence[int], vocabulary: int) -> np.ndarray:
    """Return the bytes for each row and those that rows share, of each objective: (2 o)."""
    narrow = replace(run, model=replace(run.model, vocab_size=vocabulary))
    model = _model(narrow, depth)
    if run.gradient_checkpointing:
        enable_gradient_checkpointing(model)
    one, two = (_kept_bytes(narrow, model, rows=rows) for rows in (1, 2))
    return np.stack([two - one, 2 * one - two])


def _model(run: PreTrainRun, depth: Sequence[int]) -> PreTrainedModel:
    """Make the model with `depth` layers in the encoder, in the decoder and in the objective's own stack."""
    shape = replace(run.model, encoder_layers=depth[0], decoder_layers=depth[1])
    objective = run.objective.with_own_layers(depth[2])
    return objective.model(shaped_config(shape), block_length=run.block_length)


def _kept_bytes(run: PreTrainRun, model: PreTrainedModel, *, rows: int) -> np.ndarray:
    """Return the bytes kept for the backward pass of each objective of a step, without parameters: (o)."""
    batch = random_batches(run, run.model.vocab_size, rows=rows).batch(0)
    kept: list[int] = []
    carried: Any = None
    for stage in stages_of(run.objective.loss()):
        in_bf16 = run.train.precision == "bf16"
        with _weighing(model) as storages, torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
            carried = stage(model, batch, carried).carried
        kept.append(sum(storage.nbytes() for storage in storages))
    return np.array(kept, np.float64)


def random_batches(run: PreTrainRun, vocabulary: int, *, rows: int) -> BatchSource:
    """Make batches of random ids in the run's format, for measuring."""
    words = CorruptionIds(
        pad=0, cls=1, sep=2, mask=vocabulary - SENTINELS - 1, first_sentinel=vocabulary - SENTINELS,
        sentinels=SENTINELS, pieces=range(4, vocabulary - SENTINELS - 1),
    )  # fmt: skip
    source = RandomRows(run.block_length, vocabulary)
    return run.objective.batches(source, words, run.corruption, batch_size=rows)


class RandomRows:
    """Blocks of random ids, for measuring."""

    num_blocks = 10_000

    def __init__(self, length: int, vocabulary: int, *, seed: int = 0) -> None:
        self.length = length
        self._vocabulary, self._seed = vocabulary, seed

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (b n) ids between control tokens and sentinels, (b) zeros."""
        rng = np.random.default_rng([self._seed, int(positions[0])])
        ids = rng.integers(5, self._vocabulary - SENTINELS - 1, (len(positions), self.length))
        ids[:, 0], ids[:, -1] = 1, 2
        return ids, np.zeros(len(positions), np.int64)

    def uniforms(self, positions: np.ndarray, width: int) -> np.ndarray:
        """Return (b w) random numbers."""
        return np.random.default_rng([self._seed, int(positions[0]), 1]).random((len(positions), width))

    def sentence_starts(self, positions: np.ndarray) -> list[np.ndarray]:
        """Return sentence starts, one every 20 tokens."""
        return [np.arange(1, self.length - 1, 20)] * len(positions)


@contextmanager
def _weighing(model: nn.Module) -> Iterator[list[UntypedStorage]]:
    """Collect the storages that autograd keeps in the body, each once, without the parameters'."""
    seen = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: list[UntypedStorage] = []  # kept alive, so that no address is reused

    def weigh(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            kept.append(storage)
        return tensor

    with saved_tensors_hooks(weigh, lambda tensor: tensor):
        yield kept


def _kb(measured: MeasuredModel, run: PreTrainRun) -> str:
    return f"{measured.activations / run.block_length / 1e3:,.0f} kB"


def _gib(count: float) -> str:
    return f"{count / 2**30:>7.2f} GiB"
