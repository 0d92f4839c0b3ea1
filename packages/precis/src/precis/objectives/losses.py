"""Losses of objectives, and cross-entropy over a vocabulary that never holds the logits of a whole batch in memory.

Losses are sums, never means: only the trainer divides. A mean per batch would weigh a short micro-batch as much as a
long one, so the curve would depend on gradient accumulation and the number of processes. Sums can be added over both
and divided once by the number of targets in the step.

A few rows use plain autograd. Many rows are processed in pieces. Each piece has logits in the dtype of the model's
matmuls and a softmax in fp32. The gradients with respect to states and table are computed at once, and only
their sums are kept. The loss is a weighted sum whose weights are known beforehand, so nothing is computed twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, cast, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from precis.data.batches.corruption import IGNORE
from precis.nn.vocabulary_scores import VocabularyScores, rows_at_once


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The summed loss of a batch, for the trainer.

    Attributes:
        total: scalar, the SUM of the loss over the targets, attached to the graph.
        num_targets: number of targets in the sum (a scalar tensor avoids waiting for a GPU); may be 0.
        parts: detached sums to log on their own, such as ``nll`` or ``accuracy``; the same names every time.
        counts: divisors of parts, where they differ from ``num_targets``.
        num_tokens: tokens read and written, for the tokens/s display; if None, ``num_targets``.
        carried: passed to the next objective of an `InTurn` with the same batch.
    """

    total: Tensor
    num_targets: Tensor | int
    parts: Mapping[str, Tensor] = field(default_factory=dict)
    counts: Mapping[str, Tensor | int] = field(default_factory=dict)
    num_tokens: Tensor | int | None = None
    carried: Any = None


@runtime_checkable
class TrainingBatch(Protocol):
    """A batch that can move to a device; the source and the objective agree on the rest of its contents."""

    def to(self, device: Any) -> Self: ...


@runtime_checkable
class BatchSource(Protocol):
    """Micro-batches by index since the start of training, as a pure function of the index."""

    @property
    def batches_per_epoch(self) -> int: ...
    def batch(self, step: int) -> TrainingBatch: ...


@runtime_checkable
class Objective(Protocol):
    """A callable that computes a `Loss` from a model and a batch."""

    def __call__(self, model: nn.Module, batch: Any) -> Loss: ...


@runtime_checkable
class Stage(Protocol):
    """One of several objectives in a step; it also receives the `carried` of the previous one, at first None."""

    def __call__(self, model: nn.Module, batch: Any, carried: Any, /) -> Loss: ...


@dataclass(frozen=True)
class InTurn:
    """Objectives that take turns within one optimizer step: each has its own backward pass, clipping and update of the
    parameters that its loss reaches, and the next one sees the updated weights.

    With several processes no turn uses all parameters; the trainer handles this.
    """

    stages: tuple[Stage, ...]


def stages_of(objective: Objective | InTurn) -> tuple[Stage, ...]:
    """Return the turns of a step: those of an `InTurn`, or the objective itself as the only one."""
    if isinstance(objective, InTurn):
        return objective.stages
    return (lambda model, batch, _: objective(model, batch),)


def smoothed_cross_entropy(
    scores: Tensor | VocabularyScores, labels: Tensor, *, smoothing: float = 0.0
) -> Loss:
    """Return `token_losses` as a `Loss` with parts ``nll`` (unsmoothed) and ``accuracy`` (targets that score highest).

    Args:
        scores: ``(b, t, v)`` unnormalised scores in any floating dtype, or the states and table that make them.
        labels: ``(b, t)`` ids; -100 at places without a target.
        smoothing: from 0 up to, not including, 1.

    Without any target all sums and the gradient are 0, not NaN.
    """
    losses = token_losses(scores, labels, smoothing=smoothing)
    return Loss(
        total=losses.total,
        num_targets=(labels != IGNORE).sum(),
        parts={"nll": losses.nll.sum(), "accuracy": losses.hits.sum().to(losses.total.dtype)},
    )


