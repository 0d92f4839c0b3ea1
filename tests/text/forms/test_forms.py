"""The forms choose from scored units without a model: what each shows, where it is from, and within which length."""

from collections.abc import Sequence
from typing import Any

import pytest

from precis_text.documents.passages import Passages, Place
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from precis_text.forms.form import FormType, ScoredText
from precis_text.forms.form_choice import FORM_TYPES, Formed, formed, make_form
from precis_text.forms.outline import section_line, sections_of, topics_of
from precis_text.forms.short_forms import KeyPoints, opening
from precis_text.forms.statements import replies_to, statements_of
from precis_text.length import make_length
from precis_text.units import extraction_units
from precis_text.words import length_in_words

MEETING = """Ann: Good morning. The first item is the summer fair.
Bob: We had 300 visitors last year.
Ann: Then let's keep the same date, the fourth of July.
Cem: I'll book the hall by Friday.
Ann: Dora, can you write to the school?
Dora: Sure, I will do it tomorrow.
Bob: Who pays for the music?
Cem: I don't know yet.
Ann: If it rains, we could agree on a tent."""

ARTICLE = """New ferries for the lake

The town will replace its two ferries with electric boats. The council voted for the plan on Tuesday.

The old ferries carry 1,900 passengers a day across the lake. They were built in 1986.

Spare parts are made by hand in a workshop at the harbour. The captain likes them.

In conclusion, the boats cost 6.2 million crowns. Tickets stay as cheap as they are."""


def scored(document: str | Passages, scores: list[float] | None = None) -> ScoredText:
    passages = document if isinstance(document, Passages) else Passages(document)
    units = extraction_units(passages.text)
    worth = scores or [1 / (1 + place) for place in range(len(units))]
    return ScoredText(passages, units, [len(unit.text.split()) for unit in units], worth, 30.0)


def scored_turns(document: str, scores: Sequence[float]) -> ScoredText:
    """Return a dialogue of one line a turn, each sentence with the score of its turn."""
    starts = [unit.start for unit in extraction_units(document)]
    return scored(document, [scores[document.count("\n", 0, start)] for start in starts])


def made(
    document: str | Passages, kind: FormType = "paragraph", about: str | None = None, **lengths: Any
) -> Formed:
    form = make_form(type=kind, about=about)
    return formed(form, scored(document), make_length(**lengths), lambda text: len(text.split()))


@pytest.mark.parametrize("kind", FORM_TYPES)
@pytest.mark.parametrize("document", [MEETING, ARTICLE])
@pytest.mark.parametrize("lengths", [{"words": 12}, {"words": 3}, {"tokens": 9}, {"sentences": 1}])
def test_a_cap_holds_for_every_form(kind: FormType, document: str, lengths: dict[str, Any]) -> None:
    found = made(document, kind, **lengths)
    assert found.text
    if "words" in lengths:
        assert length_in_words(found.text) <= lengths["words"]
    if "tokens" in lengths:
        assert len(found.text.split()) <= lengths["tokens"]
    if "sentences" in lengths:
        assert len(found.lines) == 1


@pytest.mark.parametrize("kind", FORM_TYPES)
@pytest.mark.parametrize("document", [MEETING, ARTICLE])
def test_every_line_is_word_for_word_at_its_place(kind: FormType, document: str) -> None:
    found = made(document, kind)
    assert found.lines
    assert found.finished
    for line in found.lines:
        said = document[line.start : line.stop].split(": ")[-1]
        assert said.removeprefix("Good morning. ") in line.shown
        assert line.shown in found.text


def test_a_tldr_has_at_most_two_sentences_and_key_points_are_in_order() -> None:
    assert len(made(ARTICLE, "tldr").lines) <= 2
    points = made(ARTICLE, "key-points")
    assert all(line.startswith("- ") for line in points.text.split("\n"))
    assert [line.start for line in points.lines] == sorted(line.start for line in points.lines)


def test_a_headline_is_the_title_if_the_text_repeats_it() -> None:
    assert made(ARTICLE, "headline").text == "New ferries for the lake"
    stray = ARTICLE.replace("New ferries for the lake", "Photo gallery and comments")
    assert made(stray, "headline").text != "Photo gallery and comments"


def test_a_teaser_leaves_out_the_conclusion() -> None:
    late = scored(ARTICLE, [0.1] * 7 + [1.0, 1.0])
    found = formed(make_form(type="teaser"), late, make_length(), len)
    assert "6.2 million" not in found.text
    assert "electric boats" in found.text


