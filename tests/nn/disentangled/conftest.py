"""Shared by the tests of the ways through disentangled attention."""

import pytest

from precis.nn.disentangled import bands, inputs, recompute, saved_scores


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks, tiles and groups of documents at lengths that tests can afford."""
    for module in (bands, recompute):
        monkeypatch.setattr(module, "_BLOCK", 12)
        monkeypatch.setattr(module, "_SCORES", 2 * 12 * 40 * 2)
    monkeypatch.setattr(inputs, "_TILE", 7)
    monkeypatch.setattr(saved_scores, "_SCORES", 2 * 40 * 40)
