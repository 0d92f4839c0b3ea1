"""Stage "training": steps of recipe `zcodepp-small`, 64 x 512 tokens, by the training loop itself.

The steps are joint pre-training (generator, detection, spans: one backward pass) on random blocks, and fine-tuning on
random pairs with 128 tokens to write. They run in bf16 under autocast as recipes do it, with the recipe's dropout.
Joint pre-training runs without dropout too. Both also run with `train.compiler=inductor`, whose first steps include
compiling. A step's time is that between two steps of the loop, making and copying batches included. The first few are
not counted.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.device import Device
from benchmarks.gpu.flops import Work, of_step
from benchmarks.gpu.machine import SEED
from benchmarks.gpu.race import StageRun
from precis.data.batches.length_buckets import Batch
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.train.memory_plan import random_batches
from precis.recipes.catalogue import shaped_config
from precis.recipes.pretraining_runs import PreTrainRun, pretraining_run
from precis.recipes.run_plan import ZCodePPShape
from precis.training.callbacks import StartInfo, StepInfo, TrainResult, ValidationInfo
from precis.training.training_loop import train
from precis.training.training_settings import TrainSettings

RECIPE = "zcodepp-small"
JOINT, PAIRS, NO_DROPOUT = "joint pre-training", "fine-tuning", "joint pre-training, no dropout"
EAGER, COMPILED = "as it is", "inductor"
_TARGET, _TOY_TARGET = 128, 6
_WARM_UPS, _STEPS, _TOY_STEPS = 4, 40, 2
_SECONDS = 8.0  # of counted steps
_NEVER = 1_000_000


def stage(run: StageRun) -> None:
    """Measure all cells, the compiled ones last, because compiling may take all the time left."""
    # what an earlier run compiled would hide how long it takes
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    kinds = {
        JOINT: lambda: _joint(run, dropout=True),
        PAIRS: lambda: _pairs(run),
        NO_DROPOUT: lambda: _joint(run, dropout=False),
    }
    for cell, make in kinds.items():
        run.attempt(cell, EAGER, lambda make=make: _measured(make(), "none", run))  # type: ignore[misc]
        run.device.clean()
    backend = "eager" if run.dry else "inductor"  # "eager" traces and does not compile
    for cell in (JOINT,) if run.dry else (JOINT, PAIRS):
        run.attempt(cell, COMPILED, lambda make=kinds[cell]: _measured(make(), backend, run))  # type: ignore[misc]
        run.device.clean()


@dataclass(frozen=True, kw_only=True)
class _Training:
    """The arguments of `train`, and the multiplications of a step."""

    model: Any
    batches: Any
    objective: Any
    settings: TrainSettings
    flops: int


def _recipe(run: StageRun, *, dropout: bool) -> PreTrainRun:
    recipe = pretraining_run(RECIPE)
    shape = recipe.model
    assert isinstance(shape, ZCodePPShape)
    if not dropout:
        shape = replace(shape, dropout=0.0, attention_dropout=0.0)
    if run.dry:
        shape = replace(
            shape,
            vocab_size=500,
            hidden_size=32,
            num_attention_heads=2,
            intermediate_size=64,
            encoder_layers=2,
            decoder_layers=1,
        )
    objective = replace(recipe.objective, updates="joint")  # type: ignore[arg-type]  # the recipe has replaced tokens
    sizes: dict[str, Any] = (
        {"batch_size": 2, "block_length": 32} if run.dry else {"batch_size": 64, "block_length": 512}
    )
    return replace(recipe, model=shape, objective=objective, rows_at_once=None, **sizes)


def _settings(train_settings: TrainSettings, run: StageRun) -> TrainSettings:
    """Return the recipe's settings without end, checkpoint or validation."""
    return replace(
        train_settings,
        epochs=None,
        steps=_NEVER,
        save_every=_NEVER,
        precision="bf16" if run.device.on_card else "fp32",
        seed=SEED,
    )


def _joint(run: StageRun, *, dropout: bool) -> _Training:
    recipe = _recipe(run, dropout=dropout)
    torch.manual_seed(SEED)
    model: Any = recipe.objective.model(shaped_config(recipe.model), block_length=recipe.block_length)
    batches = random_batches(recipe, recipe.model.vocab_size, rows=recipe.batch_size)
    batch: Any = batches.batch(0)
    work = Work(
        rows=recipe.batch_size,
        read=_longest(batch.input_ids),
        written=_longest(batch.decoder_input_ids),
        detected=recipe.block_length,
        masked=_longest(batch.places),
    )
    flops = of_step(_shape(recipe), work, generator_layers=model.config.generator_layers)
    settings = _settings(recipe.train, run)
    return _Training(
        model=model, batches=batches, objective=recipe.objective.loss(), settings=settings, flops=flops
    )