def test_an_outline_has_one_line_for_each_heading() -> None:
    text = "Rivers\n\nThe river is long and cold.\n\nLakes\n\nThe lake is deep and warm."
    starts = [0, text.index("Lakes")]
    found = made(Passages(text, starts, [Place(heading="Rivers"), Place(heading="Lakes")]), "outline")
    assert found.text == "- Rivers: The river is long and cold.\n- Lakes: The lake is deep and warm."
    short = made(
        Passages(text, starts, [Place(heading="Rivers"), Place(heading="Lakes")]), "outline", words=4
    )
    assert short.text == "- Rivers\n- Lakes"


def test_a_text_without_headings_is_divided_where_its_words_change() -> None:
    cows = [f"The cow number {n} eats grass in the green meadow." for n in range(12)]
    ships = [f"The ship number {n} carries iron across the stormy ocean." for n in range(12)]
    sections = sections_of(scored(" ".join(cows + ships)))
    assert 12 in [section.start for section in sections]


def test_minutes_have_owners_and_dates_only_where_they_are_said() -> None:
    lines: dict[str, list[tuple[int, str, str]]] = {line.part: [] for line in made(MEETING, "minutes").lines}
    for line in made(MEETING, "minutes").lines:
        lines[line.part].append((line.turn, line.owner, line.due))
    assert lines == {
        "topics": [(1, "", "")],
        "decisions": [(3, "", "")],
        "actions": [(4, "Cem", "by Friday"), (5, "Dora", "tomorrow")],
        "questions": [(7, "", "")],
    }


def test_minutes_of_a_talk_without_decisions_invent_none() -> None:
    found = made("Ann: The sea is warm today.\nBob: It was colder in May.\nAnn: I like to swim.", "minutes")
    assert {line.part for line in found.lines} <= {"topics"}


@pytest.mark.parametrize(
    ("said", "is_decision"),
    [
        ("No, the rain comes in. So we decide: the roof is repaired in November.", True),
        ("Then we decide that the fence waits.", True),
        ("We now resolve to buy the hall.", True),
        ("When we decide that, the fence is next.", False),
        ("Should we decide on the fence?", False),
        ("How we decide is another matter.", False),
    ],
)
def test_what_is_decided_while_it_is_said_is_a_decision(said: str, is_decision: bool) -> None:
    found = made(f"Ann: The roof is old.\nBob: {said}\nAnn: It was colder in May.", "minutes")
    assert ("decisions" in {line.part for line in found.lines}) is is_decision


def test_minutes_of_subtitles_have_times_and_keep_the_voice() -> None:
    cues = "WEBVTT\n\n00:00:05.000 --> 00:00:07.000\n<v Ann>We lost the key.</v>\n\n"
    cues += "00:01:10.000 --> 00:01:12.000\n<v Ann>I'll buy a new one tomorrow.</v>\n\n"
    cues += "00:02:00.000 --> 00:02:02.000\n<v Bob>Good, thank you.</v>"
    (action,) = [
        line
        for line in made(read_content(cues.encode(), name="a.vtt"), "minutes").lines
        if line.part == "actions"
    ]
    assert (action.time, action.owner, action.due) == ("0:01:10", "Ann", "tomorrow")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Anna: Wir haben beschlossen, dass der Zaun bis zum Herbst bleibt.", "decisions"),
        ("Anna: Und das ist gut so. Ich schicke die Liste bis Freitag an den Rat.", "actions"),
        ("Anna: Nous avons décidé de garder la vieille maison pour les enfants.", "decisions"),
        ("Anna: Hemos decidido que la fiesta es en la plaza con los vecinos.", "decisions"),
    ],
)
def test_minutes_know_other_languages(text: str, part: str) -> None:
    assert part in [line.part for line in made(f"{text}\nBert: Gut.", "minutes").lines]


def test_a_question_is_answered_by_the_sentences_about_it() -> None:
    found = made(ARTICLE, about="How many passengers do the old ferries carry?", sentences=1)
    assert found.answered
    assert "1,900 passengers" in found.text


def test_a_question_that_the_document_does_not_answer_is_said_to_be() -> None:
    found = made(ARTICLE, "key-points", about="What do penguins eat?", words=3)
    assert not found.answered
    assert found.lines == ()
    assert found.text == 'No sentence shares enough words with "What do penguins eat?".'


