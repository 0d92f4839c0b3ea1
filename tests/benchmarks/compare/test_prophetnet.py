"""ProphetNet's benchmark compares the same weights and the same text."""

import pytest
import torch

from benchmarks.compare import prophetnet


@pytest.mark.parametrize("quick", [True, False])
def test_every_comparison_has_its_cell_and_its_contenders(quick: bool) -> None:
    planned = prophetnet.bench(quick=quick)
    names = {contender.name for contender in planned.contenders}
    cells = {cell.name for cell in planned.cells}
    assert all(c.cell in cells and {c.ours, c.theirs} <= names for c in planned.comparisons)


def test_both_goals_stand_in_every_cell_of_decoding() -> None:
    planned = prophetnet.bench(quick=False)
    goals = {c.cell: c.goals for c in planned.comparisons if c.theirs == "transformers ProphetNet"}
    bound = goals.pop("encoder only, batch 8")
    assert (set(goals.values()), len(goals), bound) == ({(2.0, 2.5)}, 4, ())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WIDTH": 16, "_HEADS": 2, "_INNER": 24, "_LAYERS": 2, "_VOCABULARY": 1100}.items():
        monkeypatch.setattr(prophetnet, name, value)
    monkeypatch.setattr(prophetnet, "_TOKENS", 9)
    monkeypatch.setattr(prophetnet, "_SOURCE", 12)


@pytest.mark.usefixtures("tiny")
def test_the_bound_is_the_time_of_the_same_encoder() -> None:
    ours, theirs = (
        make(batch=2, beams=1, encoder_alone=True)() for make in (prophetnet.fast, prophetnet.transformers)
    )
    assert ours.shape == (2, 12, 16)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("tiny")
def test_both_write_the_same_text_from_the_same_weights() -> None:
    torch.manual_seed(0)
    for beams in (1, 3):
        makes = (prophetnet.fast, prophetnet.by_generate, prophetnet.transformers)
        ours, generated, theirs = (make(batch=2, beams=beams)() for make in makes)
        assert ours == theirs == generated
