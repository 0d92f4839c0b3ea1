"""The C++ step computes the logits of torch's operators, in every shape, and the same bits on any number of threads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from precis.generation.fast import compiled_step
from precis.generation.fast.compiled_step import CompiledStep, Model
from precis.generation.fast.packed_decoder import Steps
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, Weights
from precis.generation.fast.packed_prophetnet import PackedProphetNet
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.models import ProphetNetConfig, ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.nn.disentangled import cpp_loader
from tests.tiny_models import tiny

pytestmark = pytest.mark.skipif(not cpp_loader.is_ready("decoding"), reason="this machine has no kernel")

WORDS = 7
SHAPES = [
    {"hidden_size": 48, "num_attention_heads": 1, "decoder_intermediate_size": 40},
    {
        "hidden_size": 60,
        "num_attention_heads": 3,
        "decoder_intermediate_size": 37,
    },  # heads of 20, and parts of 12 and 13
    {"hidden_size": 144, "num_attention_heads": 9, "decoder_intermediate_size": 96},  # more heads than parts
    {"hidden_size": 192, "num_attention_heads": 2, "decoder_intermediate_size": 64},  # heads of 96
]


def prophet(**shape: Any) -> ProphetNetForConditionalGeneration:
    """A random ProphetNet with far distances in one bucket, and vectors instead of zeros in biases and norms."""
    torch.manual_seed(2)
    of = {
        "hidden_size": 48,
        "num_attention_heads": 1,
        "decoder_intermediate_size": 40,
        "decoder_layers": 2,
        **shape,
    }
    heads, inner = of.pop("num_attention_heads"), of.pop("decoder_intermediate_size")
    sizes = {"decoder_attention_heads": heads, "encoder_attention_heads": heads, "decoder_ffn_dim": inner}
    few = {
        "encoder_layers": 1,
        "decoder_buckets": 9,
        "decoder_max_distance": 12,
        "max_position_embeddings": 90,
    }
    made = ProphetNetForConditionalGeneration(
        ProphetNetConfig(vocab_size=333, init_std=0.15, **sizes, **few, **of)
    )
    for name, weight in made.get_decoder().named_parameters():
        if weight.dim() == 1:
            weight.data += torch.randn_like(weight) * (0.3 if "norm" in name else 1.0)
    return made.eval()


def model(**shape: object) -> ZCodePPForConditionalGeneration:
    torch.manual_seed(2)
    of = tiny("zcodepp", seed=3)[0].config.to_diff_dict()
    return ZCodePPForConditionalGeneration(ZCodePPConfig(**{**of, "vocab_size": 333, **shape})).eval()


def made(kind: str, **shape: Any) -> Model:
    return prophet(**shape) if kind == "prophetnet" else model(**shape, decoder_feed_forward=kind)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def steps_of(
    of: Model,
    *,
    documents: int,
    beams: int,
    padded: bool,
    compiled: bool,
    steps: int,
    weights: Weights = AsGiven(),  # noqa: B008  a frozen value
) -> Steps:
    packer = PackedZCodePP if isinstance(of, ZCodePPForConditionalGeneration) else PackedProphetNet
    packed = packer(of, rows=documents * beams, weights=weights)
    assert packed._step is not None
    if not compiled:
        packed._step = None
    torch.manual_seed(5)
    source = torch.randn(documents, WORDS, of.config.hidden_size)
    valid = torch.ones(documents, WORDS, dtype=torch.bool)
    valid[-1, 4:] = not padded
    return Steps(packed, source, valid, beams=beams, steps=steps, drafts=1)


def logits_of(steps: Steps, *, documents: int, beams: int, count: int) -> list[Tensor]:
    """Logits of some steps, in which beams change places; after half of them only the last document is kept."""
    torch.manual_seed(6)
    found = []
    for index in range(count):
        if index == count // 2 and documents > 1:
            steps.keep(torch.tensor([documents - 1]))
            documents = 1
        tokens = torch.randint(4, 300, (documents, beams))
        found.append(steps(tokens, torch.randint(0, beams, (documents, beams)) if index else None))
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["relu", "gated-gelu", "prophetnet"])
@pytest.mark.parametrize(
    ("documents", "beams", "padded"), [(1, 1, False), (1, 3, True), (3, 1, True), (3, 4, False)]
)
@torch.inference_mode()
def test_logits_are_those_of_the_operators(
    shape: dict[str, int], kind: str, documents: int, beams: int, padded: bool
) -> None:
    of = made(kind, **shape)
    given = {"documents": documents, "beams": beams}
    count = 70 if (documents, beams) == (1, 3) else 6  # caches grow after 64
    ours, operators = (
        logits_of(
            steps_of(of, **given, padded=padded, compiled=compiled, steps=count, weights=AsGiven()),
            **given,
            count=count,
        )
        for compiled in (True, False)
    )
    for mine, other in zip(ours, operators, strict=True):
        assert mine.shape == other.shape
        torch.testing.assert_close(mine, other, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 3])
@torch.inference_mode()
def test_the_last_layer_computes_the_states_that_predict(layers: int) -> None:
    of = prophet(decoder_layers=layers)
    ours, operators = (
        torch.cat(
            logits_of(
                steps_of(of, documents=2, beams=2, padded=True, compiled=compiled, steps=6),
                documents=2,
                beams=2,
                count=2,
            )
        )
        for compiled in (True, False)
    )
    torch.testing.assert_close(ours, operators, atol=2e-4, rtol=1e-4)


def of_one_size(of: Model) -> Model:
    """Replace the weights of the decoder by c, 0 and -c, which 8 bits hold exactly."""
    for module in (*of.get_decoder().modules(), of.lm_head):
        if isinstance(module, torch.nn.Linear):
            size = module.weight.abs().mean()
            module.weight.data = module.weight.sign() * (module.weight.abs() > size / 2) * size
    return of


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["relu", "gated-gelu", "prophetnet"])
@pytest.mark.parametrize(
    ("documents", "beams"), [(1, 1), (1, 3), (3, 4), (2, 9)], ids=["row", "rows", "a group and rows", "many"]
)
@torch.inference_mode()
def test_weights_that_8_bits_hold_give_the_logits_of_fp32(
    shape: dict[str, int], kind: str, documents: int, beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compiled_step._MOST_ROWS, 8, 100)
    of = of_one_size(made(kind, **shape))
    given = {"documents": documents, "beams": beams}
    ours, operators = (
        logits_of(
            steps_of(of, **given, padded=True, compiled=compiled, steps=4, weights=weights), **given, count=4
        )
        for compiled, weights in ((True, Int8()), (False, AsGiven()))
    )
    for mine, other in zip(ours, operators, strict=True):
        torch.testing.assert_close(mine, other, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "weights", "most"),
    [("relu", Int8(), 5), ("prophetnet", Int8(), 2), ("relu", BFloat16(), 16), ("prophetnet", BFloat16(), 8)],
)
@torch.inference_mode()
def test_fewer_bits_of_many_rows_are_left_to_the_operators(kind: str, weights: Weights, most: int) -> None:
    of = made(kind, **SHAPES[1])
    for beams, same in ((most, False), (most + 1, True)):
        given = {"documents": 1, "beams": beams}
        ours, operators = (
            torch.cat(
                logits_of(
                    steps_of(of, **given, padded=False, compiled=compiled, steps=2, weights=weights),
                    **given,
                    count=2,
                )
            )
            for compiled in (True, False)
        )
        assert torch.equal(ours, operators) == same


def change(of: Model, weights: Weights, *, documents: int, beams: int) -> float:
    """Return how far narrow weights move a logit, as a part of the logits' spread."""
    given = {"documents": documents, "beams": beams}
    ours, exact = (
        torch.cat(
            logits_of(steps_of(of, **given, padded=True, compiled=True, steps=4, weights=w), **given, count=4)
        )
        for w in (weights, AsGiven())
    )
    return float((ours - exact).abs().mean() / exact.std())


