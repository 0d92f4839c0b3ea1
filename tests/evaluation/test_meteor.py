"""METEOR: the 2005 paper's formula, nltk's figures, and a signature that says what was matched."""

import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from nltk.translate.meteor_score import meteor_score

from precis.evaluation import meteor as module
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.scoring import score
from precis.evaluation.significance import Bootstrap
from precis_text.errors import UserError

_PREDICTIONS = [
    "When did the mill burn down?",
    "Who burned the mills?",
    "",
    "Which big river runs through Arlen?",
]
_REFERENCES = [
    ["When did the mill burn down?"],
    ["Who burns the mill?", "By whom was it burned?"],
    ["Why?"],
    ["What vast stream runs through Arlen?"],
]


class Thesaurus:
    """What nltk asks of WordNet, with one synset: big, large, vast."""

    def ensure_loaded(self) -> None:
        """Nothing."""

    def get_version(self) -> str:
        return "0.1"

    def synsets(self, word: str) -> list[SimpleNamespace]:
        lemmas = [SimpleNamespace(name=lambda name=name: name) for name in ("big", "large", "vast")]
        return [SimpleNamespace(lemmas=lambda: lemmas)] if word in ("big", "large", "vast") else []


@pytest.fixture
def thesaurus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thesaurus]:
    made = Thesaurus()
    module._synsets.cache_clear()
    monkeypatch.setattr(module, "_wordnet", lambda: made)
    yield made
    module._synsets.cache_clear()


def test_the_formula_is_the_papers() -> None:
    """Four of five words match in two runs: P = 4/5, R = 4/6, mean = 10PR / (R + 9P), penalty = 0.5 (2/4)^3."""
    mean = 10 * (4 / 5) * (4 / 6) / (4 / 6 + 9 * 4 / 5)
    expected = 100 * mean * (1 - 0.5 * (2 / 4) ** 3)
    found = Meteor().score(["the cat saw a dog"], [["the cat and then a dog"]])
    assert found == pytest.approx([expected])


def test_without_wordnet_the_figures_are_nltks_on_words_and_stems() -> None:
    nothing = SimpleNamespace(synsets=lambda word: [])
    plain = [text.lower().replace("?", " ?") for text in _PREDICTIONS]
    targets = [[text.lower().replace("?", " ?").split() for text in texts] for texts in _REFERENCES]
    theirs = [100 * meteor_score(t, p.split(), wordnet=nothing) for t, p in zip(targets, plain, strict=True)]
    assert Meteor().score(_PREDICTIONS, _REFERENCES) == pytest.approx(theirs, rel=1e-12)
    assert theirs[1] > 90  # burned, burns and mills, mill share stems


def test_synonyms_match_where_wordnet_is_at_hand(thesaurus: Thesaurus) -> None:
    assert synonyms_at_hand() == "wordnet"
    without = Meteor().score(_PREDICTIONS, _REFERENCES)
    found = Meteor(synonyms="wordnet")
    assert (found.score(_PREDICTIONS, _REFERENCES) - without > 1).tolist() == [False, False, False, True]
    assert "|match:exact,porter,wordnet-0.1|" in found.signature


def test_nltk_looks_synonyms_up_by_stems_and_misses_those_that_are_no_words(thesaurus: Thesaurus) -> None:
    """Its matcher passes stems on: "large" is left as "larg", which no synset holds."""
    scores = Meteor(synonyms="wordnet").score(
        ["a big mill", "a big mill"], [["a vast mill"], ["a large mill"]]
    )
    assert scores[0] > scores[1] == Meteor().score(["a big mill"], [["a large mill"]])[0]


def test_a_missing_wordnet_is_said_and_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_wordnet", lambda: None)
    assert synonyms_at_hand() == "none"
    with pytest.raises(UserError, match=r"nltk does not find WordNet; download it with .* NLTK_DATA"):
        Meteor(synonyms="wordnet")


def test_an_incomplete_wordnet_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("no index.sense")

    corpus = SimpleNamespace(wordnet=SimpleNamespace(ensure_loaded=broken))
    monkeypatch.setitem(sys.modules, "nltk.corpus", corpus)
    with pytest.raises(UserError, match="the WordNet that nltk finds is incomplete"):
        module._wordnet.__wrapped__()


def test_the_signature_names_every_choice() -> None:
    signature = Meteor(alpha=0.85, beta=0.2, gamma=0.6).signature
    assert signature.startswith(
        "meteor|alpha:0.85|beta:0.2|gamma:0.6|match:exact,porter|case:lc|tok:13a|refs:max|nltk:"
    )


def test_numbers_change_the_score() -> None:
    torn = ["dog a saw cat the"], [["the cat saw a dog"]]
    assert Meteor(gamma=0).score(*torn) == pytest.approx([100])
    assert Meteor(gamma=0.5).score(*torn) == pytest.approx([50])
    short = ["the cat"], [["the cat saw a dog"]]
    assert Meteor(alpha=0, gamma=0).score(*short) == pytest.approx([100])  # precision alone
    assert Meteor(alpha=1, gamma=0).score(*short) == pytest.approx([40])  # recall alone


def test_the_best_reference_counts_and_an_empty_prediction_scores_0() -> None:
    scores = Meteor().score(_PREDICTIONS, _REFERENCES)
    alone = [Meteor().score([_PREDICTIONS[1]], [[reference]])[0] for reference in _REFERENCES[1]]
    assert scores[1] == max(alone) > min(alone)
    assert scores[2] == 0


def test_the_report_has_its_interval_its_signature_and_every_example() -> None:
    from precis.data.pairs.pair import Pair

    pairs = [Pair("Text.", texts[0], tuple(texts)) for texts in _REFERENCES]
    systems = {"mine": _PREDICTIONS, "none": [""] * 4}
    report = score(
        systems, pairs, scorers={"meteor": Meteor()}, baselines=(), intervals=Bootstrap(samples=50)
    )
    mine = report.system("mine")
    values = Meteor().score(_PREDICTIONS, _REFERENCES)
    assert mine.metrics["meteor"].mean == pytest.approx(values.mean())
    assert mine.metrics["meteor"].low < values.mean() < mine.metrics["meteor"].high
    np.testing.assert_array_equal(mine.examples["meteor"], values)
    assert report.signatures["meteor"] == Meteor().signature
    assert report.compare("mine", "none")["meteor"].difference.mean == pytest.approx(values.mean())
    assert "METEOR" in report.markdown()


@pytest.mark.parametrize("wrong", [{"alpha": 1.1}, {"gamma": -0.1}, {"beta": -1}])
def test_impossible_numbers_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match=f"METEOR: {next(iter(wrong))}="):
        Meteor(**wrong)  # type: ignore[arg-type]


def test_the_ends_of_the_ranges_are_possible() -> None:
    assert Meteor(alpha=0, beta=0, gamma=0).score(["a cat"], [["a cat"]]) == pytest.approx([100.0])
    assert Meteor(alpha=1, beta=0, gamma=1).score(["a cat"], [["a cat"]]) == pytest.approx([0.0])


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(UserError, match="at least one"):
        Meteor()([], [])
    with pytest.raises(UserError, match="lacks a reference"):
        Meteor().score(["a"], [[]])


def test_it_is_fast_enough_for_thousands_of_questions() -> None:
    start = time.perf_counter()
    Meteor().score(_PREDICTIONS * 500, _REFERENCES * 500)
    assert time.perf_counter() - start < 5  # 12,000 pairs in half a minute at the worst
