"""A loss made piece by piece is the plain one, gradients included, and never holds the logits of a batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from precis.nn import vocabulary_scores
from precis.nn.vocabulary_scores import VocabularyScores
from precis.objectives import SequenceToSequence
from precis.objectives.future_tokens import FutureTokens
from precis.objectives.losses import smoothed_cross_entropy, token_losses
from precis.objectives.replaced_tokens import ReplacedTokensAndSpans
from tests.models.zcodepp.test_replaced_token_detection import blocks
from tests.models.zcodepp.test_replaced_token_detection import model as pretraining_model
from tests.objectives.test_future_tokens import Pairs, prophet, zcodepp

ROWS, WIDTH, VOCABULARY = 23, 6, 31


@contextmanager
def pieces_of(rows: int, vocabulary: int = VOCABULARY) -> Iterator[None]:
    """So little memory that no more than `rows` rows of logits fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary_scores, "LOGITS_BYTES", 4 * vocabulary * rows)
        yield


class Largest(TorchDispatchMode):
    """Watches every tensor with a last dimension of `vocabulary` that any operation, forward or backward, makes."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self.rows: dict[torch.dtype, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor) and tensor.ndim and self._vocabulary in tensor.shape[-1:]:
                rows = tensor.numel() // self._vocabulary
                self.rows[tensor.dtype] = max(rows, self.rows.get(tensor.dtype, 0))
        return output


def parts(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, table, bias, and targets of which some are to be ignored."""
    rng = torch.Generator().manual_seed(0)
    shapes = ((ROWS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY,))
    tensors = [torch.randn(*shape, generator=rng, dtype=dtype).requires_grad_() for shape in shapes]
    targets = torch.randint(0, VOCABULARY, (ROWS,), generator=rng)
    targets[[2, 3, 20]] = -100
    return (*tensors, targets)  # type: ignore[return-value]


def by_hand(logits: Tensor, targets: Tensor, weights: Tensor | None = None, smoothing: float = 0.0) -> Tensor:
    """torch's own cross-entropy."""
    losses = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="none")
    return losses.sum() if weights is None else (losses * weights).sum()