@torch.inference_mode()
def test_8_bits_change_logits_by_a_hundredth_of_their_spread() -> None:
    assert 0 < change(model(**SHAPES[2]), Int8(), documents=2, beams=2) < 0.01


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["relu", "gated-gelu", "prophetnet"])
@pytest.mark.parametrize(("documents", "beams"), [(1, 1), (2, 2), (1, 5)])
@torch.inference_mode()
def test_16_bits_change_logits_by_less(shape: dict[str, int], kind: str, documents: int, beams: int) -> None:
    assert 0 < change(made(kind, **shape), BFloat16(), documents=documents, beams=beams) < 0.006


@pytest.mark.parametrize("weights", [AsGiven(), Int8(), BFloat16()], ids=["fp32", "int8", "bf16"])
@pytest.mark.parametrize("make", [model, prophet], ids=["zcodepp", "prophetnet"])
@torch.inference_mode()
def test_logits_are_the_same_bits_on_any_number_of_threads(
    threads: None, make: Callable[..., Model], weights: Weights
) -> None:
    of, found = make(**SHAPES[2]), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        steps = steps_of(of, documents=2, beams=2, padded=True, compiled=True, steps=5, weights=weights)
        found.append(torch.cat(logits_of(steps, documents=2, beams=2, count=2)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("of", [model(future_tokens=2), prophet(ngram=3)], ids=["zcodepp", "prophetnet"])
@torch.inference_mode()
def test_drafts_continue_what_the_step_has_read(of: ZCodePPForConditionalGeneration) -> None:
    ours, operators = (
        steps_of(of, documents=1, beams=1, padded=False, compiled=compiled, steps=6)
        for compiled in (True, False)
    )
    for token in (5, 9, 30):
        ours(torch.tensor([[token]]), None)
        operators(torch.tensor([[token]]), None)
    tokens = torch.tensor([[7, 8, 11]])
    for mine, other in zip(ours.look_ahead(tokens, 1), operators.look_ahead(tokens, 1), strict=True):
        torch.testing.assert_close(mine, other, atol=2e-4, rtol=1e-4)


def test_a_network_of_another_activation_is_left_to_the_operators() -> None:
    assert CompiledStep.of(prophet(hidden_act="gelu"), AsGiven()) is not None
    assert CompiledStep.of(prophet(hidden_act="relu"), AsGiven()) is None


@pytest.mark.parametrize("make", [model, prophet], ids=["zcodepp", "prophetnet"])
def test_it_serves_models_in_fp32_alone(make: Callable[..., Model], monkeypatch: pytest.MonkeyPatch) -> None:
    of = make()
    assert CompiledStep.of(of, AsGiven()) is not None
    for weights in (AsGiven(), Int8(), BFloat16()):
        assert CompiledStep.of(of, weights) is not None
        assert CompiledStep.of(make().to(torch.bfloat16), weights) is None
    monkeypatch.setattr(cpp_loader, "is_ready", lambda name: False)
    assert CompiledStep.of(of, AsGiven()) is None


@pytest.mark.parametrize(
    ("place", "made_wrong", "message"),
    [
        (11, lambda source: [], "keys and values of each layer"),
        (2, lambda matrices: [matrices[0].to(torch.int16), *matrices[1:]], "fp32, bf16 or 8 bits"),
    ],
)
def test_the_kernel_refuses_what_it_would_read_beyond(
    place: int,
    made_wrong: Callable[[list[Tensor]], list[Tensor]],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = torch.ops.precis_decoding.step

    def wrong(*given: Any) -> Tensor:
        changed: Tensor = step(*given[:place], made_wrong(list(given[place])), *given[place + 1 :])
        return changed

    monkeypatch.setattr(torch.ops.precis_decoding, "step", wrong)
    steps = steps_of(model(), documents=1, beams=1, padded=False, compiled=True, steps=2)
    with pytest.raises(RuntimeError, match=message):
        logits_of(steps, documents=1, beams=1, count=1)