def test_bad_options_are_named() -> None:
    with pytest.raises(UserError, match="type='tl' is not a form"):
        make_form(type="tl")
    with pytest.raises(UserError, match="about=3 is not a text"):
        make_form(about=3)  # type: ignore[arg-type]  # what a caller without types may pass
    with pytest.raises(UserError, match="does not ask anything"):
        make_form(about=" ? ")
    with pytest.raises(UserError, match=r"2,001 characters, more than 2,000"):
        make_form(about="x" * 2001)


def test_minutes_leave_pauses_out_and_an_opening_is_no_decision() -> None:
    document = (
        "Ann: Um, okay, let's get started. [laughter] The the bridge is, uh, two weeks late.\n"
        "Ann: Bob, you write to the council by Friday.\nBob: Uh, will do.\nAnn: Then we postpone it.\n"
    )
    lines = [line for line in made(document, "minutes").text.splitlines() if line.startswith("- ")]
    said = "\n".join(lines)
    assert "laughter" not in said
    assert "uh" not in said.lower().split()
    assert any(
        "Bob, you write to the council by Friday. (owner: Bob; due: by Friday)" in line for line in lines
    )
    decisions = made(document, "minutes").text.split("Decisions\n")[1].split("\n\n")[0]
    assert "get started" not in decisions
    assert "Then we postpone it." in decisions


def test_statements_have_the_places_of_their_words() -> None:
    talk = "Ann: We start. The fair is in May.\nBob: Fine. It rains. Nobody comes then.\nAnn: Who knows?"
    said = statements_of(scored(talk))
    assert [statement.text for statement in said] == [
        "We start.",
        "The fair is in May.",
        "Fine.",
        "It rains.",
        "Nobody comes then.",
        "Who knows?",
    ]
    assert [talk[statement.start : statement.stop] for statement in said] == [each.text for each in said]
    assert [statement.turn for statement in said] == [1, 1, 2, 2, 2, 3]


def test_each_sentence_has_the_time_and_the_number_of_its_turn() -> None:
    long = " ".join(["We", *["row"] * 60, "home."])
    talk = (
        f"[10:01] Ann: {long} It rains.\n[10:02] Bob: Yes. Yes!\n[10:05] Bob: And plates.\n[10:07] Ann: Fine."
    )
    said = statements_of(scored(talk))
    assert [(each.time, each.turn, each.speaker) for each in said] == [
        ("10:01", 1, "Ann"),
        ("10:01", 1, "Ann"),
        ("10:02", 2, "Bob"),
        ("10:02", 2, "Bob"),
        ("10:05", 3, "Bob"),
        ("10:07", 4, "Ann"),
    ]
    assert [(each.time, each.turn) for each in statements_of(scored("It rains. It snows."))] == [("", 0)] * 2


def test_the_next_turn_replies_unless_the_same_person_says_it() -> None:
    talk = "Ann: Who pays? Who comes?\nBob: I do. I think.\nBob: We all.\nAnn: Fine."
    said = statements_of(scored(talk))
    assert [replies_to(said, place) for place in range(len(said))] == [[2, 3], [2, 3], [], [], [5], []]


def test_a_teaser_is_of_the_first_third_of_the_sentences_whatever_stands_between_them() -> None:
    sentences = [f"The boat number {number} carries iron over the sea." for number in range(10)]
    plain = scored("\n\n".join(sentences))
    between = [text for one in sentences for text in (one, "Boats", "Boat | Iron | Sea")]
    divided = scored("\n\n".join(between))
    assert any(unit.heading for unit in divided.units)
    assert any(unit.aside for unit in divided.units)
    for source in (plain, divided):
        kept = [unit.text for unit in opening(source) if not (unit.heading or unit.aside)]
        assert kept == sentences[:3]
    few = scored("\n\n".join(sentences[:4]))
    assert [unit.text for unit in opening(few) if not unit.aside] == sentences[:2]


def test_a_label_below_sentences_is_no_subject() -> None:
    text = "This dress is easy to sew.\n\nThread: two spools of blue cotton\n\nCut the linen first. Sew the sides."
    assert made(text, "headline").text != "two spools of blue cotton"
    assert made(f"Thread: an easy dress to sew\n\n{text}", "headline").text == "an easy dress to sew"