@pytest.mark.parametrize("rows", [1, 5, 22, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighed", [False, True])
def test_pieces_of_any_size_give_the_loss_and_gradients_of_the_whole(
    rows: int, smoothing: float, weighed: bool
) -> None:
    states, table, bias, targets = parts()
    weights = torch.linspace(0.5, 2, ROWS, dtype=torch.float64) if weighed else None
    logits = F.linear(states, table, bias)
    expected = by_hand(logits, targets, weights, smoothing)
    gradients = torch.autograd.grad(3 * expected, (states, table, bias))

    with pieces_of(rows):
        scores = VocabularyScores.of(states, table, bias)
        losses = token_losses(scores, targets, weights=weights, smoothing=smoothing)
        found = torch.autograd.grad(3 * losses.total, (states, table, bias))

    assert (scores.made is None) == (rows < ROWS)
    torch.testing.assert_close(losses.total, expected)
    for one, other in zip(found, gradients, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(losses.nll, F.cross_entropy(logits, targets, reduction="none"))
    assert torch.equal(losses.hits, logits.argmax(-1) == targets)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_that_somebody_else_made_are_taken_piece_by_piece(dtype: torch.dtype) -> None:
    *_, targets = parts()
    logits = torch.randn(ROWS, VOCABULARY).to(dtype).requires_grad_()
    (gradient,) = torch.autograd.grad(by_hand(logits.float(), targets, smoothing=0.1), logits)

    with pieces_of(4), Largest(VOCABULARY) as largest:
        losses = token_losses(logits, targets, smoothing=0.1)
        (found,) = torch.autograd.grad(losses.total, logits)

    torch.testing.assert_close(losses.total, by_hand(logits.float(), targets, smoothing=0.1))
    torch.testing.assert_close(found, gradient)
    assert found.dtype == dtype
    if dtype != torch.float32:
        assert largest.rows[torch.float32] <= 4


@pytest.mark.parametrize("frozen", [(), (1, 2), (0,), (0, 1, 2)])
def test_what_is_frozen_gets_no_gradient_and_costs_none(frozen: tuple[int, ...]) -> None:
    """A prefix trains below a frozen head; a frozen body may train a head."""
    *tensors, targets = parts(torch.float32)
    for index in frozen:
        tensors[index].requires_grad_(False)
    with pieces_of(5), Largest(WIDTH) as largest:
        total = token_losses(VocabularyScores.of(*tensors), targets).total
        assert total.requires_grad == (len(frozen) < 3)
        if total.requires_grad:
            total.backward()

    assert [t.grad is not None for t in tensors] == [index not in frozen for index in range(3)]
    if 1 in frozen:  # no sum as large as the table is made: views of the states and of the table's copy aside
        assert largest.rows.get(torch.float32, 0) <= max(VOCABULARY, ROWS)


def test_no_gradients_are_computed_where_none_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    *tensors, targets = parts(torch.float32)
    monkeypatch.setattr(Tensor, "addmm_", None)
    with pieces_of(5), torch.no_grad():
        losses = token_losses(VocabularyScores.of(*tensors), targets)

    assert not losses.total.requires_grad


def test_under_autocast_products_are_bf16_sums_fp32_and_no_piece_is_larger_than_allowed() -> None:
    states, table, bias, targets = parts(torch.float32)
    exact = torch.autograd.grad(
        by_hand(F.linear(states, table, bias), targets, smoothing=0.1), (states, table, bias)
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain_total = token_losses(VocabularyScores.of(states, table, bias), targets, smoothing=0.1).total
    plain = torch.autograd.grad(plain_total, (states, table, bias))

    with pieces_of(4), Largest(VOCABULARY) as largest:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            total = token_losses(VocabularyScores.of(states, table, bias), targets, smoothing=0.1).total
        found = torch.autograd.grad(total, (states, table, bias))

    assert total.dtype == torch.float32
    assert [gradient.dtype for gradient in found] == [torch.float32] * 3
    assert total.item() == pytest.approx(plain_total.item(), rel=1e-5)
    for ours, theirs, right in zip(found, plain, exact, strict=True):
        assert (ours - right).norm() <= 1.2 * (theirs - right).norm() + 1e-6
    assert largest.rows[torch.bfloat16] <= WIDTH  # the table's transpose
    assert largest.rows[torch.float32] <= 4


def test_a_batch_without_any_target_gives_zero_and_no_nan() -> None:
    *tensors, targets = parts(torch.float32)
    with torch.no_grad():
        tensors[2][0] = -torch.inf  # an entry that is never to be written
    with pieces_of(5):
        losses = token_losses(VocabularyScores.of(*tensors), torch.full_like(targets, -100), smoothing=0.1)
        losses.total.backward()

    assert losses.total.item() == 0
    assert losses.nll.abs().max() == 0
    assert not losses.hits.any()
    assert all(t.grad is not None and bool((t.grad == 0).all()) for t in tensors)


def test_a_table_that_is_also_read_elsewhere_gets_both_gradients() -> None:
    _, table, _, targets = parts()
    ids = torch.arange(ROWS)
    plain = by_hand(F.linear(F.embedding(ids, table), table), targets)
    (expected,) = torch.autograd.grad(plain, table)

    with pieces_of(5):
        loss = smoothed_cross_entropy(VocabularyScores.of(F.embedding(ids, table), table), targets)
        (found,) = torch.autograd.grad(loss.total, table)

    torch.testing.assert_close(found, expected)


# --- whole objectives ---------------------------------------------------------------------------------------


def pairs() -> Pairs:
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 40, (3, 9), generator=rng)
    labels = torch.randint(5, 40, (3, 7), generator=rng)
    labels[1, 4:] = -100
    return Pairs(ids, torch.ones_like(ids), labels)


SMALL: dict[str, Any] = {"vocab_size": 40, "d_model": 16, "dropout": 0.0}
HEADS: dict[str, Any] = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
LAYERS: dict[str, Any] = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}


def bart() -> nn.Module:
    model = BartForConditionalGeneration(BartConfig(**SMALL, **HEADS, **LAYERS))
    model.final_logits_bias.normal_()
    return model


def marian() -> nn.Module:
    config = MarianConfig(**SMALL, **HEADS, **LAYERS, pad_token_id=0, decoder_start_token_id=0)
    model = MarianMTModel(config)
    model.final_logits_bias.normal_()
    return model


def t5(**kind: Any) -> nn.Module:
    shape: dict[str, Any] = {"d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0}
    config = T5Config(vocab_size=40, d_model=16, **shape, decoder_start_token_id=0, **kind)
    return T5ForConditionalGeneration(config)


CASES: dict[str, Any] = {
    "zcodepp": (zcodepp, (0,), SequenceToSequence),
    "zcodepp with streams": (zcodepp, (2,), FutureTokens),
    "prophetnet": (prophet, (3,), FutureTokens),
    "prophetnet, next token": (prophet, (2,), SequenceToSequence),
    "bart": (bart, (), SequenceToSequence),
    "marian": (marian, (), SequenceToSequence),
    "t5": (t5, (), SequenceToSequence),
}


def measured(model: nn.Module, objective: Any, rows: int) -> tuple[Any, dict[str, Tensor], int]:
    """Loss and gradients; and how many rows over the vocabulary were ever there in fp32, tables aside."""
    batch = pairs()
    model.zero_grad()
    with pieces_of(rows, 40), Largest(40) as largest:
        loss = objective(model, batch)
        loss.total.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return loss, gradients, largest.rows.get(torch.float32, 0)


@pytest.mark.parametrize("case", CASES)
def test_an_objective_without_logits_is_the_objective_with_them(case: str) -> None:
    make, arguments, objective = CASES[case]
    torch.manual_seed(0)
    model = make(*arguments).eval()

    whole, gradients, many = measured(model, objective(), rows=10_000)
    pieces, found, few = measured(model, objective(), rows=5)

    assert many >= 21
    assert few <= 16  # the transpose of a table has as many rows as the model is wide
    torch.testing.assert_close(pieces.total, whole.total)
    assert pieces.parts.keys() == whole.parts.keys()
    for name, part in whole.parts.items():
        torch.testing.assert_close(pieces.parts[name], part)
        assert int(pieces.counts.get(name, pieces.num_targets)) == int(
            whole.counts.get(name, whole.num_targets)
        )
    assert found.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(found[name], gradient, atol=2e-5, rtol=1e-4, msg=name)


def test_a_model_of_an_unknown_family_is_asked_for_its_logits() -> None:
    model = bart().eval()
    whole, *_ = measured(model, SequenceToSequence(), rows=10_000)
    model.config.model_type = "somebody's"  # type: ignore[union-attr]

    pieces, *_ = measured(model, SequenceToSequence(), rows=5)

    torch.testing.assert_close(pieces.total, whole.total)
    assert not model.lm_head._forward_pre_hooks  # type: ignore[union-attr]


def test_a_head_that_is_wrapped_is_asked_for_its_logits() -> None:
    class Doubled(nn.Linear):
        def forward(self, states: Tensor) -> Tensor:
            return 2 * super().forward(states)

    model = bart().eval()
    doubled = Doubled(16, 40, bias=False)
    doubled.weight = model.lm_head.weight  # type: ignore[assignment, union-attr]
    model.lm_head = doubled
    whole, *_ = measured(model, SequenceToSequence(), rows=10_000)

    pieces, *_ = measured(model, SequenceToSequence(), rows=5)

    torch.testing.assert_close(pieces.total, whole.total)


@pytest.mark.long
@pytest.mark.parametrize(
    "make", [pytest.param(bart, marks=pytest.mark.slow), lambda: zcodepp(0)], ids=["bart", "zcodepp"]
)
@pytest.mark.traced
def test_a_compiled_model_gives_the_same_loss(make: Any) -> None:
    torch._dynamo.reset()
    model = make().eval()
    whole, *_ = measured(model, SequenceToSequence(), rows=10_000)
    compiled = torch.compile(model, backend="eager")

    for _ in range(2):
        with pieces_of(5, 40):
            pieces = SequenceToSequence()(compiled, pairs())  # type: ignore[arg-type]
        torch.testing.assert_close(pieces.total, whole.total)


@pytest.mark.parametrize("streams", [0, 2])
def test_pre_training_piece_by_piece_samples_and_loses_the_same(streams: int) -> None:
    whole = pretraining_model(future_tokens=streams)
    batch = blocks()
    objective = ReplacedTokensAndSpans()
    vocabulary = whole.config.vocab_size
    losses, gradients, samples = [], [], []
    for rows in (10_000, 3):
        whole.zero_grad()
        with pieces_of(rows, vocabulary), Largest(vocabulary) as largest:
            losses.append(objective(whole, batch))
            losses[-1].total.backward()
            samples.append(whole(masked=batch, detect=False).replaced_ids)
        gradients.append({n: p.grad.clone() for n, p in whole.named_parameters() if p.grad is not None})
    assert largest.rows[torch.float32] <= whole.config.hidden_size  # a table's transpose aside

    assert torch.equal(samples[0], samples[1])
    torch.testing.assert_close(losses[1].total, losses[0].total)
    for name, part in losses[0].parts.items():
        torch.testing.assert_close(losses[1].parts[name], part, check_dtype=False)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=2e-5, rtol=1e-4, msg=name)
