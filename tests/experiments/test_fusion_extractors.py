"""The parts of the comparison of encoders as extractors, without a training run."""

from itertools import islice

import numpy as np
import pytest
import torch

from experiments.scripts.fusion_extractors import (
    FUSION,
    VARIANTS,
    Document,
    Extractor,
    Variant,
    batches,
    difference_rows,
    extract,
    loss_of,
    marked,
    train,
    unit_states,
)
from precis.extract.unit_tokens import UnitTokenizer
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoder
from precis.nn.layer_plan import Global, Local

TEXT = "# Music\n\nAnn sings in the hall. Bob listens to her for an hour. It rains on the roof. Cleo sleeps."


def document(text: str = TEXT, references: tuple[str, ...] = ("Bob listens to Ann.",)) -> Document:
    tokenizer = UnitTokenizer(
        lambda texts: [[4 + len(word) for word in each.split()] for each in texts], lambda _: "", None
    )
    (tokens,) = tokenizer.tokenize([text])
    assert tokens is not None
    return marked("openstax", tokens, references)


def extractor(variant: Variant) -> Extractor:
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "encoder_layers": 2}
    encoder = ZCodePPEncoder(ZCodePPConfig(vocab_size=50, decoder_layers=1, dropout=0.0, **shape))
    encoder.stack.plan = variant.plan(2)
    return Extractor(encoder, 16, ([1], [2]), 0).eval()


def test_a_unit_is_the_mean_and_the_last_of_its_states() -> None:
    states = torch.randn(5, 3)
    found = unit_states(states, [2, 3])
    assert torch.allclose(found[0], torch.cat([states[:2].mean(0), states[1]]))
    assert torch.allclose(found[1], torch.cat([states[2:].mean(0), states[4]]))


def test_headings_are_read_and_never_chosen() -> None:
    own = document(references=("Music. Music.",))
    units = own.tokens.units
    assert units[0].heading
    assert 0 not in own.best
    scores = [9.0, *range(len(units) - 1)]
    assert extract(own, scores, 8) == "It rains on the roof.\nCleo sleeps."


def test_a_document_is_cut_after_the_last_unit_that_fits() -> None:
    own = document()
    sizes = [*map(len, own.tokens.ids)]
    assert [*map(len, own.ids(sum(sizes[:3]) + 1))] == sizes[:3]
    assert [*map(len, own.ids(1))] == [1]


@pytest.mark.parametrize(("name", "is_seen"), [("dense", True), (FUSION, True), ("local only 256", False)])
def test_only_local_layers_alone_do_not_see_another_chunk(name: str, is_seen: bool) -> None:
    variant = VARIANTS[name]
    small = Variant(variant.chunk and 8, global_layers=variant.global_layers)
    model = extractor(small)
    first, changed = [[5, 6, 7], [8] * 12], [[5, 6, 7], [8] * 11 + [9]]
    with torch.inference_mode():
        (one,), (other,) = model([first]), model([changed])
    assert (one[0] != other[0]).item() is is_seen
    assert one[1] != other[1]


def test_the_global_layers_are_the_last_ones_or_the_first() -> None:
    last, first, two = (
        VARIANTS[name].plan(3) for name in (FUSION, "first layer global", "two global layers")
    )
    assert last == (Local(256), Local(256), Global())
    assert first == (Global(), Local(256), Local(256))
    assert two == (Local(256), Global(), Global())


def test_a_document_has_the_same_logits_in_every_batch() -> None:
    model = extractor(VARIANTS[FUSION])
    short, long = [[5, 6], [7]], [[8] * 20, [9, 10]]
    with torch.inference_mode():
        together, alone = model([short, long]), [*model([short]), *model([long])]
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_training_stops_after_its_time_and_learns() -> None:
    own = [document()]
    model = extractor(VARIANTS[FUSION])
    before = loss_of(model([own[0].ids(100)])[0], own[0]).item()
    done = train(model, own, 100, seed=0, seconds=1.5)
    after = loss_of(model.eval()([own[0].ids(100)])[0], own[0]).item()
    assert done["steps"] > 5
    assert done["tokens"] == done["steps"] * sum(map(len, own[0].ids(100)))
    assert after < before


def test_every_pass_reads_every_document_once() -> None:
    texts = [f"Ann sings {'la ' * count}." for count in (1, 2000, 2500, 3000)]
    own = [document(text) for text in texts]
    for seed in (0, 1):
        lengths = [len(each.tokens.ids[0]) for batch in islice(batches(own, 4096, seed), 3) for each in batch]
        assert sorted(lengths) == sorted(len(each.tokens.ids[0]) for each in own)


def test_differences_are_paired_by_seed_and_shown_for_each_set() -> None:
    def run(*scores: float) -> dict[str, list[float]]:
        return {measure: [*scores] for measure in ("rouge1", "rouge2", "rougeLsum")}

    found = {FUSION: {0: run(3, 5), 1: run(2, 2)}, "dense": {1: run(1, 0), 2: run(50, 50)}}
    first = run(0, 0)
    dense, lead = difference_rows(found, first, ["openstax", "optech_talk"])
    assert dense[:2] == ["dense", "1"]
    assert [cell.split()[0] for cell in dense[2:]] == ["+1.50"] * 3 + ["+1.00", "+2.00"]
    assert lead[:2] == ["LEAD", "2"]
    assert [cell.split()[0] for cell in lead[2:]] == ["+3.00"] * 3 + ["+2.50", "+3.50"]
    assert np.isfinite([float(cell.split()[0]) for cell in lead[2:]]).all()
