"""Who sees what: sides, order, repeated pages and gold items."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from precis_judge.study_design import Design, StudyLayout, lay_out
from precis_text.errors import UserError
from tests.judge.studies import invented

SYSTEMS = ("first", "second", "third")


def layout(
    count: int = 20, systems: tuple[str, ...] = SYSTEMS, against: str | None = None, **design: Any
) -> StudyLayout:
    design = {"judges": ("Ann", "Ben"), **design}
    return lay_out(invented(count, systems), Design(**design), against=against)


def test_each_system_stands_on_each_side_half_of_the_time_for_every_judge() -> None:
    for each in (0, 1, 2):
        found = layout(21, judges=("Ann", "Ben", "Cid"), each=each, repeats=0, gold=0.2)
        for pages in found.pages.values():
            sides = Counter()  # type: ignore[var-annotated]
            for page in pages:
                item = found.items[page.item]
                sides[item.first, item.second, bool(item.planted)] += 1 if page.first_left else -1
            assert all(abs(more) <= 1 for more in sides.values()), sides


def test_judges_of_the_same_items_see_them_with_opposite_sides_and_in_another_order() -> None:
    found = layout(repeats=0)
    ann, ben = ({page.item: page.first_left for page in found.pages[judge]} for judge in ("Ann", "Ben"))
    assert ann.keys() == ben.keys()
    assert all(ann[item] != ben[item] for item in ann)
    assert [page.item for page in found.pages["Ann"]] != [page.item for page in found.pages["Ben"]]


def test_an_item_goes_to_as_many_judges_as_were_asked_for_and_each_gets_his_share() -> None:
    found = layout(20, judges=("Ann", "Ben", "Cid", "Dan"), each=2, repeats=0, gold=0)
    seen = Counter(page.item for pages in found.pages.values() for page in pages)
    assert set(seen.values()) == {2}
    assert len(seen) == 60
    assert {len(pages) for pages in found.pages.values()} == {30}


def test_a_repeated_page_comes_later_with_the_sides_changed() -> None:
    found = layout(repeats=0.2, gold=0)
    for pages in found.pages.values():
        again = [place for place, page in enumerate(pages) if page.repeat]
        assert len(again) == 12
        for place in again:
            [before] = [
                n for n, page in enumerate(pages) if page.item == pages[place].item and not page.repeat
            ]
            assert place > before
            assert pages[before].first_left != pages[place].first_left


def test_a_gold_item_has_a_summary_of_another_document_in_the_second_place() -> None:
    found = layout(gold=0.1)
    gold = [item for item in found.items if item.planted]
    assert len(gold) == 6
    assert all(item.first == item.second and item.planted != item.document for item in gold)


def test_the_same_seed_lays_out_the_same_study_and_another_one_another() -> None:
    assert layout(seed=3) == layout(seed=3)
    assert layout(seed=3).pages != layout(seed=4).pages


def test_against_one_system_the_others_are_not_compared_with_each_other() -> None:
    found = layout(repeats=0, gold=0, against="third")
    assert {(item.first, item.second) for item in found.items} == {("first", "third"), ("second", "third")}


def test_equal_summaries_are_left_out_and_told() -> None:
    documents = invented(3)
    same = replace(documents[1], summaries={"first": "The  same.", "second": "The same."})
    found = lay_out([documents[0], same, documents[2]], Design(judges=("Ann",), gold=0), against=None)
    assert found.equal == (("doc-1", "first", "second"),)
    assert {item.document for item in found.items} == {"doc-0", "doc-2"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"systems": ("one",)}, "judges compare systems, but there is only one"),
        ({"against": "thrid"}, "unknown system 'thrid'; did you mean 'third'"),
        ({"against": "reference"}, "add the human references with --reference"),
        ({"count": 1}, "use --gold 0"),
        ({"judges": ("Ann", "Ann")}, "judge 'Ann' is named twice"),
        ({"repeats": 0.6}, "repeats 0.6: use a share of the pages from 0 to 0.5"),
        ({"each": 3}, "--each 3: must be from 0 to 2"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(wrong: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        layout(**{"gold": 0.5, **wrong})