@pytest.mark.parametrize(
    ("short", "score", "chosen"),
    [
        ("The old ferry sank.", 0.9, False),
        ("The old ferry sank yesterday.", 0.9, True),
        ("The old ferry sank yesterday.", 0.6, True),
        ("The old ferry sank yesterday.", 0.59, False),
    ],
)
def test_a_headline_is_the_shortest_good_sentence_of_five_words_or_more(
    short: str, score: float, chosen: bool
) -> None:
    best = "The council of the town bought two new boats for the lake."
    source = scored(f"{best} {short}", [1.0, score])
    found = formed(make_form(type="headline"), source, make_length(), len)
    assert found.text == (short if chosen else best)


@pytest.mark.parametrize(
    ("sentence", "headline"),
    [
        (
            "The council of the old town bought two boats for the lake, which will carry twice as many people each day "
            "as before.",
            "The council of the old town bought two boats for the lake …",
        ),
        (
            "der rat der alten stadt hat zwei boote für den see gekauft weil die alten fähren jeden tag im hafen "
            "liegen und rosten",
            "der rat der alten stadt hat zwei boote für den see gekauft …",
        ),
        (" ".join(["boat"] * 30), f"{' '.join(['boat'] * 15)} …"),
        (" ".join(["boat"] * 20), " ".join(["boat"] * 20)),
    ],
)
def test_a_headline_too_long_for_a_line_ends_at_a_clause(sentence: str, headline: str) -> None:
    source = scored(sentence, [1.0])
    assert formed(make_form(type="headline"), source, make_length(), len).text == headline
    assert formed(make_form(type="headline"), source, make_length(words=40), len).text == sentence


TALK = """Ann: Good morning everyone, can you all hear me today?
Bob: Okay, so the old harbour crane is broken. It stands by the quay, as you all know. Who could repair it at once?
Cem: Great, so next spring we need a new crane. The crane firm wants nine hundred euros for a new wheel of the crane, \
which is a lot of money, and a week or two of time on the quay, which we do not have now.
Dora: Yes, loud and clear to me.
Ann: Okay, let's move the feast to the first of June, when the crane is ready."""


@pytest.mark.parametrize(
    ("best", "headline"),
    [
        (1, "Bob: The old harbour crane is broken."),
        (2, "Cem: Next spring we need a new crane."),
        (4, "Ann: Let's move the feast to the first of June, when the crane is ready."),
    ],
)
def test_the_headline_of_a_talk_is_one_short_sentence_of_its_best_turn(best: int, headline: str) -> None:
    source = scored_turns(TALK, [1.0 if place == best else 0.2 for place in range(5)])
    found = formed(make_form(type="headline"), source, make_length(), len)
    assert found.text == headline
    (line,) = found.lines
    assert TALK[line.start : line.stop].endswith(headline.split(": ")[1][2:])


@pytest.mark.parametrize("greeted", [0, 3])
def test_a_greeting_or_an_answer_without_content_is_no_headline(greeted: int) -> None:
    source = scored_turns(TALK, [0.9 if place == greeted else 0.8 for place in range(5)])
    assert formed(make_form(type="headline"), source, make_length(), len).lines[0].speaker in (
        "Bob",
        "Cem",
        "Ann",
    )
    assert not formed(make_form(type="headline"), source, make_length(), len).text.endswith(("?", "me."))


def test_a_title_among_numbered_headings_is_shown_without_its_number() -> None:
    body = "The harbour rules hold for all boats.\n\n{}\n\nNobody sleeps on the quay in the harbour."
    rules = f"1. SCOPE: The harbour rules\n\n{body}"
    assert made(rules.format("2. RULES: 2.1 Speed"), "headline").text == "SCOPE: The harbour rules"
    assert made(rules.format("Speed"), "headline").text == "1. SCOPE: The harbour rules"


def test_a_teaser_of_a_talk_shows_one_sentence_of_a_turn() -> None:
    assert made(TALK, "teaser").text.split("\n")[-1] == "Bob: The old harbour crane is broken."


MORE = "The board met in March. The harbour has six berths. Ships come from Norway. The pilot lives on the island."
CRANE = f"The new crane cost a lot. It can lift 40 tonnes. {MORE}"
TOWER = f"The tower was built by Anna Roth. Her brother painted the ceiling. {MORE}"


