"""Steps of a fixed shape write the tokens of the other loop."""

import logging
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from transformers import GenerationConfig, LogitsProcessor, PreTrainedModel

from precis.generation.fast import static_shapes as fast_static
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, has_int8
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.generation.fast.static_shapes import Capture, Shape, StaticBatch, StaticLoop
from precis.generation.fast.token_rules import TokenRules
from precis.models import ProphetNetForConditionalGeneration
from tests.fast_cases import (
    BEAMS,
    STEPS,
    Called,
    Counted,
    SentenceFloor,
    Uncaptured,
    by_generate,
    config,
    end_marks,
    inputs,
    model,
    prophet,
    prophet_documents,
    prophet_settings,
    static,
)
from tests.tiny_models import tiny


def grown(given: dict[str, torch.Tensor], asked: GenerationConfig, of: PreTrainedModel) -> list[list[int]]:
    return FastDecoder(of, AsGiven(), capture=Uncaptured())(given, asked)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_callers_own_rule_is_followed_as_in_generate_and_nothing_is_captured(beams: int) -> None:
    end, stop = end_marks(2)
    counted, asked = Counted(), config(eos_token_id=end, num_beams=beams)
    floor = SentenceFloor(2, ends=frozenset({stop}), end_marks=[end], max_tokens=STEPS)
    rows = FastDecoder(model(), AsGiven(), capture=counted)(inputs(8), asked, [floor])
    assert counted.captured == 0
    assert rows == by_generate(inputs(8), asked, floor)
    assert rows != static(inputs(8), asked)


@pytest.mark.parametrize(
    "options", [{}, *BEAMS[1:4]], ids=["greedy", "beams", "hasty beams", "patient beams"]
)
@pytest.mark.parametrize(
    "of", [prophet(0), prophet(1, ngram=3), prophet(2, buckets=8)], ids=["2", "3", "few buckets"]
)
def test_tokens_of_a_prophetnet_are_those_of_generate(
    of: ProphetNetForConditionalGeneration, options: dict[str, object]
) -> None:
    asked = prophet_settings(**options)
    given = prophet_documents(0)
    expected = of.generate(**given, generation_config=asked).tolist()
    found = static(given, asked, of=of)
    assert [row[: len(tokens)] for row, tokens in zip(expected, found, strict=True)] == found


@pytest.mark.long
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_summaries_of_more_than_one_piece_of_room(kind: str, beams: int) -> None:
    options = {"max_new_tokens": 80, "min_new_tokens": 80, "no_repeat_ngram_size": 0, "num_beams": beams}
    if kind == "zcodepp":
        of, given, asked = model(), inputs(3), config(**options)
    else:
        of, given, asked = prophet(3), prophet_documents(0), prophet_settings(**options)
    rows = static(given, asked, of=of)
    assert {len(row) for row in rows} == {81}
    assert rows == grown(given, asked, of)


def test_more_tokens_than_there_are_positions_for_are_refused() -> None:
    asked = prophet_settings(max_new_tokens=89)
    with pytest.raises(ValueError, match="positions for 88"):
        FastDecoder(prophet(0), AsGiven(), capture=Called())(prophet_documents(0), asked)


@pytest.mark.skipif(not has_int8(), reason="this build of torch has no int8 product")
def test_int8_weights_write_as_in_the_other_loop() -> None:
    given = inputs(8)  # as many rows as the shape has: all of a batch share a scale
    written = FastDecoder(model(), Int8(), capture=Uncaptured())(given, config())
    assert static(given, config(), weights=Int8()) == written


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("held", [True, False], ids=["model in bf16", "packed in bf16"])
def test_bfloat16_writes_tokens_that_fp32_finds_as_good_but_for_rounding(held: bool, beams: int) -> None:
    of, given = prophet(0), prophet_documents(1)
    asked = prophet_settings(no_repeat_ngram_size=0, min_new_tokens=18, num_beams=beams)
    in_bf16 = prophet(0).bfloat16() if held else of
    rows = torch.tensor(static(given, asked, of=in_bf16, weights=AsGiven() if held else BFloat16()))
    with torch.no_grad():
        logits = of(**given, decoder_input_ids=rows[:, :-1]).logits
    logits[..., asked.eos_token_id] = -torch.inf  # held back until the last token
    short = logits.amax(-1) - logits.gather(-1, rows[:, 1:, None]).squeeze(-1)
    if beams == 1:
        assert short.max() < 0.3  # of logits that spread over 10
    assert short.mean() < 0.3


