"""The rule-based sentence splitter."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precis_text.sentences import split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["The bridge is closed.", "Buses take the tunnel!", "Until when?", "Nobody knows."],
        ["Dr. Moe paid $3.50 for v1.2.3.", "Mrs. Lund paid more."],
        ["J. R. Moe met A. Lund at 5 p.m. on Friday.", "They left early."],
        ["He lives in the U.S. Army base.", "She moved to the U.S.", "Her sister stayed."],
        ["Acme Inc. in Oslo was sold.", "It was bought by Moe Ltd.", "The price is secret."],
        ["See Fig. 3, No. 5 and pp. 7-9.", "No.", "Not that one."],
        ["Well... maybe not.", "Wait...", "Then go… and stay.", "Done…", "Really."],
        ['"Must we?" he asked.', '"Yes!" she said.', "(He left.)", 'She called: "Stop."', "Silence."],
        ["1. Open the lid.", "2. Take it out.", "It was 1999.", "Then it rained."],
        [
            "Apples, e.g. red ones, i.e. ripe ones.",
            "Etc. etc. and so on.",
            "They cite Moe et al. (2018) too.",
        ],
        ["Open a.example/b.html now.", "It took 0.5 s!"],
        ["Кошка спит.", "Где она?", "Дома."],
    ],
)
def test_sentences_joined_by_spaces_are_found_again(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["これは猫です。", "寝ています！", "彼は「はい。」と言った。", "終わり"],
        ["猫在睡觉。", "真的吗？！", "是的。", "是吗？!", "是。", "价格是3。", "好。"],
    ],
)
def test_scripts_without_spaces_are_split_at_their_own_stops(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["बिल्ली सोती है।", "वह कहाँ है?", "घर में॥"],
        ["هل أنت هنا؟", "نعم."],
        ["یہ گھر ہے۔", "وہ بلی ہے۔"],
        ["Կատու է։", "Այո։"],
    ],
)
def test_scripts_with_their_own_full_stops(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not() -> None:
    assert split_sentences("A title\n \nfirst\r\nline. Second") == ["A title", "first line.", "Second"]


@pytest.mark.parametrize("text", ["", " \n\n\t "])
def test_nothing_has_no_sentences(text: str) -> None:
    assert split_sentences(text) == []


@given(st.text(alphabet="aB1I-/ .!?…。।\n\"')(", max_size=60))
def test_no_character_but_white_space_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


RULES_OF = tomllib.loads((Path(__file__).parent / "sentence_rules.toml").read_text("utf-8"))


@pytest.mark.parametrize("language", RULES_OF)
def test_the_published_golden_rules_hold(language: str) -> None:
    table = RULES_OF[language]
    joined = {"".join(case) if table.get("joint") else " ".join(case): case for case in table["cases"]}
    failed = {text: split_sentences(text) for text, case in joined.items() if split_sentences(text) != case}
    assert len(joined) == len(table["cases"])
    assert 1 - len(failed) / len(joined) >= table["least"], failed


def test_a_missing_space_is_recognized_between_two_words() -> None:
    text = "The board met on Friday.The quay costs 18.6 million euros.Work begins in May.Boats wait outside."
    assert split_sentences(text) == [
        "The board met on Friday.", "The quay costs 18.6 million euros.", "Work begins in May.", "Boats wait outside.",
    ]  # fmt: skip


def test_invisible_characters_decide_nothing() -> None:
    text = "The\u200b \u200bqu\u00aday is new.\u200b \u200bWork begins.\u2060 It ends."
    found = split_sentences(text)
    assert len(found) == 3
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_missing_space_is_none_behind_a_title_or_before_capitals() -> None:
    assert split_sentences("They asked Prof.Moe of it.Boats wait.") == [
        "They asked Prof.Moe of it.", "Boats wait.",
    ]  # fmt: skip
    assert split_sentences("They met in May.OK then.New boats wait.They like PCs.PCs work.Boats wait.") == [
        "They met in May.OK then.", "New boats wait.", "They like PCs.PCs work.", "Boats wait.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sentences",
    [
        ["Es stammt aus dem 1. -3. Jahrhundert.", "Es ist alt."],
        ["Ann met Carl I.", "The boat left."],
        ["It closed 5 p.m.", "The boat left."],
        ["He left at 6 p.m.", "Mr. Moe stayed."],
        ["They met in Olm.", "12 boats left."],
        ["They met in Olm.", "J. Moe came."],
        ["they left at 5 p.m.", "the boat stayed."],
        ["Wir blieben bis 12.", "Dann kam Ann."],
        ["1. -3. Jahrhundert nach dem Bau."],
        ["5-2.", "The team won.", "It rained."],
        ["1/2. März war es kalt.", "Es schneite."],
        ["He left. . .", "The boat stayed."],
        ["It was late.", ". . . The boat stayed."],
        ["He came . . . The boat left."],
        ["He came . . . .", "The boat left."],
        ["Lund compared [...] The wall fell."],
        ["They sell boats. eBay takes ten."],
        ["D. h. Der Kai ist zu."],
        ["他说：「走。」", "雨停了。"],
        ["Stop!", ".", "The wall fell."],
        ["Die Miete gilt vom 1. 3. 2025 bis zum 28. 2. 2026.", "Der Hafen zahlt."],
        ["Nájem trvá od 1. 3. 2025.", "Platí se předem."],
        ["Kinder zahlen bis 6.", "7. Klasse und höher zahlen mehr."],
        ["Der Kindergarten ist röm.-kath.", "Die Kinder kommen aus Olm."],
        ["Práce potrvají od 4. 5. do 31. 12. v celém domě.", "Platí město."],
        ["Die Frist endete am 31. 1.", "Die Stadt zahlt."],
        ["They won 2 to 1.", "3 boats sank."],
        ["The pier opened in 1.", "2025 was better."],
        ["Stavba stála 486 tis. Kč a 2 mld. Kč vč. DPH.", "Platí město."],
        ["Die ev.-luth. Kirche hat in Zi. 214 geöffnet.", "Kommen Sie."],
        ["円周率は3．14だ。", "長い。"],
    ],
)
def test_initials_hours_centuries_omissions_and_lone_stops(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


def test_an_invisible_character_within_an_omission_parts_nothing() -> None:
    assert len(split_sentences("He came . \u200b . . The boat left.")) == 1


def test_an_invisible_character_before_a_list_is_no_sentence() -> None:
    assert split_sentences("\u200b1. The quay is new. 2. The wall is old.") == [
        "\u200b1. The quay is new.",
        "2. The wall is old.",
    ]


def test_a_long_quotation_is_split() -> None:
    said = " ".join(f"This is sentence {number} of a long speech." for number in range(9))
    assert len(split_sentences(f'She said: "{said}" Nobody spoke.')) == 10
