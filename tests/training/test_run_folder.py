"""A run folder is taken up again only by the run that it belongs to."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from precis.objectives.losses import Loss
from precis.training import Highest, JsonLines
from precis.training.callbacks import read_metrics
from precis_text.errors import UserError
from tests.training import tiny
from tests.training.tiny import Witness


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed=0, now 1"),
        ({"steps": 24}, "steps=12, now 24"),
        ({"learning_rate": 0.5}, r"learning_rate=0\.01, now 0\.5"),
        ({"select": Highest(metric="loss")}, r"select\.type='Lowest', now 'Highest'"),
        ({"identity": {"data": {"rows": 9, "lengths": (1, 2)}}}, r"data\.rows=8, now 9"),
    ],
)
def test_a_setting_that_changes_the_curve_is_refused_on_resume(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    identity = {"data": {"rows": 8, "lengths": (1, 2)}}
    tiny.run(tmp_path, identity=identity)
    tiny.run(tmp_path, identity=identity)

    with pytest.raises(UserError, match=f"started with {message}; .*--restart"):
        tiny.run(tmp_path, **{"identity": identity, **change})


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"data": ["30b2", "11aa"]}, {"data": ["77c1", "11aa"]}, "other training pairs"),
        ({"data": ["30b2", "11aa"]}, {"data": ["30b2", "99ff"]}, "other validation pairs"),
        ({"data": ["30b2"]}, {"data": ["77c1"]}, "other training pairs"),
        ({"data": ["a", "b"]}, {"data": ["c", "d"]}, "other training pairs and other validation pairs"),
        ({"data": ["30b2"]}, {"data": ["30b2", "11aa"]}, "other training pairs or other validation pairs"),
        ({"tokenizer": "30b2"}, {"tokenizer": "77c1"}, "another tokenizer"),
        ({"corpora": ["a", "b"]}, {"corpora": ["a", "c"]}, "another corpus"),
        ({"sets": {"samsum": ["x", "1"]}}, {"sets": {"samsum": ["x", "2"]}}, "other pairs of samsum"),
    ],
)
def test_what_is_known_by_its_digest_is_named_in_words(
    before: dict[str, Any], now: dict[str, Any], words: str, tmp_path: Path
) -> None:
    tiny.run(tmp_path, identity=before)

    with pytest.raises(UserError, match=f"^the run in .* was started with {words}; .*--restart") as refused:
        tiny.run(tmp_path, identity=now)

    assert "30b2" not in str(refused.value)


def test_a_setting_that_an_older_run_did_not_know_and_that_is_not_set_changes_nothing(tmp_path: Path) -> None:
    tiny.run(tmp_path, identity={"tuning": {"length": 4}})
    assert tiny.run(tmp_path, identity={"tuning": {"length": 4, "units": None}}).step == 12


def test_settings_that_leave_the_weights_alone_may_change(tmp_path: Path) -> None:
    tiny.run(tmp_path)

    result = tiny.run(
        tmp_path, save_every=9, log_every=3, keep_checkpoints=5, patience=4, validate_every=2, skip_limit=99
    )

    assert result.step == 12


def test_a_restart_forgets_checkpoints_and_metrics(tmp_path: Path) -> None:
    tiny.run(tmp_path, callbacks=[JsonLines()], log_every=1)

    witness = Witness()
    tiny.run(tmp_path, steps=6, seed=1, resume=False, callbacks=[JsonLines(), witness], log_every=1)

    assert witness.started is not None
    assert witness.started.first_step == 0
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 6
    assert sorted(p.name for p in (tmp_path / "checkpoints").glob("step-*")) == [
        "step-00000004",
        "step-00000006",
    ]


def test_a_run_makes_its_folder_with_those_above_it(tmp_path: Path) -> None:
    tiny.run(tmp_path / "runs" / "first", steps=1)
    assert (tmp_path / "runs" / "first" / "checkpoints").is_dir()


def test_a_warm_up_longer_than_the_run_is_mentioned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for steps, share in ((12, 1), (20, 2)):
        tiny.run(tmp_path / str(steps), steps=steps, warmup_steps=steps)
        told = f"never reaches its peak; train longer, or add --set train.warmup_steps={share}"
        assert caplog.messages[-1].endswith(told)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    tiny.run(tmp_path)

    with pytest.raises(UserError, match="belongs to another model"):
        tiny.run(tmp_path, model=tiny.TinyModel(width=16))


def test_the_lock_and_the_handlers_are_released_after_an_error(tmp_path: Path) -> None:
    def fail(_model: nn.Module, _batch: tiny.Rows) -> Loss:
        raise ZeroDivisionError

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError):
        tiny.run(tmp_path, loss=fail)

    assert signal.getsignal(signal.SIGTERM) == handler
    assert tiny.run(tmp_path).step == 12


def test_micro_batches_are_asked_for_by_their_place_since_the_beginning(tmp_path: Path) -> None:
    seen: list[torch.Tensor] = []

    def look(model: nn.Module, batch: tiny.Rows) -> Loss:
        seen.append(batch.inputs.cpu())
        return tiny.objective(model, batch)

    result = tiny.run(tmp_path, loss=look, epochs=1.2, gradient_accumulation=3)

    assert result.total_steps == 2
    expected = [tiny.RowSource().batch(number).inputs for number in range(6)]
    assert len(seen) == len(expected)
    assert all(torch.equal(*pair) for pair in zip(seen, expected, strict=True))


def test_parts_are_divided_by_their_own_counts(tmp_path: Path) -> None:
    def loss(model: nn.Module, batch: tiny.Rows) -> Loss:
        base = tiny.objective(model, batch)
        return replace(base, parts={"rare": torch.tensor(3.0)}, counts={"rare": 2}, num_tokens=48)

    tiny.run(tmp_path, loss=loss, steps=4, gradient_accumulation=2, log_every=2, callbacks=[JsonLines()])

    records = read_metrics(tmp_path / "metrics.jsonl")
    assert [r["rare"] for r in records] == [1.5, 1.5]
    assert [r["tokens"] for r in records] == [4 * 48, 8 * 48]
