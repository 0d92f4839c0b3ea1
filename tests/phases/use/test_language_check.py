"""What is told from a model's languages, and what is said about it."""

import pytest

from precis.data.pairs.pair import Pair
from precis.phases.use.input_documents import Document
from precis.phases.use.language_check import (
    are_english,
    in_other_language,
    trained_on,
    warn_of_other_languages,
)

ENGLISH = (
    "The council met on Monday evening. It voted to repair the old bridge before winter comes to the valley."
)
GERMAN = "Der Rat traf sich am Montag. Er beschloss, die alte Br\u00fccke vor dem Winter zu reparieren, da sie alt ist."
PORTUGUESE = (
    "A c\u00e2mara reuniu-se na segunda-feira \u00e0 noite e decidiu reparar a velha ponte antes do inverno. A obra "
    "vai custar quarenta mil euros e come\u00e7a em maio. Dois vereadores n\u00e3o estiveram presentes na reuni\u00e3o."
)
SPANISH = (
    "El ayuntamiento se reuni\u00f3 el lunes por la noche y decidi\u00f3 reparar el viejo puente antes del invierno. "
    "La obra costar\u00e1 cuarenta mil euros. Dos concejales no estuvieron presentes en la reuni\u00f3n."
)
CZECH = (
    "Rada se sešla v pondělí večer a rozhodla, že starý most bude opraven před zimou. Práce začnou v květnu a budou "
    "stát čtyřicet tisíc eur. Dva členové rady na schůzi nebyli, protože byli na cestě."
)
RUSSIAN = "Совет собрался в понедельник вечером и решил отремонтировать старый мост до зимы."
CHINESE = "\u5e02\u8bae\u4f1a\u661f\u671f\u4e00\u665a\u4e0a\u5f00\u4f1a\u3002"
TABLE = "apple 1.20 33 pear 2.30 12 plum 0.80 110\n" * 6


@pytest.mark.parametrize(
    ("text", "seems"),
    [
        (ENGLISH, ""),
        (GERMAN, "seems to be German"),
        (CHINESE, "seems to be Chinese"),
        (PORTUGUESE, "seems to be Portuguese"),
        (SPANISH, ""),
        (CZECH, "seems to be Czech"),
        (RUSSIAN, ""),
        (TABLE, "does not seem to be prose in one of its languages"),
        ("apple | 1.20 | 33\npear | 2.30 | 12\n" * 20, ""),  # a table, which no language has
        ("Ann sings.", ""),
        ("", ""),
    ],
)
def test_a_text_in_another_language_is_told_where_words_enough_show_it(text: str, seems: str) -> None:
    assert in_other_language(text, ("en", "es", "ru")) == seems


def test_it_is_said_of_each_document_with_the_reason_once_and_none_is_lost() -> None:
    documents = [Document(f"{n}.txt", text) for n, text in enumerate([ENGLISH, GERMAN, ENGLISH, TABLE])]
    told: list[str] = []
    assert list(warn_of_other_languages(documents, ["en"], told.append)) == documents
    assert told == [
        f"1.txt seems to be German: {trained_on(['en'])}",
        "3.txt does not seem to be prose in one of its languages",
    ]


def test_its_languages_are_named_in_the_order_of_their_names() -> None:
    assert "on Czech, English and Russian only" in trained_on(("en", "ru", "cs"))


def test_pairs_are_english_if_half_of_them_are() -> None:
    english, german = (
        Pair(document=ENGLISH, summary="It votes."),
        Pair(document=GERMAN, summary="Er will es."),
    )
    assert are_english([english, german])
    assert not are_english([english, german, german])
    assert not are_english([])
