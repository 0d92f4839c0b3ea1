"""A decision or an action without content stands with the proposal or the task that it means, or not at all."""

import pytest

from precis_text.documents.passages import Passages
from precis_text.forms.form import ScoredText
from precis_text.forms.form_choice import formed, make_form
from precis_text.length import make_length
from precis_text.units import extraction_units


def lines(document: str) -> list[tuple[str, str]]:
    units = extraction_units(document)
    source = ScoredText(Passages(document), units, [1] * len(units), [0.5] * len(units), 100.0)
    made = formed(make_form(type="minutes"), source, make_length(), len)
    return [(line.part, line.shown) for line in made.lines if line.part != "topics"]


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [
        ("Bob: Good, then that is decided.", "Bob"),
        ("Bob: Sounds good.", "Bob"),
        ("Bob: So be it.", "Bob"),
        ("Bob: Yes, let's do that.", "Bob"),
        ("Bob: Hm, it is far.\nAnn: Good, then that’s settled.", "Ann"),
    ],
)
def test_an_answer_without_content_makes_the_proposal_the_decision(answer: str, agreed: str) -> None:
    meeting = (
        f"Ann: The hall has no heating.\nAnn: Shall we meet in the school?\n{answer}\nCem: The tea is cold."
    )
    assert lines(meeting) == [("decisions", f"[turn 2] Ann: Shall we meet in the school? (agreed: {agreed})")]


@pytest.mark.parametrize(
    "meeting",
    [
        "Ann: The hall is cold.\nBob: It was colder in May.\nAnn: Good, then that is decided.",
        "Ann: Shall we meet in the school?\nBob: That is not decided.\nCem: I like the hall.",
        "Ann: The hall is cold.\nBob: Sounds good.\nCem: I'll do it.",
        "Ann: Shall we meet in the school?\nAnn: Sounds good.\nBob: The tea is cold.",
        "Ann: Shall we meet in the school?\nBob: Sounds good. But is it open at night?\nCem: The tea is cold.",
        "Ann: The hall is cold.\nBob: We could, yeah.\nCem: Sounds good.",
        "Ann: Every old bridge should have to be checked inside.\nAnn: Hm.\nBob: I'll do that.",
        "Ann: Who would like to go first?\nBob: The tea is cold.\nCem: I'll do that.",
    ],
)
def test_an_answer_that_means_no_proposal_is_not_listed(meeting: str) -> None:
    assert not [line for line in lines(meeting) if line[0] in ("decisions", "actions")]


def test_what_a_chair_sums_up_and_asks_for_is_decided_by_the_answer() -> None:
    meeting = (
        "Ann: I like that. A quiz of twenty questions, and the rest in autumn. Bob?\nBob: I can live with it.\n"
        "{0}: Good, then that is decided.\nCem: The tea is cold."
    )
    found = [("decisions", "[turn 1] Ann: A quiz of twenty questions, and the rest in autumn. (agreed: Bob)")]
    assert lines(meeting.format("Ann")) == found
    assert lines(meeting.format("Cem")) == []
    assert lines(meeting.format("Ann").replace(" Bob?", "")) == []  # nobody was asked


@pytest.mark.parametrize(
    ("said", "agreed"), [("Then I ask Lene for a price.", True), ("Then we waited there.", False)]
)
def test_a_conclusion_is_a_proposal_to_which_the_reply_agrees(said: str, agreed: bool) -> None:
    meeting = f"Ann: The hall has no heating.\nAnn: {said}\nBob: Fine with me.\nCem: The tea is cold."
    assert lines(meeting) == ([("decisions", f"[turn 2] Ann: {said} (agreed: Bob)")] if agreed else [])


def test_a_promise_without_content_makes_the_task_the_action() -> None:
    meeting = "Ann: Somebody has to water the roses.\nBob: They look dry.\nCem: I'll do it."
    assert lines(meeting) == [("actions", "[turn 1] Ann: Somebody has to water the roses. (owner: Cem)")]


def test_a_decision_with_content_stays_as_it_was_said() -> None:
    meeting = (
        "Ann: Shall we meet in the school?\nBob: The hall is colder.\nAnn: We agreed to meet in the school."
    )
    assert lines(meeting) == [("decisions", "[turn 3] Ann: We agreed to meet in the school.")]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("#agreed remove the mirror from the list", "decisions"),
        ("Then we leave out the wheel.", "decisions"),
        ("Let's cap travel at two trips each.", "decisions"),
        ("Let's talk about travel again.", ""),
        ("We'll see what the mirror does.", ""),
        ("I'm gonna ring the printers this afternoon.", "actions"),
    ],
)
def test_words_of_councils_and_of_talk(text: str, part: str) -> None:
    found = [kind for kind, _ in lines(f"Ann: The tea is cold.\nBob: {text}\nCem: Hm, the tea.")]
    assert found == [part] * bool(part)


@pytest.mark.parametrize(
    ("meeting", "decision"),
    [
        (
            "Anna: Sollen wir den Zaun im Herbst bauen?\nBert: Ja, so machen wir das.\nAnna: Und das Dach ist dicht.",
            "Zaun",
        ),
        (
            "Anna: Wir schlagen 84 Euro für das Dach vor. Einverstanden?\nBert: Na gut, einverstanden.\n"
            "Anna: Und der Zaun ist alt.",
            "84 Euro",
        ),
        (
            "Anne: Et si on garde la vieille maison ?\nBruno: D'accord, faisons comme ça.\nAnne: Le toit est vieux.",
            "maison",
        ),
        (
            "Ana: ¿Y si hacemos la fiesta en la plaza con los vecinos?\nEva: De acuerdo.\n"
            "Ana: La casa es de los reyes.",
            "fiesta",
        ),
    ],
)
def test_answers_in_other_languages(meeting: str, decision: str) -> None:
    ((part, shown),) = lines(meeting)
    assert part == "decisions"
    assert decision in shown


def test_turns_in_small_letters_without_full_stops_stay_apart() -> None:
    chat = "hazel: motion to hold the election in march\nfinch: aye\nwren: aye\nhazel: motion carried"
    assert [unit.text.partition(":")[0] for unit in extraction_units(chat)] == [
        "hazel",
        "finch",
        "wren",
        "hazel",
    ]
    assert lines(chat) == [
        ("decisions", "[turn 1] hazel: motion to hold the election in march (agreed: hazel)")
    ]


@pytest.mark.parametrize(
    ("task", "answer", "due"),
    [
        ("Who updates the list of members?", "I'll do that by Wednesday.", "by Wednesday"),
        ("Who is going to write the report on the fire?", "I will, by tomorrow noon.", "by tomorrow noon"),
        ("Who orders the paint for the fence?", "I will.", ""),
    ],
)
def test_an_answer_with_nothing_but_a_date_takes_the_task(task: str, answer: str, due: str) -> None:
    told = f"owner: Bob; due: {due}" if due else "owner: Bob"
    found = lines(f"Ann: {task}\nBob: {answer}\nCem: Hm, the tea.")
    assert found == [("actions", f"[turn 1] Ann: {task} ({told})")]


def test_a_promise_with_content_keeps_its_own_line() -> None:
    found = lines(
        "Ann: Who updates the list of members?\nBob: I'll send the list by Wednesday.\nCem: Hm, the tea."
    )
    assert found == [
        ("actions", "[turn 2] Bob: I'll send the list by Wednesday. (owner: Bob; due: by Wednesday)")
    ]
