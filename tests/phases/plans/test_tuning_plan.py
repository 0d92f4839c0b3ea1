"""`precis.tune` in Python refuses and resolves what the command does."""

from pathlib import Path
from typing import Any

import pytest

import precis
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.plans.tuning_plan import PrefixTuning, plan_tuning
from precis_text.errors import UserError


def test_a_share_becomes_a_number_of_pairs_and_settings_go_to_prefix_or_run(tmp_path: Path) -> None:
    precis.write_synthetic(tmp_path, {"train": 20, "dev": 4}, seed=0)
    planned = plan_tuning(
        "base",
        NamedPairs(data=str(tmp_path)),
        out="o",
        method="prefix",
        share=0.25,
        settings=["prefix.length=7", "label_smoothing=0.2"],
    )
    assert isinstance(planned, PrefixTuning)
    assert planned.request.examples == 5
    assert (planned.prefix.to_dict()["prefix"]["length"], planned.plan.label_smoothing) == (7, 0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"settings": ["prefix.keys=direct"]},
            "the default rate of 5e-5 is far too small; add learning_rate",
        ),
        ({"units_column": "units"}, "units_column units is for settings units=marked"),
        ({"method": "nothing"}, "nothing"),
    ],
)
def test_contradictions_are_refused_before_the_pairs_are_looked_for(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        precis.tune("base", "nowhere", out="o", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"examples": 3, "share": 0.5}, "examples 3 and share 0.5 exclude each other"),
        ({"sampling_seed": 3}, "sampling_seed selects the pairs for examples or share"),
    ],
)
def test_draws_that_exclude_each_other_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    precis.write_synthetic(tmp_path, {"train": 4, "dev": 4}, seed=0)
    with pytest.raises(UserError, match=message):
        precis.tune("base", tmp_path, out="o", **options)
