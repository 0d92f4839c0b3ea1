"""Beams that are pointed at attend to what beams that are copied would."""

import pytest
import torch
from transformers import PreTrainedModel

from precis.generation.fast import key_value_cache as fast_cache
from precis.generation.fast.compiled_step import CompiledStep
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.key_value_cache import SourceCache, TargetCache, mix
from precis.generation.fast.packed_linear import BFloat16
from tests.fast_cases import config, inputs, model, prophet, prophet_documents, prophet_settings

LAYERS, DOCUMENTS, HEADS, WIDTH, BEAMS = 2, 3, 2, 4, 3


def cache(steps: int, beams: int = BEAMS) -> TargetCache:
    source = [(torch.zeros(DOCUMENTS, HEADS, 1, WIDTH),) * 2] * LAYERS
    return TargetCache(source, torch.zeros(HEADS, steps + 1), beams=beams, steps=steps)


@pytest.mark.parametrize("steps", [5, 150])  # more than there is room for at first
def test_slots_that_never_move_equal_beams_that_are_copied(steps: int) -> None:
    draw = torch.Generator().manual_seed(0)
    lazy = cache(steps)
    copied = torch.empty(2, DOCUMENTS, HEADS, BEAMS, 0, WIDTH)
    places = torch.randn(HEADS, steps, generator=draw)
    for step in range(steps):
        parents = torch.randint(BEAMS, (DOCUMENTS, BEAMS), generator=draw) if step else None
        new = torch.randn(2, DOCUMENTS, HEADS, BEAMS, WIDTH, generator=draw)
        queries = torch.randn(DOCUMENTS, HEADS, BEAMS, WIDTH, generator=draw)
        if parents is not None:
            copied = copied.take_along_dim(parents[None, :, None, :, None, None], dim=3)
        copied = torch.cat([copied, new[..., None, :]], dim=-2)
        lazy.advance(BEAMS, parents)
        if step % 20 and step != steps - 1:
            lazy.extend(0, *new)
            continue
        bias = lazy.bias(places[None, :, None, None, : step + 1])
        mixed = mix(queries, *lazy.extend(0, *new), bias=bias, scale=0.5)
        keys, values = copied
        weights = (0.5 * (queries[..., None, :] * keys).sum(-1) + places[:, None, : step + 1]).softmax(-1)
        torch.testing.assert_close(mixed, (weights[..., None] * values).sum(-2), rtol=1e-5, atol=1e-6)


def test_documents_that_are_dropped_leave_the_others_as_they_are() -> None:
    lazy = cache(4)
    for step in range(3):
        lazy.advance(BEAMS, torch.tensor([[1, 0, 2]] * DOCUMENTS) if step else None)
        keys, _ = lazy.extend(1, *torch.randn(2, DOCUMENTS, HEADS, BEAMS, WIDTH))
    bias = lazy.bias(torch.zeros(1, 1, 1, 1, 3))
    kept = torch.tensor([0, 2])
    lazy.keep(kept)
    assert torch.equal(lazy.kept[1, 0, :, :, : 3 * BEAMS], keys[kept])
    assert torch.equal(lazy.bias(torch.zeros(1, 1, 1, 1, 3)), bias[kept])


def test_a_greedy_batch_has_no_mask_and_no_copies() -> None:
    lazy = cache(4, beams=1)
    lazy.advance(1, None)
    places = torch.zeros(1, HEADS, 1, 1, 1)
    assert lazy.bias(places).data_ptr() == places.data_ptr()
    keys, _ = lazy.extend(0, *torch.randn(2, DOCUMENTS, HEADS, 1, WIDTH))
    assert keys.untyped_storage().data_ptr() == lazy.kept.untyped_storage().data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_padding_of_the_source_gets_no_weight(dtype: torch.dtype) -> None:
    keys, values = torch.randn(2, DOCUMENTS, HEADS, 6, WIDTH).to(dtype)
    valid = torch.arange(6)[None] < torch.tensor([6, 2, 4])[:, None]
    source = SourceCache([(keys, values)], valid)
    queries = torch.randn(DOCUMENTS, HEADS, BEAMS, WIDTH).to(dtype)
    mixed = mix(queries, *source[0], bias=source.bias, scale=1.0)
    alone = mix(queries[1:2], keys[1:2, :, :2], values[1:2, :, :2], bias=None, scale=1.0)
    torch.testing.assert_close(mixed[1:2], alone)
    assert SourceCache([(keys, values)], torch.ones(DOCUMENTS, 6, dtype=torch.bool)).bias is None


@pytest.mark.parametrize("kind", ["zcodepp", "prophetnet"])
@pytest.mark.parametrize("beams", [1, 3])
def test_scores_given_to_a_fused_kernel_begin_at_whole_pieces_of_16_bytes(
    kind: str, beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On CUDA a misaligned one loses the process its device."""
    given: list[torch.Tensor] = []
    plain = torch.nn.functional.scaled_dot_product_attention

    def watched(*parts: torch.Tensor, **options: object) -> torch.Tensor:
        mask = options.get("attn_mask")
        if isinstance(mask, torch.Tensor) and "dropout_p" not in options:  # the encoder's calls have one
            given.append(mask)
        return plain(*parts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(CompiledStep, "of", lambda model, weights: None)
    monkeypatch.setattr(fast_cache, "_fuses", lambda states: states.dtype is torch.bfloat16)  # as on CUDA
    monkeypatch.setattr(fast_cache.F, "scaled_dot_product_attention", watched)  # type: ignore[attr-defined]
    options = {"max_new_tokens": 83, "min_new_tokens": 83, "no_repeat_ngram_size": 0, "num_beams": beams}
    of: PreTrainedModel
    if kind == "zcodepp":
        of, source, asked = model(), inputs(3), config(**options)
    else:
        of, source, asked = prophet(0), prophet_documents(0), prophet_settings(**options)
    FastDecoder(of, BFloat16())(source, asked)
    assert len({mask.shape for mask in given}) >= (83 if kind == "zcodepp" else 1)
    for mask in given:
        assert mask.stride(-1) == 1
        assert mask.storage_offset() % 8 == 0
        assert all(stride % 8 == 0 for stride in mask.stride()[:-1])


@pytest.mark.parametrize("beams", [1, BEAMS])
def test_room_is_made_when_no_step_fits_and_not_before(beams: int) -> None:
    lazy, rooms = cache(150, beams), []
    for _ in range(129):
        lazy.advance(beams, None)
        rooms.append(lazy.kept.shape[4] // beams)
    assert rooms == [64] * 64 + [128] * 64 + [150]


def test_only_half_precision_beside_the_cpu_goes_to_the_fused_kernel() -> None:
    for device, dtype, fuses in (
        ("cpu", torch.float32, False),
        ("cpu", torch.bfloat16, False),
        ("meta", torch.float32, False),
        ("meta", torch.bfloat16, True),
    ):
        assert fast_cache._fuses(torch.empty(1, dtype=dtype, device=device)) == fuses