def _pairs(run: StageRun) -> _Training:
    recipe = _recipe(run, dropout=True)
    shape = _shape(recipe)
    torch.manual_seed(SEED)
    model = ZCodePPForConditionalGeneration(ZCodePPConfig(**shape.to_dict()))
    target = _TOY_TARGET if run.dry else _TARGET
    batches = _SamePairs(
        rows=recipe.batch_size, read=recipe.block_length, written=target, vocabulary=shape.vocab_size
    )
    work = Work(rows=recipe.batch_size, read=recipe.block_length, written=target)
    settings = _settings(recipe.train, run)
    return _Training(
        model=model,
        batches=batches,
        objective=SequenceToSequence(),
        settings=settings,
        flops=of_step(shape, work),
    )


def _shape(recipe: PreTrainRun) -> ZCodePPShape:
    assert isinstance(recipe.model, ZCodePPShape)
    return recipe.model


def _longest(ids: Tensor) -> int:
    return int(ids.shape[1])


class _SamePairs:
    """One batch of random pairs for every step."""

    batches_per_epoch = 1

    def __init__(self, *, rows: int, read: int, written: int, vocabulary: int) -> None:
        draw = torch.Generator().manual_seed(SEED)
        ids, labels = (torch.randint(4, vocabulary, (rows, n), generator=draw) for n in (read, written))
        self._batch = Batch(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)

    def batch(self, step: int) -> Batch:
        return self._batch


class _EnoughError(BaseException):
    """Enough steps were made: the loop is left without a checkpoint. No `Exception`: one in a callback ends no run."""


class _Clock:
    """A callback that counts the seconds of the loop's steps, and stops it."""

    def __init__(self, device: Device, *, most: int) -> None:
        self._device, self._most = device, most
        self.warm_up, self.tokens, self.peak_mb = 0.0, 0, 0.0
        self.seconds: list[float] = []
        self._seen = 0

    def on_start(self, info: StartInfo) -> None:
        self._began = time.perf_counter()

    def on_step(self, info: StepInfo) -> None:
        self._seen += 1
        if self._seen == _WARM_UPS:
            self._device.synchronize()
            self.warm_up = time.perf_counter() - self._began
            if self._device.on_card:
                torch.cuda.reset_peak_memory_stats()
        if self._seen <= _WARM_UPS:
            return
        self.seconds.append(info.seconds)
        self.tokens = info.tokens
        if len(self.seconds) >= self._most or sum(self.seconds) > _SECONDS:
            if self._device.on_card:
                self.peak_mb = torch.cuda.max_memory_allocated() / 2**20
            raise _EnoughError

    def on_validation(self, info: ValidationInfo) -> None:
        pass

    def on_end(self, result: TrainResult | None) -> None:
        pass


def _measured(training: _Training, compiler: Any, run: StageRun) -> dict[str, Any]:
    torch.compiler.reset()
    clock = _Clock(run.device, most=_TOY_STEPS if run.dry else _STEPS)
    _until_enough(
        lambda folder: train(
            training.model,
            batches=training.batches,
            objective=training.objective,
            settings=replace(training.settings, compiler=compiler),
            folder=folder,
            callbacks=[clock],
            resume=False,
        )
    )
    step, low, high = statistics.median(clock.seconds), min(clock.seconds), max(clock.seconds)
    compiling = max(0.0, clock.warm_up - _WARM_UPS * step)
    said = f"{1000 * step:.4g} ms a step ({1000 * low:.4g}-{1000 * high:.4g}), {clock.tokens / step:,.0f} tokens/s"
    return {
        "ms": 1000 * step,
        "ms_low": 1000 * low,
        "ms_high": 1000 * high,
        "rounds_ms": [1000 * s for s in clock.seconds],
        "tokens_per_second": clock.tokens / step,
        "flops": training.flops,
        "tflops": training.flops / step / 1e12,
        "peak_mb": clock.peak_mb,
        "compiler": compiler,
        "warm_up_seconds": clock.warm_up,
        "before_full_speed_seconds": compiling,
        "said": f"{said}, {training.flops / step / 1e12:.3g} TFLOP/s, {clock.peak_mb:,.0f} MB, "
        f"{compiling:.0f} s before full speed",
    }


def _until_enough(work: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            work(folder)
        except _EnoughError:
            return
