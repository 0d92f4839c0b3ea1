"""Loss functions on logits. They return sums, never means: only the trainer divides.

A mean taken here would weigh a short micro-batch as much as a long one, so that gradient accumulation and
the number of processes would change the curve. Sums can be added over both and divided once by all the
targets of the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from torch import Tensor, nn

from precis.nn.vocabulary_scores import VocabularyScores
from precis.objectives.vocabulary_loss import token_losses


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What an objective hands to the trainer.

    Attributes:
        total: scalar, the SUM of the loss over the targets, attached to the graph.
        num_targets: how many targets it was summed over (a scalar tensor avoids waiting for a GPU); may be 0.
        parts: detached sums worth logging on their own, such as ``nll`` or ``accuracy``; the same names
            every time.
        counts: what to divide a part by, where that is not ``num_targets``.
        num_tokens: tokens read and written for it, for the tokens/s display; ``num_targets`` when left out.
        carried: what the next objective of an `InTurn` is to be handed about this batch.
    """

    total: Tensor
    num_targets: Tensor | int
    parts: Mapping[str, Tensor] = field(default_factory=dict)
    counts: Mapping[str, Tensor | int] = field(default_factory=dict)
    num_tokens: Tensor | int | None = None
    carried: Any = None


class TrainingBatch(Protocol):
    """A batch can move to a device; what else is in it is between the source and the objective."""

    def to(self, device: Any) -> Self: ...


class BatchSource(Protocol):
    """Micro-batches by index since the beginning of training, as a pure function of the index."""

    @property
    def batches_per_epoch(self) -> int: ...
    def batch(self, step: int) -> TrainingBatch: ...


class Objective(Protocol):
    """Anything that turns a model and a batch into a `Loss`."""

    def __call__(self, model: nn.Module, batch: Any) -> Loss: ...


class Stage(Protocol):
    """One of several objectives within a step: it is also handed what the one before `carried`, at first None."""

    def __call__(self, model: nn.Module, batch: Any, carried: Any, /) -> Loss: ...


@dataclass(frozen=True)
class InTurn:
    """Objectives that take turns within one optimizer step: each has its own backward pass, clipping and update, of
    the parameters that its loss reaches, and the next one sees the updated weights.

    With several processes its parameters are not all used in every turn, which the trainer sees to.
    """

    stages: tuple[Stage, ...]


def stages_of(objective: Objective | InTurn) -> tuple[Stage, ...]:
    """The turns of a step: those of an `InTurn`, or the one of any other objective."""
    if isinstance(objective, InTurn):
        return objective.stages
    return (lambda model, batch, _: objective(model, batch),)


def smoothed_cross_entropy(
    scores: Tensor | VocabularyScores, labels: Tensor, *, smoothing: float = 0.0, ignore: int = -100
) -> Loss:
    """Cross-entropy with label smoothing (Szegedy et al. 2016, section 7), summed over the targets, in fp32.

    For each target y: ``(1 - smoothing) * -log p(y) + smoothing * mean over the vocabulary of -log p``. The
    uniform part includes the target itself, as in `torch.nn.functional.cross_entropy` (fairseq and
    transformers agree on this; a variant elsewhere spreads it over the other words only).

    Args:
        scores: ``(b, t, v)`` unnormalised scores in any floating type, or what they are made of.
        labels: ``(b, t)`` ids.
        ignore: the label where nothing is to be predicted, as in `precis.data.batches.bucketed`.
        smoothing: from 0 up to, not including, 1.

    Returns:
        The loss with parts ``nll`` (unsmoothed) and ``accuracy`` (targets whose score is the highest).
        Without any target all of them are 0 and the gradient is 0, not NaN.
    """
    losses = token_losses(scores, labels, smoothing=smoothing, ignore=ignore)
    return Loss(
        total=losses.total,
        num_targets=(labels != ignore).sum(),
        parts={"nll": losses.nll.sum(), "accuracy": losses.hits.sum().to(losses.total.dtype)},
    )
