"""What transformers says about its own method's name is not the user's business; everything else is."""

import warnings

import pytest

from precis.models.family import enable_gradient_checkpointing
from tests.tiny_models import tiny


@pytest.mark.parametrize("kind", ["zcodepp", "bart"])
def test_enabling_it_is_quiet_and_works(kind: str) -> None:
    model, _ = tiny(kind)
    layers = [module for module in model.modules() if hasattr(module, "gradient_checkpointing")]
    assert not any(layer.gradient_checkpointing for layer in layers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enable_gradient_checkpointing(model)
    assert layers
    assert all(layer.gradient_checkpointing for layer in layers)


def test_another_warning_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = tiny("zcodepp")
    monkeypatch.setattr(
        model,
        "gradient_checkpointing_enable",
        lambda: warnings.warn("slow here", FutureWarning, stacklevel=1),
    )
    with pytest.warns(FutureWarning, match="slow here"):
        enable_gradient_checkpointing(model)
