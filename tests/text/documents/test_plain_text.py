"""Chats in plain text: a line for each turn, with its time as the place."""

import re

import pytest

from precis_text.documents.plain_text import passages_of, with_words_joined
from precis_text.documents.reader import read_content
from precis_text.turns import turns_of
from precis_text.units import extraction_units


def test_a_chat_becomes_turns_with_times() -> None:
    text = (
        "14/10/2026, 15:30 - Ann created group \u201cQuay\u201d\n"
        "14/10/2026, 15:31 - Ann: Is the roof\ndone?\n"
        "14/10/2026, 15:32 - Ben: Yes.\n"
        "14/10/2026, 15:33 - Ben: <Media omitted>\n"
    )
    found = read_content(text.encode(), name="chat.txt")
    assert found.text == "Ann: Is the roof done?\nBen: Yes."
    assert found.notes == ["2 lines of the chat program left out"]
    assert [found.at(found.text.index(word)).time for word in ("Ann", "Ben")] == ["15:31", "15:32"]


def test_the_text_before_a_chat_stays() -> None:
    text = "Call of the board\n\nAnn Ode   0:30\nWe start.\n\nBen Lee   0:45\nThe roof leaks."
    found = passages_of(text)
    assert found.text == "Call of the board\n\nAnn Ode: We start.\nBen Lee: The roof leaks."
    assert [str(place) for place in found.places] == ["", "0:30", "0:45"]


def test_a_transcript_without_speakers_has_the_time_of_each_piece() -> None:
    found = passages_of(
        "0:00\nThe board met on\n0:04\nMonday and agreed.\n0:09\nIt builds the\n0:12\nquay in May."
    )
    assert found.text == "The board met on Monday and agreed. It builds the quay in May."
    assert found.at(found.text.index("quay")).time == "0:12"


def test_prose_is_not_touched() -> None:
    text = "Ann came at 10:30.\r\n\u00adIt rained."
    assert passages_of(text).text == text


def test_messages_of_an_export_of_discord_have_speakers() -> None:
    text = "[14-Mar-26 10:30 PM] Ann Ode\nThe quay is dear.\n\n[14-Mar-26 10:31 PM] Ben\nWho pays?\n"
    assert passages_of(text).text == "Ann Ode: The quay is dear.\nBen: Who pays?"


def test_the_frame_of_a_transcript_of_teams_is_neither_spoken_nor_a_speaker() -> None:
    said = "Ann Lee   0:04\nThe roof leaks.\n\nBob Day   0:09\nI call the firm."
    said += "\n\nAnn Lee   0:11\nGood.\n\nBob Day   0:14\nI will."
    head = "Weekly call-Recording\n12 May 2026, 10:00AM\n25m 3s\n\nAnn Lee started transcription"
    talk = f"{head}\n\n{said}\n\nAnn Lee stopped transcription\n"
    found = read_content(talk.encode(), name="a.txt")
    assert found.text.endswith(
        "25m 3s\n\nAnn Lee: The roof leaks.\nBob Day: I call the firm.\nAnn Lee: Good.\nBob Day: I will."
    )
    assert found.notes == ["2 lines of the chat program left out"]
    units = extraction_units(found.text)
    assert {unit.speaker for unit in units if not unit.heading} == {"Ann Lee", "Bob Day"}


def test_the_frame_of_a_transcript_of_google_meet_is_left_out() -> None:
    head = "Call - Transcript\nAttendees\nAnn Lee, Bob Day\nTranscript\n00:00:00"
    said = "Ann Lee: The roof leaks.\n\n00:05:00\n\nBob Day: I call the firm.\n\n00:10:00\n\nAnn Lee: Good."
    end = "Transcription ended after 00:12:03\n\nThis editable transcript was computer generated."
    talk = f"{head}\n\n{said}\n\n{end}\n"
    found = read_content(talk.encode(), name="a.txt")
    assert found.text.split("\n\n") == [
        "Call - Transcript", "Ann Lee: The roof leaks.", "Bob Day: I call the firm.", "Ann Lee: Good.",
    ]  # fmt: skip
    assert found.at(found.text.index("firm")).time == "00:05:00"
    assert found.notes == ["3 lines of the chat program left out"]


@pytest.mark.parametrize("line", ["2 replies", "1 reply", "3 replies Last reply 2 days ago", "View thread"])
def test_lines_of_slack_below_a_message_are_left_out(line: str) -> None:
    chat = f"Ann Lee  9:02 AM\nThe roof leaks again.\n{line}\nBob Day  9:04 AM\nI call the firm.\n"
    assert (
        read_content(chat.encode(), name="a.txt").text
        == "Ann Lee: The roof leaks again.\nBob Day: I call the firm."
    )


