"""Further seeds of the ablation: which steps run in which order, and what the differences pool."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.scripts.span_loss_seeds import (
    EARLIER,
    VARIANTS,
    chosen_steps,
    difference_rows,
    step_name,
    tables,
)
from precis.messages import silent
from precis_experiments.experiment import Runner
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import SCALES
from precis_experiments.zcodepp_studies import WHOLE, ablation

WITHOUT_POSITIONS, WITHOUT_RTD = VARIANTS[1:]
SCALE = replace(SCALES["micro"], ablation_seeds=(3, 4))


def test_the_steps_are_those_of_the_study_and_the_last_variant_waits(tmp_path: Path) -> None:
    study = Study(tmp_path / "out", SCALE, name=ablation.name, data=tmp_path)
    steps = ablation.steps(SCALE, Runner(study, tmp_path, silent))
    names = [step.name for step in chosen_steps(steps, VARIANTS, (3, 4))]
    pairs = [step_name(variant, seed) for seed in (3, 4) for variant in (WHOLE, WITHOUT_POSITIONS)]
    assert names == ["pack", *pairs, step_name(WITHOUT_RTD, 3), step_name(WITHOUT_RTD, 4)]


def test_differences_are_paired_and_pool_the_earlier_seeds_by_their_means() -> None:
    def run(*losses: float) -> dict[str, object]:
        return {"span_losses": [*losses], "span_loss": sum(losses) / len(losses), "cpu_seconds": 60.0}

    results = {
        step_name(WHOLE, 3): run(5.0, 5.2),
        step_name(WHOLE, 4): run(5.0, 5.0),
        step_name(WITHOUT_POSITIONS, 3): run(5.1, 5.3),
        step_name(WITHOUT_POSITIONS, 4): run(5.3, 5.3),
        step_name(WITHOUT_RTD, 3): run(6.0, 6.0),
    }
    (claim, each, first, new, every), rtd = difference_rows(results, SCALE)
    assert claim == "disentangled attention helps"
    assert each == "+0.035, +0.173, +0.091, +0.100, +0.300"
    assert first.startswith("+0.100 [")
    assert first.endswith("3 seeds")
    assert new.startswith("+0.200 [+0.100, +0.300]")  # the range of two seeds
    before = [a - b for a, b in zip(EARLIER[WITHOUT_POSITIONS], EARLIER[WHOLE], strict=True)]
    assert float(every.split()[0]) == pytest.approx((sum(before) + 0.4) / 5, abs=1e-3)
    assert every.endswith("5 seeds")
    assert rtd[0] == "RTD helps"
    assert rtd[1].endswith("+0.900")  # one new seed
    assert rtd[-1].endswith("4 seeds")
    assert "| RTD and spans | 5.100, 5.000 | 1.0 |" in tables(results, SCALE)
    assert "| without RTD | 6.000, - | 1.0 |" in tables(results, SCALE)
