"""Every command that trains or writes does so in bf16 on any CPU: `train.precision=bf16`, autocast and all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import SMALL_RUN, save

Precis = Callable[..., Any]
BF16 = ["--set", "train.precision=bf16"]
BRIEF = [
    "--steps", 2, "--lr", 1e-3, "--set", "train.warmup_steps=1", "--max-source", 48, "--max-target", 16,
    "--batch-tokens", 600, "--set", "generated_rows=2", "--set", "generation.max_tokens=8", "--threads", 1,
]  # fmt: skip


def scores(run: Path) -> dict[str, float]:
    """Of the last validation: loss and what was written."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return next(line for line in reversed(lines) if "rougeL" in str(line))


def test_finetune_validates_and_its_run_is_evaluated(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = [
        "finetune",
        "--data",
        pairs,
        "--out",
        out,
        "--steps",
        4,
        "--validate-every",
        2,
        *SMALL_RUN,
        *BF16,
    ]
    made = precis(*words)
    assert made.code == 0, made.err
    assert scores(out)
    scored = precis("evaluate", "--model", out, "--data", pairs, "--split", "test", "--out", out / "scores")
    assert scored.code == 0, scored.err


@pytest.mark.parametrize("kind", ["zcodepp", "bart"])
def test_tune_validates_and_its_adapter_writes(
    kind: str, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    base = save(kind, tmp_path / "base", positions=128)
    out = tmp_path / "run"
    options = ["--method", "hierblock+softsa", "--set", "prefix.length=4"]
    made = precis("tune", "--model", base, "--data", pairs, "--out", out, *options, *BRIEF, *BF16)
    assert made.code == 0, made.err
    assert scores(out)
    scored = precis(
        "evaluate", "--model", out, "--data", pairs, "--split", "test", "--out", out / "ev", "--limit", 2
    )
    assert scored.code == 0, scored.err


def test_ground_validates_with_summaries(precis: Precis, tmp_path: Path) -> None:
    base = save("zcodepp", tmp_path / "base")
    folder = tmp_path / "shelf" / "samsum"
    folder.mkdir(parents=True)
    for split, count in (("train", 8), ("dev", 3)):
        rows = [{"document": f"Ann: I sing song {n}.", "summary": "Ann sings."} for n in range(count)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    words = ["ground", "--model", base, "--tasks", "samsum", "--data", tmp_path / "shelf", "--out", out]
    made = precis(*words, *BRIEF, *BF16)
    assert made.code == 0, made.err
    assert scores(out)
