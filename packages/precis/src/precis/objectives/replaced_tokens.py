"""Z-Code++'s first pre-training phase: L = w1 L_MLM + w2 L_RTD + w3 L_CSP, with weights 1, 30, 1 (section 2.1).

Each part is a mean over its own targets in a row (masked places; all tokens; the tokens of the spans). A step's loss
is the mean over its rows. Rows are full blocks with equal numbers of targets, so this is also the mean over targets,
and the trainer can add it up over micro-batches and processes.

A step has two modes. ``joint`` runs one backward pass through the weighted sum. ``in-turn``, as in the paper and
DeBERTa's code, updates the generator first. Then the discriminator reads tokens sampled before that update,
through the updated E_G.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, Unpack, cast, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from precis.data.batches.corruption import IGNORE, CorruptionIds
from precis.data.batches.pretraining_batches import Corruption, PreTrainingBatch, PreTrainingBatches, Rows
from precis.messages import without_bars
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, ZCodePPPreTrainingConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp.replaced_token_detection import PreTrainingOutput, ZCodePPForPreTraining
from precis.nn.streams import attenuated
from precis.objectives.future_tokens import at_streams, stream_weights
from precis.objectives.losses import BatchSource, InTurn, Loss, Objective, token_losses
from precis.objectives.pretraining_objectives import PreTrainingObjective, Share
from precis_text.config import Settings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ReplacedTokensAndSpans(Settings):
    """The joint objective.

    Attributes:
        mlm, rtd, csp: the weights lambda 1 to 3 (DeBERTaV3 uses 50 for RTD, its code 10).

    Parts, each logged on its own: ``mlm``, ``rtd``, ``csp`` (mean losses), ``mlm_accuracy``, ``rtd_accuracy``,
    ``rtd_baseline`` (the accuracy of calling every token original), ``rtd_recall`` (share of replaced tokens found),
    ``csp_accuracy``.
    """

    mlm: float = 1.0
    rtd: float = 30.0
    csp: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mlm", "rtd", "csp"):
            weight = getattr(self, name)
            if not (math.isfinite(weight) and weight >= 0):
                raise UserError(f"weights.{name}={weight}: use 0 or more; the paper uses 1, 30 and 1")

    def __call__(self, model: nn.Module, batch: PreTrainingBatch) -> Loss:
        """Return all parts of one batch from one pass."""
        output: PreTrainingOutput = model(masked=batch, spans=batch)
        generated = masked_token_loss(output, batch, weight=self.mlm)
        return replace(_sum(generated, self._discriminated(output, batch)), carried=None)

    def in_turn(self) -> InTurn:
        """Return the losses in two updates: first the generator's, then the discriminator's and the decoder's."""
        return InTurn((self._generate, self._discriminate))

    def _generate(self, model: nn.Module, batch: PreTrainingBatch, _: Any) -> Loss:
        return masked_token_loss(model(masked=batch, detect=False), batch, weight=self.mlm)

    def _discriminate(self, model: nn.Module, batch: PreTrainingBatch, replaced_ids: Tensor) -> Loss:
        output = model(replaced_ids=replaced_ids, spans=batch)
        return replace(self._discriminated(output, batch), num_tokens=0)  # counted in the generator's turn

    def _discriminated(self, output: PreTrainingOutput, batch: PreTrainingBatch) -> Loss:
        return _sum(
            replaced_token_loss(output, batch, weight=self.rtd), span_loss(output, batch, weight=self.csp)
        )


def _sum(first: Loss, second: Loss) -> Loss:
    """Add two losses of one batch and merge their parts; the other fields are those of the first."""
    return replace(
        first,
        total=first.total + second.total,
        parts={**first.parts, **second.parts},
        counts={**first.counts, **second.counts},
    )


