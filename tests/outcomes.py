"""A command line run in this process, and what it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest


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


def runner(main: Callable[[Sequence[str]], int], capfd: pytest.CaptureFixture[str]) -> Run:
    """Calls `main` with the words of a command line."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
