"""Claims of the unit ranker: its trees, its features, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precis_text.errors import UserError
from precis_text.length import Sentences, Words
from precis_text.ranking_features import ASKED, FEATURES, ranking_features, with_length
from precis_text.regression_trees import Trees
from precis_text.unit_ranker import RANKER_FILE, UnitRanker, has_ranker
from precis_text.units import extraction_units

TEXT = """The river

The council will repair the bridge in spring. It was built by two brothers. The bridge carries the road to the mill.

Costs

We found that the repair costs 2 million. See https://example.org for the plan. Do you agree?
"""
Lists = dict[str, list[Any]]
STUMP: Lists = {
    "feature": [0, -1, -1],
    "threshold": [0.5, 1.0, 3.0],
    "yes": [1, 1, 2],
    "no": [2, 1, 2],
    "roots": [0],
}


def column(name: str) -> int:
    return (*FEATURES, *ASKED).index(name)


def ranker_values(worth: Lists, words: Lists) -> dict[str, object]:
    return {"features": [*FEATURES, *ASKED], "sharpness": 1.0, "worth": worth, "words": words}


def one_leaf(value: float) -> Lists:
    return {"feature": [-1], "threshold": [value], "yes": [0], "no": [0], "roots": [0]}


def test_trees_sum_the_leaves_that_comparisons_lead_to() -> None:
    two = {
        "feature": [0, -1, 1, -1, -1, -1],
        "threshold": [0.0, 10.0, 5.0, 20.0, 30.0, 0.25],
        "yes": [1, 1, 3, 3, 4, 5],
        "no": [2, 1, 4, 3, 4, 5],
        "roots": [0, 5],
    }
    trees = Trees.from_dict(two, columns=2)
    rows = np.array([[0.0, 9.0], [0.1, 5.0], [0.1, 5.5]], dtype=np.float32)
    assert trees.depth == 2
    assert trees(rows).tolist() == [10.25, 20.25, 30.25]
    assert trees(np.tile(rows, (1000, 1)))[-3:].tolist() == [10.25, 20.25, 30.25]


@pytest.mark.parametrize(
    "wrong",
    [
        {"yes": [0, 1, 2]},
        {"no": [7, 1, 2]},
        {"feature": [9, -1, -1]},
        {"feature": [-2, -1, -1]},
        {"threshold": [0.5, float("nan"), 3.0]},
        {"threshold": [0.5]},
        {"roots": []},
        {"roots": [3]},
        {"roots": [-1]},
        {"yes": [1, 2, 2]},
    ],
)
def test_what_is_no_forest_is_refused(wrong: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match=r"its|a tree"):
        Trees.from_dict({**STUMP, **wrong}, columns=2)


def test_a_ranker_orders_units_by_worth_and_knows_the_length_that_is_asked_for(tmp_path: Path) -> None:
    by_length = {
        **STUMP,
        "feature": [column("log_asked"), -1, -1],
        "threshold": [float(np.log(30)), 0.0, 0.0],
    }
    early: Lists = {
        "feature": [column("log_told"), -1, -1],
        "threshold": [0.1, 2.0, 0.0],
        "yes": [1, 1, 2],
        "no": [2, 1, 2],
    }
    late: Lists = {
        "feature": [column("log_told"), -1, -1],
        "threshold": [1.0, 0.0, 2.0],
        "yes": [1, 1, 2],
        "no": [2, 1, 2],
    }
    both: Lists = {
        "feature": [by_length["feature"][0], *early["feature"], *late["feature"]],
        "threshold": [by_length["threshold"][0], *early["threshold"], *late["threshold"]],
        "yes": [1, *(1 + k for k in early["yes"]), *(4 + k for k in late["yes"])],
        "no": [4, *(1 + k for k in early["no"]), *(4 + k for k in late["no"])],
        "roots": [0],
    }
    (tmp_path / RANKER_FILE).write_text(json.dumps(ranker_values(both, one_leaf(float(np.log(40))))))
    assert has_ranker(tmp_path)
    ranker, units = UnitRanker.load(tmp_path), extraction_units(TEXT)
    short, expected = ranker.scores(units, Words(count=10))
    long, _ = ranker.scores(units, Sentences(count=5))
    assert short[1] == 1 == max(short)
    assert short[-1] == pytest.approx(np.exp(-2))
    assert long[-1] == 1
    assert long[1] == pytest.approx(np.exp(-2))
    assert expected == pytest.approx(1.25 * 40)
    assert ranker.scores(units, None)[0] == long  # about 50 words are expected


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        json.dumps({**ranker_values(STUMP, STUMP), "features": ["place"]}),
        json.dumps({**ranker_values(STUMP, STUMP), "sharpness": 0}),
        json.dumps({**ranker_values(STUMP, STUMP), "worth": 3}),
        json.dumps(ranker_values({**STUMP, "yes": [0, 0, 0]}, STUMP)),
        json.dumps(ranker_values({**STUMP, "yes": [1e30, 0, 0]}, STUMP)),
    ],
)
def test_an_invalid_file_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / RANKER_FILE).write_text(text)
    with pytest.raises(UserError, match=r"ranker\.json") as caught:
        UnitRanker.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_features_say_place_form_and_words() -> None:
    units = extraction_units(TEXT)
    found = ranking_features(units)
    assert found.shape == (len(units), len(FEATURES))
    assert np.isfinite(found).all()
    by_text = {unit.text: found[place] for place, unit in enumerate(units)}
    first = by_text["The council will repair the bridge in spring."]
    assert first[column("log_told")] == 0
    assert first[column("after_heading")] == 1
    assert first[column("in_title")] == 0
    cost = by_text["We found that the repair costs 2 million."]
    assert cost[column("cue_we")] == 1
    assert cost[column("in_heading")] == 1
    assert cost[column("digits")] > 0
    assert by_text["Do you agree?"][column("question")] == 1
    assert by_text["See https://example.org for the plan."][column("cue_address")] == 1
    mill = by_text["The bridge carries the road to the mill."]
    assert mill[column("like_before")] > by_text["It was built by two brothers."][column("like_before")]


def test_the_requested_length_is_two_columns() -> None:
    found = ranking_features(extraction_units(TEXT))
    asked = with_length(found, 20)
    words = float(np.expm1(found[0, column("log_words")]))
    assert asked.shape == (len(found), len(FEATURES) + 2)
    assert asked[:, column("log_asked")].tolist() == pytest.approx([np.log(20)] * len(found))
    assert asked[:, column("asked_share")].tolist() == pytest.approx([20 / words] * len(found))


def test_a_document_without_units_has_no_features() -> None:
    assert ranking_features([]).shape == (0, len(FEATURES))


def test_a_unit_s_features_do_not_grow_with_a_document_beyond_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Units are compared within windows, so that the comparison of the first ones ignores those after the window."""
    monkeypatch.setattr("precis_text.ranking_features.WINDOW", 4)
    units = extraction_units(TEXT)
    other = [*units[:4], *extraction_units("Nothing else is alike here. Cats purr.")]
    names = ["lex", "text", "like_after", "centroid", "linked"]
    columns = [column(name) for name in names]
    assert (
        ranking_features(units)[:4][:, columns].tolist() == ranking_features(other)[:4][:, columns].tolist()
    )
