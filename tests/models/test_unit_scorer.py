"""The scorer of units: padding changes nothing, and impossible sizes are refused."""

import pytest
import torch

from precis.models.unit_scorer import UNIT_FEATURES, UnitScorer, UnitScorerShape, sines
from precis_text.errors import UserError


def test_units_of_other_documents_and_padding_change_no_score() -> None:
    torch.manual_seed(0)
    scorer = UnitScorer(UnitScorerShape(states=8, width=16, layers=2, heads=2)).eval()
    vectors, features = torch.randn(1, 3, 16), torch.randn(1, 3, UNIT_FEATURES)
    alone, words = scorer(vectors, features, torch.ones(1, 3, dtype=torch.bool))
    padded = (
        torch.cat([vectors, torch.randn(1, 4, 16)], dim=1),
        torch.cat([features, torch.randn(1, 4, UNIT_FEATURES)], dim=1),
    )
    valid = torch.tensor([[True] * 3 + [False] * 4])
    both, words_too = scorer(
        *(torch.cat([x, torch.randn_like(x)]) for x in padded), torch.cat([valid, torch.ones_like(valid)])
    )
    assert torch.allclose(both[0, :3], alone[0], atol=1e-6)
    assert torch.allclose(words_too[0], words[0], atol=1e-6)


def test_a_unit_is_scored_beside_the_others() -> None:
    torch.manual_seed(0)
    scorer = UnitScorer(UnitScorerShape(states=8, width=16, layers=1, heads=2)).eval()
    vectors, features, valid = (
        torch.randn(1, 2, 16),
        torch.randn(1, 2, UNIT_FEATURES),
        torch.ones(1, 2, dtype=torch.bool),
    )
    changed = vectors.clone()
    changed[0, 1] = -vectors[0, 1]  # another content: a number added to all of it would be normalized away
    before, after = (scorer(each, features, valid)[0][0, 0] for each in (vectors, changed))
    assert (before - after).abs() > 1e-3


def test_places_are_told_by_sines() -> None:
    found = sines(3, 4)
    expected = torch.tensor([1.0, 2.0, 3.0]).sin()
    assert torch.allclose(found[1:, 0], expected[:2])
    assert torch.allclose(found[0], torch.tensor([0.0, 1.0, 0.0, 1.0]))


@pytest.mark.parametrize("sizes", [{"width": 15}, {"layers": 0}, {"dropout": 1.0}, {"states": 1 << 40}])
def test_impossible_sizes_are_refused(sizes: dict[str, float]) -> None:
    with pytest.raises(UserError):
        UnitScorerShape(**{"states": 8, "width": 16, "heads": 2, **sizes})  # type: ignore[arg-type]
