"""What is asked of a model that makes summaries."""

from __future__ import annotations

import pytest

from precis.errors import UserError
from precis.generation.model_use import ModelUse
from precis.phases import making
from precis.phases.making import Making


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (Making(mode="extract", writing={"long": "chunk", "draft": False}), "--long"),
        (Making(mode="extract", writing={"max_source": 64}), "--max-source"),
        (Making(mode="extract", writing={"max_source": 0, "draft": False}), "--max-source"),
        (Making(mode="extract", writing={"instruction": None, "draft": True}), "--draft"),
        (Making(mode="extract", adapter="runs/prefix"), "--adapter"),
    ],
)
def test_what_is_about_writing_is_refused_for_extracts_before_anything_is_loaded(
    asked: Making, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "model_use", lambda *_: ModelUse(modes=("extract",)))
    with pytest.raises(UserError, match=f"{option} does not apply to --mode extract"):
        asked.load(keep_going=True)
