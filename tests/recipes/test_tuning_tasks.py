"""Table 7 of the discourse-prefix paper, and shares of a training set."""

from pathlib import Path

import pytest

from precis.errors import UserError
from precis.phases.sources import examples_in_share, find_sources
from precis.recipes.tuning_tasks import (
    LOW_RESOURCE,
    TABLE_7,
    resolve_tuning,
    settings_for,
)


def test_table_7_is_the_papers() -> None:
    lengths = {name: row.prefix_length for name, row in TABLE_7.items()}
    assert lengths == {
        "xsum": 100, "cnndm": 50, "pubmed": 50, "wikihow": 100, "samsum": 10, "e2e": 10, "dart": 10,
    }  # fmt: skip
    assert [row.epochs for row in TABLE_7.values()] == [30, 30, 30, 30, 20, 10, 10]
    assert [row.batch_size for row in TABLE_7.values()] == [8, 8, 8, 8, 16, 16, 16]
    assert {(row.learning_rate, row.beams) for row in TABLE_7.values()} == {(5e-5, 5)}


@pytest.mark.parametrize(("name", "like"), [("webnlg", "dart"), ("dialogsum", "samsum"), ("aeslc", "cnndm")])
def test_other_tasks_are_tuned_as_those_of_their_kind(name: str, like: str) -> None:
    assert settings_for(name) == TABLE_7[like]
    assert settings_for(None) == TABLE_7["cnndm"]


def test_a_run_has_the_tasks_lengths_and_beams_and_no_warmup_decay_or_smoothing() -> None:
    run = resolve_tuning("samsum", changes={"train.learning_rate": 0.01}, assignments=["batch_size=4"])
    assert (run.max_source, run.generation.no_repeat_ngram, run.generation.beams) == (512, 3, 5)
    assert (run.train.epochs, run.train.learning_rate, run.batch_size) == (20, 0.01, 4)
    assert (run.train.warmup_steps, run.train.weight_decay, run.label_smoothing) == (0, 0.0, 0.0)


def test_a_share_counts_the_pairs_that_are_trained_on(tmp_path: Path) -> None:
    rows = [f'{{"document": "Ann sings {n}.", "summary": "s"}}\n' for n in range(100)]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    (tmp_path / "dev.jsonl").write_text(rows[0])
    with_dev = find_sources(data=str(tmp_path))
    assert [examples_in_share(with_dev, share, seed=0) for share in LOW_RESOURCE] == [5, 10, 25, 50]
    held_out = find_sources(data=str(tmp_path / "train.jsonl"))  # 5 of 100 pairs are for validation
    assert examples_in_share(held_out, 1.0, seed=0) == 95
    assert examples_in_share(with_dev, 0.0001, seed=0) == 1


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_out_of_range_is_refused(share: float, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"document": "d", "summary": "s"}\n')
    with pytest.raises(UserError, match="above 0 and at most 1"):
        examples_in_share(find_sources(data=str(tmp_path / "pairs.jsonl")), share, seed=0)
