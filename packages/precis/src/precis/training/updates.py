"""One optimizer step: gradients summed over micro-batches and processes, divided once, clipped, applied.

Objectives return sums, so the gradient of the global step is a plain sum of gradients; it is divided by the
step's number of targets just before clipping. So without dropout, the distribution of rows over micro-batches
and processes changes the curve only by rounding. With dropout, each process and micro-batch draws its own masks
from the same distribution. DistributedDataParallel averages over processes, so its mean is multiplied back.

An `InTurn` objective makes several updates in one step, each for the parameters that its gradient reaches: AdamW
skips parameters without a gradient.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn, optim

from precis.data.keyed_hash import scrambled
from precis.objectives.losses import BatchSource, InTurn, Loss, Objective, Stage, TrainingBatch, stages_of
from precis.training.optimizer import set_learning_rate
from precis.training.processes import in_pieces, whole
from precis.training.schedule import learning_rate_at
from precis.training.training_settings import TrainSettings

VALIDATION = 2**32 - 1  # the micro-batch number of validation
#: Sums by name, still on the device.
Sums = dict[str, Any]

_TURN = 2**24  # distance of the micro-batch numbers of two turns, for seeding


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all micro-batches and processes of one optimizer step, as read from the device.

    Attributes:
        loss: summed over the targets.
        targets, tokens: their numbers.
        stop: number of processes with a request to stop.
        parts, counts: sums by name, and their divisors.
        gradient_norm: over all parameters, before clipping.
    """

    loss: float
    targets: int
    tokens: int
    stop: int
    parts: dict[str, float]
    counts: dict[str, float]
    gradient_norm: float

    @property
    def mean_loss(self) -> float:
        """The loss per target; 0 without targets."""
        return self.loss / max(1, self.targets)

    @property
    def finite(self) -> bool:
        """True if the step may be applied."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)

    def and_then(self, later: "Totals") -> "Totals":
        """Add a later turn of the same step: sum the losses per target and the tokens, and unite the parts."""
        share = self.targets / max(1, later.targets)
        return Totals(
            loss=self.loss + later.loss * share, targets=self.targets, tokens=self.tokens + later.tokens,
            stop=max(self.stop, later.stop), parts=self.parts | later.parts, counts=self.counts | later.counts,
            gradient_norm=math.hypot(self.gradient_norm, later.gradient_norm),
        )  # fmt: skip


class Updater:
    """The owner of the model and the optimizer during training."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        *,
        objective: Objective | InTurn,
        settings: TrainSettings,
        total_steps: int,
        accelerator: Accelerator,
    ) -> None:
        """Use `model` and `optimizer` as prepared by `accelerator`."""
        self.settings = settings
        self.total_steps = total_steps
        self.accelerator = accelerator
        self._model = model
        self._optimizer = optimizer
        self._stages = stages_of(objective)
        self._trainable = [p for p in model.parameters() if p.requires_grad]

    def learning_rate(self, step: int) -> float:
        """Return the rate of optimizer step `step`, counted from 0."""
        settings = self.settings
        return learning_rate_at(
            step,
            peak=settings.learning_rate,
            warmup_steps=settings.warmup_steps,
            total_steps=self.total_steps,
            schedule=settings.schedule,
        )

    def seed(self, step: int, *, micro_batch: int) -> None:
        """Seed this process for one micro-batch of a step."""
        rank = self.accelerator.process_index
        seed_position(seed=self.settings.seed, step=step, rank=rank, micro_batch=micro_batch)

    def precision(self) -> AbstractContextManager[None]:
        """Return the autocast context, if the precision is bf16; weights stay fp32."""
        if self.settings.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.accelerator.device.type, dtype=torch.bfloat16)

    def update(self, batches: BatchSource, step: int, *, asked_to_stop: Callable[[], bool]) -> Totals:
        """Make one optimizer step: for each objective batch, loss, backward, division, clipping, update.

        At the end of each turn, a request to stop this process is shared with the others. An objective whose loss or
        gradient is not finite changes nothing and ends the step.
        """
        count = self.settings.gradient_accumulation
        device = self.accelerator.device
        micro_batches = [batches.batch(step * count + number).to(device) for number in range(count)]
        carried: list[Any] = [None] * count
        step_totals: Totals | None = None
        for number, stage in enumerate(self._stages):
            sums = self._accumulate(stage, micro_batches, carried, step=step, turn=number)
            totals = self._divide_and_clip(sums, stop=asked_to_stop())
            step_totals = totals if step_totals is None else step_totals.and_then(totals)
            self._step_if_finite(step, totals)
            if not totals.finite:
                break
        assert step_totals is not None
        return step_totals

    def _accumulate(
        self, stage: Stage, micro_batches: list[TrainingBatch], carried: list[Any], *, step: int, turn: int
    ) -> Sums:
        """Run loss and backward for every micro-batch and return the sums; update `carried` for the next turn."""
        sums: Sums = {}
        last = len(micro_batches) - 1
        for number, batch in enumerate(micro_batches):
            self.seed(step, micro_batch=number + turn * _TURN)
            with self._sync_only_if(number == last):
                with self.precision():
                    loss = stage(self._model, batch, carried[number])
                self.accelerator.backward(loss.total)
            carried[number] = loss.carried
            _add(sums, loss)
        return sums

    def _divide_and_clip(self, sums: Sums, *, stop: bool) -> Totals:
        """Divide the gradients by all the targets of the step and clip their norm; read the totals.

        `stop` shares this process's request to stop with all others.
        """
        accelerator = self.accelerator
        names = sorted(sums)
        values = scalars([*(sums[name] for name in names), stop], accelerator.device)
        total = accelerator.reduce(values, reduction="sum")
        scale = accelerator.num_processes / total[names.index("targets")].clamp(min=1)
        torch._foreach_mul_([p.grad for p in self._trainable if p.grad is not None], scale.float())
        norm = whole(accelerator.clip_grad_norm_(self._trainable, self.settings.clip_norm))
        # The only wait for the device in a turn: one transfer has everything that the host needs.
        *read, stops, gradient_norm = torch.cat([total, norm.detach().to(total.dtype).reshape(1)]).tolist()
        by_name = dict(zip(names, read, strict=True))
        return Totals(
            loss=by_name["loss"], targets=int(by_name["targets"]), tokens=int(by_name["tokens"]),
            stop=int(stops), parts=_below("parts/", by_name), counts=_below("counts/", by_name),
            gradient_norm=gradient_norm,
        )  # fmt: skip

    def _step_if_finite(self, step: int, totals: Totals) -> None:
        """Step the optimizer at the rate of `step` if loss and gradient are finite; drop the gradients."""
        if totals.finite:
            set_learning_rate(self._optimizer, self.learning_rate(step))
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def _sync_only_if(self, last: bool) -> AbstractContextManager[None]:
        """Synchronize gradients once a step, with the last micro-batch; those of a sharded model always, since no
        process has room for all of them.
        """
        return nullcontext() if last or in_pieces(self._model) else self.accelerator.no_sync(self._model)


