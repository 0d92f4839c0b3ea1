"""Instructions: enough wordings of each kind, none trained on that is held out, lengths that fit the summary."""

import hashlib
import json
from dataclasses import astuple

import pytest

from precis.data.pairs.pair import Pair
from precis.data.tasks.instructions import GENERAL, KINDS, VERSION, wording_for
from precis_text.errors import UserError

UNIFORMS = [n / 50 for n in range(50)]


def pair(sentences: int) -> Pair:
    return Pair("A document.", " ".join(["Ann sings a song."] * sentences))


def asked(kind: str, sentences: int, *, held_out: bool = False) -> set[str]:
    return {wording_for(kind, pair(sentences), u, held_out=held_out) for u in UNIFORMS}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_four_wordings_to_train_on_and_two_others(name: str) -> None:
    assert len(KINDS[name].training) >= 4
    assert len(KINDS[name].held_out) >= 2


def test_no_held_out_wording_is_trained_on_in_any_kind() -> None:
    trained = {wording.text.lower() for kind in KINDS.values() for wording in kind.training}
    held_out = [wording.text.lower() for kind in KINDS.values() for wording in kind.held_out]
    own = [w.text.lower() for name, kind in KINDS.items() if "-" not in name for w in kind.held_out]
    assert len(own) == len(set(own))
    assert trained.isdisjoint(held_out)


def test_documents_in_another_language_are_asked_about_in_english_and_in_that_language() -> None:
    other = [name for name in KINDS if "-" in name]
    assert {name.rpartition("-")[2] for name in other} == {"cs", "de", "es", "fr", "ru", "tr", "vi"}
    for name in other:
        base = KINDS[name.rpartition("-")[0]]
        for part in ("training", "held_out"):
            english, both = getattr(base, part), getattr(KINDS[name], part)
            assert both[: len(english)] == english
            own = [wording.text for wording in both[len(english) :]]
            assert own
            assert not set(own) & {wording.text for wording in english}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("held_out", [False, True])
def test_every_summary_finds_more_than_one_wording(name: str, held_out: bool) -> None:
    for sentences in (0, 1, 2, 3, 7, 30):
        assert len(asked(name, sentences, held_out=held_out)) >= 2 - held_out


@pytest.mark.long
def test_a_wording_that_names_a_length_goes_to_summaries_of_that_length_alone() -> None:
    for name, kind in KINDS.items():
        for held_out, wordings in ((False, kind.training), (True, kind.held_out)):
            for sentences in range(1, 13):
                given = asked(name, sentences, held_out=held_out)
                words = f"{-(-4 * sentences // 10) * 10}"
                for wording in wordings:
                    expected = wording.sentences is None or (
                        wording.sentences[0] <= sentences <= wording.sentences[1]
                    )
                    assert (wording.text.replace("{words}", words) in given) == expected


def test_a_wording_that_names_words_has_the_summarys_rounded_up_to_a_ten() -> None:
    summary = " ".join(["word"] * 31)
    long = Pair("A document.", summary)
    asked = {wording_for("document", long, n / 100) for n in range(100)}
    assert "Summarize the following text in at most 40 words:" in asked
    assert not any("{" in text for text in asked)


ABOUT_SENTENCES = ("acceptability", "sentiment", "paraphrase", "similarity", "question_inference")


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ABOUT_SENTENCES])
def test_a_wording_that_speaks_of_sentences_to_write_has_bounds(name: str) -> None:
    for wording in (*KINDS[name].training, *KINDS[name].held_out):
        if "sentence" in wording.text or "one paragraph" in wording.text:
            assert wording.sentences is not None, wording.text


def test_the_length_of_the_default_for_abstracts_is_one_sentence() -> None:
    one = "Summarize the following abstract in one sentence:"
    assert one in asked("abstract", 1)
    assert one not in asked("abstract", 2)


def test_equal_numbers_give_equal_wordings_and_all_are_reached() -> None:
    assert wording_for("news", pair(1), 0.3) == wording_for("news", pair(1), 0.3)
    fitting = {wording.text for wording in KINDS["news"].training if wording.fits(1)}
    assert asked("news", 1) == fitting


def test_the_general_wording_belongs_to_every_kind_that_asks_for_a_summary_in_the_same_language() -> None:
    without = {name for name, kind in KINDS.items() if GENERAL not in [w.text for w in kind.training]}
    assert without == {
        "headline",
        "how_to_in_english",
        "email_subject",
        "facts",
        "question",
        "simplification",
        "answer",
        "response",
        "acceptability",
        "sentiment",
        "paraphrase",
        "similarity",
        "duplicate_question",
        "inference",
        "question_inference",
        *(f"how_to_in_english-{language}" for language in ("es", "ru", "tr", "vi")),
        "simplification-de",
        *("into_english", "into_german", "into_french", "into_czech"),
        *(f"into_english-{language}" for language in ("de", "fr", "cs")),
    }
    assert all(GENERAL not in [w.text for w in kind.held_out] for kind in KINDS.values())


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown kind of instruction 'dialog'; did you mean 'dialogue'"):
        wording_for("dialog", pair(1), 0.5)


@pytest.mark.parametrize("uniform", [-0.1, 1.0])
def test_numbers_outside_the_unit_interval_are_refused(uniform: float) -> None:
    with pytest.raises(ValueError, match="must be in"):
        wording_for("news", pair(1), uniform)


def test_the_wordings_are_those_of_the_named_version() -> None:
    """A run is refused another version's wordings on resume; whoever changes one changes `VERSION` and this digest.

    A new kind changes the digest alone: no run that could be resumed was trained on it.
    """
    text = json.dumps({name: astuple(kind) for name, kind in KINDS.items()})
    assert (VERSION, hashlib.sha256(text.encode()).hexdigest()[:16]) == (
        "precis-wordings-2",
        "d9dc83676e0c92a8",
    )
