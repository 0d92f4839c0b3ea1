"""A compiled run is the same run: its losses, its checkpoints, and what can be done with them."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

from precis.data.batches.length_buckets import Batch
from precis.data.batches.pretraining_batches import PreTrainingBatch
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, ZCodePPPreTrainingConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp.replaced_token_detection import ZCodePPForPreTraining
from precis.objectives.replaced_tokens import ReplacedTokensAndSpans
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.training import ProgressBar, TrainSettings, load_weights, train
from precis.training.callbacks import Callback
from precis.training.torch_compile import CompileClock, compiled_layers, stacks_of
from precis_text.errors import UserError
from tests.training import tiny
from tests.training.tiny import Witness

pytestmark = pytest.mark.traced

SIZE = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 2}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0}


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> None:
    torch._dynamo.reset()


def _run(folder: Path, **settings: Any) -> Witness:
    witness = Witness()
    tiny.run(folder, callbacks=[witness], validate=tiny.validation_loss, **settings)
    return witness


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_a_compiled_run_has_the_losses_of_a_plain_one(tmp_path: Path, backend: str) -> None:
    plain, compiled = _run(tmp_path / "plain"), _run(tmp_path / "compiled", compiler=backend)

    for one, other in zip(plain.steps, compiled.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-5)
    assert compiled.validations[-1].metrics["loss"] == pytest.approx(
        plain.validations[-1].metrics["loss"], abs=1e-6
    )


@pytest.mark.parametrize("whole", [None, False, True])
def test_a_layer_may_be_several_graphs_unless_a_test_asks_for_one(
    whole: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def compiled(run: Callable[..., Any], *, backend: str, fullgraph: bool) -> Callable[..., Any]:
        asked.append(fullgraph)
        return run

    monkeypatch.setattr(torch, "compile", compiled)
    model = ZCodePPForConditionalGeneration(ZCodePPConfig(**SIZE, encoder_layers=1, decoder_layers=1))
    with compiled_layers(model, "eager", **({} if whole is None else {"whole": whole})):
        model.train()(input_ids=torch.ones(1, 3, dtype=torch.long), labels=torch.ones(1, 3, dtype=torch.long))
    assert set(asked) == {bool(whole)}


def test_training_steps_are_compiled_and_validation_is_not(tmp_path: Path) -> None:
    compiling: list[tuple[bool, bool]] = []

    class Watched(tiny.TinyModel):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            compiling.append((self.training, torch.compiler.is_compiling()))
            return super().forward(inputs)

    # "eager" runs what was traced, so that the list above is appended to once while training and never again
    tiny.run(tmp_path, model=Watched(), validate=tiny.validation_loss, compiler="eager", steps=3)

    assert (True, True) in compiling
    assert (False, True) not in compiling
    assert (False, False) in compiling


@pytest.mark.long
def test_a_compiled_run_is_taken_up_without_a_compiler_and_its_names_are_plain(tmp_path: Path) -> None:
    whole = _run(tmp_path / "whole", steps=12)
    first = _run(tmp_path / "run", steps=12, compiler="aot_eager")
    assert len(first.steps) == 12
    for step in (12, 8):
        model = tiny.TinyModel(seed=5)
        load_weights(model, tmp_path / "run" / "checkpoints" / f"step-{step:08d}")  # refuses other names

    newest = tmp_path / "run" / "checkpoints" / "step-00000012"
    newest.rename(tmp_path / "aside")
    second = _run(tmp_path / "run", steps=12)

    assert second.started is not None
    assert second.started.first_step == 8
    for one, other in zip(whole.steps[8:], second.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)


def test_an_unknown_compiler_is_refused() -> None:
    with pytest.raises(UserError, match="compiler='gcc' is unknown"):
        TrainSettings(steps=1, compiler="gcc")  # type: ignore[arg-type]


def _zcodepp(layers: int, **changes: Any) -> nn.Module:
    torch.manual_seed(0)
    shape = {"intermediate_size": 24, "position_buckets": 8, "max_relative_positions": 16, **QUIET}
    depth = {"encoder_layers": layers, "decoder_layers": layers}
    return ZCodePPForConditionalGeneration(ZCodePPConfig(**{**SIZE, **shape, **depth, **changes})).train()


def _prophetnet(layers: int, **changes: Any) -> nn.Module:
    torch.manual_seed(0)
    shape = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "ngram": 2, "activation_dropout": 0.0, **QUIET}
    depth = {"encoder_layers": layers, "decoder_layers": layers}
    return ProphetNetForConditionalGeneration(
        ProphetNetConfig(**{**SIZE, **shape, **depth, **changes})
    ).train()


def _pairs(lengths: list[int], target: int) -> dict[str, Any]:
    """A batch of these lengths, the same ids for the same request."""
    draw = torch.Generator().manual_seed(len(lengths) * 100 + target)
    ids = torch.randint(5, 40, (len(lengths), max(lengths)), generator=draw)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    labels = torch.randint(5, 40, (len(lengths), target), generator=draw)
    return {"input_ids": ids, "attention_mask": mask.long(), "labels": labels, "source_lengths": lengths}


def _losses(model: nn.Module, batches: list[dict[str, Any]]) -> list[float]:
    """Of each batch, each with its backward pass."""
    found = []
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        found.append(loss.item())
    return found


FULL = [([20] * 3, 9), ([27] * 3, 12), ([31] * 5, 7), ([60] * 2, 20), ([24] * 4, 11)]
PADDED = [([20, 11, 9], 9), ([27, 26, 4], 12), ([31, 30, 2, 8, 9], 7), ([60, 50], 20)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "layers", "shapes", "graphs"),
    [
        (_zcodepp, 2, FULL, 2),  # an encoder layer and a decoder layer
        pytest.param(_zcodepp, 5, PADDED, 2, marks=pytest.mark.slow),
        # how many states predict is first taken for fixed
        pytest.param(_prophetnet, 2, PADDED, 3, marks=pytest.mark.slow),
        pytest.param(_prophetnet, 5, FULL, 3, marks=pytest.mark.slow),
    ],
)
@pytest.mark.traced
def test_one_layer_of_a_kind_is_compiled_for_all_layers_and_all_lengths(
    make: Callable[[int], nn.Module], layers: int, shapes: list[tuple[list[int], int]], graphs: int
) -> None:
    batches = [_pairs(*shape) for shape in shapes]
    plain = _losses(make(layers), batches)
    counter, model = CompileCounterWithBackend("eager"), make(layers)
    with compiled_layers(model, counter, whole=True):  # `whole`: a break in a layer's graph is an error
        compiled = _losses(model, batches)
    assert counter.frame_count == graphs
    assert compiled == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
def test_layers_of_chunks_and_of_the_whole_sequence_share_their_code() -> None:
    batches = [_pairs(*shape) for shape in FULL]
    changes = {"chunk_length": 16, "global_layers": 1}
    plain = _losses(_zcodepp(3, **changes), batches)
    counter, model = CompileCounterWithBackend("eager"), _zcodepp(3, **changes)
    with compiled_layers(model, counter, whole=True):
        compiled = _losses(model, batches)
    # where chunks are ragged a mask hides their ends, and another graph has no mask
    assert counter.frame_count == 3
    assert compiled == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
def test_dropout_and_layers_computed_twice_are_compiled_too() -> None:
    counter = CompileCounterWithBackend("eager")
    model = _zcodepp(3, dropout=0.1, attention_dropout=0.1)
    model.gradient_checkpointing_enable()  # type: ignore[operator]
    with compiled_layers(model, counter, whole=True):
        _losses(model, [_pairs(*shape) for shape in FULL[:2]])
    assert counter.frame_count == 2
    assert all(p.grad is not None for stack in stacks_of(model) for p in stack.layers.parameters())


def _pretraining(*, mask_decoder: bool) -> ZCodePPForPreTraining:
    torch.manual_seed(0)
    shape = {"intermediate_size": 24, "position_buckets": 8, "max_relative_positions": 16, **QUIET}
    depth = {"encoder_layers": 3, "decoder_layers": 3, "generator_layers": 3}
    generator = {"generator_mask_decoder": mask_decoder, "generator_positions": 32}
    return ZCodePPForPreTraining(ZCodePPPreTrainingConfig(**SIZE, **shape, **depth, **generator)).train()


def _blocks(seed: int, rows: int, source: int, target: int) -> PreTrainingBatch:
    draw = torch.Generator().manual_seed(seed)

    def ids(*shape: int) -> torch.Tensor:
        return torch.randint(5, 40, shape, generator=draw)

    places = torch.arange(2, 12, 2).expand(rows, -1)
    return PreTrainingBatch(
        original_ids=ids(rows, 32),
        masked_ids=ids(rows, 32),
        places=places,
        draws=torch.rand(places.shape, generator=draw),
        input_ids=ids(rows, source),
        attention_mask=None,
        decoder_input_ids=ids(rows, target),
        span_labels=ids(rows, target),
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("mask_decoder", "graphs"), [(False, 2), pytest.param(True, 3, marks=pytest.mark.slow)]
)  # queries of its own
@pytest.mark.traced
def test_generator_and_encoder_share_a_pretraining_steps_code(mask_decoder: bool, graphs: int) -> None:
    batches = [_blocks(1, 4, 26, 9), _blocks(2, 4, 28, 10), _blocks(3, 4, 25, 8)]
    objective = ReplacedTokensAndSpans()
    plain, model = _pretraining(mask_decoder=mask_decoder), _pretraining(mask_decoder=mask_decoder)
    expected = [objective(plain, batch).total.item() for batch in batches]
    counter = CompileCounterWithBackend("eager")
    with compiled_layers(model, counter, whole=True):
        found = [objective(model, batch).total for batch in batches]
        sum(found).backward()  # type: ignore[union-attr]
    assert counter.frame_count == graphs
    assert [loss.item() for loss in found] == pytest.approx(expected, rel=1e-6)


class _Pairs:
    """Batches of pairs of a few lengths."""

    batches_per_epoch = 5

    def batch(self, step: int) -> Batch:
        given = _pairs([14 + step % 3, 9 + step % 2, 6], 7 + step % 2)
        lengths = tuple(given["source_lengths"])
        return Batch(given["input_ids"], given["attention_mask"], given["labels"], source_lengths=lengths)


def _train(folder: Path, compiler: str, *callbacks: Callback) -> Witness:
    witness, model = Witness(), _zcodepp(2)
    settings = TrainSettings(steps=6, compiler=compiler, save_every=3, warmup_steps=1)  # type: ignore[arg-type]
    validated: list[bool] = []

    def validate(measured: nn.Module) -> dict[str, float]:
        validated.extend(stack.compiled for stack in stacks_of(measured.eval()))
        return {"loss": 1.0}

    train(
        model,
        batches=_Pairs(),
        objective=SequenceToSequence(),
        settings=settings,
        folder=folder,
        callbacks=[witness, *callbacks],
        validate=validate,
    )
    assert validated == [False, False]
    assert not any(stack.compiled for stack in stacks_of(model.train()))
    return witness


@pytest.mark.long
def test_a_run_with_compiled_layers_is_the_plain_run_and_says_what_compiling_took(tmp_path: Path) -> None:
    said = StringIO()
    plain = _train(tmp_path / "plain", "none")
    compiled = _train(tmp_path / "run", "eager", ProgressBar(console=Console(file=said, width=200)))
    (tmp_path / "run" / "checkpoints" / "step-00000006").rename(tmp_path / "aside")
    again = _train(tmp_path / "run", "none")  # taken up from step 3, without a compiler

    for one, other in zip(plain.steps, compiled.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)
    for one, other in zip(plain.steps[3:], again.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)
    first, last = compiled.steps[0], compiled.steps[-1]
    assert 0.0 < first.compiling <= first.seconds
    assert last.compiling == 0.0
    assert not any(step.compiling for step in plain.steps)
    assert "compiled in" in said.getvalue()


def test_the_clock_counts_while_it_is_asked_to() -> None:
    with CompileClock() as clock:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        assert clock.take() > 0.0
        assert clock.take() == 0.0
    torch.compile(lambda x: x + 2, backend="eager")(torch.ones(2))
    assert clock.take() == 0.0