def test_reactions_of_slack_are_left_out_and_counted() -> None:
    chat = "Ann Lee  9:02 AM\nThe roof leaks again.\n:eyes: 3 :+1: 2\nBob Day  9:04 AM\nI call the firm.\n:tada:\n1\n"
    found = read_content(chat.encode(), name="a.txt")
    assert found.text == "Ann Lee: The roof leaks again.\nBob Day: I call the firm."
    assert found.notes == ["2 lines of the chat program left out"]
    kept = "Ann Lee  9:02 AM\n:tada:\nBob Day  9:04 AM\nOn 3: we won :tada:\n"
    assert read_content(kept.encode(), name="a.txt").text == "Ann Lee: :tada:\nBob Day: On 3: we won :tada:"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "El plan de la ciudad es para el de-\nsarrollo, y con los vecinos el con-\nsejero lo firma.",
            "desarrollo consejero",
        ),
        (
            "Das Geld kommt aus dem Haushalt, und an dem Tag hat der Aus-\nschuss ihn an-\ngenommen.",
            "Ausschuss angenommen",
        ),
        (
            "Die Buerger und Kinder sind da, und der Buerger-\nmeister ist am Kinder-\nspielplatz.",
            "Buergermeister Kinderspielplatz",
        ),
        (
            "Elles sont là pour les gens et par les gens, et vont pour-\nsuivre un par-\nticulier.",
            "poursuivre particulier",
        ),
    ],
)
def test_a_divided_word_of_another_language_than_english_is_one_word(text: str, words: str) -> None:
    assert set(words.split()) <= set(with_words_joined(text)[0].replace(",", "").replace(".", "").split())


WHOLE_WORDS = """out-rigger for-mation in-form per-form them-selves use-less region-al short-age where-as over-come
    news-paper life-time further-more when-ever under-class inter-related"""


@pytest.mark.parametrize(
    "others", ["long-\nterm plan of the well-\nknown man", "brid-\nges and the wa-\nter"]
)
def test_a_divided_english_word_is_one_word_where_its_parts_are_words_by_chance(others: str) -> None:
    for word in WHOLE_WORDS.split():
        first, second = word.split("-")
        text = f"The {others} are there for the news.\nOut of the region we see {first}-\n{second} of it.\n"
        text += f"It is the {first} and the {second} that they have over here in their life.\n"
        joined = with_words_joined(text)[0].split()
        assert first + second in joined
        assert {"long-term", "well-known"} <= {*joined} or {"bridges", "water"} <= {*joined}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a short-\nor long-term plan of the town", "a short- or\nlong-term"),
        ("for ten-\nto twelve-year-old pupils of the ten", "ten- to\ntwelve-year-old"),
        ("a two-\nand four-year plan of the town", "two- and\nfour-year"),
        ("a seventy-\nor eighty-year plan of the town", "seventy- or\neighty-year"),
        ("die US-\nund EU-Gesetze der Stadt", "US- und\nEU-Gesetze"),
        ("die Haupt-\nsowie Nebenkosten der Stadt", "Haupt- sowie\nNebenkosten"),
        ("die Haupt-\nbzw. Nebenkosten der Stadt", "Haupt- bzw.\nNebenkosten"),
        ("la micro-\net macroéconomie de la ville", "micro- et\nmacroéconomie"),
        ("la macro-\ny microeconomía de la ciudad", "macro- y\nmicroeconomía"),
        ("the mother-\nin-law of the mayor", "mother-in-law\nof"),
        ("a state-\nof-the-art wall of the town", "state-of-the-art\nwall"),
        ("the rock-\nand-roll of the town", "rock-and-roll\nof"),
        ("the infor-\nmation-based plan of the town", "information-based\nplan"),
        ("Il est là aujour-\nd'hui avec les gens de la ville", "aujourd'hui\navec"),
        ("the wall of Arn-\nstead's town", "Arnstead's\ntown"),
        ("take the foo-\nbar.tgz from the disk", "foo-\nbar.tgz"),
        ("def f(a, b): return a-\nb", "return a-\nb"),
        ("the pho-\nto of the town", "photo\nof"),
        ("the cabin-\net of the town", "cabinet\nof"),
    ],
)
def test_a_divided_word_is_taken_as_a_whole_and_not_joined_with_a_conjunction(text: str, read: str) -> None:
    others = {"die": "Es ist die brü-\ncken", "la": "la vi-\nlle", "Il": "la vi-\nlle"}
    more = others.get(text.split()[0], "It is the brid-\nges of it.")
    document = f"{text}\n{more}\n"
    assert read in with_words_joined(document)[0]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "Wir haben heute mit der Stadt und der Hafen-\nverwaltung über den Kai gesprochen.",
            "Hafenverwaltung",
        ),
        ("Il est là avec les gens de la ville pour le trans-\nport du sable.", "transport"),
        ("On ne sait pas si les gens de la ville vont au port, peut-\nêtre demain.", "peut-être"),
        ("El barco es de la ciudad y se va con los pesca-\ndores por la noche.", "pescadores"),
        ("It is the wall of the town, and there is no infor-\nmation on it for the people.", "information"),
        ("It is the wall of the town, and there is a light-\nblue sign on it for the people.", "light-"),
        ("def f(a, b): return a-\nb", "a-"),
    ],
)
def test_a_single_divided_word_is_joined_where_it_is_surely_one(text: str, read: str) -> None:
    assert read in with_words_joined(text)[0].split()


