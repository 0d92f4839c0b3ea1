"""Principal sentences share most with the rest of their passage, and stay in it."""

from precis_experiments.gap_sentence_pairs import SENTENCES, gap_sentence_pairs, principal_sentences

RIVER = [
    "It rained on Monday and nobody went out at all.",
    "The river rose over the bridge and the town closed the bridge.",
    "The town asked all who live at the river to leave.",
    "The bridge over the river was open again on Friday for all the town.",
    "A dog barked twice at the moon over there.",
    "Children drew pictures of boats with red sails.",
]


def test_the_sentence_that_shares_most_words_with_the_others_is_chosen_and_the_order_is_the_texts() -> None:
    assert principal_sentences(RIVER, 1) == [1]
    assert principal_sentences(RIVER, 2) == [1, 3]


def test_sentences_of_few_words_are_never_principal() -> None:
    assert principal_sentences(["The bridge."] * 8, 1) == []


def test_a_pair_is_a_passage_with_sentences_of_it_and_does_not_depend_on_its_company() -> None:
    text = " ".join(f"{sentence[:-1]} in year {n}." for n in range(20) for sentence in RIVER)
    pairs = list(gap_sentence_pairs([text] * 30, seed=4))
    assert len({pair["document"] for pair in pairs}) > 20
    assert {pair["summaries"][0].count(" year ") for pair in pairs} == {1, 2}
    for pair in pairs:
        assert SENTENCES[0] <= pair["document"].count(" year ") <= SENTENCES[1]
        assert pair["document"] in text
        first = pair["summaries"][0].split(" year ")[0]
        assert first in pair["document"]
    assert list(gap_sentence_pairs(["", text], seed=4)) == pairs[1:2]


def test_a_text_of_few_sentences_gives_no_pair() -> None:
    assert list(gap_sentence_pairs([" ".join(RIVER[:5])])) == []
