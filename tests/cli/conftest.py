"""The command line as a user meets it, in this process; and one small finished run for all tests."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_models import SMALL_RUN

from precis.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of a refused command, after checking that it is one, and no traceback."""
        lines = self.err.strip().splitlines()
        assert "Traceback" not in self.err
        assert [line for line in lines if line.startswith("error: ")] == lines[-1:], self.err
        return lines[-1]


Run = Callable[..., Outcome]


@pytest.fixture
def precis(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line through the entry point."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of synthetic pairs: train, dev, test."""
    folder = tmp_path_factory.mktemp("pairs")
    assert (
        main(["data", "synthetic", "--out", str(folder), "--train", "40", "--dev", "6", "--test", "5"]) == 0
    )
    return folder


@pytest.fixture(scope="session")
def finished(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder whose model was trained for six steps."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    assert (
        main(
            [
                "finetune",
                "--data",
                str(pairs),
                "--out",
                str(out),
                "--steps",
                "6",
                "--validate-every",
                "6",
                *SMALL_RUN,
            ]
        )
        == 0
    )
    return out
