"""`precis.pretrain` and its plan in Python: weights of corpora, and memory without any."""

from typing import Any

import pytest

import precis
from precis.objectives.pretraining_objectives import SpansAlone
from precis_text.errors import UserError


@pytest.mark.parametrize(
    ("corpora", "weights"),
    [
        ("packs/a", {"packs/a": 1.0}),
        (["packs/a=2", "packs/b"], {"packs/a": 2.0, "packs/b": 1.0}),
        ({"packs/a": 2, "packs/b=c": 0.5}, {"packs/a": 2.0, "packs/b=c": 0.5}),
    ],
)
def test_corpora_have_weights(corpora: Any, weights: dict[str, float]) -> None:
    assert precis.plan_pretraining(corpora).corpora == weights


@pytest.mark.parametrize(
    ("corpora", "message"),
    [
        (["packs/a=0"], "corpus packs/a=0: write FOLDER or FOLDER=WEIGHT with a weight above 0"),
        (["packs/a=heavy"], "corpus packs/a=heavy: write FOLDER"),
        ({"packs/a": float("nan")}, "corpus packs/a=nan: write FOLDER"),
        (["packs/a", "packs/a=2"], "corpus packs/a: named twice"),
        ([], "name a corpus: corpus with a folder created by `precis data pack`"),
    ],
)
def test_corpora_without_sense_are_refused(corpora: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        precis.pretrain(corpora, out="o")


def test_a_plan_needs_a_folder_only_to_run() -> None:
    planned = precis.plan_pretraining("packs/a", recipe="zcodepp-micro", without_rtd=True, steps=9)
    assert (planned.plan.train.steps, planned.plan.objective) == (9, SpansAlone())
    with pytest.raises(UserError, match="name a folder for the run with --out"):
        planned.run()


@pytest.mark.long
def test_memory_is_computed_in_bf16_unless_the_precision_is_named() -> None:
    assert "computed in bf16" in precis.plan_pretraining(recipe="zcodepp-micro").memory()
    assert "computed in fp32" in precis.plan_pretraining(recipe="zcodepp-micro", precision="fp32").memory()
