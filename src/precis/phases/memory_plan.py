"""What memory a pre-training run needs, before any of it is taken.

Parameters are counted on the meta device. Activations are measured: one row goes through models of the run's width,
and all that autograd keeps for the backward pass is weighed. These models have one and two layers of each kind and two
sizes of vocabulary. Layers of a stack are alike, so the rest is arithmetic.

With several GPUs weights, gradients and optimizer state are divided (FSDP2, full sharding). What is no layer, the token
tables above all, is gathered for the whole step (`precis.training.processes`). One layer at a time and the allocator's
waste come on top and are not counted. Logits of many rows are made in pieces (`precis.nn.vocabulary_scores`), but
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
from precis.data.text.tokenizer import SENTINELS
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
    """Bytes that autograd keeps for one row, parameters, and those of them that stand in no layer."""

    parameters: int
    tables: int
    activations: float


def memory_plan(run: PreTrainRun) -> str:
    """The plan as a table for people."""
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
        "Bytes on each GPU if everything is divided among them (FSDP2, full sharding); gathered are weights and",
        "gradients of what is no layer. One layer at a time and the allocator's waste are not counted. With plain",
        "data-parallel processes each GPU needs what the first row says.",
    ]
    return "\n".join(lines)


def measure(run: PreTrainRun) -> MeasuredModel:
    """Parameters of the whole run's model, and what autograd keeps for a row of it."""
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
    most = float(total.max())  # updates in turn keep one objective's activations at a time
    return MeasuredModel(parameters=everything, tables=everything - in_layers, activations=most)


def _model(run: PreTrainRun, depth: Sequence[int], vocabulary: int) -> PreTrainedModel:
    """The model with so many layers in its encoder, in its decoder and beside them."""
    shape = replace(run.model, vocab_size=vocabulary, encoder_layers=depth[0], decoder_layers=depth[1])
    objective = run.objective.with_own_layers(depth[2])
    return objective.model(shaped_config(shape), block_length=run.block_length)


def _kept_bytes(run: PreTrainRun, depth: Sequence[int], vocabulary: int) -> np.ndarray:
    """For each objective of a step, the bytes kept for its backward pass, parameters apart."""
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
    """Batches of random ids as the run would see them, to measure with."""
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
    """Blocks of random ids, for measuring; nothing is to be learnt from them."""

    num_blocks = 10_000

    def __init__(self, length: int, vocabulary: int, *, seed: int = 0) -> None:
        self.length = length
        self._vocabulary, self._seed = vocabulary, seed

    def rows(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(b n) ids between control tokens and sentinels, (b) zeros."""
        rng = np.random.default_rng([self._seed, int(positions[0])])
        ids = rng.integers(5, self._vocabulary - SENTINELS - 1, (len(positions), self.length))
        ids[:, 0], ids[:, -1] = 1, 2
        return ids, np.zeros(len(positions), np.int64)

    def uniforms(self, positions: np.ndarray, width: int) -> np.ndarray:
        """(b w) random numbers."""
        return np.random.default_rng([self._seed, int(positions[0]), 1]).random((len(positions), width))

    def sentence_starts(self, positions: np.ndarray) -> list[np.ndarray]:
        """A sentence every 20 tokens."""
        return [np.arange(1, self.length - 1, 20)] * len(positions)


@contextmanager
def _weighing(model: nn.Module) -> Iterator[list[UntypedStorage]]:
    """Collect the storages that autograd keeps in the body, each once, without those of the parameters."""
    seen = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: list[UntypedStorage] = []  # alive, so that no address is given out twice

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
