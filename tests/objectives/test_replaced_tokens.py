"""Claims about the pre-training objective and its two ways of stepping."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from precis.data.batches.pretraining_batches import PreTrainingBatch
from precis.models.zcodepp.replaced_token_detection import PreTrainingOutput, ZCodePPForPreTraining
from precis.objectives.losses import InTurn, Loss, Objective
from precis.objectives.replaced_tokens import ReplacedTokensAndSpans, replaced_token_loss
from precis.training import TrainSettings, train
from precis_text.errors import DivergedError
from tests.models.zcodepp.test_replaced_token_detection import DELTA, TABLE, blocks, model, moved

OBJECTIVE = ReplacedTokensAndSpans()


class Source:
    batches_per_epoch = 4

    def batch(self, step: int) -> PreTrainingBatch:
        return blocks(seed=step)


def stepped(
    folder: Path, objective: Objective | InTurn, *, frozen: str = "", steps: int = 1
) -> Mapping[str, Tensor]:
    """The weights after a step with a clip so wide that it does nothing."""
    whole = moved(model(seed=3))
    for name, parameter in whole.named_parameters():
        parameter.requires_grad_(name != frozen)
    settings = TrainSettings(steps=steps, learning_rate=1e-2, warmup_steps=0, clip_norm=1e9)
    train(whole, batches=Source(), objective=objective, settings=settings, folder=folder)
    return whole.state_dict()


def test_weighted_sum_of_the_three_means() -> None:
    whole, batch = model(), blocks()
    output = whole(masked=batch, spans=batch)
    loss = OBJECTIVE(whole, batch)
    targets = batch.original_ids.gather(1, batch.places)
    replaced = (output.replaced_ids != batch.original_ids).float()
    mlm = F.cross_entropy(output.mlm_scores.logits().flatten(0, 1), targets.flatten())
    rtd = F.binary_cross_entropy_with_logits(output.rtd_logits, replaced)
    csp = F.cross_entropy(output.csp_scores.logits()[:, 0].flatten(0, 1), batch.span_labels.flatten())
    assert loss.total.item() / loss.num_targets == pytest.approx((mlm + 30 * rtd + csp).item(), rel=1e-5)
    for name, mean in (("mlm", mlm), ("rtd", rtd), ("csp", csp)):
        assert float(loss.parts[name] / loss.counts[name]) == pytest.approx(mean.item(), rel=1e-5)


def test_rows_of_a_batch_add_up_so_that_micro_batches_leave_no_mark() -> None:
    whole, batch = model(), blocks(rows=4)
    sums = []
    for rows in (slice(0, 4), slice(0, 1), slice(1, 4)):
        part = _rows(batch, rows)
        sums.append(OBJECTIVE(whole, part).total.item())
    assert sums[0] == pytest.approx(sums[1] + sums[2], rel=1e-6)  # losses are fp32


def _rows(batch: PreTrainingBatch, rows: slice) -> PreTrainingBatch:
    chosen: dict[str, Any] = {
        name: None if value is None else value[rows] for name, value in vars(batch).items()
    }
    return PreTrainingBatch(**chosen)


def test_eq3_every_token_is_judged_to_be_original_or_replaced() -> None:
    batch = blocks()
    replaced = batch.original_ids.clone()
    replaced[:, 3:5] = 2
    logits = torch.randn(replaced.shape)
    output = PreTrainingOutput(replaced_ids=replaced, rtd_logits=logits)
    loss = replaced_token_loss(output, batch, weight=1.0)
    p = torch.where(replaced != batch.original_ids, logits, -logits).sigmoid()  # of what each token is
    torch.testing.assert_close(loss.parts["rtd"], -p.log().sum())
    assert loss.counts["rtd"] == replaced.numel()


def test_accuracy_beside_the_all_original_baseline() -> None:
    batch = blocks()
    replaced = batch.original_ids.clone()
    replaced[:, 3:5] = 2  # two of sixteen tokens in each row are replaced
    logits = torch.full(replaced.shape, -1.0)
    logits[:, 3] = 1.0  # one of the two is found, and one original token is suspected
    logits[:, 9] = 1.0
    loss = replaced_token_loss(PreTrainingOutput(replaced_ids=replaced, rtd_logits=logits), batch, weight=1.0)
    means = {name: float(value / loss.counts[name]) for name, value in loss.parts.items()}
    assert means["rtd_baseline"] == pytest.approx(14 / 16)
    assert means["rtd_accuracy"] == pytest.approx(14 / 16)
    assert means["rtd_recall"] == pytest.approx(1 / 2)


def test_both_ways_of_stepping_train_the_generator_alike(tmp_path: Path) -> None:
    jointly = stepped(tmp_path / "a", OBJECTIVE)
    in_turn = stepped(tmp_path / "b", OBJECTIVE.in_turn())
    generator = [name for name in jointly if name.startswith("generator.")]
    assert generator
    for name in generator:
        assert torch.allclose(jointly[name], in_turn[name], atol=1e-6), name


@pytest.mark.long
def test_both_ways_agree_on_everything_while_the_shared_table_stands_still(tmp_path: Path) -> None:
    """They differ in one thing: in turn, the discriminator already sees the table after the generator's step."""
    jointly = stepped(tmp_path / "a", OBJECTIVE, frozen=TABLE, steps=3)
    in_turn = stepped(tmp_path / "b", OBJECTIVE.in_turn(), frozen=TABLE, steps=3)
    assert max(float((jointly[n] - in_turn[n]).abs().max()) for n in jointly) < 1e-5
    free = stepped(tmp_path / "c", OBJECTIVE, steps=3), stepped(tmp_path / "d", OBJECTIVE.in_turn(), steps=3)
    assert not torch.allclose(free[0][DELTA], free[1][DELTA], atol=1e-5)


