"""Patterns of words, and what their weights say of a sentence."""

from precis_text.word_patterns import WordPatterns, patterns


def found(text: str, before: str = "", words: str = "the it of", *, is_spoken: bool = False) -> set[str]:
    return set(patterns(text, before, words.split(), is_spoken=is_spoken))


def test_common_words_stand_for_themselves_and_others_for_their_form() -> None:
    assert found("The keel of Olm sank 12 docks, quickly!") >= {
        "the",
        "c",
        "of",
        "C",
        "0",
        "c-s",
        ",",
        "c-ly",
        "!",
    }


def test_pairs_the_beginning_and_the_sentence_before_are_patterns() -> None:
    some = found("It's the keel of it.", "Did it sink?", "the it it's of did")
    alone = {"it's", "the", "c", "of", "it", "."}
    pairs = {"^ it's", "it's the", "the c", "c of", "of it", "it .", ". $"}
    begins = {"0:it's", "1:the", "2:c", "3:of", "^ it's the c"}
    assert some == alone | pairs | begins | {"after:?", "written"}
    assert found("It", is_spoken=True) >= {"^ it", "it $", "^ it $", "after:", "spoken"}


def test_a_curly_apostrophe_is_a_straight_one() -> None:
    assert found("It’s", words="it's") == found("It's", words="it's")


def test_a_sentence_has_the_sum_of_the_weights_of_its_patterns_once_each() -> None:
    model = WordPatterns(frozenset(["the"]), {"the": 0.5, "the c": -0.25, "it": 9.0})
    assert model.score("The keel and the mast", "", is_spoken=False) == 0.25


def test_what_was_learnt_takes_a_bare_reaction_for_worse_than_a_statement() -> None:
    learnt = WordPatterns.learnt()
    bad = learnt.score("Yeah, that is what I meant with it.", "Is it so?", is_spoken=True)
    assert bad > learnt.score("The harbour office will close the bridge in May.", "", is_spoken=True) + 1
