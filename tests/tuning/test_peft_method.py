"""The same prefixes through PEFT's doors."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from precis.tuning import NoPrefix, Prefix, method
from precis.tuning.prefix import Reparametrized
from precis_text.errors import UserError
from tests.conformance import random_batch
from tests.tuning.bases import OPTIONS, SEGMENTS, attach_loud, base, logits

peft = pytest.importorskip("peft")

from precis.tuning.peft_method import DiscoursePrefixConfig  # noqa: E402

REPARAMETRIZED = Prefix(length=6, keys=Reparametrized(width=16))


def tuned(prefix: Prefix = REPARAMETRIZED, *, seed: int = 0) -> PreTrainedModel:
    """A PEFT model whose prefix is loud."""
    tuning = method("hierblock", prefix, SEGMENTS)
    model = peft.get_peft_model(base(), DiscoursePrefixConfig.of(tuning)).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter))
    return model


def test_get_peft_model_gives_what_attach_gives() -> None:
    model = tuned(Prefix(length=6))
    other = base()
    attachment = attach_loud(other, method("hierblock", Prefix(length=6), SEGMENTS))
    attachment.prefixes.load_state_dict(model.base_model.shelf.prefixes["default"].state_dict())
    batch = random_batch(other)
    assert torch.equal(logits(model, batch), logits(other, batch))
    trainable, everything = model.get_nb_trainable_parameters()
    assert trainable == attachment.count().trainable
    assert everything == trainable + attachment.count().base


def test_only_the_prefix_has_gradients() -> None:
    model = tuned().train()
    ids, mask, labels = random_batch(model)
    model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == ("prefixes" in name), name


@pytest.mark.parametrize("prefix", [Prefix(length=6), REPARAMETRIZED])
def test_save_pretrained_and_from_pretrained_leave_logits_and_summaries_identical(
    tmp_path: Path, prefix: Prefix
) -> None:
    model = tuned(prefix)
    batch = random_batch(model)
    expected = logits(model, batch)
    written = model.generate(input_ids=batch[0], attention_mask=batch[1], num_beams=3, **OPTIONS)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "adapter_model.safetensors").stat().st_size < 60_000
    again = peft.PeftModel.from_pretrained(base(), tmp_path).eval()
    assert torch.equal(logits(again, batch), expected)
    assert torch.equal(
        again.generate(input_ids=batch[0], attention_mask=batch[1], num_beams=3, **OPTIONS), written
    )
    assert not [n for n, p in again.named_parameters() if p.requires_grad and "prefixes" not in n]


def test_weights_read_back_into_a_model_that_still_has_its_network_arrive(tmp_path: Path) -> None:
    """As trainers do with the best checkpoint."""
    model = tuned()
    batch = random_batch(model)
    expected = logits(model, batch)
    model.save_pretrained(tmp_path)
    other = tuned(seed=5)
    assert not torch.equal(logits(other, batch), expected)
    other.load_adapter(tmp_path, "default", is_trainable=True)
    assert torch.equal(logits(other, batch), expected)


def test_adapters_are_added_chosen_disabled_and_removed(tmp_path: Path) -> None:
    model, bare = tuned(), base()
    batch = random_batch(model)
    expected, without = logits(model, batch), logits(bare, batch)
    model.save_pretrained(tmp_path)
    other = tuned(seed=5)
    own = logits(other, batch)
    other.load_adapter(tmp_path, "second")
    other.set_adapter("second")
    assert torch.equal(logits(other, batch), expected)
    other.set_adapter("default")
    assert torch.equal(logits(other, batch), own)
    with other.disable_adapter():
        assert torch.equal(logits(other, batch), without)
    assert torch.equal(logits(other, batch), own)
    other.delete_adapter("default")
    assert torch.equal(logits(other, batch), expected)
    assert torch.equal(logits(other.unload(), batch), without)


def trained(model: PreTrainedModel) -> list[str]:
    """Names of what an optimizer would change."""
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def test_what_is_loaded_for_inference_trains_nothing(tmp_path: Path) -> None:
    tuned().save_pretrained(tmp_path)
    assert not trained(peft.PeftModel.from_pretrained(base(), tmp_path))
    assert all(
        "prefixes" in name
        for name in trained(peft.PeftModel.from_pretrained(base(), tmp_path, is_trainable=True))
    )
    assert trained(peft.PeftModel.from_pretrained(base(), tmp_path, is_trainable=True))


def test_a_second_adapter_waits_frozen_and_leaves_the_first_at_work(tmp_path: Path) -> None:
    tuned(seed=5).save_pretrained(tmp_path)
    model = tuned()
    batch = random_batch(model)
    before, expected = trained(model), logits(model, batch)
    model.load_adapter(tmp_path, "second")
    assert trained(model) == before
    assert torch.equal(logits(model, batch), expected)
    model.set_adapter("second")
    assert trained(model)
    assert not [name for name in trained(model) if "default" in name]
    model.set_adapter("second", inference_mode=True)
    assert not trained(model)


def test_the_base_stays_frozen_while_the_adapter_is_disabled_and_is_given_back_by_unload() -> None:
    model = tuned()
    before = trained(model)
    with model.disable_adapter():
        assert not trained(model)
    assert trained(model) == before
    assert trained(model.unload()) == trained(base())


def test_disabling_does_not_wake_an_adapter_that_is_for_inference(tmp_path: Path) -> None:
    tuned().save_pretrained(tmp_path)
    model = peft.PeftModel.from_pretrained(base(), tmp_path)
    with model.disable_adapter():
        pass
    assert not trained(model)


@pytest.mark.parametrize("merge", ["merge_and_unload", "merge_adapter"])
def test_a_prefix_cannot_be_merged_and_says_what_takes_it_off(merge: str) -> None:
    model = tuned()
    batch = random_batch(model)
    expected = logits(model, batch)
    with pytest.raises(UserError, match=r"cannot be merged into the base; use unload\(\) to remove it"):
        getattr(model, merge)()
    assert torch.equal(logits(model, batch), expected)


def test_a_base_that_was_refused_can_be_trained_as_before(tmp_path: Path) -> None:
    tuned().save_pretrained(tmp_path)
    other = base(seed=7)
    with pytest.raises(UserError, match="does not fit"):
        peft.PeftModel.from_pretrained(other, tmp_path)
    assert trained(other) == trained(base(seed=7))


def test_another_base_is_refused(tmp_path: Path) -> None:
    tuned().save_pretrained(tmp_path)
    assert json.loads((tmp_path / "adapter_config.json").read_text())["peft_type"] == "DISCOURSE_PREFIX"
    with pytest.raises(
        UserError, match=r"does not fit this BartForConditionalGeneration: weights \(digest\)"
    ):
        peft.PeftModel.from_pretrained(base(seed=7), tmp_path)


def test_no_prefix_is_refused() -> None:
    with pytest.raises(UserError, match="trains the base itself"):
        DiscoursePrefixConfig.of(method("truncsa", NoPrefix()))


def test_without_peft_the_extra_that_has_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.delitem(sys.modules, "precis.tuning.peft_method")
    with pytest.raises(UserError, match=r"pip install 'peft<0\.22,>=0\.21'"):
        importlib.import_module("precis.tuning.peft_method")
    assert (
        'peft = ["peft>=' in Path(__file__).parents[2].joinpath("packages/precis/pyproject.toml").read_text()
    )
