"""On a GPU: a decoding step is one CUDA graph, and writes what the other loop and `generate` write."""

from collections import Counter
from functools import cache

import pytest
import torch
from transformers import GenerationConfig, PreTrainedModel

from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, BFloat16
from precis.generation.fast.static_shapes import Replayed
from precis.models import ProphetNetConfig, ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from tests.fast_cases import Uncaptured

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

VOCABULARY = 3000
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 128, "encoder_layers": 2, "decoder_layers": 3}


def made(kind: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    torch.manual_seed(5)
    if kind == "zcodepp":
        shape = ZCodePPConfig(
            **SIZES,
            num_attention_heads=2,
            intermediate_size=256,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
        model: PreTrainedModel = ZCodePPForConditionalGeneration(shape)
    else:
        table = ProphetNetConfig(
            **SIZES,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=256,
            decoder_ffn_dim=256,
            max_position_embeddings=512,
            init_std=0.2,
        )
        model = ProphetNetForConditionalGeneration(table)
    return model.eval().to("cuda", dtype)


def batch(documents: int, *, length: int = 150) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(documents)
    ids = torch.randint(4, VOCABULARY, (documents, length), generator=rng)
    lengths = torch.randint(length // 2, length + 1, (documents, 1), generator=rng)
    lengths[0] = length
    mask = (torch.arange(length) < lengths).long()
    return {"input_ids": (ids * mask).cuda(), "attention_mask": mask.cuda()}


ENDS = [2, 40, 41]


def asked(**options: object) -> GenerationConfig:
    plain = {
        "max_new_tokens": 40,
        "do_sample": False,
        "num_beams": 1,
        "no_repeat_ngram_size": 3,
        "eos_token_id": ENDS,
    }
    return GenerationConfig(**{**plain, **options}, decoder_start_token_id=1, pad_token_id=0)


@cache
def late_tokens(kind: str) -> tuple[int, ...]:
    """Some that this model likes to write late: as end marks they end summaries at different places."""
    loop = FastDecoder(made(kind), AsGiven(), capture=Uncaptured())
    rows = loop(batch(32), asked(min_new_tokens=40))
    return tuple(token for token, _ in Counter(t for row in rows for t in row[12:]).most_common(6))


def by_graphs(loop: FastDecoder, given: dict[str, torch.Tensor], config: GenerationConfig) -> list[list[int]]:
    rows = loop(given, config)
    assert loop._static._kept, "nothing was captured"
    assert not loop._static._failed
    return rows


OPTIONS = [
    {},
    {"num_beams": 5, "length_penalty": 1.2, "early_stopping": True, "min_new_tokens": 6},
    {"num_beams": 5, "length_penalty": 0.8, "early_stopping": "never"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["greedy", "hasty beams", "patient beams"])
@pytest.mark.parametrize("documents", [1, 5, 32])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_replayed_steps_write_what_launched_ones_and_generate_write(
    kind: str, documents: int, options: dict[str, object]
) -> None:
    model, given = made(kind), batch(documents)
    config = asked(**options, eos_token_id=list(late_tokens(kind)))
    rows = by_graphs(FastDecoder(model, AsGiven()), given, config)
    assert rows == FastDecoder(model, AsGiven(), capture=Uncaptured())(given, config)
    if documents == 32:
        assert len({len(row) for row in rows}) > 1
    plain = model.generate(**given, generation_config=config).tolist()
    assert [row[: len(other)] for row, other in zip(plain, rows, strict=True)] == rows


@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_a_graph_is_used_again_for_other_documents_and_limits(kind: str, beams: int) -> None:
    model = made(kind)
    loop, other = FastDecoder(model, AsGiven()), FastDecoder(model, AsGiven(), capture=Uncaptured())
    for documents, length, tokens in ((8, 150, 40), (5, 130, 64), (7, 200, 12), (8, 256, 30)):
        config = asked(num_beams=beams, max_new_tokens=tokens, min_new_tokens=tokens // 2)
        given = batch(documents, length=length)
        assert by_graphs(loop, given, config) == other(given, config)
    assert len(loop._static._kept) == 1


@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_several_graphs_share_their_memory_without_disturbing_each_other(kind: str) -> None:
    model = made(kind)
    loop, other = FastDecoder(model, AsGiven()), FastDecoder(model, AsGiven(), capture=Uncaptured())
    cases = [(batch(documents), asked(**options)) for documents in (1, 6) for options in OPTIONS]  # type: ignore[arg-type]
    expected = [other(*case) for case in cases]
    for _ in range(2):
        assert [by_graphs(loop, *case) for case in cases] == expected
    assert len(loop._static._kept) == len(cases)


@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("documents", [1, 32])
@pytest.mark.parametrize("held", [True, False], ids=["model in bf16", "packed in bf16"])
@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
def test_bfloat16_runs_and_fp32_finds_its_tokens_good(
    kind: str, held: bool, documents: int, beams: int
) -> None:
    """Lengths of summaries from 1 to 70, at which a mask's rows begin at all kinds of places."""
    exact, given = made(kind), batch(documents)
    config = asked(num_beams=beams, no_repeat_ngram_size=0, max_new_tokens=70, min_new_tokens=70)
    model, weights = (made(kind, torch.bfloat16), AsGiven()) if held else (exact, BFloat16())
    launched = FastDecoder(model, weights, capture=Uncaptured())(given, config)
    rows = by_graphs(FastDecoder(model, weights), given, config)
    assert all(len(row) == 71 for row in (*rows, *launched))
    if beams == 1:
        behind, behind_launched = (
            short_of_the_best(exact, given, rows),
            short_of_the_best(exact, given, launched),
        )
        assert behind.median() == behind_launched.median() == 0
        assert behind.mean() <= behind_launched.mean() + 0.02


@torch.no_grad()
def short_of_the_best(
    exact: PreTrainedModel, given: dict[str, torch.Tensor], rows: list[list[int]]
) -> torch.Tensor:
    """By how much the logits of what was written are below the best, in standard deviations; ends do not count."""
    written = torch.tensor(rows, device=exact.device)
    logits = exact(**given, decoder_input_ids=written[:, :-1]).logits
    logits[..., ENDS] = -torch.inf
    short = logits.amax(-1) - logits.gather(-1, written[:, 1:, None]).squeeze(-1)
    return short / logits[logits.isfinite()].std()


def test_new_weights_are_captured_anew_and_old_graphs_freed() -> None:
    model = made("zcodepp")
    loop = FastDecoder(model, AsGiven())
    first = by_graphs(loop, batch(2), asked())
    with torch.no_grad():
        model.get_decoder().layers[0].feed_forward.down.weight.neg_()
    loop.check()
    assert not loop._static._kept
    second = by_graphs(loop, batch(2), asked())
    assert second == FastDecoder(model, AsGiven(), capture=Uncaptured())(batch(2), asked())
    assert second != first


def test_autocast_around_a_capture_changes_nothing() -> None:
    model = made("zcodepp")
    plain = by_graphs(FastDecoder(model, AsGiven()), batch(3), asked())
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert by_graphs(FastDecoder(model, AsGiven()), batch(3), asked()) == plain


def test_a_step_is_one_launch() -> None:
    loop, given, config = FastDecoder(made("zcodepp"), AsGiven(), capture=Replayed()), batch(1), asked()
    by_graphs(loop, given, config)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ((kept,),) = [loop._static._kept.values()]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(3):
            kept.step()
        torch.cuda.synchronize()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["cudaGraphLaunch"] == 3
    # torch itself may write the generator's seed and offset before each replay
    assert sum(count for key, count in counts.items() if "LaunchKernel" in key) <= 2 * 3
