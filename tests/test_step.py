"""`tools/step`, which tells the steps of `make install` and `make demo`."""

import re
import subprocess
from pathlib import Path

STEP = Path(__file__).parents[1] / "tools" / "step"


def step(*words: str) -> tuple[int, str]:
    done = subprocess.run([STEP, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_step_says_what_it_does_and_then_how_long_it_took() -> None:
    code, out = step("[1/2] two words (a moment)", "echo", "a  b", "c")
    assert code == 0
    assert re.fullmatch(r"\[1/2\] two words \(a moment\)\na  b c\n +\d s\n", out)


def test_a_step_that_fails_ends_as_its_command_does() -> None:
    code, out = step("[1/2] nothing", "sh", "-c", "exit 7")
    assert code == 7
    assert re.fullmatch(r"\[1/2\] nothing\n +failed after \d s\n", out)
