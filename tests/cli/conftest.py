"""The command line as a user meets it, in this process; and one small finished run for all tests."""

from pathlib import Path
from typing import Any

import pytest

from precis.cli import main
from tests.outcomes import Run, runner
from tests.tiny_models import SMALL_RUN


@pytest.fixture
def precis(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line through the entry point."""

    return runner(main, capfd)


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of synthetic pairs: train, dev, test."""
    folder = tmp_path_factory.mktemp("pairs")
    assert (
        main(["data", "synthetic", "--out", str(folder), "--train", "40", "--dev", "6", "--test", "5"]) == 0
    )
    return folder


@pytest.fixture(scope="session")
def finished(pairs: Path, tmp_path_factory: pytest.TempPathFactory, draw_curves_no_more: Any) -> Path:
    """A run folder whose model was trained for six steps, with its picture."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    times = ["--steps", "6", "--validate-every", "6"]
    with draw_curves_no_more():
        assert main(["finetune", "--data", str(pairs), "--out", str(out), *times, *SMALL_RUN]) == 0
    return out