def scalars(values: Iterable[Tensor | float], device: torch.device) -> Tensor:
    """Stack scalars on the device, to read them in one transfer; in fp64 if the device supports it. A kernel writes
    the numbers: a copy from the host's memory would make the host wait for all pending work of the device.
    """
    exact = torch.float32 if device.type == "mps" else torch.float64  # Apple's GPUs have no fp64
    there = [
        value.detach().to(device, exact).reshape(())
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=exact, device=device)
        for value in values
    ]
    return torch.stack(there)


def _below(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _add(sums: Sums, loss: Loss) -> None:
    """Add one micro-batch to the step's sums, without waiting for the device."""
    values = {
        "loss": loss.total.detach(),
        "targets": loss.num_targets,
        "tokens": loss.num_targets if loss.num_tokens is None else loss.num_tokens,
    }
    for name, part in loss.parts.items():
        values[f"parts/{name}"] = part.detach()
        values[f"counts/{name}"] = loss.counts.get(name, loss.num_targets)
    for name, value in values.items():
        sums[name] = sums.get(name, 0) + value


def add_to_window(window: dict[str, float], totals: Totals, *, learning_rate: float, seconds: float) -> None:
    """Add one step to the sums of `window`. A skipped step is counted and adds no loss."""
    sums = {
        "steps": 1.0, "skipped": 0.0 if totals.finite else 1.0, "tokens": float(totals.tokens),
        "seconds": seconds, "learning_rate": learning_rate,
    }  # fmt: skip
    if totals.finite:
        sums |= {"loss": totals.loss, "targets": totals.targets, "gradient_norm": totals.gradient_norm}
        sums |= {f"parts/{name}": value for name, value in totals.parts.items()}
        sums |= {f"counts/{name}": value for name, value in totals.counts.items()}
    for name, value in sums.items():
        window[name] = window.get(name, 0.0) + value


def window_means(window: dict[str, float]) -> dict[str, float]:
    """Return the record of a window: loss and parts per target, gradient norm and learning rate per step, tokens/s.

    Loss, gradient norm and parts are missing if every step of the window was skipped.
    """
    steps, applied = window["steps"], window["steps"] - window["skipped"]
    record: dict[str, float] = {}
    if applied:
        record["loss"] = window["loss"] / max(1.0, window["targets"])
        for name in (key.removeprefix("parts/") for key in window if key.startswith("parts/")):
            record[name] = window[f"parts/{name}"] / max(1.0, window[f"counts/{name}"])
        record["gradient_norm"] = window["gradient_norm"] / applied
    record["learning_rate"] = window["learning_rate"] / steps
    record["skipped"] = window["skipped"]
    record["tokens_per_second"] = window["tokens"] / max(window["seconds"], 1e-9)
    return record


def mixed_seed(*numbers: int) -> int:
    """Mix integers into a 63-bit seed; nearby inputs give unrelated seeds (splitmix64, Steele et al. 2014)."""
    return int(scrambled(*numbers)) >> 1


def seed_position(*, seed: int, step: int, rank: int, micro_batch: int) -> None:
    """Seed PyTorch's generators on all devices for one micro-batch."""
    torch.manual_seed(mixed_seed(seed, step, rank, micro_batch))
