"""Writing with a prefix: caches, padding, beams and positions."""

import pytest
import torch

from precis.tuning import METHODS, Prefix, method
from tests import conformance
from tests.conformance import (
    check_cached_equals_uncached,
    check_decoder_cannot_see_the_future,
    check_generation,
    check_padding_changes_nothing,
    random_batch,
)
from tests.tuning.bases import KINDS, LENGTH, OPTIONS, SEGMENTS, attach_loud, base, logits, plain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["truncsa", pytest.param("hierblock+softsa", marks=pytest.mark.many_steps)])
def test_cached_is_uncached_and_padded_is_unpadded(kind: str, name: str) -> None:
    model = base(kind)
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)
    check_decoder_cannot_see_the_future(model)


@pytest.mark.many_steps
@pytest.mark.parametrize("name", METHODS)
def test_in_double_precision_both_hold_to_1e_12(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """So what is left in single precision is rounding."""
    monkeypatch.setattr(conformance, "ATOL", 1e-12)
    model = base().double()
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)


@pytest.mark.many_steps
@pytest.mark.parametrize("name", METHODS)
def test_on_bart_as_it_is_initialised_both_hold_to_1e_6(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(conformance, "ATOL", 1e-6)
    model = base(std=0.02)
    attach_loud(model, method(name, Prefix(length=LENGTH), SEGMENTS))
    check_cached_equals_uncached(model)
    check_padding_changes_nothing(model)


@pytest.mark.many_steps
@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp"])
def test_beams_caches_and_batches_write_the_same(kind: str) -> None:
    model = base(kind)
    attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    check_generation(model)


def test_prefixes_change_what_is_written() -> None:
    model = base()
    ids, mask, _ = random_batch(model)
    before = model.generate(input_ids=ids, attention_mask=mask, num_beams=3, **OPTIONS)
    attach_loud(model, plain())
    assert not torch.equal(model.generate(input_ids=ids, attention_mask=mask, num_beams=3, **OPTIONS), before)


def test_decoder_positions_do_not_shift() -> None:
    model = base()
    batch = random_batch(model)
    asked = []
    model.model.decoder.embed_positions.register_forward_hook(
        lambda _, __, kwargs, output: asked.append(kwargs["position_ids"]), with_kwargs=True
    )
    logits(model, batch)
    attach_loud(model, plain())
    logits(model, batch)
    assert torch.equal(asked[0], asked[1])
    asked.clear()
    model.generate(input_ids=batch[0], attention_mask=batch[1], num_beams=2, **OPTIONS)
    assert [int(positions[-1]) for positions in asked] == list(range(len(asked)))


def test_a_target_as_long_as_the_table_of_positions_still_fits() -> None:
    model = base()
    attach_loud(model, plain())
    ids, mask, _ = random_batch(model)
    longest = torch.full((3, 64), 7)
    assert torch.isfinite(model(input_ids=ids, attention_mask=mask, decoder_input_ids=longest).logits).all()
