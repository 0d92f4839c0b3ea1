"""Adapters on disk: bit-identical back, small, and refused where they do not belong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from precis.storage.model_files import find_adapter
from precis.storage.seal import SEAL
from precis.tuning import MethodSettings, NoPrefix, Prefix, attach, load_adapter, method, read_adapter
from precis.tuning.adapter_folder import RECORD, TENSORS
from precis.tuning.attach import record_of
from precis.tuning.prefix import LowLayers, Reparametrized
from precis_text.errors import UserError
from tests.conformance import random_batch
from tests.tuning.bases import KINDS, attach_loud, base, logits, plain

SEGMENTS = MethodSettings(encoder_segments=3, decoder_segments=2, target_length=7)
REPARAMETRIZED = Reparametrized(width=16)


def saved(folder: Path, *, kind: str = "bart", seed: int = 1, prefix: Prefix | None = None) -> torch.Tensor:
    """An adapter on disk and the logits that its model gave."""
    model = base(kind)
    attachment = attach_loud(model, method("hierblock", prefix or Prefix(length=6), SEGMENTS), seed=seed)
    attachment.save(folder)
    (Path(folder) / SEAL).unlink()  # these tests change what is there; what the seal finds is tested below
    return logits(model, random_batch(model))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", [Prefix(length=6), Prefix(length=6, keys=REPARAMETRIZED)])
def test_saving_and_loading_leaves_logits_bit_identical(tmp_path: Path, kind: str, prefix: Prefix) -> None:
    expected = saved(tmp_path, kind=kind, prefix=prefix)
    model = base(kind)
    load_adapter(model, tmp_path)
    assert torch.equal(logits(model, random_batch(model)), expected)


def test_what_is_saved_is_keys_and_values_and_nothing_of_the_base(tmp_path: Path) -> None:
    saved(
        tmp_path, prefix=Prefix(length=6, keys=REPARAMETRIZED, sites=("encoder",), layers=LowLayers(count=2))
    )
    tensors = load_file(tmp_path / TENSORS)
    names = {f"encoder.{layer}.{kind}" for layer in (0, 1) for kind in ("keys", "values")}
    assert {name: tuple(t.shape) for name, t in tensors.items()} == dict.fromkeys(names, (2, 6, 16))
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, TENSORS]
    assert find_adapter(tmp_path) == tmp_path


def test_a_loaded_adapter_can_be_saved_again(tmp_path: Path) -> None:
    expected = saved(tmp_path / "first", prefix=Prefix(length=6, keys=REPARAMETRIZED))
    load_adapter(base(), tmp_path / "first").save(tmp_path / "second")
    model = base()
    load_adapter(model, tmp_path / "second")
    assert torch.equal(logits(model, random_batch(model)), expected)


def test_adapters_are_swapped_on_one_base(tmp_path: Path) -> None:
    first, second = saved(tmp_path / "a", seed=1), saved(tmp_path / "b", seed=2)
    model = base()
    batch = random_batch(model)
    before = logits(model, batch)
    attachment = load_adapter(model, tmp_path / "a")
    assert torch.equal(logits(model, batch), first)
    attachment = attachment.swap(read_adapter(tmp_path / "b"))
    assert torch.equal(logits(model, batch), second)
    attachment = attachment.swap(read_adapter(tmp_path / "a"))
    assert torch.equal(logits(model, batch), first)
    attachment.detach()
    assert torch.equal(logits(model, batch), before)


def test_a_swap_that_is_refused_leaves_the_old_one_attached(tmp_path: Path) -> None:
    saved(tmp_path, kind="mbart")
    model = base()
    batch = random_batch(model)
    attachment = attach_loud(model, plain())
    expected = logits(model, batch)
    with pytest.raises(UserError, match="MBartForConditionalGeneration"):
        attachment.swap(read_adapter(tmp_path))
    assert torch.equal(logits(model, batch), expected)


def test_a_swap_for_an_adapter_with_wrong_tensors_leaves_the_old_one_attached(tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = load_file(tmp_path / TENSORS)
    del tensors["decoder.0.keys"]
    save_file(tensors, tmp_path / TENSORS)
    model = base()
    batch = random_batch(model)
    attachment = attach_loud(model, plain())
    expected = logits(model, batch)
    with pytest.raises(UserError, match=r"decoder\.0\.keys of the prefix is missing"):
        attachment.swap(read_adapter(tmp_path))
    assert torch.equal(logits(model, batch), expected)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: base("t5"), "BartForConditionalGeneration and does not fit this T5ForConditionalGeneration"),
        (lambda: base(layers=2), "3x2x16, 3x2x16, 3x2x16 against 2x2x16, 2x2x16, 2x2x16"),
        (lambda: base(seed=9), r"weights \(digest\) [0-9a-f]{12} against [0-9a-f]{12}"),
    ],
)
def test_another_base_is_refused_in_one_line_that_names_both(
    tmp_path: Path, other: Callable[[], PreTrainedModel], words: str
) -> None:
    saved(tmp_path)
    with pytest.raises(UserError, match=words) as raised:
        load_adapter(other(), tmp_path)
    assert "\n" not in str(raised.value)


def test_tensors_of_another_shape_are_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = load_file(tmp_path / TENSORS)
    tensors["cross.1.values"] = tensors["cross.1.values"][:, :3].clone()
    save_file(tensors, tmp_path / TENSORS)
    with pytest.raises(
        UserError, match=r"cross.1.values has shape \(2, 3, 16\); this base needs \(2, 6, 16\)"
    ):
        load_adapter(base(), tmp_path)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = load_file(tmp_path / TENSORS)
    del tensors["decoder.0.keys"]
    save_file(tensors, tmp_path / TENSORS)
    with pytest.raises(UserError, match=r"decoder\.0\.keys of the prefix is missing"):
        load_adapter(base(), tmp_path)


def test_a_tensor_that_nothing_takes_is_named(tmp_path: Path) -> None:
    saved(tmp_path)
    tensors = load_file(tmp_path / TENSORS)
    tensors["decoder.7.keys"] = tensors["decoder.0.keys"].clone()
    save_file(tensors, tmp_path / TENSORS)
    with pytest.raises(UserError, match=r"does not have decoder\.7\.keys"):
        load_adapter(base(), tmp_path)


def test_the_same_base_in_bfloat16_is_the_same_base(tmp_path: Path) -> None:
    saved(tmp_path)
    load_adapter(base().to(torch.bfloat16), tmp_path)


def rounded_base() -> PreTrainedModel:
    """The base in float16, with weights that it rounds otherwise than bfloat16 does."""
    return base().to(torch.float16)


def test_in_float16_the_record_from_before_the_cast_is_what_counts(tmp_path: Path) -> None:
    saved(tmp_path / "first")
    exact = record_of(base())
    attachment = load_adapter(rounded_base(), tmp_path / "first", base=exact)
    attachment.save(tmp_path / "second")
    assert read_adapter(tmp_path / "second").base == exact
    attachment.swap(read_adapter(tmp_path / "second"))
    with pytest.raises(UserError, match="does not fit"):
        load_adapter(rounded_base(), tmp_path / "first", base=record_of(base(seed=9)))


def test_float16_alone_cannot_be_checked_and_says_so(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(
        UserError, match="float16 weights cannot be checked, so load the base in float32 or bfloat16"
    ) as raised:
        load_adapter(rounded_base(), tmp_path)
    assert "\n" not in str(raised.value)
    saved(tmp_path / "t5", kind="t5")
    with pytest.raises(UserError, match="load it on the base it was trained on"):
        load_adapter(rounded_base(), tmp_path / "t5")


def test_a_folder_without_an_adapter_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="no adapter here; give a run folder of `precis tune`, or its adapter/"
    ):
        read_adapter(tmp_path)
    saved(tmp_path)
    record = json.loads((tmp_path / RECORD).read_text())
    (tmp_path / RECORD).write_text(json.dumps({**record, "format": 2}))
    with pytest.raises(UserError, match="format 2"):
        read_adapter(tmp_path)
    for part in ("base", "tuning"):
        for wrong in ({}, {"colour": 1}, []):  # type: ignore[var-annotated]
            (tmp_path / RECORD).write_text(json.dumps({**record, part: wrong}))
            with pytest.raises(UserError, match=rf"{RECORD} cannot be used"):
                read_adapter(tmp_path)
    (tmp_path / RECORD).write_text("{")
    with pytest.raises(UserError, match="damaged"):
        read_adapter(tmp_path)
    (tmp_path / RECORD).write_text(json.dumps(record))
    (tmp_path / TENSORS).write_bytes(b"\x00" * 12)
    with pytest.raises(UserError, match="cannot be read"):
        read_adapter(tmp_path)


def test_sparse_attention_without_a_prefix_is_an_adapter_too(tmp_path: Path) -> None:
    model = base()
    batch = random_batch(model)
    attach(model, method("truncsa", NoPrefix(), MethodSettings(mass=0.5))).save(tmp_path)
    expected = logits(model, batch)
    model = base()
    load_adapter(model, tmp_path)
    assert torch.equal(logits(model, batch), expected)


def test_a_saved_adapter_is_sealed_and_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    attachment = attach_loud(base(), method("hierblock", Prefix(length=6), SEGMENTS), seed=1)
    attachment.save(tmp_path / "a")
    attachment.save(tmp_path / "a")  # its own folder again
    content = bytearray((tmp_path / "a" / TENSORS).read_bytes())
    content[-1] ^= 1
    (tmp_path / "a" / TENSORS).write_bytes(content)
    with pytest.raises(UserError, match=f"{TENSORS} has changed since it was written"):
        read_adapter(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"contains thesis\.txt"):
        attachment.save(tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["thesis.txt"]
