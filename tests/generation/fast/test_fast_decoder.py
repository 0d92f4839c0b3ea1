"""The fast loop writes what `generate` writes, is chosen where it can be, and never decodes with stale weights."""

from collections.abc import Callable

import pytest
import torch
from transformers import GenerationConfig, PreTrainedModel

from precis.generation.decoder_batches import AUTOMATIC, Fast, Generate, Loop
from precis.generation.fast.fast_decoder import FastDecoder, why_not
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, PackedEncoder, Weights, has_int8
from precis.generation.summarizer import Summarizer
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.fast_cases import (
    BEAMS,
    DOCUMENTS,
    GREEDY,
    STEPS,
    SentenceFloor,
    by_generate,
    config,
    end_marks,
    inputs,
    model,
    static,
)
from tests.tiny_models import our_tokenizer, tiny

FP32 = AsGiven()
Written = Callable[..., list[list[int]]]


def by_fast(
    given: dict[str, torch.Tensor],
    config: GenerationConfig,
    *processors: SentenceFloor,
    of: PreTrainedModel | None = None,
    weights: Weights = FP32,
) -> list[list[int]]:
    return FastDecoder(of or model(), weights)(given, config, processors)


WAYS = pytest.mark.parametrize(
    "written", [by_fast, static], ids=["caches that grow", "steps of a fixed shape"]
)


# 3 are put into a batch of 4
@WAYS
@pytest.mark.parametrize("documents", [1, 3, pytest.param(8, marks=pytest.mark.many_steps)])
@pytest.mark.parametrize("options", [*GREEDY, *BEAMS], ids=str)
def test_tokens_are_those_of_generate(written: Written, documents: int, options: dict[str, object]) -> None:
    asked, given = config(eos_token_id=end_marks(1)[0], **options), inputs(documents)
    assert written(given, asked) == by_generate(given, asked)


def test_the_documents_of_these_tests_end_at_different_places() -> None:
    lengths = {
        len(row) for row in by_fast(inputs(8), config(eos_token_id=end_marks(1)[0], no_repeat_ngram_size=2))
    }
    assert len(lengths) > 2


@WAYS
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("marks", [0, 3])
def test_no_end_mark_and_several_are_those_of_generate(written: Written, beams: int, marks: int) -> None:
    asked = config(eos_token_id=end_marks(marks) or None, num_beams=beams, no_repeat_ngram_size=2)
    assert written(inputs(8), asked) == by_generate(inputs(8), asked)


@WAYS
@pytest.mark.parametrize("beams", [1, 4])
def test_forced_and_suppressed_tokens_are_those_of_generate(written: Written, beams: int) -> None:
    asked = config(
        num_beams=beams,
        forced_bos_token_id=17,
        forced_eos_token_id=our_tokenizer().eos_token_id,
        begin_suppress_tokens=[40, 41],
        suppress_tokens=list(range(100, 400)),
    )
    rows = written(inputs(8), asked)
    assert rows == by_generate(inputs(8), asked)
    assert all(row[1] == 17 and row[-1] == our_tokenizer().eos_token_id for row in rows)
    assert not {token for row in rows for token in row} & set(range(100, 400))


@WAYS
@pytest.mark.parametrize("beams", [1, 3])
def test_a_token_that_must_not_be_first_is_not(written: Written, beams: int) -> None:
    plain = config(num_beams=beams, forced_bos_token_id=None)
    first = [row[1] for row in written(inputs(8), plain)]
    asked = config(num_beams=beams, forced_bos_token_id=None, begin_suppress_tokens=sorted(set(first)))
    rows = written(inputs(8), asked)
    assert rows == by_generate(inputs(8), asked)
    assert not {row[1] for row in rows} & set(first)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_sentence_floor_holds_the_end_mark_back_as_in_generate(beams: int) -> None:
    end, stop = end_marks(2)
    asked = config(eos_token_id=end, num_beams=beams)
    floor = SentenceFloor(2, ends=frozenset({stop}), end_marks=[end], max_tokens=STEPS)
    rows = by_fast(inputs(8), asked, floor)
    assert rows == by_generate(inputs(8), asked, floor)
    assert rows != by_fast(inputs(8), asked)


@WAYS
@pytest.mark.parametrize("part", [{"decoder_feed_forward": "gated-gelu"}, {"future_tokens": 2}], ids=str)
def test_other_decoders_of_the_family_are_decoded_too(written: Written, part: dict[str, object]) -> None:
    torch.manual_seed(1)
    shape = {**model().config.to_diff_dict(), **part}
    other = ZCodePPForConditionalGeneration(type(model().config)(**shape)).eval()
    asked = config(num_beams=2)
    rows = written(inputs(4), asked, of=other)
    plain = other.generate(**inputs(4), generation_config=asked).tolist()
    assert [row[: len(tokens)] for row, tokens in zip(plain, rows, strict=True)] == rows


def test_company_in_a_batch_changes_no_tokens() -> None:
    asked = config(eos_token_id=end_marks(1)[0], num_beams=3, no_repeat_ngram_size=2)
    alone = [
        by_fast({name: value[row : row + 1] for name, value in inputs(8).items()}, asked)[0]
        for row in range(8)
    ]
    assert by_fast(inputs(8), asked) == alone


