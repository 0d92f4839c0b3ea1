"""The commands that are printed for what comes next can be typed as they stand, also where a name has spaces."""

import importlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Precis = Callable[..., Any]

COUNTS = SimpleNamespace(documents=1, tokens=1, held_out=1, held_out_tokens=1, duplicates=0)
PACK = {
    "counts": COUNTS,
    "skipped": [],
    "skipped_count": 0,
    "is_new": True,
    "empty": 0,
    "tokens_per_second": 1.0,
    "workers": 1,
    "entries": 700,
    "dev_blocks": 1,
    "share_to_validate": None,
}
RESULT = SimpleNamespace(
    seconds=1.0,
    step=4,
    total_steps=4,
    stopped_early=False,
    best_step=2,
    best_metric=1.0,
    metric="loss",
    best_is_chance=False,
)
DONE = {"is_main": True, "model": Path("model"), "kept": "best", "result": RESULT}


@pytest.mark.parametrize(
    ("arguments", "function", "facts"),
    [
        (
            ["convert", "a.pt"],
            "use.model_conversion.convert",
            {"parameters": 1, "streams": 2, "has_tokenizer": True},
        ),
        (["ground", "--model", "m", "--tasks", "samsum"], "plans.mixture_plan.ground", DONE),
        (["data", "pack", "texts"], "data.corpus_packing.make_pack", PACK),
        (["pretrain", "--corpus", "texts"], "plans.pretraining_plan.run_pretraining", DONE),
        (
            ["tokenizer", "--data", "pairs.jsonl"],
            "train.tokenizer_training.make_tokenizer",
            {"entries": 700, "tokens_per_word": 1.5, "by_corpus": {}},
        ),
    ],
)
def test_a_folder_with_spaces_is_quoted(
    arguments: Sequence[str],
    function: str,
    facts: dict[str, Any],
    precis: Precis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "my run's"
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in ("a.pt", "texts/a.txt", "pairs.jsonl"):
        Path(name).write_text('{"document": "Rain fell.", "summary": "Rain."}\n')
    module, _, name = function.rpartition(".")
    phases = importlib.import_module(f"precis.phases.{module}")
    monkeypatch.setattr(phases, name, lambda *_, **__: SimpleNamespace(folder=out, **facts))
    if module == "train.grounding":
        overrides = importlib.import_module("precis.recipes.overrides")
        plans = importlib.import_module("precis.recipes.planning")
        monkeypatch.setattr(plans, "resolve_grounding", lambda *_, **__: None)
        monkeypatch.setattr(overrides, "check_on_pairs", lambda *_, **__: None)
    outcome = precis(*arguments, "--out", out)
    assert outcome.code == 0, outcome.err
    _, next_, commands = outcome.out.partition("next:")
    assert next_
    for command in commands.strip().splitlines():
        words = shlex.split(command)
        assert words[0] == "precis"
        assert str(out) in words


def test_a_pack_that_cannot_be_validated_is_followed_by_one_that_can(precis: Precis, tmp_path: Path) -> None:
    words = " ".join(f"Sentence {number} of the story is told by the river." for number in range(300))
    (tmp_path / "my books").mkdir()
    for number in range(5):
        (tmp_path / "my books" / f"{number}.txt").write_text(f"Book {number}. {words}")
    out = tmp_path / "pack"
    first = precis("data", "pack", tmp_path / "my books", "--out", out, "--vocab-size", "400")
    command = first.out.splitlines()[-1].removeprefix("next: ")
    assert "--dev-share" in command
    again = precis(*shlex.split(command)[1:])
    assert again.out.splitlines()[-1] == f"next: precis pretrain --corpus {out} --out runs/pretrain"
