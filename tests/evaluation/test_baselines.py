"""LEAD, LONGEST, LEXRANK, TEXTRANK and the extractive oracle."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.data.pairs.pair import Pair
from precis.evaluation.baselines import (
    Lead,
    LexRank,
    Longest,
    Oracle,
    TextRank,
    best_units,
    lead,
    longest,
    most_central,
    oracle,
    split_units,
)
from precis.evaluation.rouge import Rouge
from precis_text.errors import UserError

_DIALOGUE = "Ann: Hi\nBob: Hello Ann, how are you?\n\nAnn: Fine\nBob: See you at six then\nAnn: Bye!!!"
_TEXT = "Short one. This sentence is a good deal longer. Medium size here. End."
_PLAIN = Rouge(stemmer=False)


def test_units_are_lines_of_a_dialogue_and_sentences_of_a_single_line() -> None:
    assert split_units(_DIALOGUE)[1:3] == ["Bob: Hello Ann, how are you?", "Ann: Fine"]
    assert split_units(f"\n{_TEXT}\n") == [
        "Short one.",
        "This sentence is a good deal longer.",
        "Medium size here.",
        "End.",
    ]
    assert split_units(" \n ") == []


def test_baselines_take_three_units_by_default() -> None:
    for text in (lead(_REPORT), longest(_REPORT), most_central(_REPORT)):
        assert len(text.splitlines()) == 3


def test_lead_takes_the_first_units_with_names() -> None:
    assert lead(_DIALOGUE, 2) == "Ann: Hi\nBob: Hello Ann, how are you?"
    assert lead(_TEXT, 99) == "\n".join(split_units(_TEXT))


_REPORT = (
    "The bridge of Olm\n\nA pillar of the bridge had cracked.\n\nWhat follows\n\n"
    "The choir sings.\nEngineers found the cracked pillar near the bridge in the river.\n"
    "The river wore out the pillar.\nTickets cost four euros.\nThe engineers mend the bridge now.\n"
    "A ferry crosses the river.\nIn June it rains."
)


def test_lead_skips_headings() -> None:
    assert lead(_REPORT, 2) == "A pillar of the bridge had cracked.\nThe choir sings."
    assert lead("The bridge of Olm\n\nWhat follows", 1) == "The bridge of Olm"


@pytest.mark.parametrize("baseline", [LexRank(units=2), TextRank(units=2)])
def test_central_units_share_words_with_the_others_and_stand_in_order(baseline: LexRank | TextRank) -> None:
    pair = Pair(document=_REPORT, summary="")
    chosen = baseline.extract(pair, rouge=Rouge()).splitlines()
    assert len(chosen) == 2
    lines = _REPORT.splitlines()
    assert [lines.index(line) for line in chosen] == sorted(lines.index(line) for line in chosen)
    assert "Engineers found the cracked pillar near the bridge in the river." in chosen
    assert not {"Tickets cost four euros.", "The bridge of Olm", "What follows"} & {*chosen}
    assert not baseline.reads_references


def test_longest_takes_most_characters_longest_first_or_in_place() -> None:
    assert longest(_TEXT, 2) == "This sentence is a good deal longer.\nMedium size here."
    assert longest("bb\na\ncc\nddd", 3) == "ddd\nbb\ncc"
    assert longest("bb\na\ncc\nddd", 3, order="document") == "bb\ncc\nddd"


def test_the_oracle_finds_the_units_that_the_reference_was_made_of() -> None:
    units = split_units(_DIALOGUE)
    assert oracle(_DIALOGUE, [f"{units[3]} {units[1]}"]) == f"{units[1]}\n{units[3]}"


def test_the_oracle_stops_when_nothing_helps_or_at_its_limit() -> None:
    assert oracle(_TEXT, ["Medium size here"]) == "Medium size here."
    assert oracle(_TEXT, ["medium size here, short one"], max_units=1) == "Medium size here."
    assert oracle(_TEXT, ["zebra"]) == ""
    assert oracle("", ["zebra"]) == ""
    assert oracle("c b c\nc d c", ["c b c d"], rouge=_PLAIN) == "c b c"  # both lines score the same


def test_the_oracle_does_not_count_a_repeated_word_twice() -> None:
    assert oracle("go now\ngo now\nhome", ["go now home"], rouge=_PLAIN) == "go now\nhome"


def test_the_oracle_takes_the_reference_that_extraction_reaches_best() -> None:
    assert oracle(_TEXT, ["a zebra is not a size", "Short one."]) == "Short one."


def test_the_best_units_are_those_of_the_reference_that_they_reach_best() -> None:
    units = split_units(_TEXT)
    assert best_units(units, ["a zebra is not a size", "Short one."], rouge=_PLAIN) == [0]
    assert best_units(units, [], rouge=_PLAIN) == []


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=2, max_size=7),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=10),
)
@settings(deadline=None, max_examples=150)
def test_the_flat_counts_choose_as_a_plain_greedy_search(
    units: list[list[str]], reference: list[str]
) -> None:
    def f1(chosen: list[int], n: int) -> float:
        def grams(tokens: list[str]) -> dict[tuple[str, ...], int]:
            found: dict[tuple[str, ...], int] = {}
            for gram in zip(*(tokens[i:] for i in range(n)), strict=False):
                found[gram] = found.get(gram, 0) + 1
            return found

        have: dict[tuple[str, ...], int] = {}
        for unit in chosen:
            for gram, count in grams(units[unit]).items():
                have[gram] = have.get(gram, 0) + count
        want = grams(reference)
        hits = sum(min(count, have.get(gram, 0)) for gram, count in want.items())
        return 2 * hits / max(1, sum(have.values()) + sum(want.values()))

    chosen: list[int] = []
    best = 0.0
    while len(chosen) < len(units):
        options = {i: f1([*chosen, i], 1) + f1([*chosen, i], 2) for i in range(len(units)) if i not in chosen}
        unit = max(options, key=lambda i: (options[i], -i))
        if options[unit] <= best:
            break
        best = options[unit]
        chosen.append(unit)
    lines = [" ".join(unit) for unit in units]
    expected = "\n".join(lines[i] for i in sorted(chosen))
    assert oracle("\n".join(lines), [" ".join(reference)], rouge=_PLAIN) == expected


def test_the_oracle_is_at_least_as_good_as_any_single_unit() -> None:
    reference = "the old mill burned and nobody was hurt"
    document = "The mill was old.\nIt burned at night and nobody came.\nNobody was hurt.\nRain is expected."
    rouge = Rouge(types=("rouge1", "rouge2"))

    def total(text: str) -> float:
        return float(sum(values[0] for values in rouge.score([text], [[reference]]).values()))

    assert all(total(oracle(document, [reference])) >= total(unit) for unit in split_units(document))


def test_the_oracle_reads_a_book_in_seconds() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(3000)]
    draws = rng.zipf(1.3, size=(4000, 15)) % 3000
    document = "\n".join(" ".join(words[i] for i in row) for row in draws)
    reference = " ".join(words[i] for i in rng.zipf(1.3, size=400) % 3000)
    start = time.perf_counter()
    assert oracle(document, [reference], rouge=_PLAIN)
    assert time.perf_counter() - start < 4


def test_baselines_are_named_for_their_size_and_say_what_they_read() -> None:
    pair = Pair(document=_TEXT, summary="Medium size here")
    found = {
        b.name: (b.extract(pair, rouge=Rouge()), b.reads_references)
        for b in (
            Lead(units=1),
            Longest(units=1),
            LexRank(units=1),
            TextRank(units=1),
            Oracle(),
            Oracle(max_units=2),
        )
    }
    assert found == {
        "LEAD-1": ("Short one.", False),
        "LONGEST-1": ("This sentence is a good deal longer.", False),
        "LEXRANK-1": ("Short one.", False),
        "TEXTRANK-1": ("Short one.", False),
        "ORACLE": ("Medium size here.", True),
        "ORACLE-2": ("Medium size here.", True),
    }


def test_no_units_at_all_is_refused() -> None:
    for call in (
        lambda: lead(_TEXT, 0),
        lambda: longest(_TEXT, -1),
        lambda: most_central(_TEXT, 0),
        lambda: oracle(_TEXT, ["a"], max_units=0),
    ):
        with pytest.raises(UserError, match="use 1 or more"):
            call()