@dataclass(frozen=True)
class TokenLosses:
    """Cross-entropies of targets.

    Attributes:
        total: scalar, the weighted and smoothed sum, attached to the graph.
        nll: shaped like the targets, detached: unweighted and unsmoothed ``-log p``; 0 without a target.
        hits: shaped like the targets: whether the target's score is the highest.
    """

    total: Tensor
    nll: Tensor
    hits: Tensor


def token_losses(
    scores: VocabularyScores | Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    smoothing: float = 0.0,
) -> TokenLosses:
    """Compute cross-entropy with label smoothing (Szegedy et al. 2016, section 7) in fp32, summed over the targets.

    A target y costs ``(1 - smoothing) * -log p(y) + smoothing * mean over the vocabulary of -log p``. The mean
    includes the target itself, as in `torch.nn.functional.cross_entropy`, fairseq and transformers.

    Args:
        scores: ``(... v)`` logits of any floating dtype, or the states and table that make them. Large
            logits are converted to fp32 one piece at a time; the gradient is as large as they are.
        targets: ``(...)`` ids; -100 at places without a target.
        weights: ``(...)`` weight of each target in the sum, broadcast, without gradient; if None, 1.
        smoothing: from 0 up to, not including, 1.

    Raises:
        ValueError: if `smoothing` is out of range.
    """
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing={smoothing} is outside [0, 1); 0.1 is usual")
    flat = targets.flatten()
    shares = None if weights is None else weights.expand(targets.shape).flatten()
    parts: tuple[Tensor, Tensor | None, Tensor | None]
    if isinstance(scores, VocabularyScores) and scores.made is None:
        parts = (scores.states.flatten(0, -2), scores.table, scores.bias)
    else:
        logits = cast(Tensor, scores.made if isinstance(scores, VocabularyScores) else scores)
        parts = (logits.flatten(0, -2), None, None)
        if len(flat) <= rows_at_once(logits.shape[-1]):
            total, nll, hits = _at_once(parts[0], flat, shares, smoothing)
            return TokenLosses(total, nll.view_as(targets), hits.view_as(targets))
    # Inside `forward` autograd is off, so the need for gradients is determined here.
    wanted = tuple(t is not None and t.requires_grad and torch.is_grad_enabled() for t in parts)
    total, nll, hits = _InPieces.apply(*parts, flat, shares, (smoothing, wanted))
    return TokenLosses(total, nll.view_as(targets), hits.view_as(targets))