@pytest.mark.parametrize(
    ("document", "question", "length", "answer"),
    [
        (CRANE, "Can it lift 40 tonnes?", {"words": 12}, "The new crane cost a lot. It can lift 40 tonnes."),
        (CRANE, "Can it lift 40 tonnes?", {"sentences": 1}, "It can lift 40 tonnes."),
        (
            TOWER,
            "Who painted the ceiling?",
            {"words": 12},
            "The tower was built by Anna Roth. Her brother painted the ceiling.",
        ),
        (TOWER, "Who painted the ceiling?", {"sentences": 1}, "Her brother painted the ceiling."),
    ],
)
def test_an_answer_that_points_back_comes_with_the_sentence_before_it_or_alone(
    document: str, question: str, length: dict[str, Any], answer: str
) -> None:
    assert made(document, about=question, **length).text == answer


TOPICS = (
    "The ferry carries heavy iron cargo.",
    "Purple tulips bloom every spring.",
    "Seven judges wrote careful verdicts.",
    "Wind bends young birches northwards.",
)


@pytest.mark.parametrize(
    ("counts", "topics"),
    [
        ((5, 6), [(0, 5), (5, 11)]),
        ((6, 5), [(0, 6), (6, 11)]),
        ((4, 7), [(0, 5), (5, 11)]),  # five sentences at least
        ((4, 5), [(0, 9)]),
        ((5, 5, 5), [(0, 5), (5, 10), (10, 15)]),
        ((5, 5, 5, 5), [(0, 5), (5, 10), (10, 15), (15, 20)]),
        ((6, 7, 8), [(0, 6), (6, 13), (13, 21)]),
    ],
)
def test_a_topic_of_five_sentences_begins_where_the_words_change(
    counts: tuple[int, ...], topics: list[tuple[int, int]]
) -> None:
    document = "\n\n".join(text for text, count in zip(TOPICS, counts, strict=False) for _ in range(count))
    assert [(each.start, each.stop) for each in topics_of(scored(document))] == topics


@pytest.mark.parametrize(
    ("document", "sections"),
    [
        ("The Pier\n\nIt is old.\n\nThe Boats\n\nThey are new.", [("The Pier", 0, 2), ("The Boats", 2, 4)]),
        (
            "We row.\n\nThe Pier\n\nIt is old.\n\nThe Boats\n\nThey rot.",
            [("", 0, 1), ("The Pier", 1, 3), ("The Boats", 3, 5)],
        ),
        ("The Pier\n\nIt is old.\n\nThey are new.", [("", 0, 3)]),
        (
            "Two Walls\n\nThe Pier\n\nIt is old.\n\nThe Boats\n\nThey rot.",
            [("", 0, 1), ("The Pier", 1, 3), ("The Boats", 3, 5)],
        ),
    ],
)
def test_two_headings_divide_a_document_and_one_does_not(
    document: str, sections: list[tuple[str, int, int]]
) -> None:
    assert [(each.heading, each.start, each.stop) for each in sections_of(scored(document))] == sections


def test_a_section_is_told_by_its_best_sentence_of_four_words_that_stands_alone() -> None:
    document = (
        "The Pier\n\nIt is old.\n\nThis wall was mended twice. Boats land there every day.\n\nThe End\n\nBye."
    )
    source = scored(document, [0, 1.0, 0.9, 0.5, 0, 0.8])
    first, second = (section_line(source, section) for section in sections_of(source))
    assert first is not None
    assert second is not None
    assert (first.shown, first.worth) == ("The Pier: Boats land there every day.", 0.5)
    assert (first.heading, first.shorter) == ("The Pier", "The Pier")
    assert (second.shown, second.worth, second.shorter) == ("The End", 0.0, "")


def shown(document: str, kind: FormType, scores: list[float] | None = None, **lengths: Any) -> list[str]:
    form = make_form(type=kind)
    length = form.length(make_length(**lengths))
    return [line.shown for line in form.lines(scored(document, scores), length)]


EIGHT = "The old town pier was mended last spring."


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [(EIGHT, 0.5, 2), (EIGHT, 0.49, 1), ("The old pier was mended last spring.", 0.49, 2)],
)
def test_a_second_sentence_has_half_the_worth_of_a_first_one_that_stands_alone(
    first: str, second: float, count: int
) -> None:
    document = f"{first} Boats carry iron over the sea."
    assert len(shown(document, "tldr", [1.0, second])) == count
    assert len(shown(document, "tldr", [1.0, second], sentences=2)) == count
    assert len(shown(document, "tldr", [1.0, second], sentences=3)) == 2
    assert len(shown(f"Ships sail. {document}", "tldr", [0.0, 1.0, second])) == count


