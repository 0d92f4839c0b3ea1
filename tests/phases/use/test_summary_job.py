"""What is asked of a model that makes summaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from precis.generation.model_location import ModelLocation
from precis.generation.model_metadata import ModelUse
from precis.phases.use import summary_job
from precis.phases.use.summary_job import SummaryJob
from precis_text.errors import UserError


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (SummaryJob(mode="extract", writing={"long": "chunk", "draft": False}), "--long"),
        (SummaryJob(mode="extract", writing={"max_source": 64}), "--max-source"),
        (SummaryJob(mode="extract", writing={"max_source": 0, "draft": False}), "--max-source"),
        (SummaryJob(mode="extract", writing={"instruction": None, "draft": True}), "--draft"),
        (SummaryJob(mode="extract", adapter="runs/prefix"), "--adapter"),
    ],
)
def test_what_is_about_writing_is_refused_for_extracts_before_anything_is_loaded(
    asked: SummaryJob, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ModelLocation("m", "m", Path("m"), None, ModelUse(modes=("extract",)))
    monkeypatch.setattr(summary_job, "locate", lambda *_: found)
    with pytest.raises(UserError, match=f"{option} does not apply to --mode extract"):
        asked.locate_model()