@final
@dataclass(frozen=True, kw_only=True)
class ReplacedTokens(PreTrainingObjective):
    """Masked tokens, replaced-token detection and span recovery: the first pre-training phase of Z-Code++.

    Attributes:
        weights: weights of the three losses.
        generator_layers: number of generator layers.
        mask_decoder: add DeBERTa's enhanced mask decoder to the generator.
        updates: ``in-turn`` (the paper: generator, then discriminator) or ``joint`` (one backward pass).
    """

    title: ClassVar[str] = "replaced tokens"

    weights: ReplacedTokensAndSpans = field(default_factory=ReplacedTokensAndSpans)
    generator_layers: int = 6
    mask_decoder: bool = False
    updates: Literal["in-turn", "joint"] = "in-turn"

    def __post_init__(self) -> None:
        if self.updates not in ("in-turn", "joint"):
            raise UserError(f"updates={self.updates!r} is unknown; use 'in-turn' or 'joint'")

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        """Return blocks corrupted twice: tokens masked for the generator, spans hidden for the decoder."""
        return PreTrainingBatches(rows, words, corruption=corruption, **share)

    def loss(self) -> Objective | InTurn:
        """Return the weighted sum, in one update or in two."""
        return self.weights.in_turn() if self.updates == "in-turn" else self.weights

    def measure(self) -> Objective:
        """Return the weighted sum and its parts."""
        return self.weights

    def model(self, config: ZCodePPConfig | ProphetNetConfig, *, block_length: int) -> PreTrainedModel:
        """Build a new Z-Code++ with a generator and a detection head."""
        try:
            whole = ZCodePPPreTrainingConfig(**config.shape(), **self._generator(block_length))
        except ValueError as error:
            raise UserError(f"the generator's shape is impossible: {error}") from error
        return ZCodePPForPreTraining(whole)

    def around(self, plain: PreTrainedModel, *, block_length: int) -> PreTrainedModel:
        """Add a new generator and a new detection head to the given Z-Code++."""
        given = cast(ZCodePPForConditionalGeneration, plain)
        return ZCodePPForPreTraining.around(given, **self._generator(block_length))

    def resumed(self, folder: Path, *, block_length: int) -> PreTrainedModel:
        """Load the saved model with its generator, whose shape must match the settings of this run."""
        with without_bars():
            whole = ZCodePPForPreTraining.from_pretrained(folder)
        has, wanted = whole.config.to_dict(), self._generator(block_length)
        if not has["generator_mask_decoder"] and not self.mask_decoder:
            wanted.pop("generator_positions")  # not used
        for name, value in wanted.items():
            if has[name] != value and not (name == "generator_positions" and value < has[name]):
                start = folder.parent
                raise UserError(
                    f"{start}: its generator has {name}={has[name]}, and this run requires {value}; set the same value "
                    f"(--set objective..., --block-length), or use --model {start}/model for a new generator"
                )
        return whole

    def plain(self, model: PreTrainedModel) -> PreTrainedModel:
        """Return the Z-Code++ with E_delta added to its token table."""
        return cast(ZCodePPForPreTraining, model).finished()

    @property
    def own_layers(self) -> int:
        """Layers of the generator."""
        return self.generator_layers

    def with_own_layers(self, count: int) -> Self:
        """Return the same objective with another number of generator layers."""
        return replace(self, generator_layers=count)

    def _generator(self, block_length: int) -> dict[str, Any]:
        """Return the configuration values that shape the generator."""
        return {
            "generator_layers": self.generator_layers,
            "generator_mask_decoder": self.mask_decoder,
            "generator_positions": block_length,
        }


def masked_token_loss(output: PreTrainingOutput, batch: PreTrainingBatch, *, weight: float) -> Loss:
    """Compute Eq. 1 at the masked places; `carried` holds the sampled text (Eq. 2)."""
    scores = _given(output.mlm_scores)
    targets = batch.original_ids.gather(1, batch.places)  # (b k)
    rows, places = targets.shape
    losses = token_losses(scores, targets)
    return Loss(
        total=weight * losses.total / places,
        num_targets=rows,
        parts={"mlm": losses.nll.sum(), "mlm_accuracy": losses.hits.sum()},
        counts={"mlm": rows * places, "mlm_accuracy": rows * places},
        num_tokens=batch.original_ids.numel(),
        carried=output.replaced_ids,
    )


def replaced_token_loss(output: PreTrainingOutput, batch: PreTrainingBatch, *, weight: float) -> Loss:
    """Compute Eq. 3 over all tokens, control tokens included as in DeBERTa's code; sampled originals count as kept."""
    logits = _given(output.rtd_logits)
    replaced = _given(output.replaced_ids) != batch.original_ids  # (b n)
    rows, length = replaced.shape
    losses = F.binary_cross_entropy_with_logits(logits.float(), replaced.float(), reduction="sum")
    found = logits.detach() > 0
    tokens = rows * length
    return Loss(
        total=weight * losses / length,
        num_targets=rows,
        parts={
            "rtd": losses.detach(),
            "rtd_accuracy": (found == replaced).sum(),
            "rtd_baseline": (~replaced).sum(),
            "rtd_recall": (found & replaced).sum(),
        },
        counts={"rtd": tokens, "rtd_accuracy": tokens, "rtd_baseline": tokens, "rtd_recall": replaced.sum()},
    )


def span_loss(output: PreTrainingOutput, batch: PreTrainingBatch, *, weight: float) -> Loss:
    """Compute Eq. 5 over the decoder's targets, sentinels and end mark included as in T5. With predicting streams it is
    a sum over the streams, weighted by the decoder's gamma (ProphetNet Eqs. 10, 11). Parts describe the next token.
    """
    scores, labels = _given(output.csp_scores), batch.span_labels
    shares = attenuated(scores.states.shape[1], output.attenuation)
    found = (labels != IGNORE).sum(-1)  # (b)
    targets = at_streams(labels, torch.arange(labels.shape[1], device=labels.device)[None], len(shares))
    weights = stream_weights(targets, [(share / found.clamp(min=1))[:, None] for share in shares])
    losses = token_losses(scores, targets, weights=weights)
    return Loss(
        total=weight * losses.total,
        num_targets=len(labels),
        parts={"csp": losses.nll[:, 0].sum(), "csp_accuracy": losses.hits[:, 0].sum()},
        counts={"csp": found.sum(), "csp_accuracy": found.sum()},
    )


_Value = TypeVar("_Value")


def _given(value: _Value | None) -> _Value:
    assert value is not None
    return value