def test_a_tldr_keeps_what_a_letter_is_for() -> None:
    document = "I am sorry to tell you that the old pier is closed. Boats carry iron over the sea in spring."
    assert shown(document, "tldr", [0.1, 1.0]) == document.replace(". B", ".|B").split("|")


def test_a_first_sentence_that_refers_back_keeps_the_one_before_it() -> None:
    document = "Boats carry iron over the cold sea. This was mended by the old town last spring."
    assert shown(document, "tldr", [0.1, 1.0]) == document.replace(". T", ".|T").split("|")


@pytest.mark.parametrize(("sentences", "points"), [(8, 2), (9, 3), (40, 3)])
def test_a_short_document_has_three_points_and_at_most_a_third_of_its_sentences(
    sentences: int, points: int
) -> None:
    document = "\n\n".join(f"Boat {number} carries iron." for number in range(sentences))
    source = scored(document, [1.0] * sentences)
    assert KeyPoints()._fewest(source) == points
    assert KeyPoints(about="iron")._fewest(source) == 0


@pytest.mark.parametrize(
    ("words", "points"), [(400, 3), (401, 5), (2000, 5), (2001, 7), (8000, 7), (8001, 9)]
)
def test_a_longer_document_has_two_more_points_beyond_400_2000_and_8000_words(
    words: int, points: int
) -> None:
    document = "We row. " * (words // 2 - 1) + ("We row on." if words % 2 else "We row.")
    assert length_in_words(document) == words
    assert KeyPoints()._fewest(scored(document)) == points


@pytest.mark.parametrize(
    ("title", "is_title"),
    [
        ("Boats carry iron", True),
        ("Boats carry", False),
        ("Boats carry iron and coal and oars", True),  # three of five longer words
        ("Boats carry iron and coal and oars and nails", False),
    ],
)
def test_a_title_has_three_words_and_the_text_repeats_three_of_five(title: str, is_title: bool) -> None:
    document = f"{title}\n\nMany boats carry iron over the sea. They always sink."
    assert (shown(document, "headline") == [title]) == is_title


HEAD = "RELEASE\n\nContact:\nAnn Ode\nPress of the quay\n\n"


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("League Two\n\nBoats sink after that late storm wave", "Boats sink after that late storm wave"),
        (
            f"{HEAD}MANY BOATS TO CARRY IRON OVER THE SEA\nThe plan is the largest since the war",
            "MANY BOATS TO CARRY IRON OVER THE SEA",
        ),
        (
            "Boats of iron sink in the late storm\nBy Ann Ode at the quay of Olm",
            "Boats of iron sink in the late storm",
        ),
        ("Boats carry iron\n\nHow that and all these boats of iron then sink late", "Boats carry iron"),
        (
            "BOATS 3 (iron 12; carry 88; wood 4; late 9)\n\nBoats sink after late storm",
            "Boats sink after late storm",
        ),
    ],
)
def test_the_title_of_a_report_is_its_headline_below_a_letterhead_and_above_others(
    head: str, title: str
) -> None:
    text = (
        "Many boats carry iron over the sea, and the late ones sink. They always sink. Boats of wood do not."
    )
    assert shown(f"{head}\n\n{text}", "headline") == [title]


def test_a_short_sentence_an_item_and_a_turn_above_a_heading_end_the_title() -> None:
    text = "Boats carry iron\n\nMany boats carry iron over the sea. They always sink."
    for before in ("We row.", "- boats\n- oars\n- nets\n- sails", "Ann: We row\nBen: We sail\nAnn: We row"):
        assert shown(f"{before}\n\n{text}", "headline") != ["Boats carry iron"]


@pytest.mark.parametrize(
    ("before", "is_title"),
    [([], True), (["Posted: Thursday"] * 3, True), (["Posted: Thursday"] * 24, False), (["We row."], False)],
)
def test_a_title_is_before_the_first_sentence_and_among_the_first_24_units(
    before: list[str], is_title: bool
) -> None:
    document = "\n\n".join([*before, "Boats carry iron", "Many boats carry iron. They always sink."])
    assert (shown(document, "headline") == ["Boats carry iron"]) == is_title


