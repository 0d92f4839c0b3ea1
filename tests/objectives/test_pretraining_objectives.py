"""An objective of pre-training is one class and one entry: nothing else knows it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Unpack, get_args

import pytest

from precis.data.batches.corruption import CorruptionIds
from precis.data.batches.pretraining_batches import Corruption, PreTrainingBatches, Rows
from precis.data.packs.pack_writer import pack
from precis.objectives.losses import BatchSource, Objective
from precis.objectives.pretraining_objectives import PreTrainingObjective, Share, SpansAlone
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.train.memory_plan import memory_plan
from precis.phases.train.pretraining import pretrain, resolve_pretraining
from precis.recipes.pretraining_runs import PreTrainingObjectives, pretraining_run
from precis_text.config import Settings
from tests.tiny_models import documents, our_tokenizer

SOURCE = Path(__file__).parents[2] / "packages" / "precis" / "src" / "precis"
SMALL = {
    "model.hidden_size": 16,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 32,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "train.steps": 2,
    "train.precision": "fp32",
    "batch_size": 2,
    "block_length": 64,
    "validation_blocks": 2,
}


@dataclass(frozen=True, kw_only=True)
class SmoothedSpans(PreTrainingObjective):
    """A fourth objective: span recovery with label smoothing."""

    title: ClassVar[str] = "smoothed spans"
    smoothing: float = 0.2

    def batches(
        self, rows: Rows, words: CorruptionIds, corruption: Corruption, **share: Unpack[Share]
    ) -> BatchSource:
        whole = PreTrainingBatches(rows, words, corruption=corruption, **share)
        return type("Pairs", (), {"batches_per_epoch": whole.batches_per_epoch, "batch": whole.span_batch})()

    def loss(self) -> Objective:
        return SequenceToSequence(label_smoothing=self.smoothing)

    def measure(self) -> Objective:
        return SequenceToSequence(label_smoothing=0.0)


def test_a_fourth_objective_is_trained_validated_exported_and_planned_by_its_class_alone(
    tmp_path: Path,
) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    pack(documents(40), tmp_path / "words", tmp_path / "pack", dev_share=0.2)
    run = replace(resolve_pretraining("zcodepp-micro", changes=SMALL), objective=SmoothedSpans())  # type: ignore[arg-type]
    done = pretrain(run, corpora={str(tmp_path / "pack"): 1.0}, out=tmp_path / "run", callbacks=[])
    assert done.model is not None
    assert {"loss", "nll"} <= set(done.result.metrics)
    assert "GPUs" in memory_plan(run)


def test_no_module_asks_which_objective_a_run_has() -> None:
    asking = [
        f"{file.relative_to(SOURCE)}: {line.strip()}"
        for file in SOURCE.rglob("*.py")
        for line in file.read_text().splitlines()
        if "isinstance(" in line and "objective" in line.partition("isinstance(")[2] and "InTurn" not in line
    ]
    assert asking == []


@pytest.mark.parametrize("objective", get_args(PreTrainingObjectives))
def test_saved_settings_of_every_objective_come_back_equal(objective: type[Settings]) -> None:
    run = pretraining_run("prophetnet-micro" if objective.__name__ == "MassSpans" else "zcodepp-micro")
    run = replace(run, objective=objective())  # type: ignore[arg-type]
    assert run.to_dict()["objective"]["type"] == objective.__name__
    assert type(run).from_dict(run.to_dict()) == run


def test_settings_that_were_saved_before_objectives_were_slots_are_read() -> None:
    saved = pretraining_run("zcodepp-micro").to_dict() | {"objective": {"type": "SpansAlone"}}
    assert isinstance(type(pretraining_run("zcodepp-micro")).from_dict(saved).objective, SpansAlone)
