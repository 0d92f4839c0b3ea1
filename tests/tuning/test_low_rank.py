"""Low-rank adapters: untrained they change nothing, merged they change nothing more, and only they are trained."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaForCausalLM

from precis.tuning import read_adapter
from precis.tuning.low_rank import (
    TENSORS,
    LowRank,
    LowRankAdapter,
    add_low_rank,
    base_record,
    beside_base,
    is_low_rank,
    merge_low_rank,
)
from precis_text.errors import UserError
from tests.tiny_models import llama, tiny

_IDS = torch.arange(3, 20)[None]
_SETTINGS = LowRank(rank=3, alpha=6.0)


@pytest.fixture
def model() -> LlamaForCausalLM:
    return llama()[0]


def _trained(model: LlamaForCausalLM) -> LowRankAdapter:
    adapter = add_low_rank(model, _SETTINGS, seed=1)
    torch.manual_seed(2)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return adapter


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    _trained(llama()[0]).write_files(tmp_path)
    return tmp_path


def test_an_untrained_adapter_changes_no_bit(model: LlamaForCausalLM) -> None:
    before = model(_IDS).logits
    add_low_rank(model, _SETTINGS, seed=1)
    assert torch.equal(model(_IDS).logits, before)


def test_only_the_adapter_is_trained_on_all_layers_but_the_head(model: LlamaForCausalLM) -> None:
    adapter = add_low_rank(model, _SETTINGS, seed=1)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    layers = {name.split(".lora_")[0].rpartition(".")[2] for name in names}
    assert layers == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert len(names) == 2 * 2 * 7
    assert adapter.parameters == sum(tensor.numel() for tensor in adapter.tensors().values())


def test_a_seed_gives_the_values_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (add_low_rank(llama()[0], _SETTINGS, seed=seed) for seed in (1, 1, 2))
    torch.manual_seed(5)
    assert torch.equal(torch.get_rng_state(), before)
    name = next(name for name in first.tensors() if "lora_A" in name)
    assert torch.equal(first.tensors()[name], again.tensors()[name])
    assert not torch.equal(first.tensors()[name], other.tensors()[name])


def test_merged_equals_unmerged_and_has_the_base_s_names(saved: Path, model: LlamaForCausalLM) -> None:
    unmerged = llama()[0]
    _trained(unmerged)
    names, plain = set(model.state_dict()), model(_IDS).logits
    merge_low_rank(model, saved)
    assert torch.allclose(model(_IDS).logits, unmerged(_IDS).logits, atol=1e-5)
    assert not torch.allclose(model(_IDS).logits, plain, atol=1e-3)
    assert set(model.state_dict()) == names


def test_beside_its_base_it_gives_the_merged_logits_and_shares_all_weights(
    saved: Path, model: LlamaForCausalLM
) -> None:
    before = model(_IDS).logits
    made = beside_base(model, saved)
    merged = llama()[0]
    merge_low_rank(merged, saved)
    assert torch.allclose(made(_IDS).logits, merged(_IDS).logits, atol=1e-5)
    assert torch.equal(model(_IDS).logits, before)
    assert not torch.allclose(made(_IDS).logits, before, atol=1e-3)
    weights = dict(model.named_parameters())
    assert all(weights[name] is parameter for name, parameter in made.named_parameters())
    assert set(made.state_dict()) == set(model.state_dict())


def test_half_the_bits_are_enough(saved: Path, model: LlamaForCausalLM) -> None:
    exact = beside_base(model, saved)(_IDS).logits
    tensors = load_file(saved / TENSORS)
    save_file({name: tensor.half() for name, tensor in tensors.items()}, saved / TENSORS)
    assert torch.allclose(beside_base(model, saved)(_IDS).logits, exact, atol=2e-3)
    merge_low_rank(model, saved)
    assert torch.allclose(model(_IDS).logits, exact, atol=2e-3)


def test_the_files_are_the_same_each_time_and_name_no_folder(saved: Path, tmp_path: Path) -> None:
    config = json.loads((saved / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(config["target_modules"])
    assert config["base_model_name_or_path"] is None
    assert str(tmp_path) not in (saved / "adapter_config.json").read_text()


def test_peft_reads_the_folder(saved: Path, model: LlamaForCausalLM) -> None:
    from peft import PeftModel

    read = PeftModel.from_pretrained(llama()[0], saved)
    merge_low_rank(model, saved)
    assert torch.allclose(read(_IDS).logits, model(_IDS).logits, atol=1e-5)


def test_use_needs_no_peft(saved: Path, model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    merge_low_rank(model, saved)
    with pytest.raises(UserError, match="peft"):
        add_low_rank(llama()[0], _SETTINGS, seed=1)


def test_another_base_is_refused(saved: Path) -> None:
    with pytest.raises(UserError, match=r"was trained on LlamaForCausalLM .* weights \(digest\)"):
        merge_low_rank(llama(seed=3)[0], saved)
    with pytest.raises(UserError, match="model class LlamaForCausalLM against BartFor"):
        merge_low_rank(tiny("bart")[0], saved)


def test_float16_is_checked_by_the_record_from_before(saved: Path, model: LlamaForCausalLM) -> None:
    record = base_record(model)
    merge_low_rank(model.half(), saved, base=record)
    with pytest.raises(UserError, match="float16 weights cannot be checked"):
        merge_low_rank(llama()[0].half(), saved)


def test_the_two_kinds_of_adapters_are_told_apart(saved: Path) -> None:
    assert is_low_rank(saved)
    with pytest.raises(UserError, match="is a low-rank adapter, not a prefix"):
        read_adapter(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "base_model.model.lm_head.lora_C.weight": torch.ones(2)}, "lora_C"),
        (lambda t: dict(list(t.items())[1:]), "not lora_A and lora_B"),
        (lambda t: {name: tensor[:, :2].contiguous() for name, tensor in t.items()}, "does not fit the base"),
        (
            lambda t: {name.replace("layers.1", "layers.7"): x for name, x in t.items()},
            "does not fit the base",
        ),
        (lambda t: {name: tensor * torch.nan for name, tensor in t.items()}, "NaN or infinity"),
        (
            lambda t: {name: tensor.bfloat16() for name, tensor in t.items()},
            "is BF16, not float32 or float16",
        ),
    ],
)
def test_damaged_tensors_are_refused(
    change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]],
    message: str,
    saved: Path,
    model: LlamaForCausalLM,
) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(change(load_file(saved / TENSORS)), saved / TENSORS)
    with pytest.raises(UserError, match=message):
        merge_low_rank(model, saved)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("settings", [{"rank": 0}, {"alpha": 0.0}, {"alpha": "x"}, {"other": 1}, 3])
def test_a_damaged_record_is_refused(settings: object, saved: Path, model: LlamaForCausalLM) -> None:
    record = json.loads((saved / "adapter.json").read_text())
    (saved / "adapter.json").write_text(json.dumps(record | {"low_rank": settings}))
    with pytest.raises(UserError, match=r"adapter\.json cannot be used"):
        merge_low_rank(model, saved)


@pytest.mark.parametrize(("name", "value"), [("rank", 0), ("alpha", 0.0), ("alpha", float("inf"))])
def test_settings_that_cannot_be_are_refused(name: str, value: float) -> None:
    with pytest.raises(UserError, match=f"lora.{name}={value}"):
        LowRank(**{name: value})  # type: ignore[arg-type]