@pytest.mark.parametrize(
    "weights", [AsGiven(), pytest.param(Int8(), marks=pytest.mark.skipif(not has_int8(), reason="no int8"))]
)
def test_weights_that_were_trained_are_seen_however_they_were_changed(weights: Weights) -> None:
    trained, _ = tiny("zcodepp", seed=8)
    assert isinstance(trained, ZCodePPForConditionalGeneration)
    loop = FastDecoder(trained, weights)
    first = loop(inputs(4), config())
    weight = trained.model.decoder.layers[0].feed_forward.down.weight
    read = next(m.weight for m in trained.get_encoder().modules() if type(m) is torch.nn.Linear)
    changes = (lambda: weight.data.neg_(), lambda: weight.detach().mul_(-3.0), lambda: read.data.mul_(-2.0))
    for change in changes:
        change()
        loop.check()
        assert loop(inputs(4), config()) == FastDecoder(trained, weights)(inputs(4), config())
    assert loop(inputs(4), config()) != first


def test_nothing_is_packed_again_for_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = FastDecoder(model(), AsGiven())
    loop(inputs(4), config())
    packed = loop._packed
    loop.check()
    loop(inputs(8), config())
    assert loop._packed is packed
    loop.release()
    assert loop._packed is None


@pytest.mark.parametrize("weights", [BFloat16(), Int8()])
def test_fewer_bits_write_nearly_what_fp32_does(weights: Weights) -> None:
    if isinstance(weights, Int8) and not has_int8():
        pytest.skip("this build of torch has no int8 product")
    asked = config(eos_token_id=None)
    rows, exact = by_fast(inputs(8), asked, weights=weights), by_fast(inputs(8), asked)
    first = [row[1] == other[1] for row, other in zip(rows, exact, strict=True)]
    assert sum(first) >= 7
    assert model().lm_head.weight.dtype is torch.float32


@pytest.mark.parametrize("weights", [AsGiven(), Int8()])
def test_the_encoder_is_left_as_it_was(weights: Weights) -> None:
    if isinstance(weights, Int8) and not has_int8():
        pytest.skip("this build of torch has no int8 product")
    before = {name: type(module) for name, module in model().named_modules()}
    by_fast(inputs(2), config(), weights=weights)
    assert {name: type(module) for name, module in model().named_modules()} == before


def test_a_packed_encoder_gives_the_encoders_states() -> None:
    encoder = model().get_encoder()
    with torch.no_grad():
        plain = encoder(**inputs(8)).last_hidden_state
        with PackedEncoder(encoder, AsGiven()).in_place():
            packed = encoder(**inputs(8)).last_hidden_state
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=1e-5)


def test_a_matrix_of_the_encoder_that_somebody_watches_keeps_its_place() -> None:
    watched, _ = tiny("zcodepp", seed=3)
    seen: list[torch.Size] = []
    linear = next(m for m in watched.get_encoder().modules() if type(m) is torch.nn.Linear)
    linear.register_forward_hook(lambda _, __, output: seen.append(output.shape))
    FastDecoder(watched, AsGiven())(inputs(2), config())
    assert seen


def test_a_model_in_half_precision_is_decoded_in_it() -> None:
    half, _ = tiny("zcodepp", seed=3)
    rows = FastDecoder(half.to(torch.bfloat16), AsGiven())(inputs(4), config())
    assert all(len(row) == STEPS + 1 for row in rows)


def _hooked() -> ZCodePPForConditionalGeneration:
    made, _ = tiny("zcodepp")
    assert isinstance(made, ZCodePPForConditionalGeneration)
    made.model.decoder.layers[0].self_attention.register_forward_hook(lambda *_: None)
    return made


def _attached() -> ZCodePPForConditionalGeneration:
    made, _ = tiny("zcodepp")
    assert isinstance(made, ZCodePPForConditionalGeneration)
    made.add_module("prefix", torch.nn.Linear(2, 2))
    return made


@pytest.mark.parametrize(
    ("made", "options", "reason"),
    [
        (lambda: tiny("zcodepp")[0], {"repetition_penalty": 1.2}, "repetition_penalty"),
        (lambda: tiny("zcodepp")[0], {"do_sample": True}, "do_sample"),
        (lambda: tiny("zcodepp")[0].train(), {}, "training"),
        (lambda: tiny("t5")[0], {}, "T5ForConditionalGeneration"),
        (_hooked, {}, "hooks"),
        (_attached, {}, "additional modules"),
    ],
)
def test_what_the_loop_does_not_know_is_named_and_left_to_generate(
    made: Callable[[], PreTrainedModel], options: dict[str, float | bool], reason: str
) -> None:
    asked = config(**options)
    said = why_not(made(), asked)
    assert said is not None
    assert reason in said
    with pytest.raises(UserError, match=reason):
        FastDecoder(made(), AsGiven())(inputs(1), asked)


def _summaries(loop: Loop, kind: str = "zcodepp") -> list[str]:
    made, tokenizer = tiny(kind)
    summarizer = Summarizer(made, tokenizer, settings=GenerationSettings(max_tokens=12, beams=2), loop=loop)
    return [summary.text for summary in summarizer.summarize(DOCUMENTS, batch_size=3)]


@pytest.mark.long
def test_the_summarizer_uses_the_fast_loop_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _summaries(Generate())
    assert _summaries(Fast()) == expected
    monkeypatch.setattr(ZCodePPForConditionalGeneration, "generate", None)
    assert _summaries(AUTOMATIC) == expected


@pytest.mark.long
def test_other_models_are_left_to_generate_and_refused_where_fast_was_asked_for() -> None:
    assert _summaries(AUTOMATIC, "bart") == _summaries(Generate(), "bart")
    with pytest.raises(UserError, match="BartForConditionalGeneration"):
        _summaries(Fast(), "bart")


def test_a_loop_survives_the_trip_through_json() -> None:
    for loop in (Fast(weights=Int8()), Fast(weights=BFloat16()), Fast()):
        assert Fast.from_dict(loop.to_dict()) == loop