def _at_once(
    logits: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weighted sum for (k v) logits and (k) targets, and (k) losses and hits."""
    scores = logits.to(_exact(logits))
    log_probs = F.log_softmax(scores, dim=-1)
    losses = nll = F.nll_loss(log_probs, targets, ignore_index=IGNORE, reduction="none")
    if smoothing > 0.0:
        uniform = -log_probs.mean(dim=-1).masked_fill(targets == IGNORE, 0.0)
        losses = (1.0 - smoothing) * nll + smoothing * uniform
    total = losses.sum() if weights is None else (losses * weights).sum()
    # Ignored positions are never hits: an argmax is at least 0 and `IGNORE` is negative.
    return total, nll.detach(), scores.detach().argmax(dim=-1) == targets


class _InPieces(torch.autograd.Function):
    """Losses of (k d) states with a table (v d) and a bias, or of (k v) logits without a table, in pieces."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        table: Tensor | None,
        bias: Tensor | None,
        targets: Tensor,
        weights: Tensor | None,
        options: tuple[float, tuple[bool, ...]],
    ) -> tuple[Tensor, Tensor, Tensor]:
        smoothing, wanted = options
        sums = _Gradients(states, table, bias, wanted)
        kept = targets != IGNORE
        shares = kept if weights is None else weights * kept
        losses: list[Tensor] = []
        hits: list[Tensor] = []
        total = torch.zeros((), dtype=_exact(states), device=states.device)
        # Dtypes are chosen here: autocast would cast the table again for each piece.
        with torch.autocast(states.device.type, enabled=False):
            for start in range(0, len(targets), sums.rows):
                part = slice(start, start + sums.rows)
                logits = sums.logits(part)
                labels = targets[part].masked_fill(~kept[part], 0)
                log_probs = F.log_softmax(logits, dim=-1, dtype=_exact(logits))
                nll = -log_probs.gather(1, labels[:, None])[:, 0].masked_fill(~kept[part], 0.0)
                smoothed = nll
                if smoothing > 0.0:
                    uniform = -log_probs.mean(dim=-1).masked_fill(~kept[part], 0.0)
                    smoothed = (1.0 - smoothing) * nll + smoothing * uniform
                total += (smoothed * shares[part]).sum()
                losses.append(nll)
                hits.append((logits.argmax(-1) == targets[part]) & kept[part])
                if any(wanted):
                    # Gradient: p, minus (1 - smoothing) at the target, minus smoothing / v everywhere; replaces log p.
                    slopes = log_probs.exp_().sub_(smoothing / log_probs.shape[-1])
                    slopes.scatter_add_(
                        1, labels[:, None], slopes.new_full((len(labels), 1), smoothing - 1.0)
                    )
                    sums.add(part, slopes.mul_(shares[part, None]).to(logits.dtype))
        nll_of_all = torch.cat(losses) if losses else total.new_zeros(0)
        hits_of_all = torch.cat(hits) if hits else kept
        ctx.save_for_backward(*sums.found())
        ctx.mark_non_differentiable(nll_of_all, hits_of_all)
        return total, nll_of_all, hits_of_all

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_total: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        found = (None if gradient is None else gradient * by_total for gradient in ctx.saved_tensors)
        return (*found, None, None, None)


class _Gradients:
    """The logits of each piece, and the gradients summed over pieces."""

    def __init__(
        self, states: Tensor, table: Tensor | None, bias: Tensor | None, wanted: tuple[bool, ...]
    ) -> None:
        """Choose the dtype of the products; under autocast it is autocast's, as in `F.linear`."""
        device = states.device.type
        self._types = [None if t is None else t.dtype for t in (states, table, bias)]
        if table is None:
            product = states.dtype
        else:
            product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else table.dtype
        self._states = states.to(product)
        self._table = None if table is None else table.to(product)
        self._bias = None if bias is None else bias.to(product)
        self.rows = rows_at_once(states.shape[-1] if table is None else len(table))
        exact = _exact(states)
        self._of_states = torch.empty_like(self._states) if wanted[0] else None
        self._of_table: Tensor | None = None
        self._of_bias: Tensor | None = None
        if table is not None and wanted[1]:
            self._of_table = table.new_zeros(table.shape, dtype=exact)
        if bias is not None and wanted[2]:
            self._of_bias = bias.new_zeros(bias.shape, dtype=exact)

    def logits(self, part: slice) -> Tensor:
        """Return (r v) logits, in the dtype of the products."""
        states = self._states[part]
        return states if self._table is None else F.linear(states, self._table, self._bias)

    def add(self, part: slice, slopes: Tensor) -> None:
        """Add the gradient (r v) with respect to the logits of a piece."""
        if self._of_states is not None:
            self._of_states[part] = slopes if self._table is None else slopes @ self._table
        if self._of_table is not None:
            if slopes.dtype == self._of_table.dtype:
                self._of_table.addmm_(slopes.T, self._states[part])
            else:
                self._of_table += slopes.T @ self._states[part]
        if self._of_bias is not None:
            self._of_bias += slopes.sum(0, dtype=self._of_bias.dtype)

    def found(self) -> tuple[Tensor | None, ...]:
        """Return the gradients of states, table and bias in the dtypes of these; None for those not wanted."""
        sums = (self._of_states, self._of_table, self._of_bias)
        return tuple(None if t is None else t.to(kind) for t, kind in zip(sums, self._types, strict=True))


def _exact(tensor: Tensor) -> torch.dtype:
    """Return the dtype for sums: fp32, or fp64 for fp64."""
    return torch.promote_types(tensor.dtype, torch.float32)
