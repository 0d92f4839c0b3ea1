"""The training loop: update (batch, loss, backward, clip, step), callbacks, validation, checkpoint.

Accelerate places the model on its devices and processes. The loop itself is ours, so that a run killed at any moment
resumes bit-identically (`checkpoint.py`). Without dropout, gradient accumulation and the number of processes change
the curve only by rounding (sums are added first and divided once). With dropout, each process and micro-batch draws
other masks, of the same distribution.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from torch import nn, optim

from precis.objectives.losses import BatchSource, InTurn, Objective
from precis.training.callbacks import Callback, TrainResult
from precis.training.interruption import interruptions
from precis.training.optimizer import build_optimizer
from precis.training.prefetch import Prefetched
from precis.training.processes import Pieces, shard, sharding_is_asked_for
from precis.training.torch_compile import CompileClock, compiled_layers, stacks_of
from precis.training.training_run import Run, Validate
from precis.training.training_settings import TrainSettings
from precis.training.updates import Updater


def accelerator_for(objective: Objective | InTurn) -> Accelerator:
    """Make the accelerator (devices and processes) that `train` needs for `objective`."""
    # Objectives that take turns leave each other's parameters without a gradient.
    in_turn = DistributedDataParallelKwargs(find_unused_parameters=isinstance(objective, InTurn))
    # Without a GPU, torchrun's processes find each other only with `cpu=True`.
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    on_cpu = several and not torch.accelerator.is_available()
    return Accelerator(mixed_precision="no", cpu=on_cpu, kwargs_handlers=[in_turn])


def train(
    model: nn.Module,
    *,
    batches: BatchSource,
    objective: Objective | InTurn,
    settings: TrainSettings,
    folder: str | Path,
    validate: Validate | None = None,
    callbacks: Sequence[Callback] = (),
    accelerator: Accelerator | None = None,
    resume: bool = True,
    identity: Mapping[str, Any] | None = None,
) -> TrainResult:
    """Train `model` in place; resume the run in `folder` if it has checkpoints.

    Args:
        model: its trainable parameters (``requires_grad``) are trained, in fp32.
        batches: micro-batches of this process; step s uses ``gradient_accumulation`` of them from
            ``s * gradient_accumulation`` on. With several processes, each one's source returns its share.
        objective: returns the summed loss of a micro-batch; or several that take turns within a step.
        settings: everything that the curve depends on, besides model, batches and `identity`.
        folder: the run folder, for checkpoints and the output of callbacks.
        validate: measures the (unwrapped) model, in evaluation mode and without gradients. With several
            processes, each calls it and the result of the main one counts.
        callbacks: observers, called only by the main process; `standard_callbacks()` are the usual ones.
        accelerator: one made by `accelerator_for`, or with ``mixed_precision="no"`` for special set-ups, since the
            loop does the autocast.
        resume: False deletes the run's checkpoints and starts again.
        identity: further JSON values that the curve depends on, such as the data and the batch size.

    Returns:
        The result of the run. The model has the last weights; `load_weights(model, result.best_checkpoint)` loads
        the best.

    Raises:
        UserError: the run in `folder` was started with other settings or another model, or `validate` does
            not measure the metric in `settings.select`.
        RunError: too many steps in a row were not finite, or a checkpoint could not be written.
    """
    accelerator = accelerator or accelerator_for(objective)
    if accelerator.device.type != "cpu":
        batches = Prefetched(batches, accelerator.device)
    optimizer = build_optimizer(model, settings)
    prepared, stepped, pieces = _prepared(model, optimizer, settings=settings, accelerator=accelerator)
    updater = Updater(
        prepared,
        stepped,
        objective=objective,
        settings=settings,
        total_steps=settings.total_steps(batches.batches_per_epoch),
        accelerator=accelerator,
    )
    run = Run(
        model,
        optimizer,
        pieces=pieces,
        updater=updater,
        batches_per_epoch=batches.batches_per_epoch,
        folder=Path(folder),
        validate=validate,
        callbacks=callbacks,
        identity=identity or {},
    )
    with (
        interruptions() as interruption,
        compiled_layers(model, "none" if pieces else settings.compiler),
        CompileClock() as compiling,
        run.begun(resume=resume),
    ):
        run.validate_if_due(interruption)  # if a signal aborted it the last time
        while run.goes_on():
            totals = updater.update(batches, run.state.step, asked_to_stop=lambda: interruption.requested)
            run.record_step(totals, compiling=compiling.take())
            run.validate_if_due(interruption)
            run.save_if_due()
        run.save_if_due()
        return run.finish()


def _prepared(
    model: nn.Module, optimizer: optim.Optimizer, *, settings: TrainSettings, accelerator: Accelerator
) -> tuple[nn.Module, optim.Optimizer, Pieces | None]:
    """Return the model to step, on its devices and processes, compiled if the settings say so, and its optimizer. If
    the model is sharded, also return the `Pieces` that copy state between it and the whole model.
    """
    if sharding_is_asked_for():
        sharded = shard(model, accelerator)
        stepped = build_optimizer(sharded, settings)
        pieces = Pieces(model, optimizer, pieces=sharded, pieces_optimizer=stepped, accelerator=accelerator)
        if settings.compiler != "none":
            sharded.compile(backend=settings.compiler)  # in place: this copy has no other user
        return sharded, stepped, pieces
    # Without a `LayerStack`, compile a wrapper: the model keeps its tensors' names and is validated uncompiled.
    whole = settings.compiler != "none" and not stacks_of(model)
    called = torch.compile(model, backend=settings.compiler) if whole else model
    # Step the plain optimizer, not Accelerate's wrapper: we use no gradient scaler and no scheduler.
    prepared, _ = accelerator.prepare(called, optimizer)
    return prepared, optimizer, None