HYPHENS = {
    "It is the wall of the town, and there is a {} in it for the people.": """self-control Cost-benefit two-thirds
        all-out follow-up read-only co-op co-author half-eaten seventy-five e-mail x-ray US-led T-shirt --dry-run""",
    "Das Haus der Stadt ist für die {} da, und das ist es.": "US-amerikanische x-beliebige E-mail U-förmige",
    "Elle est là pour les gens et dans la ville, {} le soir et la nuit.": """Est-ce Celui-ci ceux-ci vingt-cinq
        dix-neuf porte-monnaie arc-en-ciel allez-y a-t-il""",
}


@pytest.mark.parametrize(
    ("text", "word"), [(text, word) for text in HYPHENS for word in HYPHENS[text].split()]
)
@pytest.mark.parametrize("more", ["", " brid-\nges brid-\nges"])
def test_a_hyphen_that_belongs_to_a_word_stays_at_the_end_of_a_line(text: str, word: str, more: str) -> None:
    divided = re.sub(r"(?<=\w)-", "-\n", word, count=1)
    read, joined = with_words_joined(text.format(divided) + more)
    assert word in read.replace(",", "").split()
    assert joined == 1 + 2 * bool(more)


NO_HYPHENS = {
    "It is the wall of the town, and there is a {} in it for the people. brid-\nges": """self-ish six-teen seven-ty
        two-fold beyond--beauti-ful all-owed co-operate cost-ly read-ers follow-ers half-way three-some eight-een""",
    "Elle est là pour les gens et dans la ville, {} le soir et la nuit.": "mer-ci moy-en six-ième pla-ce va-leur",
    "El barco es de la ciudad y se va con los {} por la noche. vi-\nlla": "e-jemplos co-legas",
}


@pytest.mark.parametrize(
    ("text", "word"), [(text, word) for text in NO_HYPHENS for word in NO_HYPHENS[text].split()]
)
def test_a_divided_word_that_only_begins_like_a_compound_is_one_word(text: str, word: str) -> None:
    divided = re.sub(r"(?<!-)-(?!-)", "-\n", word)
    assert divided.replace("-\n", "") in with_words_joined(text.format(divided))[0].split()


def test_posts_of_a_forum_lose_what_they_quote_and_their_signatures() -> None:
    posts = (
        "Thread: A loud pump?\n\n#1\nann_ode\nJoined: Nov 2022\n\nOur pump is loud. What can I do?\n\n"
        "#2\nBen L.\n\nOpen the valve.\n________________\n30 years of pumps.\n\n"
        "#3\nann_ode\nQuote:\nOriginally Posted by Ben L.\nOpen the valve.\n\nUPDATE: it is quiet now.\n"
    )
    found = read_content(posts.encode(), name="a.txt")
    assert found.text.split("\n\n")[1].split("\n") == [
        "ann_ode: Our pump is loud. What can I do?", "Ben L.: Open the valve.", "ann_ode: UPDATE: it is quiet now.",
    ]  # fmt: skip
    assert found.notes == ["quotations and signatures of posts left out"]
    assert [unit.speaker for unit in extraction_units(found.text)][1:] == ["ann_ode", "Ben L.", "ann_ode"]


PUMPS = (
    "#1\nAnn Lee\nSenior Member\nJoined: May 2010\nMy pump leaks. Which one?\n\n"
    "#2\nBob\nThe green one.\nIt is cheap.\n\n"
)
QUOTE = "Quote:\nOriginally Posted by Bob\n"


@pytest.mark.parametrize(
    ("post", "said"),
    [
        (f"{QUOTE}The green one.\nDo not: mine burst.", "Do not: mine burst."),
        (f"{QUOTE}The green\none. It is\nDo not.", "Do not."),
        (f"{QUOTE}The green one.\nMy pump leaks.", "My pump leaks."),
        (f"{QUOTE}The gree\nDo not.", "Quote: Originally Posted by Bob The gree Do not."),
        (f"{QUOTE}The red one.\nDo not.", "Quote: Originally Posted by Bob The red one. Do not."),
        (f"{QUOTE}The green one.", "Quote: Originally Posted by Bob The green one."),
        (f"{QUOTE}The green one.\n\nDo not.", "Do not."),
        (
            "Joined: three firms that had fought.\nThey merged.",
            "Joined: three firms that had fought. They merged.",
        ),
        (
            "Location: the pump is in my old cellar\nIt leaks.",
            "Location: the pump is in my old cellar It leaks.",
        ),
        ("Location: Olm\nPosts: 1,204\nIt leaks.", "It leaks."),
        ("It leaks.\n____________\nPumps are all\nmy life.", "It leaks."),
        ("It\n____________\nleaks.\n\nSo it does.", "It ____________ leaks. So it does."),
    ],
)
@pytest.mark.parametrize("behind", ["", "\n\n#4\nBob\nSo?"])
def test_of_a_post_only_what_an_earlier_one_says_is_taken_for_a_quotation(
    post: str, said: str, behind: str
) -> None:
    posts = f"{PUMPS}#3\nCem\n{post}{behind}\n"
    assert read_content(posts.encode(), name="a.txt").text.split("\n")[2] == f"Cem: {said}"
    assert turns_of(posts)[2].text == said
