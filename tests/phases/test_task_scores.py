"""What is reported of a task by default, and what asking changes."""

import pytest

from precis.data.pairs.pair import Pair
from precis.errors import UserError
from precis.evaluation.meteor import Meteor
from precis.evaluation.report import evaluate
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap
from precis.phases.task_scores import scores_for


@pytest.mark.parametrize("name", ["squad-qg", "squad-qg-zhao"])
def test_questions_are_scored_by_bleu_meteor_and_rouge_l_without_baselines(name: str) -> None:
    scores = scores_for(name, rouge=Rouge())
    assert scores.rouge.types == ("rougeL",)
    assert sorted(scores.scorers) == ["bleu", "meteor"]
    assert scores.baselines == ()
    assert len(scores_for(name, rouge=Rouge(), baselines=True).baselines) == 3


@pytest.mark.parametrize("name", ["samsum", "e2e", None])
def test_all_else_is_scored_as_before(name: str | None) -> None:
    scores = scores_for(name, rouge=Rouge(stemmer=False))
    assert (scores.rouge, scores.scorers) == (Rouge(stemmer=False), {})
    assert [baseline.name for baseline in scores.baselines] == ["LEAD-3", "LONGEST-3", "ORACLE"]
    assert scores_for(name, rouge=Rouge(), baselines=False).baselines == ()
    more = scores_for(name, rouge=Rouge(), with_bleu=True, with_meteor=True)
    assert list(more.scorers) == ["bleu", "meteor"]


def test_a_given_meteor_is_used() -> None:
    mine = Meteor(alpha=0.5)
    assert scores_for(None, rouge=Rouge(), meteor=mine).scorers == {"meteor": mine}
    assert scores_for("squad-qg", rouge=Rouge(), meteor=mine).scorers["meteor"] is mine


def test_case_does_not_count_in_the_bleu_of_questions() -> None:
    pairs = [Pair("Text.", "When did the mill in Arlen burn?")]
    systems = {"mine": ["when did the mill in arlen burn?"]}
    quick = Bootstrap(samples=2)
    for name, expected in (("squad-qg", 100), ("e2e", 30)):
        scores = scores_for(name, rouge=Rouge(), with_bleu=True)
        report = evaluate(systems, pairs, scorers=scores.scorers, baselines=(), intervals=quick)
        assert (report.systems[0].metrics["bleu"].mean >= 99) == (expected == 100)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'squad-qg'"):
        scores_for("squad_qg", rouge=Rouge())
