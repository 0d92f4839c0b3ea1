"""A model, an objective and a batch source small enough that a training step takes a millisecond."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from precis.objectives.losses import Loss, smoothed_cross_entropy
from precis.training import TrainResult, TrainSettings, mean_loss, train
from precis.training.callbacks import StartInfo, StepInfo, ValidationInfo

VOCABULARY = 19


@dataclass(frozen=True)
class Rows:
    inputs: Tensor
    labels: Tensor

    def to(self, device: Any) -> "Rows":
        return Rows(self.inputs.to(device), self.labels.to(device))


class TinyModel(nn.Module):
    """An embedding tied to the output layer, a norm, a hidden layer and dropout."""

    def __init__(self, *, seed: int = 0, width: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, VOCABULARY, bias=False)
        self.output.weight = self.embedding.weight
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.calls += 1  # type: ignore[assignment, operator]
        return self.output(self.norm(self.dropout(torch.tanh(self.hidden(self.embedding(inputs))))))


class RowSource:
    """Row r of the endless data set is a pure function of r; a row has 1 to 6 targets."""

    batches_per_epoch = 5

    def __init__(self, *, batch_size: int = 8, rank: int = 0, world_size: int = 1) -> None:
        self._batch_size = batch_size
        self._rank, self._world_size = rank, world_size
        self.asked: list[int] = []

    def batch(self, step: int) -> Rows:
        self.asked.append(step)
        first = step * self._batch_size
        return rows(range(first + self._rank, first + self._batch_size, self._world_size))


_TABLE = torch.randint(0, VOCABULARY, (1024, 6), generator=torch.Generator().manual_seed(0))


def rows(numbers: range) -> Rows:
    """Inputs of 6 tokens; the label is the next token, cyclically, ignored in the tail of the row."""
    which = torch.tensor(numbers)
    inputs = _TABLE[which % len(_TABLE)]
    labels = (inputs + 1) % VOCABULARY
    return Rows(inputs, labels.masked_fill(torch.arange(6) > which[:, None] % 6, -100))


def objective(model: nn.Module, batch: Rows) -> Loss:
    return smoothed_cross_entropy(model(batch.inputs), batch.labels, smoothing=0.1)


def validation_loss(model: nn.Module) -> Mapping[str, float]:
    return mean_loss(model, [rows(range(10_000, 10_016))], objective)


def wavering_loss(model: nn.Module) -> Mapping[str, float]:
    """Neither rises nor falls: of 12 steps the 11th is the best, of 24 with two micro-batches each the 23rd."""
    assert isinstance(model, TinyModel)
    return {"loss": 0.37 * int(model.calls) % 1.0}  # type: ignore[arg-type]


class Witness:
    """A callback that remembers what it was told."""

    def __init__(self) -> None:
        self.started: StartInfo | None = None
        self.steps: list[StepInfo] = []
        self.validations: list[ValidationInfo] = []
        self.ends: list[TrainResult | None] = []

    def on_start(self, info: StartInfo) -> None:
        self.started = info

    def on_step(self, info: StepInfo) -> None:
        self.steps.append(info)

    def on_validation(self, info: ValidationInfo) -> None:
        self.validations.append(info)

    def on_end(self, result: TrainResult | None) -> None:
        self.ends.append(result)


def run(
    folder: Path,
    *,
    model: nn.Module | None = None,
    batches: Any = None,
    validate: Callable[[nn.Module], Mapping[str, float]] | None = None,
    callbacks: Any = (),
    loss: Any = objective,
    resume: bool = True,
    identity: Mapping[str, Any] | None = None,
    accelerator: Any = None,
    **settings: Any,
) -> TrainResult:
    """`train` with small settings, any of which can be replaced."""
    usual: dict[str, Any] = {"steps": 12, "learning_rate": 0.01, "warmup_steps": 3, "save_every": 4}
    if settings.get("epochs"):
        del usual["steps"]
    return train(
        model if model is not None else TinyModel(),
        batches=batches or RowSource(),
        objective=loss,
        settings=TrainSettings(**{**usual, **settings}),
        folder=folder,
        validate=validate,
        callbacks=callbacks,
        resume=resume,
        identity=identity,
        accelerator=accelerator,
    )


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy, on the CPU."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}


def assert_identical(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name
