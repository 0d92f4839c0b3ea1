"""Verdicts: what an interval decides, and which claims each study is about."""

from typing import Any

import numpy as np
import pytest

from precis.evaluation.significance import Interval
from precis_experiments.claim_verdicts import Claim, between, verdict_rows
from precis_experiments.experiment import gain_interval
from precis_experiments.glue_study import cell as glue_cell
from precis_experiments.glue_study import glue
from precis_experiments.initial_model import GIVEN
from precis_experiments.ngram_study import prophetnet
from precis_experiments.prefix_study import discourse_prefix
from precis_experiments.prefix_tables import cell
from precis_experiments.structure_study import structure_to_text
from precis_experiments.zcodepp_studies import ablation, fewshot

STUDIES = (fewshot, ablation, prophetnet, discourse_prefix, structure_to_text, glue)


def claim(low: float, high: float, runs: int = 3) -> Claim:
    ours = Interval(mean=(low + high) / 2, low=low, high=high, samples=1000)
    return Claim(words="a beats b", source="Table 1", theirs="+1.0", ours=ours, runs=runs)


def found(rougeL: float) -> dict[str, Any]:  # noqa: N803 - the score's own name
    rows = np.linspace(-1, 1, 40) + rougeL
    return {"examples": {name: list(rows) for name in ("rouge1", "rouge2", "rougeL")}, "loss": 2.0}


@pytest.mark.parametrize(
    ("low", "high", "runs", "said"),
    [
        (0.1, 2.0, 3, "decided"),
        (-2.0, -0.1, 3, "contradicted"),
        (-0.1, 2.0, 8, "not decided"),
        (0.0, 3.3, 3, "not decided"),
        (0.1, 2.0, 1, "not decided"),
        (-2.0, -0.1, 1, "not decided"),
        (0.1, 2.0, 2, "not decided"),  # a range of two runs
        (-2.0, -0.1, 2, "not decided"),
    ],
)
def test_an_interval_over_several_runs_decides(low: float, high: float, runs: int, said: str) -> None:
    assert claim(low, high, runs).verdict == said


def test_a_row_has_theirs_ours_scale_and_verdict() -> None:
    never = Claim(words="c beats d", source="Table 2", theirs="", ours=None, runs=0)
    assert verdict_rows([claim(1.0, 3.0), never], "micro") == [
        ["a beats b (Table 1)", "+1.0", "+2.0 [+1.0, +3.0]", "micro, 3 runs", "decided"],
        ["c beats d (Table 2)", "not printed", "", "micro", "never run"],
    ]
    assert between("43.8", "43.28") == "+0.5"


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_study_names_claims_and_says_that_nothing_was_run(study: Any) -> None:
    for scale in study.scales.values():
        claims = study.claims(scale, {})
        assert claims
        assert {each.verdict for each in claims} == {"never run"}
        assert len({each.words for each in claims}) == len(claims)
        assert study.verdicts(scale, {}).count("never run") == len(claims)


def test_few_shot_claims_compare_draws_and_quote_table_11() -> None:
    scale = fewshot.scales["micro"]
    results = {f"phase1-100-{seed}": found(30.0 + seed) for seed in scale.sampling_seeds}
    results |= {f"phase1+2-100-{seed}": found(33.0 + seed) for seed in scale.sampling_seeds}
    one = next(each for each in fewshot.claims(scale, results) if "100 examples" in each.words)
    assert (one.theirs, one.verdict, one.runs) == ("+2.0", "decided", 3)
    assert one.ours is not None
    assert one.ours.mean == pytest.approx(3.0)


def test_prefix_claims_quote_table_11_of_samsum() -> None:
    scale = discourse_prefix.scales["micro"]
    results = {cell("samsum", "softsa", 0): found(20.0), cell("samsum", "prefix", 0): found(30.0)}
    claims = {each.words: each for each in discourse_prefix.claims(scale, results)}
    one = claims["SoftSA beats a dense prefix, samsum, ROUGE-L"]
    assert (one.theirs, one.runs, one.verdict) == ("+0.5", 1, "not decided")
    assert claims["HTruncSA beats TruncSA, samsum, ROUGE-L"].theirs == "+0.3"


def test_a_loss_that_falls_with_a_part_supports_it() -> None:
    scale = ablation.scales["micro"]
    results = {
        f"pretrained-{name}-{seed}": {"span_losses": [loss + seed / 100, loss + seed / 50]}
        for name, loss in (("RTD-and-spans", 5.0), ("without-RTD", 5.3))
        for seed in scale.ablation_seeds
    }
    first = ablation.claims(scale, results)[0]
    assert first.words == "RTD helps, held-out span loss (nats)"
    assert first.ours is not None
    assert first.ours.mean == pytest.approx(0.3)
    assert first.verdict == "decided"


def test_a_loss_that_falls_on_some_blocks_and_rises_on_others_decides_nothing() -> None:
    scale = ablation.scales["micro"]
    results = {
        f"pretrained-{name}-{seed}": {"span_losses": losses}
        for name, losses in (("RTD-and-spans", [5.0, 5.0, 5.0]), ("without-RTD", [6.0, 4.5, 4.8]))
        for seed in scale.ablation_seeds
    }
    first = ablation.claims(scale, results)[0]
    assert first.ours is not None
    assert first.ours.mean == pytest.approx(0.1)
    assert first.verdict == "not decided"
    (row, *_) = verdict_rows([first], "micro")
    assert row[2].startswith("+0.100 [-0.")


def test_glue_claims_follow_the_way_that_leads_in_the_paper() -> None:
    scale = glue.scales["micro"]
    score = {"scores": {"matthews": 10.0}, "resampled": {"matthews": [10.0, 10.0]}}
    results = {
        glue_cell(GIVEN, "cola", way, seed): {"sets": {"cola": {"answers": score}}}
        for way in ("head", "text")
        for seed in scale.seeds
    }
    one = next(each for each in glue.claims(scale, results) if "cola" in each.words)
    assert one.words == "the text leads on cola, Matthews"
    assert one.theirs == "+10.7"
    assert one.ours is not None
    assert one.ours.mean == 0.0


def test_a_gain_counts_the_runs_that_both_have() -> None:
    interval, runs = gain_interval({0: found(3.0), 1: found(4.0)}, {1: found(2.0), 2: found(9.0)})
    assert interval is not None
    assert runs == 1
    assert interval.mean == pytest.approx(2.0)
    assert gain_interval({0: found(3.0)}, {}) == (None, 0)