def test_in_turn_the_discriminator_reads_what_was_sampled_before_through_the_table_after_the_step() -> None:
    whole, batch = model(), blocks()
    generate, discriminate = OBJECTIVE.in_turn().stages
    first = generate(whole, batch, None)
    with torch.no_grad():  # the generator's step
        for parameter in whole.generator.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    other = whole(masked=batch, detect=False).replaced_ids
    assert not torch.equal(other, first.carried)  # it would sample something else now
    seen: list[Tensor] = []
    whole.model.encoder.embedding.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    whole.model.encoder.embedding.tokens.register_forward_hook(lambda _, inputs, out: seen.append(out))
    second = discriminate(whole, batch, first.carried)
    table = whole.generator.table.weight + whole.discriminator_table.delta
    assert torch.equal(seen[0], table[first.carried])
    assert set(second.parts) == {"rtd", "rtd_accuracy", "rtd_baseline", "rtd_recall", "csp", "csp_accuracy"}


def test_a_first_turn_that_is_not_finite_ends_the_step(tmp_path: Path) -> None:
    whole = model()
    turns: list[str] = []

    def generate(owner: nn.Module, batch: PreTrainingBatch, _: Any) -> Loss:
        turns.append("generate")
        assert isinstance(owner, ZCodePPForPreTraining)
        return Loss(total=owner.generator.table.weight.sum() * math.nan, num_targets=1)

    def discriminate(owner: nn.Module, batch: PreTrainingBatch, _: Any) -> Loss:
        turns.append("discriminate")
        return Loss(total=sum(p.sum() for p in owner.parameters()), num_targets=1)  # type: ignore[arg-type]

    before = {name: tensor.clone() for name, tensor in whole.state_dict().items()}
    settings = TrainSettings(steps=2, warmup_steps=0)
    with pytest.raises(DivergedError, match="not finite at any of the 2 steps"):
        train(
            whole,
            batches=Source(),
            objective=InTurn((generate, discriminate)),
            settings=settings,
            folder=tmp_path,
        )
    assert turns == ["generate", "generate"]
    assert all(torch.equal(before[name], tensor.cpu()) for name, tensor in whole.state_dict().items())
