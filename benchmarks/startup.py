"""Processor time until precis answers, as a ratio to `import torch`: `python -m benchmarks.startup [--rounds N]`.

Each command runs in a new process, in turn with the others. The least time of the rounds counts, since other work on
the machine only adds to it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_MAIN = "import sys; from precis.cli import main; sys.exit(main(sys.argv[1:]))"
REFERENCE = "import torch"
COMMANDS: Mapping[str, Sequence[str]] = {
    REFERENCE: ("-c", "import torch"),
    "import precis": ("-c", "import precis"),
    "precis --help": ("-c", _MAIN, "--help"),
    "precis summarize, missing file": ("-c", _MAIN, "summarize", "missing.txt"),
    "precis summarize": ("-c", _MAIN, "summarize", "text.txt", "--sentences", "1"),
    "precis summarize --words 0": ("-c", _MAIN, "summarize", "text.txt", "--words", "0"),
    "precis finetune, missing pairs": ("-c", _MAIN, "finetune", "--data", "missing", "--out", "out"),
    "precis serve, missing keys": ("-c", _MAIN, "serve", "--keys", "missing"),
}


def cpu_seconds(words: Sequence[str], folder: Path) -> float:
    """Return the user and system time in seconds of a new interpreter that runs `words` in a folder."""
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=False)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure(rounds: int) -> dict[str, float]:
    """Return the least processor time in seconds of each command, by its name."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "text.txt").write_text("Ann sings in the hall. Bob listens to her.")
        for _ in range(rounds):
            for name, words in COMMANDS.items():
                took = cpu_seconds(words, folder)
                found[name] = min(took, found.get(name, took))
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Measure all commands, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each command runs")
    found = measure(parser.parse_args(words).rounds)
    print(f"{'command':<34}{'CPU s':>8}{'of import torch':>18}")
    for name, seconds in found.items():
        print(f"{name:<34}{seconds:>8.2f}{seconds / found[REFERENCE]:>18.2f}")


if __name__ == "__main__":
    main()
