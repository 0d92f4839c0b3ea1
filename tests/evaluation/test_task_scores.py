"""The scorers of answers, labels, BLEU, METEOR, chrF and TER: on 500 texts exactly what their references say."""

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu
from nltk.translate.meteor_score import meteor_score
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from scipy import stats
from sklearn import metrics

from precis.data.pairs.pair import Pair
from precis.evaluation.answer_metrics import (
    accuracy,
    answer_f1,
    exact_match,
    f1_of,
    matthews,
    pearson,
    spearman,
)
from precis.evaluation.meteor import Meteor
from precis.evaluation.sacrebleu_scores import bleu, chrf, ter
from precis.evaluation.scoring import Scorer, score
from precis.evaluation.significance import Bootstrap
from precis.evaluation.task_scores import Majority, has_labels, label_measure, rouge_types, task_scorers
from precis_text.errors import UserError

WORDS = (
    "the",
    "a",
    "an",
    "river",
    "Oslo,",
    "bridge's",
    "12",
    "old",
    "(new)",
    "U.S.",
    "größte",
    "мост",
    "and,",
    "The",
)
ROWS = 500


def texts(seed: int, *, empty: bool = True) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0 if empty else 1, 12))) for _ in range(ROWS)]


def several(seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    drawn = [texts(seed + number, empty=False) for number in range(3)]
    return [[text[row] for text in drawn[: rng.randint(1, 3)]] for row in range(ROWS)]


PREDICTIONS, REFERENCES = texts(1), several(2)
PADDED = [[targets[i] if i < len(targets) else None for targets in REFERENCES] for i in range(3)]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_is_sacrebleus(lowercase: bool) -> None:
    ours = bleu(PREDICTIONS, REFERENCES, lowercase=lowercase)
    theirs = sacrebleu.corpus_bleu(PREDICTIONS, PADDED, lowercase=lowercase)
    assert 0 < ours.score == theirs.score < 100
    assert ours.resampled(np.arange(ROWS)) == theirs.score


def test_meteor_is_nltks_on_sacrebleus_words() -> None:
    words = Tokenizer13a()
    nothing = SimpleNamespace(synsets=lambda word: [])
    split = lambda text: words(text).lower().split()  # noqa: E731
    theirs = [
        100 * meteor_score([split(target) for target in targets], split(text), wordnet=nothing)
        for text, targets in zip(PREDICTIONS, REFERENCES, strict=True)
    ]
    assert Meteor()(PREDICTIONS, REFERENCES).examples.tolist() == theirs


def test_chrf_and_ter_are_sacrebleus() -> None:
    assert chrf(PREDICTIONS, REFERENCES).score == sacrebleu.corpus_chrf(PREDICTIONS, PADDED).score
    assert ter(PREDICTIONS, REFERENCES).score == sacrebleu.corpus_ter(PREDICTIONS, PADDED).score
    version = f"version:{sacrebleu.__version__}"
    assert chrf(PREDICTIONS, REFERENCES).signature.endswith(f"nc:6|nw:0|space:no|{version}")
    assert ter(PREDICTIONS, REFERENCES).signature.endswith(
        f"case:lc|tok:tercom|norm:no|punct:yes|asian:no|{version}"
    )


def squad_normalize(text: str) -> str:
    """What the official script says it does, step by step."""
    without = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", without).split())


def squad_f1(prediction: str, target: str) -> float:
    mine, theirs = squad_normalize(prediction).split(), squad_normalize(target).split()
    same = sum((Counter(mine) & Counter(theirs)).values())
    if same == 0:
        return 0.0
    precision, recall = 1.0 * same / len(mine), 1.0 * same / len(theirs)
    return (2 * precision * recall) / (precision + recall)


def test_exact_match_and_f1_follow_squads_rules() -> None:
    matched = [
        max(squad_normalize(text) == squad_normalize(target) for target in targets)
        for text, targets in zip(PREDICTIONS, REFERENCES, strict=True)
    ]
    overlap = [
        100 * max(squad_f1(text, target) for target in targets)
        for text, targets in zip(PREDICTIONS, REFERENCES, strict=True)
    ]
    assert exact_match(PREDICTIONS, REFERENCES).examples.tolist() == [100.0 * match for match in matched]
    assert answer_f1(PREDICTIONS, REFERENCES).examples.tolist() == overlap


@pytest.mark.parametrize(
    ("prediction", "target", "match", "f1"),
    [
        ("The Oslo!", "oslo", 100, 100),
        ("U.S.", "us", 100, 100),
        ("theatre", "atre", 0, 0),
        ("Oslo in Norway", "Norway", 0, 50),
        ("a", "the", 100, 0),  # nothing is left of either: equal, yet no word is common, as the script has it
    ],
)
def test_the_rules_of_squad_by_hand(prediction: str, target: str, match: float, f1: float) -> None:
    assert exact_match([prediction], [[target]]).score == match
    assert answer_f1([prediction], [[target]]).score == pytest.approx(f1)


def labels(seed: int, names: Sequence[str]) -> list[str]:
    return random.Random(seed).choices(names, k=ROWS)


def test_accuracy_f1_and_matthews_are_scikit_learns_and_an_unknown_text_is_wrong() -> None:
    wanted, given = labels(3, ["yes", "no"]), labels(4, ["yes", "no", "perhaps", ""])
    as_lists = [[label] for label in wanted]
    others = [text if text in ("yes", "no") else "other" for text in given]
    right = accuracy(given, as_lists).examples.tolist()
    assert sum(right) == 100 * metrics.accuracy_score(wanted, given, normalize=False)
    assert matthews(given, as_lists).score == 100 * metrics.matthews_corrcoef(wanted, others)
    theirs = metrics.f1_score([w == "yes" for w in wanted], [g == "yes" for g in given])
    assert f1_of("yes", given, as_lists).score == 100 * theirs


def test_pearson_and_spearman_are_scipys_and_what_is_no_number_is_minus_one() -> None:
    rng = random.Random(5)
    wanted = [f"{rng.uniform(0, 5):.2f}" for _ in range(ROWS)]
    given = [rng.choice([f"{rng.uniform(0, 5):.1f}", "very", "nan", ""]) for _ in range(ROWS)]
    numbers = [float(text) if text[:1].isdigit() else -1.0 for text in given]
    as_lists, truth = [[text] for text in wanted], [float(text) for text in wanted]
    assert pearson(given, as_lists).score == 100 * stats.pearsonr(truth, numbers).statistic
    assert spearman(given, as_lists).score == 100 * stats.spearmanr(truth, numbers).statistic
    assert pearson(["1"], [["2"]]).score == 0
    assert pearson(["1", "3"], [["2"], ["8"]]).score == pytest.approx(100)


ALL: dict[str, tuple[Scorer, Any]] = {
    "bleu": (bleu, None),
    "meteor": (Meteor(), None),
    "chrf": (chrf, None),
    "ter": (ter, None),
    "exact match": (exact_match, None),
    "answer f1": (answer_f1, None),
    "accuracy": (accuracy, ["yes", "no"]),
    "matthews": (matthews, ["yes", "no"]),
    "f1": (partial(f1_of, "yes"), ["yes", "no"]),
    "pearson": (pearson, ["1.0", "2.5", "4"]),
    "spearman": (spearman, ["1.0", "2.5", "4"]),
}


@pytest.mark.parametrize("name", ALL)
def test_a_resample_is_scored_as_its_texts_are(name: str) -> None:
    scorer, values = ALL[name]
    given = PREDICTIONS if values is None else labels(6, values)
    wanted = REFERENCES if values is None else [[text] for text in labels(7, values)]
    rows = np.random.default_rng(0).integers(0, ROWS, size=ROWS)
    again = scorer([given[row] for row in rows], [wanted[row] for row in rows])
    assert "array" not in repr(again)
    assert scorer(given, wanted).resampled(rows) == pytest.approx(again.score, abs=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_no_prediction_is_an_error(name: str) -> None:
    with pytest.raises(UserError, match="at least one"):
        ALL[name][0]([], [])


@pytest.mark.parametrize("scorer", [matthews, pearson, spearman])
def test_predictions_that_are_all_the_same_correlate_with_nothing(scorer: Callable[..., Any]) -> None:
    assert scorer(["1", "1", "1"], [["1"], ["2"], ["3"]]).score == 0


def test_a_reference_that_is_no_number_is_named() -> None:
    with pytest.raises(UserError, match="the reference of example 2 is 'high'"):
        pearson(["1", "2"], [["1"], ["high"]])


@pytest.mark.parametrize(
    ("names", "types", "measure", "labels"),
    [
        ([], ("rouge1", "rouge2", "rougeL", "rougeLsum"), None, False),
        (["rouge"], ("rouge1", "rouge2", "rougeL", "rougeLsum"), None, False),
        (["rougeL", "bleu", "rouge2"], ("rougeL", "rouge2"), None, False),
        (["accuracy", "f1:yes"], (), "accuracy", True),
        (["matthews", "accuracy"], (), "matthews", True),
        (["pearson", "spearman"], (), "pearson", False),
        (["spearman", "pearson"], (), None, False),
        (["bleu", "accuracy"], (), None, True),
    ],
)
def test_metrics_of_a_task_say_which_rouge_it_has_and_whether_its_answers_are_labels(
    names: list[str], types: tuple[str, ...], measure: str | None, labels: bool
) -> None:
    assert rouge_types(names) == types
    assert label_measure(names) == measure
    assert has_labels(names) == labels


def test_metrics_of_a_task_have_their_scorers_and_questions_have_no_case() -> None:
    found = task_scorers(["rougeL", "f1:yes", "question_bleu", "ter"])
    assert list(found) == ["f1", "bleu", "ter"]
    assert found["f1"](["yes", "no"], [["yes"], ["no"]]).signature.startswith("f1|of:yes|")
    assert found["bleu"](["WHO SINGS HERE TODAY"], [["who sings here today"]]).score == pytest.approx(100)
    assert task_scorers(["bleu"])["bleu"](["WHO SINGS HERE TODAY"], [["who sings here today"]]).score < 1
    with pytest.raises(UserError, match=r"unknown metric 'bluu'; did you mean 'bleu'"):
        task_scorers(["bluu"])


def test_the_most_frequent_label_is_a_baseline_and_no_bound() -> None:
    pairs = [Pair(document=f"Text {place}.", summary=label) for place, label in enumerate("bab")]
    report = score({}, pairs, baselines=[Majority.of(pairs)], intervals=Bootstrap(samples=20))
    (row,) = report.systems
    assert (row.name, row.kind, row.predictions) == ("MAJORITY", "baseline", ["b"] * 3)
    assert Majority.of(pairs[:2]).label == "a"  # as often as "b", and first in the alphabet
    with pytest.raises(UserError, match="zero pairs"):
        Majority.of([])
