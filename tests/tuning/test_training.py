"""Training a prefix: what learns, at which precision, with layers kept or recomputed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from precis.tuning import Prefix, attach, attached, method
from precis.tuning.prefix import Reparametrized, Site
from tests.conformance import random_batch
from tests.tuning.bases import KINDS, LAYERS, LENGTH, OPTIONS, SEGMENTS, attach_loud, base, plain


@pytest.mark.parametrize("kind", ["bart", "t5", "zcodepp", "prophetnet"])
@pytest.mark.parametrize("keys", [None, Reparametrized(width=16)])
def test_gradient_checkpointing_changes_no_gradient(kind: str, keys: Reparametrized | None) -> None:
    prefix = Prefix(length=LENGTH) if keys is None else Prefix(length=LENGTH, keys=keys)
    found = []
    for checkpointing in (False, True):
        model = base(kind).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        ids, mask, labels = random_batch(model)
        attachment = attach_loud(model, method("hierblock+softsa", prefix, SEGMENTS))
        model.double()
        torch.manual_seed(7)  # SoftSA's noise
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        found.append([p.grad for p in attachment.prefixes.parameters()])
    for plainly, recomputed in zip(*found, strict=True):
        torch.testing.assert_close(recomputed, plainly, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("kind", ["bart", "zcodepp"])
def test_two_forward_passes_before_one_backward_pass_keep_their_own_segments(kind: str) -> None:
    """Layers that are recomputed must see the segments of their own pass, not those of the last one."""
    found = []
    for checkpointing in (False, True):
        model = base(kind).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        attachment = attach_loud(model, method("uniblock", Prefix(length=LENGTH), SEGMENTS))
        losses = []
        for seed in (0, 1):
            ids, mask, labels = random_batch(model, seed=seed)
            segments = torch.full_like(ids, seed)
            losses.append(
                model(input_ids=ids, attention_mask=mask, labels=labels, source_segments=segments).loss
            )
        sum(losses).backward()
        found.append([p.grad for p in attachment.prefixes.parameters()])
    for plainly, recomputed in zip(*found, strict=True):
        torch.testing.assert_close(recomputed, plainly, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_bases_take_float32_prefixes(kind: str) -> None:
    model = base(kind)
    ids, mask, labels = random_batch(model)
    attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    exact = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    attachment = attached(model)
    assert attachment is not None
    attachment.detach()
    model.to(torch.bfloat16)
    attachment = attach_loud(model, method("hierblock", Prefix(length=LENGTH), SEGMENTS))
    half = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    half.backward()
    assert abs(float(half) - float(exact)) < 0.05 * float(exact)
    for parameter in attachment.prefixes.parameters():
        assert parameter.dtype == torch.float32
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
    model.generate(input_ids=ids, attention_mask=mask, num_beams=2, **OPTIONS)


def test_autocast_trains() -> None:
    model = base().train()
    ids, mask, labels = random_batch(model)
    attachment = attach_loud(model, method("hierblock+softsa", Prefix(length=LENGTH), SEGMENTS))
    with torch.autocast("cpu", torch.bfloat16):
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    gradients = [p.grad for p in attachment.prefixes.parameters()]
    assert all(gradient is not None and torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.long
def test_a_prefix_learns() -> None:
    model = base().train()
    ids, mask, labels = random_batch(model)
    attachment = attach(model, plain())
    optimizer = torch.optim.Adam(attachment.prefixes.parameters(), lr=0.1)
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("kind", KINDS)
def test_only_prefixes_train_and_all_of_each(kind: str) -> None:
    model = base(kind).train()
    ids, mask, labels = random_batch(model)
    attachment = attach_loud(model, plain())
    model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    own = {id(p) for p in attachment.prefixes.parameters()}
    for name, parameter in model.named_parameters():
        if id(parameter) in own:
            # every key and value of every column has an influence
            assert (parameter.grad.abs().sum((2, 4)) > 0).all(), name
        else:
            assert parameter.grad is None
            assert not parameter.requires_grad
    count = attachment.count()
    heads = attachment.prefixes.shapes[Site.ENCODER]
    assert count.trainable == 3 * LAYERS * 2 * LENGTH * heads.heads * heads.head_width == count.stored
    assert count.trainable + count.base == sum(p.numel() for p in model.parameters())


@pytest.mark.slow
def test_two_processes_share_their_gradients(tmp_path: Path) -> None:
    script = Path(__file__).with_name("two_ranks.py")
    result = tmp_path / "gradients.safetensors"
    ranks = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(tmp_path / "meeting"), str(result)])
        for rank in (0, 1)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    expected: dict[Any, Any] = {}
    for seed in (0, 1):
        model = base().train()
        prefix = Prefix(length=6, keys=Reparametrized(width=16))
        attachment = attach_loud(model, method("hierblock", prefix, SEGMENTS), seed=1)
        ids, mask, labels = random_batch(model, seed=seed)
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        for name, parameter in attachment.prefixes.named_parameters():
            assert parameter.grad is not None
            expected[name] = expected.get(name, 0) + parameter.grad / 2
    found = load_file(result)
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-6 * float(gradient.abs().max()), rtol=1e-4)
