"""What several of the papers' experiments do alike: pack text, choose rows, keep what was written, show tables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from precis.data.pairs.pair import Pair
from precis.errors import UserError
from precis.evaluation.significance import interval_over_runs
from precis.files import write_file
from precis.phases.evaluate import read_test_pairs
from precis.phases.pack import make_pack
from precis.phases.sources import find_part
from precis.phases.validation import evenly_spaced
from precis.studies.study import Result, Step, Study, missing_steps
from precis.telling import Tell

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
TABLE_FILE = "table.md"

_Draw = TypeVar("_Draw")


def pack_text(data: Path, corpora: Sequence[str], place: Path, *, vocab_size: int, tell: Tell) -> Result:
    """Pack those of the corpora that are in the data folder, with a tokenizer trained on them, to PLACE/pack.

    Raises:
        UserError: none of them is there.
    """
    found = [data / name for name in corpora if (data / name).is_dir()]
    missing = [name for name in corpora if not (data / name).is_dir()]
    if missing:
        tell(f"{data} has no {', '.join(missing)}: done without, and recorded")
    if not found:
        raise UserError(f"{data}: holds none of the corpora {', '.join(corpora)}")
    made = make_pack(
        found, place / "pack", vocab_size=vocab_size, workers=os.cpu_count() or 1, restart=True, tell=tell
    )
    return {
        "corpora": [folder.name for folder in found],
        "tokens": made.counts.tokens,
        "documents": made.counts.documents,
        "tokens_per_second": made.tokens_per_second,
    }


def some_dev_rows(data: Path, task_name: str, count: int, place: Path) -> Path:
    """A file in `place` with some of a task's dev pairs: validating often on all of them would take longer than
    training.
    """
    path = place / "dev.jsonl"
    part = find_part(task_name=task_name, data=str(data), split="dev")
    chosen = evenly_spaced(list(part.read(skip_bad=True)), count)
    rows = [
        {"document": pair.document, "summary": pair.summary, "summaries": pair.all_references}
        for pair in chosen
    ]
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows))
    return path


def some_test_pairs(data: Path, task_name: str, count: int, tell: Tell) -> list[Pair]:
    """A task's test pairs; of more than `count` that many, evenly spaced: their first rows are not typical."""
    part = find_part(task_name=task_name, data=str(data))
    pairs = read_test_pairs(part, skip_bad=True, tell=tell)
    if len(pairs) <= count:
        return pairs
    tell(f"of these {count:,}, evenly spaced")
    return evenly_spaced(pairs, count)


def keep_texts(path: Path, pairs: Sequence[Pair], texts: Sequence[str]) -> None:
    """What a system wrote, beside documents and references: scores alone cannot be read."""
    rows = [
        {"document": pair.document, "prediction": text, "references": pair.all_references}
        for pair, text in zip(pairs, texts, strict=True)
    ]
    write_file(path, "".join(json.dumps(row) + "\n" for row in rows))


def work_and_show(
    study: Study, steps: Sequence[Step], table: Callable[[Mapping[str, Result]], str], tell: Tell
) -> str:
    """Do what is left of a study; its table, which is also written to the folder after every step, naming what is
    missing.
    """

    text = ""

    def show(results: Mapping[str, Result]) -> None:
        nonlocal text
        text = missing_steps(steps, results) + table(results)
        write_file(study.folder / TABLE_FILE, text)

    study.work(steps, tell, show=show)
    return text


def scores_of(results: Sequence[Result]) -> dict[str, NDArray[np.float64]]:
    """For each ROUGE type the (runs, examples) scores on the test set."""
    return {name: np.array([result["examples"][name] for result in results]) for name in ROUGE_TYPES}


def paired_gain(runs: Mapping[_Draw, Result], others: Mapping[_Draw, Result]) -> str:
    """What ROUGE-L gains from `others` to `runs`, both by seed or draw: the interval of the differences, paired by seed
    and example; empty without a seed that both have.
    """
    common = [draw for draw in runs if draw in others]
    if not common:
        return ""
    here, there = (scores_of([side[draw] for draw in common])["rougeL"] for side in (runs, others))
    return str(interval_over_runs(here - there))


def drop_checkpoints(place: Path) -> None:
    """Of a finished step, which is never taken up again; they would fill the disk."""
    shutil.rmtree(place / "run" / "checkpoints", ignore_errors=True)


def drop_model(place: Path) -> None:
    """Of a tuned and scored model, checkpoints and weights."""
    drop_checkpoints(place)
    shutil.rmtree(place / "run" / "model", ignore_errors=True)
