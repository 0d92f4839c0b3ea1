"""Claims of the unit ranker: its trees, its features, and what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precis_text.errors import UserError
from precis_text.length import Sentences, Words
from precis_text.ranking_features import ASKED, FEATURES, ranking_features, with_length
from precis_text.regression_trees import Trees
from precis_text.unit_ranker import RANKER_FILE, UnitRanker, has_ranker
from precis_text.units import TextUnit, extraction_units

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


WHARF = [
    TextUnit(text, 0, 0, heading=heading, aside=aside, speaker=speaker)
    for text, heading, aside, speaker in (
        ("Night ferry", True, False, ""),
        ("The ferry needs another repair.", False, False, ""),
        ("The repair costs the harbour thousands.", False, True, ""),
        ("The harbour", True, False, ""),
        ("Ann: It is.", False, False, "Ann"),
        ("The harbour sank.", False, False, ""),
    )
]
"""Content: night ferry; ferry needs repair; repair costs harbour thousands; harbour; ann; harbour sank."""
_2, _3, _4, _6 = map(math.log, (2, 3, 4, 6))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("place", [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ("log_before", [math.log(n) for n in (1, 2, 3, 4, 5, 6)]),
        ("log_after", [math.log(n) for n in (6, 5, 4, 3, 2, 1)]),
        ("told_place", [0, 0, 1 / 3, 1 / 3, 1 / 3, 2 / 3]),  # of what is neither a heading nor an aside
        ("log_told", [0, 0, _2, _2, _2, _3]),
        ("heading_place", [0.5, 0.5, 0.5, 1, 1, 1]),
        ("log_since_heading", [0, 0, _2, 0, 0, _2]),
        ("after_heading", [0, 1, 0, 0, 1, 0]),
        ("before_heading", [0, 0, 1, 0, 0, 0]),
        ("log_units", [math.log(7)] * 6),
        ("log_words", [math.log(1 + 21)] * 6),
        ("log_headings", [_3] * 6),
        ("dialogue", [1 / 6] * 6),
        ("mean_words", [21 / 6] * 6),
        ("log_size", [math.log(1 + n) for n in (2, 5, 6, 2, 3, 3)]),
        ("speaker", [0, 0, 0, 0, 1, 0]),
        ("speaker_share", [0, 0, 0, 0, 3 / 21, 0]),
        ("in_title", [1, 1 / 2, 0, 0, 0, 0]),
        ("in_heading", [0, 1 / 2, 0, 0, 0, 1]),
        ("shared", [3 / 12, 5 / 18, 7 / 24, 3 / 6, 1 / 6, 4 / 12]),
        ("known_elsewhere", [1 / 2, 2 / 3, 2 / 4, 1, 0, 1 / 2]),
        ("new", [1, 2 / 3, 3 / 4, 0, 1, 1 / 2]),
        ("frequency", [1.5 / 3, 5 / 9, 7 / 12, 1, 1 / 3, 2 / 3]),
        ("rarity", [(_6 + _3) / 2, (2 * _3 + _6) / 3, (_3 + 2 * _6 + _2) / 4, _2, _6, (_2 + _6) / 2]),
        # of "ferry" and "repair", which occur twice, and "harbour", three times
        ("centroid", [_3 / 2 / _4, 2 * _3 / 3 / _4, (_3 + _4) / 4 / _4, 1, 0, 1 / 2]),
        ("centroid_root", [_3 / 2**0.5 / _4, 2 * _3 / 3**0.5 / _4, (_3 + _4) / 2 / _4, 1, 0, 1 / 2**0.5]),
        ("linked", [1 / 6, 2 / 6, 2 / 6, 2 / 6, 0, 1 / 6]),
    ],
)
def test_features_have_the_values_of_their_definitions(name: str, values: list[float]) -> None:
    assert ranking_features(WHARF)[:, column(name)].tolist() == pytest.approx(values, abs=1e-6)


def test_likeness_is_the_cosine_of_words_that_are_weighed_by_their_rarity() -> None:
    rare, twice, thrice = np.log([6 / 2, 6 / 3, 6 / 4])
    terms = np.zeros((6, 9))  # night ferry needs repair costs harbour thousands sank ann
    terms[0, :2] = rare, twice
    terms[1, 1:4] = twice, rare, twice
    terms[2, 3:7] = twice, rare, thrice, rare
    terms[3, 5] = thrice
    terms[4, 8] = rare
    terms[5, [5, 7]] = thrice, rare
    alike = terms @ terms.T / np.maximum(np.outer(*[np.linalg.norm(terms, axis=1)] * 2), 1e-9)
    others = alike - np.diag(np.diag(alike))
    found = ranking_features(WHARF)
    for name, values in {
        "like_before": [max(row[:place], default=0.0) for place, row in enumerate(others)],
        "like_after": [max(row[place:]) for place, row in enumerate(others)],
        "like_mean": others.mean(1),
        "like_first": alike[1],  # the first unit that is neither a heading nor an aside
    }.items():
        assert found[:, column(name)].tolist() == pytest.approx([*values], abs=1e-6), name


@pytest.mark.parametrize("name", ["centroid", "lex", "text"])
def test_a_rank_is_the_share_of_units_that_are_more_central(name: str) -> None:
    found = ranking_features(WHARF)
    values = found[:, column("centroid_root" if name == "centroid" else name)]
    ranks = found[:, column(f"{name}_rank")] * 5
    assert sorted(ranks.tolist()) == pytest.approx(range(6))
    for rank, own in zip(ranks, values, strict=True):
        assert sum(values > own) <= round(float(rank), 3) < sum(values >= own)
    assert max(values) == 1
    if name == "lex":
        shares = found[:, column("lex_share")]
        assert shares.sum() == pytest.approx(6)
        assert (shares / shares.max()).tolist() == pytest.approx(values.tolist())


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("In 1931 it fell", "digits", 4 / 15),
        ("In May it fell", "capitals", 2 / 14),
        ("5", "digits", 1),
        ("A", "capitals", 1),
        ("It fell. ", "stop", 1),
        ("It fell:", "stop", 0),
        (" - it fell", "mark", 1),
        ("it - fell", "mark", 0),
        ("It (fell", "bracket", 1),
        ('It "fell', "quotation", 1),
        ("It “fell", "quotation", 1),
        ("It fell", "quotation", 0),
        ("It: fell", "colon", 1),
        ("It fell", "log_since_heading", 0),
    ],
)
def test_features_of_a_units_form(text: str, name: str, value: float) -> None:
    assert ranking_features([TextUnit(text, 0, 0)])[0, column(name)] == pytest.approx(value)


def test_of_equally_central_units_the_earlier_one_is_first() -> None:
    alike = [TextUnit(text, 0, 0) for text in ("It sank.", "Ships sank.", "Boats sank.", "Ships sank.")]
    assert ranking_features(alike)[:, column("centroid_rank")].tolist() == pytest.approx([2 / 3, 0, 1, 1 / 3])


def test_units_above_the_first_heading_are_counted_from_the_beginning() -> None:
    found = ranking_features([replace(unit, heading=False) for unit in WHARF[:3]])
    assert found[:, column("log_since_heading")].tolist() == pytest.approx([0, _2, _3])
    assert found[:, column("heading_place")].tolist() == [0, 0, 0]
    assert found[:, column("in_title")].tolist() == [0, 0, 0]


def test_one_word_one_heading_and_one_statement_count_as_one() -> None:
    two = [TextUnit("Ferry", 0, 0, heading=True), TextUnit("Ferry!", 0, 0, speaker="Ann")]
    found = ranking_features([*two, *two])
    for name in ("in_title", "in_heading"):
        assert found[:, column(name)].tolist() == [name == "in_title", 1, name == "in_title", 1]
    found = ranking_features(two[::-1])
    assert found[:, column("told_place")].tolist() == found[:, column("heading_place")].tolist() == [0, 1]
    assert found[:, column("centroid_rank")].tolist() == [0, 1]
    assert ranking_features(two[1:])[0, column("speaker_share")] == 1


@pytest.mark.parametrize(
    ("words", "log_asked", "share"),
    [(4, _4, 4 / 21), (3, _4, 3 / 21), (31, math.log(31), 31 / 21), (32, math.log(32), 1.5)],
)
def test_a_summary_of_three_words_or_half_as_long_again_as_its_document_is_like_others(
    words: int, log_asked: float, share: float
) -> None:
    found = with_length(ranking_features(WHARF), words)[0]
    assert found[column("log_asked")] == pytest.approx(log_asked)
    assert found[column("asked_share")] == pytest.approx(share)
