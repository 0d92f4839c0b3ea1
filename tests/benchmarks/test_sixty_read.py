"""Verdicts of a blind reading are counted by system, by kind of document and in pairs."""

from benchmarks.sixty_read import SYSTEMS, counted, share


def read(kind: str, order: list[list[str]], **more: object) -> dict[str, object]:
    return {
        "kind": kind,
        "main": dict.fromkeys(SYSTEMS, "full"),
        "dangling": [],
        "remnants": [],
        "order": order,
        **more,
    }


def test_pairs_are_won_by_the_better_place_and_equal_places_are_ties() -> None:
    rows = [
        read("long", [["new"], ["former", "TextRank"], ["LexRank"]]),
        read("talk", [["new", "former"], ["LexRank"], ["TextRank"]], dangling=["new"]),
        read("talk", [["TextRank"], ["new"], ["former", "LexRank"]], main=dict.fromkeys(SYSTEMS, "none")),
    ]
    lines = counted(rows).splitlines()
    assert "| new | talk, 2 | 1 | 0 | 1 | 0 |" in lines
    assert "| new | all, 3 | 1 | 0 | 1 | 0 |" in lines
    assert any(line.startswith("| former | all, 3 | 2 | 1 | 0 | 100%") for line in lines)
    assert any(line.startswith("| TextRank | all, 3 | 2 | 0 | 1 | 67%") for line in lines)


def test_a_share_has_its_exact_interval() -> None:
    assert share(26, 10) == "72% (55 to 86)"
    assert share(0, 0) == "none decided"
