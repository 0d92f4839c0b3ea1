"""A pass asks the device for nothing that the host knows: on a GPU each question is a wait.

Tensors without values stand in for a device: whoever reads one gets an error.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.nn.disentangled import bias as disentangled
from precis.nn.padding import host_mask, is_padded, mask_if_padded

SHAPE = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
}


def zcodepp(**changes: int) -> torch.nn.Module:
    shape = {"intermediate_size": 24, "position_buckets": 8, "max_relative_positions": 16}
    return ZCodePPForConditionalGeneration(ZCodePPConfig(**{**SHAPE, **shape, **changes})).train()


def prophetnet() -> torch.nn.Module:
    return ProphetNetForConditionalGeneration(
        ProphetNetConfig(**{**SHAPE, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "ngram": 2})
    ).train()


MODELS = [zcodepp, lambda: zcodepp(chunk_length=16), prophetnet]
LENGTHS = [(40, 40, 40), (40, 37, 36), (40, 21, 5)]


def batch(lengths: tuple[int, ...]) -> dict[str, Tensor]:
    ids = torch.randint(5, 50, (len(lengths), max(lengths)))
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return {
        "input_ids": ids,
        "attention_mask": mask.long(),
        "labels": torch.randint(5, 50, (len(lengths), 9)),
    }


@pytest.mark.parametrize("make", MODELS, ids=["zcodepp", "chunks", "prophetnet"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=["full", "padded", "packed"])
def test_a_training_pass_waits_for_nothing_where_the_lengths_are_known(
    make: Callable[[], torch.nn.Module], lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disentangled, "_on_cpu", disentangled._elsewhere)
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = make()
        loss = model(**batch(lengths), source_lengths=lengths).loss
        loss.backward()
    assert all(p.grad is not None for name, p in model.named_parameters() if "layers" in name)


def test_without_the_lengths_the_mask_is_read() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(RuntimeError, match="numpy"):
        zcodepp()(**batch((40, 21)))


@pytest.mark.parametrize("make", MODELS, ids=["zcodepp", "chunks", "prophetnet"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=["full", "padded", "packed"])
def test_known_lengths_change_no_number(
    make: Callable[[], torch.nn.Module], lengths: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    model, inputs = make().eval(), batch(lengths)
    told, asked = model(**inputs, source_lengths=lengths), model(**inputs)
    assert torch.equal(told.logits, asked.logits)


def test_the_host_mask_is_the_devices() -> None:
    valid = torch.arange(6)[None] < torch.tensor([6, 2, 0])[:, None]
    expected = valid.numpy()
    for found in (host_mask(valid), host_mask(valid, lengths=[6, 2, 0])):
        assert found is not None
        assert np.array_equal(found, expected)
    assert host_mask(valid[:1]) is None
    assert host_mask(valid[:1], lengths=[6]) is None
    assert host_mask(valid, padded=False) is None


def test_whether_a_mask_is_needed() -> None:
    full = torch.ones(2, 3, dtype=torch.bool)
    assert mask_if_padded(None, None) is None
    assert mask_if_padded(full, None) is None
    hidden = mask_if_padded(full.logical_not(), None)
    assert hidden is not None
    assert hidden.shape == (2, 1, 1, 3)
    assert mask_if_padded(full.logical_not(), False) is None  # what is known is not looked up
    assert is_padded(3, [3, 3]) is False
    assert is_padded(3, [3, 1]) is True
    assert is_padded(3, None) is None


@pytest.mark.parametrize("lengths", [[3], [3, 4]])
def test_lengths_of_another_batch_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="do not fit a batch of 2 rows of 3"):
        host_mask(torch.ones(2, 3, dtype=torch.bool), lengths=lengths)