def batch(documents: int, *, length: int = 40) -> dict[str, torch.Tensor]:
    """Random ids, the second of several documents padded."""
    rng = torch.Generator().manual_seed(documents)
    ids = torch.randint(50, 600, (documents, length), generator=rng)
    mask = torch.ones_like(ids)
    mask[1:2, length // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def test_a_batch_finds_nothing_of_the_one_before() -> None:
    """Not even what is no number."""
    counted = Counted()
    loop = FastDecoder(model(), AsGiven(), capture=counted)
    for beams in (1, 3):
        asked = config(eos_token_id=end_marks(1)[0], num_beams=beams, no_repeat_ngram_size=2)
        for given in (batch(4, length=100), batch(3), batch(4)):
            with torch.inference_mode():
                for kept in loop._static._kept.values():
                    kept.batch._source._kept.fill_(torch.nan)
                    kept.batch._target._kept.fill_(torch.nan)
            assert loop(given, asked) == grown(given, asked, model())
    assert counted.captured == 2


@pytest.mark.long
def test_limits_of_length_share_a_graph_and_other_rules_do_not() -> None:
    counted = Counted()
    loop = FastDecoder(model(), AsGiven(), capture=counted)
    for limits in ({}, {"max_new_tokens": 30}, {"max_new_tokens": 20, "min_new_tokens": 9}):
        asked = config(num_beams=3, early_stopping="never", length_penalty=1.3, **limits)
        assert loop(batch(2), asked) == grown(batch(2), asked, model())
    assert counted.captured == 1
    for other in (
        config(num_beams=3, early_stopping="never", length_penalty=1.4),
        config(num_beams=2, early_stopping="never", length_penalty=1.3),
        config(num_beams=3, early_stopping="never", length_penalty=1.3, suppress_tokens=[5]),
        config(num_beams=3, early_stopping="never", length_penalty=1.3, no_repeat_ngram_size=2),
        config(num_beams=3, early_stopping="never", length_penalty=1.3, max_new_tokens=65),
    ):
        assert loop(batch(2), other) == grown(batch(2), other, model())
    assert counted.captured == 6


@pytest.mark.long
def test_shapes_are_large_enough_and_few() -> None:
    shapes = {
        (documents, source, steps): Shape.around(documents=documents, beams=2, source=source, steps=steps)
        for documents in range(1, 33)
        for source in range(1, 2049, 13)
        for steps in (1, 63, 64, 65, 200)
    }
    for (documents, source, steps), shape in shapes.items():
        assert documents <= shape.documents < 2 * documents
        assert source <= shape.source < source + 512
        assert steps <= shape.steps < steps + 64
    assert len({shape.source for shape in shapes.values()}) == 10
    assert len({shape.documents for shape in shapes.values()}) == 6


@pytest.mark.parametrize(
    ("source", "room"),
    [(1, 128), (128, 128), (129, 256), (1024, 1024), (1025, 1536), (1536, 1536), (1537, 2048)],
)
def test_long_sources_are_padded_to_larger_pieces(source: int, room: int) -> None:
    assert Shape.around(documents=1, beams=1, source=source, steps=1).source == room


def test_8_shapes_are_kept_and_4_gibibytes_together() -> None:
    loop = StaticLoop(Called())
    batch = Mock(spec=StaticBatch, search=lambda: None, device=torch.device("cpu"))

    def use(key: int, size: int) -> list[Any]:
        loop._of(key, size, lambda: batch)
        return [*loop._kept]

    for key in range(8):
        kept = use(key, 1)
    assert kept == [*range(8)]
    assert use(0, 1) == [1, 2, 3, 4, 5, 6, 7, 0]
    assert use(8, 1) == [2, 3, 4, 5, 6, 7, 0, 8]
    loop.release()
    assert [use(key, 2**31) for key in range(3)] == [[0], [0, 1], [1, 2]]
    assert use(3, 2**31 + 1) == [3]


@pytest.mark.parametrize(("size", "captured"), [(2**31, 1), (2**31 + 1, 0)])
def test_a_batch_with_more_than_2_gibibytes_of_caches_is_not_captured(
    size: int, captured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shape, "bytes", lambda *_: size)
    counted = Counted()
    FastDecoder(model(), AsGiven(), capture=counted)(batch(1), config(max_new_tokens=2))
    assert counted.captured == captured


def test_the_host_stops_soon_after_the_last_row_is_over() -> None:
    asked = config(eos_token_id=end_marks(1)[0], no_repeat_ngram_size=2, max_new_tokens=60)
    counted = Counted()
    rows = FastDecoder(model(), AsGiven(), capture=counted)(inputs(1), asked)
    assert len(rows[0]) < 40
    assert len(rows[0]) - 1 <= counted.steps < len(rows[0]) - 1 + fast_static._LOOK_EVERY


@pytest.mark.long
def test_the_least_used_shape_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    loop = FastDecoder(model(), AsGiven(), capture=counted)
    monkeypatch.setattr(fast_static, "_MOST_SHAPES", 2)
    for documents in (2, 4, 2, 8, 2):
        loop(batch(documents), config())
    assert counted.captured == 3
    loop(batch(4), config())
    assert counted.captured == 4
    monkeypatch.setattr(fast_static, "_MOST_BYTES_KEPT", 1)
    loop(batch(8), config())
    assert len(loop._static._kept) == 1


def test_caches_beyond_the_limit_are_decoded_in_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = PackedZCodePP(model(), rows=2, weights=AsGiven())
    shape = Shape.around(documents=2, beams=1, source=40, steps=STEPS)
    keys = packed.source_keys(torch.zeros(2, 40, model().config.hidden_size))
    rules = TokenRules.of(config(), [], device=torch.device("cpu"))
    made = StaticBatch(packed, shape, rules, None, keys)
    assert made._source._kept.nbytes + made._target._kept.nbytes == shape.bytes(packed)
    for limit, captured in ((shape.bytes(packed), 1), (shape.bytes(packed) - 1, 0)):
        monkeypatch.setattr(fast_static, "_MOST_BYTES", limit)
        counted = Counted()
        rows = FastDecoder(model(), AsGiven(), capture=counted)(batch(2), config())
        assert counted.captured == captured
        assert rows == grown(batch(2), config(), model())


class NoSevens(LogitsProcessor):
    """A rule that only the host knows."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, [token for token in range(700) if token % 10 == 7]] = -torch.inf
        return scores


def test_rules_of_the_host_are_decoded_in_the_other_way() -> None:
    counted = Counted()
    rows = FastDecoder(model(), AsGiven(), capture=counted)(batch(2), config(), [NoSevens()])
    assert counted.captured == 0
    assert rows == by_generate(batch(2), config(), NoSevens())


@pytest.mark.long
def test_weights_that_were_trained_are_captured_anew() -> None:
    trained, _ = tiny("zcodepp", seed=8)
    loop = FastDecoder(trained, AsGiven(), capture=Counted())
    first = loop(inputs(4), config())
    for weight in (trained.model.decoder.layers[0].feed_forward.down.weight, trained.lm_head.weight):
        weight.data.neg_()
        loop.check()
        assert not loop._static._kept
        assert loop(inputs(4), config()) == grown(inputs(4), config(), trained)
    assert loop(inputs(4), config()) != first


class Failing(Capture):
    """As on a device that cannot capture."""

    def takes(self, device: torch.device) -> bool:
        return True

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        raise RuntimeError("operation not permitted\nwhen stream is capturing")


def test_a_capture_that_fails_is_said_once_and_costs_no_summary(caplog: pytest.LogCaptureFixture) -> None:
    loop = FastDecoder(model(), AsGiven(), capture=Failing())
    with caplog.at_level(logging.WARNING, logger="precis.generation"):
        for beams in (1, 1, 2):
            asked = config(num_beams=beams)
            assert loop(batch(2), asked) == grown(batch(2), asked, model())
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert "operation not permitted" in message
    assert "\n" not in message


def test_no_step_is_taken_beyond_the_longest_summary() -> None:
    counted = Counted()
    rows = FastDecoder(model(), AsGiven(), capture=counted)(
        inputs(2), config(max_new_tokens=9, min_new_tokens=9)
    )
    assert [len(row) - 1 for row in rows] == [9, 9]
    assert counted.steps == 9
