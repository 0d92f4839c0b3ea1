"""Planted errors are marked, faithful summaries are not, and extracts never are; the texts are written here."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis_text.language import language_of
from precis_text.support.marks import KINDS, Mark, SourceText, marks
from precis_text.support.names import _is_heading
from precis_text.support.placed_words import words_of
from precis_text.units import TextUnit, extraction_units

HARBOUR = """The harbour town of Velmark will rebuild its old pier. Mayor Ingrid Solheim said on Tuesday that the work
costs 3.5 million euros, about 12% more than planned. The council of Velmark voted with 1,204 ballots counted.

The pier was closed in 1998 after a storm. Engineers did not find damage to the foundations. The ferry company Nordlys
Lines is able to use the pier from 14 March 2027. The lighthouse cannot be seen from the pier. Sixty-five families who
live nearby fear the noise, and the World Harbour Organization lacks the money to help them."""

FAITHFUL = (
    "Velmark rebuilds its pier for €3,500,000, Mayor Solheim said.",
    "Velmark's mayor announced the costs of 3.5m euros on Tuesday.",
    "The work costs twelve percent more than planned.",
    "The pier was shut in the 1990s.",
    "Some 1200 ballots were counted in the vote.",
    "65 families fear the noise.",
    "The WHO does not have the money to help families who live nearby.",
    "Engineers found no damage to the foundations.",
    "Damage to the foundations was not found by engineers.",
    "The lighthouse can't be seen from the pier.",
    "I. Solheim announced it.",
    "Nordlys' ferries may use the pier from 03/14/2027.",
    "The ferry company uses the pier from the 14th of March.",
    "The council and Mayor Ingrid Solheim of Velmark counted ballots.",
    "Not all families who live nearby fear the noise.",
    "The pier was closed after a storm, not after the work.",
)

PLANTED = (
    ("Velmark rebuilds its pier for 4.5 million euros.", "number", "4.5 million"),
    ("The work costs thirteen percent more than planned.", "number", "thirteen"),
    ("The pier was shut in the 1980s.", "number", "1980"),
    ("The council of Velmark counted 1,304 ballots.", "number", "1,304"),
    ("The ferry company uses the pier from 14 April 2027.", "number", "April"),
    ("Around 56 families fear the noise.", "number", "56"),
    ("The pier of Harstad will be rebuilt.", "name", "Harstad"),
    ("Mayor Astrid Solheim announced the costs.", "name", "Astrid"),
    ("The ferry company Sudlys Lines uses the pier.", "name", "Sudlys"),
    ("The work is paid by the UNESCO.", "name", "UNESCO"),
    ("The council counted 65 ballots.", "number", "65"),
    ("Some 1204 families fear the noise.", "number", "1204"),
    ("The work costs 3.5% more than planned.", "number", "3.5"),
    ("The ferry company Nordlys Organization uses the pier.", "name", "Nordlys Organization"),
    ("Engineers did find damage to the foundations.", "negation", "find"),
    ("The ferry company is not able to use the pier.", "negation", "not"),
    ("The lighthouse can be seen from the pier.", "negation", "seen"),
    ("The harbour town will never rebuild its old pier.", "negation", "never"),
)


@pytest.mark.parametrize("summary", FAITHFUL)
def test_a_faithful_summary_has_no_mark(summary: str) -> None:
    assert marks(HARBOUR, summary) == []


@pytest.mark.parametrize(("summary", "kind", "text"), PLANTED)
def test_a_planted_error_is_marked_where_it_stands(summary: str, kind: str, text: str) -> None:
    (mark,) = marks(HARBOUR, summary)
    assert (mark.kind, mark.text) == (kind, text)
    assert summary[mark.start : mark.end] == text


TWO_TOWNS = """In phase 2, Ann Smith of Askeby planted 300 trees for $40. In phase 4, Tom Jones of Lindholm planted 20
hedges and 700 flowers, which cost €55 and took 3 minutes and 20 seconds. President Barack Obama saw it. Later Mr. Obama
left with President Ann Smith."""


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("They planted 700 trees.", ["700"]),
        ("They planted trees, 700 of them.", []),
        ("In phase 3, they planted hedges.", ["3"]),
        ("In phases 2 to 4, they planted hedges.", []),
        ("In phase 20, they planted hedges.", ["20"]),
        ("In phases 20 to 300, they planted hedges.", []),  # a range may be of anything
        ("In phase twenty, they planted hedges.", []),  # spelled, it may mean less
        ("It cost $55 and took 3 minutes.", ["55"]),
        ("$55 was the cost.", ["55"]),
        ("It took 20 minutes.", []),  # so near to the 20 that words cannot tell
        ("The mayors Ann Jones and Tom Smith planted trees.", ["Ann Jones", "Tom Smith"]),
        ("They went with President Smith and President Ann Smith.", []),
        ("The man saw Ann Lindholm there.", []),  # the source has Lindholm behind no name
    ],
)
def test_what_the_source_has_beside_other_words_is_marked(summary: str, expected: list[str]) -> None:
    assert [mark.text for mark in marks(TWO_TOWNS, summary)] == expected


def test_a_mark_says_where_and_why_in_json() -> None:
    (mark,) = marks(HARBOUR, "The pier of Harstad will be rebuilt.")
    assert mark.to_dict() == {
        "start": 12,
        "end": 19,
        "kind": "name",
        "text": "Harstad",
        "reason": "not a name in the source",
    }


@given(st.permutations(extraction_units(HARBOUR)), st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_sentences_of_the_source_have_no_mark_in_any_order(units: list[TextUnit], count: int) -> None:
    text = " ".join(unit.text for unit in units[:count])
    support = SourceText(HARBOUR).support(text)
    assert support.marks == ()
    assert all(sentence.copied for sentence in support.sentences)


def test_a_sentence_that_also_says_what_an_abbreviation_means_is_a_quotation() -> None:
    source = SourceText("The Harbour Safety Board (HSB) met. The HSB closed the pier.")
    told, invented = (
        source.support(f"The HSB [{long}] closed the pier.")
        for long in ("Harbour Safety Board", "High School Band")
    )
    assert told.sentences[0].copied
    assert not told.marks
    assert not invented.sentences[0].copied


def test_a_sentence_is_aligned_with_its_source_sentences_and_its_ngrams_are_counted() -> None:
    support = SourceText(HARBOUR).support("The pier was closed after a storm. Purple elephants dance.")
    first, second = support.sentences
    passage = first.aligned[0]
    assert passage.text == "The pier was closed in 1998 after a storm."
    assert HARBOUR[passage.start : passage.end] == passage.text
    # 7 words, all in the source; 6 pairs, one of them ("closed after") not
    assert first.ngrams[:2] == (1.0, pytest.approx(5 / 6))  # type: ignore[comparison-overlap]
    assert second.aligned == ()
    assert second.ngrams == (0.0, 0.0, 0.0)


KOELN = "Der Rat von Köln hat am 3. März 1.500 Bäume gepflanzt. Der Park ist nicht offen."
KANZLERIN = "Die Kanzlerin Angela Merkel war in der Stadt und hat mit den Leuten gesprochen."
LYON = "Le maire de Lyon a dit que les travaux coûtent 2,5 millions d'euros. Le pont n'est pas fermé."
MURCIA = "El alcalde de Murcia dijo que la obra no es cara y que hay veinticinco casas."


@pytest.mark.parametrize(
    ("source", "summary", "expected"),
    [
        (KOELN, "Der Stadtrat von Köln hat tausendfünfhundert Pflanzen gesetzt.", []),
        (KOELN, "Der Rat von Köln hat 1500 Bäume und der Park ist offen.", ["offen"]),
        (KOELN, "Der Rat von Köln hat 1600 Bäume im April gepflanzt.", ["1600", "April"]),
        (KANZLERIN, "Die Kanzlerin ist mit dem Zug da.", []),
        (KANZLERIN, "Die Kanzlerin und Ursula Meier waren in der Stadt.", ["Ursula", "Meier"]),
        (LYON, "Le maire de Lyon a dit que les travaux coûtent 2.500.000 euros.", []),
        (LYON, "Le maire de Lyon a dit que le pont est fermé.", ["fermé"]),
        (MURCIA, "El alcalde de Murcia dijo que la obra es cara y que hay 25 casas.", ["cara"]),
        (
            "Мэр города Вельмарк сказал, что работа стоит 300 рублей.",
            "В Вельмарке работа стоит 400 рублей, сказал Петров.",
            ["400", "Петров"],
        ),
        ("市长说工程需要3万元，于1998年开始。", "工程需要30000元，1999年开始。", ["1999"]),
    ],
)
def test_other_languages_are_checked_as_far_as_their_writing_allows(
    source: str, summary: str, expected: list[str]
) -> None:
    assert [mark.text for mark in marks(source, summary)] == expected


def test_what_is_not_checked_is_said() -> None:
    assert set(SourceText("市长说工程需要3万元。").support("工程需要3万元。").unchecked) == {
        "name",
        "negation",
    }
    german = SourceText("Der Rat hat es so gesagt und die Stadt ist da.").support("Der Rat ist in der Stadt.")
    assert set(german.unchecked) == {"name"}
    assert SourceText(HARBOUR).support("The pier is old.").unchecked == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The pier of the town was closed after a storm.", "en"),
        ("Der Steg der Stadt ist nach dem Sturm zu.", "de"),
        ("Le pont de la ville est fermé après une tempête.", "fr"),
        ("El puente de la ciudad está cerrado por una tormenta.", "es"),
        ("桥已经关闭", "zh"),
        ("橋はまだ閉じています", "ja"),
        ("Мост закрыт", "cyrillic"),
        ("Zxcv qwer uiop", None),
        ("123", None),
    ],
)
def test_the_language_of_a_text(text: str, code: str | None) -> None:
    assert language_of(text) == code


@given(st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=60, deadline=None)
def test_any_two_texts_can_be_compared_and_marks_lie_in_the_summary(source: str, summary: str) -> None:
    for mark in marks(source, summary):
        assert isinstance(mark, Mark)
        assert summary[mark.start : mark.end] == mark.text != ""


def test_each_sentence_of_a_turn_is_a_copy() -> None:
    source = SourceText("Ann: The boat leaks. We need 3 pumps by May.\nBob: I know. I ordered them.")
    for summary in ("Ann: The boat leaks. We need 3 pumps by May.", "Bob: I ordered them."):
        assert [each.copied for each in source.support(summary).sentences if each.text != "Bob:"].count(
            False
        ) == 0
    assert not source.support("We need 4 pumps by May.").sentences[0].copied


def test_a_sentence_from_a_long_turn_is_a_copy_with_its_speaker() -> None:
    said = " ".join(f"Sentence {number} of hers is here." for number in range(14))
    source = SourceText(f"Ann: {said}\nBen: Um, the uh harbour is closed.\nAnn: Good.\nBen: So we go.")
    found = source.support(
        "Ann: Sentence 4 of hers is here.\nBen: The harbour is closed.\nBen: Sentence 4 of hers is here."
    )
    assert [sentence.copied for sentence in found.sentences] == [True, True, False]


# ---- where nearly all words have capitals, a capital does not show a name


def is_heading(capitals: int, others: int, end: str = "") -> bool:
    """Check a text of a first word, and of so many longer words with and without a capital."""
    text = " ".join(["The", *["Boat"] * capitals, *["boat"] * others, "in"]) + end
    return _is_heading(text, words_of(text))


@pytest.mark.parametrize(
    ("capitals", "others", "expected"),
    [
        (3, 2, False),
        (4, 2, True),
        (2, 0, True),
        (1, 0, False),
        (0, 3, False),
        (61, 39, True),
        (60, 40, False),
    ],
)
def test_a_text_without_a_full_stop_is_a_heading_if_most_longer_words_have_capitals(
    capitals: int, others: int, expected: bool
) -> None:
    assert is_heading(capitals, others) == expected


@pytest.mark.parametrize("end", [".", "!", "?", "…", '."', ".)"])
@pytest.mark.parametrize(
    ("capitals", "others", "expected"),
    [(17, 3, False), (18, 2, True), (5, 0, True), (4, 0, False), (4, 2, False)],
)
def test_a_text_that_ends_like_a_sentence_is_one_only_if_nearly_all_of_many_words_have_capitals(
    capitals: int, others: int, expected: bool, end: str
) -> None:
    assert is_heading(capitals, others, end) == expected


def test_short_words_and_the_first_one_do_not_count() -> None:
    for text in ("Boat Of The New Sea", "boat of Olm in Town", "Boats leave"):
        assert not _is_heading(text, words_of(text)), text
    assert _is_heading("The Boats of Olmen", words_of("The Boats of Olmen"))


@pytest.mark.parametrize(
    ("summary", "copied"),
    [
        ("The pier was closed in 1998", True),
        ("The pier was closed in 1998 after a storm.", True),
        ("was closed in 1998 after a storm.", False),
        ("The pier was closed in 1998 after a flood.", False),
        ("The pier was closed in 1998 after a storm", True),
        ("The pier was closed in 199", False),
        ("The council of Velmark voted with 1", False),
        ("The ferry company Nord", False),
    ],
)
def test_a_copy_is_a_sentence_of_the_source_or_its_beginning(summary: str, copied: bool) -> None:
    (sentence,) = SourceText(HARBOUR).support(summary).sentences
    assert sentence.copied == copied


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("Ann: I row. I swim.\nBob: Fine.\nAnn: Bye.\nBob: Bye.", "Ann: I row."),
        ("- Bring the boats.\n- Bring the oars.", "Bring the oars."),
        ("The boats sink. They rust. The oars break.", "The boats sink. They rust."),
    ],
)
def test_a_copy_may_lack_the_mark_of_its_item_or_hold_several_sentences(source: str, summary: str) -> None:
    support = SourceText(source).support(summary)
    assert all(sentence.copied for sentence in support.sentences)
    assert SourceText(source)._has_whole(summary)
    assert not SourceText(source)._has_whole(f"{summary} They float.")


def test_a_passage_has_its_first_line_and_marks_are_in_order_and_counted() -> None:
    support = SourceText(HARBOUR).support(
        "Mayor Astrid Solheim counted 77 ballots. The pier was closed by Harstad."
    )
    assert [passage.line for sentence in support.sentences for passage in sentence.aligned[:1]] == [1, 4]
    assert [(mark.kind, mark.text) for mark in support.marks] == [
        ("name", "Astrid"),
        ("number", "77"),
        ("name", "Harstad"),
    ]
    assert [support.count(kind) for kind in KINDS] == [2, 1, 0]


def test_the_content_share_is_that_of_the_words_that_aligned_sentences_have() -> None:
    source = SourceText("The boats sink in the harbour. Nobody counts the oars.")
    for summary, share in (
        ("The boats sink.", 1.0),
        ("The boats sank in the desert.", 1 / 3),
        ("The boats sink, and the oars burn.", 3 / 4),
        ("Purple elephants dance.", 0.0),
    ):
        (sentence,) = source.support(summary).sentences
        assert source.content_share(sentence) == pytest.approx(share)


def test_at_most_three_sentences_are_aligned_and_each_adds_a_tenth() -> None:
    words = ["harbour", "lighthouse", "ferry", "council", "engineer"]
    source = SourceText(" ".join(f"Everybody paints the {word}." for word in words))
    (sentence,) = source.support(f"The {', the '.join(words[:4])} and the {words[4]} rot.").sentences
    assert [passage.text for passage in sentence.aligned] == [
        f"Everybody paints the {word}." for word in words[:3]
    ]
    (first,) = source.support("Everybody paints the harbour.").sentences
    assert [passage.text for passage in first.aligned] == ["Everybody paints the harbour."]
