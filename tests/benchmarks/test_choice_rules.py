"""The rules differ from each other in what they say they differ in, and the notes and cuts measure what they say."""

import numpy as np
import pytest

from benchmarks.choice_rules import RULES, Known, Rule, choice, domain_of, each_rule, left_out, today
from benchmarks.scored_units import Scored
from benchmarks.shorter import KINDS, shorter
from benchmarks.unsure import area, isotonic, probabilities, shared
from precis_text.units import extraction_units

TEXT = """The ferry on the lake will run on power from the dam. The dam gives the ferry its power by night.
The ferry on the lake will run on power from a dam. Snow fell on the road to the school. A kiosk sells tea to guests."""
SCORES = (0.9, 0.6, 0.8, 0.4, 0.1)


def known(budget: int, text: str = TEXT, scores: tuple[float, ...] = SCORES) -> Known:
    units = tuple(extraction_units(text))
    assert len(units) == len(scores)
    row = Scored(text, ("The ferry runs on power.",), units, (1,) * len(units), scores, 20.0)
    return Known(row, budget)


def test_a_sentence_that_repeats_a_chosen_one_is_left_out() -> None:
    assert choice(known(45), Rule()) == [0, 1, 3, 4]


def test_each_weight_changes_the_choice_in_its_direction() -> None:
    assert choice(known(24), Rule()) == [0, 1]
    assert choice(known(24), Rule(redundant=9.0, poorest=np.inf)) == [0, 3]
    tea = (0.5, 0.4, 0.45, 0.3, 0.9)
    assert choice(known(18, scores=tea), Rule(poorest=np.inf)) == [0, 4]
    assert choice(known(18, scores=tea), Rule(covered=-9.0, poorest=np.inf)) == [3, 4]
    assert choice(known(24), Rule(poorest=0.1)) == [0]
    assert choice(known(45), Rule(filled=0.2)) == [0]
    assert choice(known(45), Rule(filled=0.4)) == [0, 1]


def test_a_rule_for_prose_changes_nothing_in_a_dialogue() -> None:
    spoken = "\n".join(
        [
            "Ann: The ferry has power.",
            "Bob: The power comes by night.",
            "Ann: Snow fell on it.",
            "Bob: I like tea.",
        ]
    )
    own = known(12, spoken, (0.9, 0.5, 0.4, 0.1))
    assert choice(own, Rule(later=9.0, early=-9.0, prose=True)) == choice(own, Rule())


def test_a_first_sentence_that_is_too_long_is_cut_if_all_others_are_much_worse() -> None:
    assert choice(known(9, scores=(0.9, 0.1, 0.1, 0.1, 0.1)), Rule()) == [0]
    assert choice(known(9, scores=(0.9, 0.1, 0.1, 0.1, 0.89)), Rule()) == [4]


def test_all_rules_keep_the_words_and_every_set_has_a_domain() -> None:
    for rule in RULES.values():
        own = known(30)
        assert len(own.text(choice(own, rule)).split()) <= 30
    assert domain_of("usgov_posts") == "government"
    assert today(known(45)) == [0, 1, 3, 4]


def test_a_rule_is_found_on_other_domains_and_never_on_closed_sets() -> None:
    high, low = np.full((4, 3), 9.0), np.full((4, 3), 1.0)
    names = ("gum", "openstax", "samsum")
    now = {name: np.full((4, 3), 5.0) for name in names}
    found = {
        "good for textbooks": {"gum": low, "openstax": high, "samsum": low},
        "good for others": {"gum": high, "openstax": low, "samsum": high},
    }
    lines = left_out(now, found, {"LEAD": now})
    assert "| gum | good for textbooks | -4.0 (-4.0 to -4.0)" in lines[2]
    assert "| openstax | good for others | -4.0" in lines[3]
    assert "| good for textbooks | -1.3" in each_rule(now, found)[2]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("brackets", "The ferry (a small one) runs.", "The ferry runs."),
        ("brackets", "The ferry (not the bus) runs.", "The ferry (not the bus) runs."),
        ("brackets", "The ferry (20 kW) runs.", "The ferry (20 kW) runs."),
        ("in this paper, we", "In this paper, we build a ferry.", "We build a ferry."),
        ("words that open a turn, fillers", "Ann: Well, um, the ferry runs now.", "Ann: The ferry runs now."),
        ("who said it, at the end", "The ferry runs, he said.", "The ferry runs."),
        ("appositions", "Lake Ann, the town of ferries, is cold.", "Lake Ann is cold."),
        ("which, who", "The ferry, which may sink, runs on.", "The ferry, which may sink, runs on."),
        ("which, who", "The ferry, which is blue, runs on.", "The ferry runs on."),
    ],
)
def test_a_part_goes_only_if_nothing_in_it_must_stay(kind: str, before: str, after: str) -> None:
    short = shorter(known(20, before, (0.5,)), KINDS[kind])
    assert [unit.text for unit in short.row.units] == [after]


def test_a_main_point_is_missing_by_its_words_in_the_best_reference() -> None:
    assert shared("Ferries run on the lake.", ("The ferry runs on power. It snows.",)) == pytest.approx(2 / 3)
    assert shared("Ferries run.", ("Snow falls.", "A ferry runs.")) == 1.0


def test_isotonic_regression_rises_and_pools_what_falls() -> None:
    knots, heights = isotonic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert [*knots] == [1.0, 2.0, 4.0]
    assert [*heights] == [0.0, 0.5, 1.0]


def test_probabilities_rank_documents_that_were_left_out() -> None:
    rng = np.random.default_rng(0)
    read = rng.normal(size=(400, 2))
    missing = (read[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(float)
    train = np.arange(400) < 200
    said = probabilities(read, missing, train, ~train)
    assert area(said, missing[~train]) > 0.9
    assert abs(said.mean() - missing[~train].mean()) < 0.1
    assert area(-said, missing[~train]) < 0.1
