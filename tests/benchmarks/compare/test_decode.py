"""The decoding benchmark compares what it says it compares."""

import pytest
import torch

from benchmarks.compare import decode


def test_every_comparison_has_its_cell_and_its_two_contenders() -> None:
    for quick in (True, False):
        planned = decode.bench(quick=quick)
        contenders = {contender.name for contender in planned.contenders}
        cells = {cell.name for cell in planned.cells}
        assert len({comparison.name for comparison in planned.comparisons}) == len(planned.comparisons)
        for comparison in planned.comparisons:
            assert {comparison.ours, comparison.theirs} <= contenders
            assert comparison.cell in cells


def test_ctranslate2_is_measured_where_it_is_compared_and_nowhere_else() -> None:
    planned = decode.bench(quick=False)
    for contender in planned.contenders:
        if contender.name.startswith("CTranslate2"):
            compared = {c.cell for c in planned.comparisons if c.theirs == contender.name}
            assert compared == {cell.name for cell in planned.cells} - set(contender.skip)
            assert not contender.in_torch


@pytest.mark.parametrize("there", [True, False])
def test_bf16_is_left_out_with_a_reason_where_the_processor_has_none(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "has_onednn", lambda dtype: there and dtype is torch.bfloat16)
    missing = {c.name: c.missing for c in decode.bench(quick=True).contenders if c.missing}
    assert missing == ({} if there else {"precis bf16": "this CPU lacks bf16"})


def test_t5s_decoder_has_the_matrices_of_ours() -> None:
    def shapes(decoder: torch.nn.Module) -> list[tuple[int, ...]]:
        return sorted(tuple(p.shape) for name, p in decoder.named_parameters() if "embed" not in name)

    with torch.device("meta"):
        ours, t5 = decode.model_of("zcodepp", 1), decode.model_of("t5", 1)
    assert shapes(ours.get_decoder()) == shapes(t5.get_decoder())
    assert ours.config.vocab_size == t5.config.vocab_size