LETTER = "Der Rat hat den Kai am Montag gesperrt. Die Boote liegen nun im Norden, und das kostet viel Geld."


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("Subject: RE: The old crane", "The old crane"),
        ("Betreff: AW: Der alte Kran", "Der alte Kran"),
        ("Objet : la vieille grue", "la vieille grue"),
        ("Asunto: la vieja grúa", "la vieja grúa"),
        ("Assunto: a velha grua", "a velha grua"),
        ("Thread: Who mends a crane?", "Who mends a crane?"),
        ("Hafenamt Olm\nKaistr. 4, 24999 Olm\n\nOlm, den 3.5.2026\n\nHohe Miete gemäß Vertrag\nVertrag Nr. 12 von\n\n"
         "Sehr geehrte Frau Lund,", "Hohe Miete gemäß Vertrag"),
        ("The Kai Rat\n\nDer Rat hat den Kai gesperrt", "Der Rat hat den Kai gesperrt"),
    ],
)  # fmt: skip
def test_the_headline_of_a_letter_is_its_subject_and_not_its_letterhead(head: str, title: str) -> None:
    assert shown(f"{head}\n\n{LETTER}", "headline") == [title]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# Where our bread goes\n\n{}\n\n## Kai\n\n{}"),
        ("a.html", "<h1>Where our bread goes</h1><p>{}</p><h2>Kai</h2><p>{}</p>"),
        ("a.eml", "Subject: Re: Where our bread goes\n\n{}\n\n{}"),
        ("a.md", "# Where our bread goes\n\nBy: Ann\n\n# 1. Kai\n\n{}\n\n# 2. Rat\n\n{}"),
    ],
)
def test_the_title_that_a_format_gives_is_the_headline_though_the_text_does_not_repeat_it(
    name: str, text: str
) -> None:
    found = made(read_content(text.format(LETTER, LETTER).encode(), name=name), "headline")
    assert found.text == "Where our bread goes"


@pytest.mark.parametrize(("sentences", "opens"), [(2, 2), (5, 2), (8, 2), (9, 3), (20, 7)])
def test_a_teaser_may_use_the_first_35_percent_and_two_sentences_at_least(sentences: int, opens: int) -> None:
    document = "\n\n".join(f"Boat {number} carries iron." for number in range(sentences))
    assert [unit.aside for unit in opening(scored(document))] == [False] * opens + [True] * (
        sentences - opens
    )


def test_a_turn_is_cut_at_a_sentence_and_said_to_be_whole() -> None:
    passages = Passages(
        "Ann: Good morning. The roof of the mill leaks. The firm comes on Monday to mend it.\nBob: Hm."
    )
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.9] * (len(units) - 1) + [0.1], 20.0)
    roof, firm = "Ann: The roof of the mill leaks.", "The firm comes on Monday to mend it."
    for length, text in ((make_length(sentences=2), f"{roof} {firm}"), (make_length(words=12), roof)):
        made = formed(make_form(type="tldr"), source, length, len)
        assert (made.text, made.finished) == (text, True)
    assert not formed(make_form(type="tldr"), source, make_length(words=2), len).finished


def test_other_headings_do_not_repeat_a_title() -> None:
    text = "# What went well\n\nThe new oven bakes bread in half the time.\n\n# What went badly\n\nThe mill leaks."
    passages = read_content(text.encode(), name="a.md")
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.5] * len(units), 20.0)
    assert formed(make_form(type="headline"), source, make_length(), len).text != "What went well"


def test_a_title_keeps_the_numbers_within_it() -> None:
    title = "Minutes of the meeting of 14 May 2024 at 7.30 pm"
    rest = (
        "1. Dogs: the park\n\nThe minutes of May are old.\n\n2. Cats: the road\n\nThe meeting closed at noon."
    )
    assert made(f"{title}\n\n{rest}", "headline").text == title


def test_the_line_below_the_greeting_of_a_letter_is_its_title() -> None:
    head = "Oak School\n\n12 Church Lane\n\nTel: 01632 960\n\n3 June 2024"
    letter = (
        "Trip to the Oak Museum\n\nWe plan a trip to the museum. It costs ten pounds.\n\nAll will come along."
    )
    assert made(f"{head}\n\nDear parents,\n\n{letter}", "headline").text == "Trip to the Oak Museum"


@pytest.mark.parametrize(
    "other", ["The old hall of the town has now got these rooms:", "More work on boats is needed."]
)
def test_what_announces_or_all_papers_say_is_no_headline(other: str) -> None:
    best = "The council of the town bought two new boats for the lake."
    source = scored(f"{best}\n\n{other}\n\nThey are cold.", [1.0, 0.9, 0.1])
    assert formed(make_form(type="headline"), source, make_length(), len).text == best


