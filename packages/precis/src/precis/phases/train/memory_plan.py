"""Estimates the memory of a pre-training run without allocating it.

Parameters are counted on the meta device. Activations are measured: one row runs through models of the run's width,
and the tensors that autograd keeps for the backward pass are summed. These models have one and two layers of each kind
and two vocabulary sizes. Layers of a stack are alike, so the rest is arithmetic.

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


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """The parameters of a model, those outside its layers, and the bytes that autograd keeps for one row."""

    parameters: int
    tables: int
    activations: float


def memory_plan(run: PreTrainRun) -> str:
    """Format the plan as a table."""
    plain = measure(run)
    thin = measure(replace(run, gradient_checkpointing=True))
    fixed = 16 * plain.parameters  # fp32: weight, gradient, two moments of Adam
    lines = [
        f"{run.name}: {plain.parameters / 1e6:,.1f} M parameters in training, "
        f"fp32 weights, computed in {run.train.precision}",
        f"activations: {_kb(plain, run)} a token, {_kb(thin, run)} with gradient checkpointing "
        f"(--set gradient_checkpointing=true), rows of {run.block_length} tokens",
        "",
        f"{'GPUs':>5}{'weights':>11}{'gradients':>11}{'optimizer':>11}{'gathered':>11}{'together':>11}"
        f"{f'rows in {GPU_GIB} GiB':>16}{'checkpointed':>14}{f'accumulation for {run.batch_size} rows':>34}",
    ]
    for gpus in GPUS:
        gathered = 8 * plain.tables if gpus > 1 else 0
        held = fixed / gpus + gathered
        left = GPU_GIB * 2**30 - held
        rows, more = (max(0, int(left // m.activations)) for m in (plain, thin))
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
    """Measure the parameters of the run's model, and the bytes that autograd keeps for one row."""
    shape = run.model
    depth = (shape.encoder_layers, shape.decoder_layers, run.objective.own_layers)
    least = (1, 1, min(depth[2], 2))  # an enhanced mask decoder is a second layer of the generator
    one = total = _kept_bytes(run, least, _VOCABULARY)
    for which, layers in enumerate(depth):
        if layers != least[which]:
            deeper = [count + (index == which) for index, count in enumerate(least)]
            total = total + (layers - least[which]) * (_kept_bytes(run, deeper, _VOCABULARY) - one)
    wider = _kept_bytes(run, least, 2 * _VOCABULARY)
    total = total + (shape.vocab_size / _VOCABULARY - 1) * (wider - one)
    with torch.device("meta"):
        model = _model(run, depth, shape.vocab_size)
        model.tie_weights()
    everything = sum(p.numel() for p in model.parameters())
    in_layers = sum(p.numel() for layer in layers_of(model) for p in layer.parameters())
    most = float(total.max())  # alternating updates keep one objective's activations at a time
    return MeasuredModel(parameters=everything, tables=everything - in_layers, activations=most)


def _model(run: PreTrainRun, depth: Sequence[int], vocabulary: int) -> PreTrainedModel:
    """Make the model with `depth` layers in the encoder, in the decoder and in the objective's own stack."""
    shape = replace(run.model, vocab_size=vocabulary, encoder_layers=depth[0], decoder_layers=depth[1])
    objective = run.objective.with_own_layers(depth[2])
    return objective.model(shaped_config(shape), block_length=run.block_length)


def _kept_bytes(run: PreTrainRun, depth: Sequence[int], vocabulary: int) -> np.ndarray:
    """Return the bytes kept for the backward pass of each objective of a step, without parameters."""
    model = _model(run, depth, vocabulary)
    if run.gradient_checkpointing:
        enable_gradient_checkpointing(model)
    batch = random_batches(run, vocabulary, rows=1).batch(0)
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
        pad=0,
        cls=1,
        sep=2,
        mask=vocabulary - SENTINELS - 1,
        first_sentinel=vocabulary - SENTINELS,
        sentinels=SENTINELS,
        pieces=range(4, vocabulary - SENTINELS - 1),
    )
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
