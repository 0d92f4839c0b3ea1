"""What looks like a name, and which names a source has in one form or another."""

import pytest

from precis_text.language import languages
from precis_text.support.names import Names, name_runs, opens_sentence
from precis_text.support.placed_words import words_of


def source(text: str, script: str | None = "latin") -> Names:
    return Names(text, words_of(text), script)


def runs(text: str, code: str | None = "en") -> list[str]:
    found = name_runs(text, words_of(text), languages()[code] if code else None)
    return [" ".join(word.text for word in run) for run in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("then Solheim came", ["Solheim"]),
        ("Solheim came then", []),
        ("Ingrid Solheim came then", ["Ingrid Solheim"]),
        ("UNESCO pays for it", ["UNESCO"]),
        ("GitHub pays for it", ["GitHub"]),
        ("there they always asked Solheim, Velmark never paid", ["Solheim", "Velmark"]),
        ("there they never asked what the Nordlys-Lines paid to J.-P. Meyer", ["Nordlys Lines", "Meyer"]),
        ("then A came", []),
        ("then Al came", ["Al"]),
        ("then I'm late and I’ve said so", []),
        ("now: Solheim came", []),
        ("she (Solheim) came", []),
        ("he said “Velmark pays”", []),
        ("a new - Solheim came", []),
        ("they FELL VERY LOUD and then other people from Bergen came", ["Bergen"]),
        ("they FELL VERY quiet", ["FELL VERY"]),
    ],
)
def test_capitals_inside_a_sentence_acronyms_and_neighbours_look_like_names(
    text: str, found: list[str]
) -> None:
    assert runs(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dann kam der Bürgermeister", []),
        ("dann kam Angela Merkel", ["Angela Merkel"]),
        ("Angela Merkel kam", []),
        ("Frau Angela Merkel kam", ["Frau Angela Merkel"]),
        ("dann kam die SPD", ["SPD"]),
    ],
)
def test_in_german_only_neighbours_and_acronyms_are_names(text: str, found: list[str]) -> None:
    assert runs(text, "de") == found


def test_a_heading_has_no_names_but_acronyms() -> None:
    assert runs("The New Pier Of Velmark And UNESCO Money") == ["UNESCO"]


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("Velmarkian", True),
        ("Velmarks", True),
        ("Velmarkers", True),
        ("Velmarkxx", False),
        ("Velma", False),
        ("Vel", False),
        ("Harbours", True),
        ("Oslos", True),
        ("Osl", False),
        ("Osman", False),
    ],
)
def test_an_inflected_name_shares_four_letters_and_all_but_an_ending(written: str, known: bool) -> None:
    (word,) = words_of(written)
    assert source("Norway Velmark harbour Oslo").has(word) == known


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("Москве", True),
        ("Москвою", True),
        ("Москвичами", False),
        ("Мо", False),
        ("Моряк", False),
        ("Мосты", True),
    ],
)
def test_where_names_are_declined_three_last_letters_may_differ(written: str, known: bool) -> None:
    (word,) = words_of(written)
    assert source("Москва стоит", "cyrillic").has(word) == known


@pytest.mark.parametrize(
    ("text", "written", "known"),
    [
        ("code on Git Hub", "GitHub", True),
        ("code on Git Hub", "GitLab", False),
        ("a lighthouse keeper", "Lighthouse", True),
        ("a light house keeper", "Lighthouse", True),
        ("a man kind", "Mankind", True),
        ("of the man or not", "Manor", False),
        ("an old e-mail of his", "EMail", True),
    ],
)
def test_a_name_of_six_letters_or_an_inner_capital_may_be_written_as_two_words(
    text: str, written: str, known: bool
) -> None:
    (word,) = words_of(written)
    assert source(text).has(word) == known


@pytest.mark.parametrize(
    ("text", "written", "known"),
    [
        ("the National Health Service", "NHS", True),
        ("the National Health Service", "IRS", False),
        ("three Digital Video Discs", "DVDs", True),
        ("the World Health Organization", "WHO", True),
        ("the World Health Organization", "WHOs", True),
        ("the World Health Organization", "WHE", False),
        ("they said what he offers", "WHO", True),
        ("he was here at once", "HQ", False),
        ("the Police Department", "PD", True),
        ("the police department", "PD", True),
        ("a pen to dip", "PD", False),
        ("the Food and Drug Administration", "FDA", True),
        ("the Ministry about Foreign Affairs", "MFA", False),
    ],
)
def test_an_acronym_is_known_by_the_first_letters_of_its_words(text: str, written: str, known: bool) -> None:
    (word,) = words_of(written)
    assert source(text).has(word) == known


@pytest.mark.parametrize(
    ("text", "written", "known"),
    [
        ("the WHO lacks money", "World Health Organization", True),
        ("the Who lacks money", "World Health Organization", False),
        ("the W lacks money", "World", False),
        ("the WO lacks money", "World Health Organization", False),
    ],
)
def test_words_are_known_by_their_acronym(text: str, written: str, known: bool) -> None:
    assert source(text).has_acronym_of(words_of(written)) == known


@pytest.mark.parametrize(
    ("before", "opens"),
    [("", True), ("  ", True), ("Oh! ", True), ("as: ", True), ("on - ", True), ("on-", False), ("of ", False),
     ("* ", True), ("(", True), ("of “", True), ("on " * 20, False), (" " * 40, True)],
)  # fmt: skip
def test_a_word_opens_a_sentence_after_a_mark_or_nothing(before: str, opens: bool) -> None:
    text = f"{before}Velmark"
    (*_, word) = words_of(text)
    assert opens_sentence(text, word) == opens
