"""What the comparisons with transformers share."""

import pytest
import torch

from precis.nn import dropout


@pytest.fixture
def dropout_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each dropout, ours and torch's, scales by its own 1 - p instead of drawing."""
    monkeypatch.setattr(
        torch.nn.functional,
        "dropout",
        lambda x, p=0.5, training=True, inplace=False: x * (1 - p) if training else x,
    )
    monkeypatch.setattr(
        dropout, "factors", lambda shape, rate, *, dtype, device: torch.full(shape, 1 - rate, dtype=dtype)
    )
