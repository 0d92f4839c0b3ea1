"""Nothing moves unnoticed: losses, texts, digests and help pages are those of the golden files.

Where something moved on purpose: `python -m tests.golden --write NAME`, and the commit says why.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import records, runs
from tests.modes import MODES


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    runs.prepare(folder)
    return folder


# One of each phase and model; the others differ from them by a part.
FEW = ("finetune zcodepp", "finetune prophetnet", "pretrain zcodepp", "ground zcodepp", "tune prefix")


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in runs.LOSSES]
)
def test_twenty_steps_have_the_golden_losses(name: str, shelf: Path) -> None:
    assert records.moved(records.read("losses")[name], runs.LOSSES[name](shelf)) == []


def test_models_of_twenty_steps_write_the_golden_texts(shelf: Path) -> None:
    assert records.moved(records.read("texts"), runs.texts(shelf)) == []


def test_the_default_model_chooses_all_golden_sentences() -> None:
    recorded = records.read("extracts")
    assert len(recorded) == runs.MADE
    assert records.moved(recorded, runs.extracts()) == []


#: The trees run on NumPy, and what they read is computed with its BLAS.
CPUS = {
    "two threads": {"OMP_NUM_THREADS": "2"},
    "AVX2": {"OMP_NUM_THREADS": "1", **MODES["old-processor"], "OPENBLAS_CORETYPE": "Haswell"},
    "no vectors": {
        "OMP_NUM_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": f"X86_V3 {MODES['old-processor']['NPY_DISABLE_CPU_FEATURES']}",
        "OPENBLAS_CORETYPE": "Prescott",
    },
}


@pytest.mark.parametrize(
    "cpu", [cpu if cpu == "AVX2" else pytest.param(cpu, marks=pytest.mark.slow) for cpu in CPUS]
)
@pytest.mark.long
def test_the_default_model_chooses_the_same_on_every_cpu(cpu: str) -> None:
    command = [sys.executable, "-m", "tests.golden", "extracts"]
    done = subprocess.run(
        command, env={**os.environ, **CPUS[cpu]}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "nothing moved\n"), done.stdout + done.stderr


def test_what_is_drawn_and_counted_has_the_golden_digests(shelf: Path) -> None:
    assert records.moved(records.read("digests"), runs.digests(shelf)) == []


def test_every_help_page_is_the_golden_one() -> None:
    assert records.moved(records.read("helps"), runs.helps()) == []


def test_a_loss_that_moves_is_told() -> None:
    was, now = {"a": {"loss": [1.0, 2.0]}}, {"a": {"loss": [1.0, 2.001]}}
    assert records.moved(was, now) == ["a: loss: [1] 2.0 has become 2.001"]
    assert records.moved({"a": "x\ny"}, {"a": "x\nz", "b": ""}) == [
        "b: is new",
        "a: line 2: 'y' has become 'z'",
    ]