def test_a_question_is_not_all_that_a_tldr_says() -> None:
    document = "Why does the old town mend its pier this spring? Boats carry iron over the sea."
    assert len(shown(document, "tldr", [1.0, 0.1])) == 2


def test_a_teaser_takes_a_sentence_that_fits_before_it_cuts_one() -> None:
    long = f"The council bought {'a boat and ' * 20}an oar for the lake."
    fits = "The boats will carry children over the lake from May."
    source = scored(f"{long} {fits} {'It rains. ' * 3}", [1.0, 0.2, 0.1, 0.1, 0.1])
    assert formed(make_form(type="teaser"), source, make_length(), len).text == fits
    alone = formed(make_form(type="teaser"), scored(f"{long} It rains."), make_length(), len)
    assert alone.text.startswith("The council bought")


def test_a_teaser_leaves_out_short_items() -> None:
    items = "- 250 g of old oats\n- 2 large eggs\n- It is cold."
    document = f"Bake it every August.\n{items}\n" + "It keeps well.\n" * 8
    assert [unit.aside for unit in opening(scored(document))][:4] == [False, True, True, False]


def outline(document: str) -> list[str]:
    return made(document, "outline").text.split("\n")


def test_an_outline_names_the_parts_without_text_of_their_own_and_no_title() -> None:
    text = "The hall is cold.\n\n"
    document = f"Our hall\n\nRooms of it\n\n{text}Prices of it\n\nDays in May\n\n{text}Hire of it\n\n{text}"
    assert outline(document) == [
        "- Rooms of it: The hall is cold.",
        "- Prices of it",
        "- Days in May: The hall is cold.",
        "- Hire of it: The hall is cold.",
    ]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("- sigma is charge on a surface\n\nIt is dry.", ["Rooms", "Prices", "Days"]),
        ("*In this part we tell news of boats.*\n\nIt is dry.", ["Rooms", "Prices", "Days"]),
        (
            "Yours sincerely,\n\nRachel Osborne\n\nTeacher\n\nIt is dry.",
            ["Rooms", "Prices", "Teacher", "Days"],
        ),
        ("Signed by: Ann Ode\n\nBoats\n\nIt is dry.", ["Rooms", "Prices", "Boats", "Days"]),
    ],
)
def test_items_notes_and_signatures_are_no_parts_of_an_outline(lines: str, names: list[str]) -> None:
    text = "The hall is cold in winter."
    found = outline(f"Rooms\n\n{text}\n\nPrices\n\n{text}\n\n{lines}\n\nDays\n\n{text}")
    assert [line.partition(":")[0].removeprefix("- ") for line in found] == names


@pytest.mark.parametrize(
    ("end", "names"),
    [
        ("The doctor\n\nAnn Ode", ["Rooms", "Days"]),
        ("The doctor\n\nAnn Ode\n\nDocumento firmato digitalmente.", ["Rooms", "Days"]),
        ("Prices\n\nHall | 12 euros", ["Rooms", "Days", "Prices"]),
    ],
)
def test_lines_behind_the_text_are_no_parts_of_an_outline(end: str, names: list[str]) -> None:
    text = "The hall is cold in winter."
    found = outline(f"Rooms\n\n{text}\n\nDays\n\n{text}\n\n{end}")
    assert [line.partition(":")[0].removeprefix("- ") for line in found] == names


def test_an_announcement_does_not_stand_for_its_section() -> None:
    told = "The following tests of the boats were added for it this spring:"
    assert outline(f"Rooms\n\nIt is cold.\n\nTests\n\n{told}\n\nDays\n\nIt rains.")[1] == "- Tests"


def test_a_question_does_not_stand_for_the_section_that_it_heads() -> None:
    page = "<h1>FAQ</h1><h2>Is it cold in May?</h2><p>No.</p><h2>Open questions</h2><p>Is it wet in May?</p>"
    found = made(read_content(page.encode(), name="a.html"), "outline").text.split("\n")
    assert found[1:] == ["- Is it cold in May?", "- Open questions: Is it wet in May?"]


def test_the_end_of_a_letter_does_not_sign_its_first_heading_and_numbers_in_brackets_begin_parts() -> None:
    text = "The hall is cold.\n\n"
    document = f"1) Rooms\n\n{text}2) Prices\n\n{text}3) Days\n\n{text}Yours sincerely,"
    assert [line.partition(":")[0] for line in outline(document)] == [
        "- 1) Rooms",
        "- 2) Prices",
        "- 3) Days",
    ]
