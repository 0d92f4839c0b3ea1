"""No phase of training exports a model that is not finite, whatever it was that went wrong."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from precis.data.packs.pack_writer import pack
from precis.data.synthetic.corpus import make_pairs
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.grounding import ground
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.phases.train.pretraining import PRETRAINING_FOLDER, pretrain, resolve_pretraining
from precis.phases.train.training_session import MODEL_FOLDER
from precis.recipes.adapter_recipes import TunePlan, resolve_tuning
from precis.recipes.planning import few_shot, resolve_grounding, resolve_run
from precis.storage.model_files import ADAPTER_FOLDER
from precis.storage.seal import replace_folder
from precis.training.checkpoint import MODEL_FILE
from precis.training.updates import Updater
from precis.tuning import Prefix
from precis_text.errors import DivergedError, RunError
from tests.tiny_models import documents, our_tokenizer, save

BRIEF = {
    "train.steps": 4,
    "train.warmup_steps": 1,
    "train.validate_every": 2,
    "train.precision": "fp32",
    "max_source": 48,
    "max_target": 8,
    "generated_rows": 2,
    "batch_size": 4,
}
SMALL = {
    "model.hidden_size": 16,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 24,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
}
PACKED = {
    **SMALL,
    "train.steps": 4,
    "train.warmup_steps": 1,
    "train.precision": "fp32",
    "batch_size": 4,
    "block_length": 64,
    "validation_blocks": 4,
    "objective.generator_layers": 1,
}
Phase = Callable[[Path], Any]


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, a model and a pack."""
    folder = tmp_path_factory.mktemp("stock")
    (folder / "pairs").mkdir()
    for split, count, seed in (("train", 12, 1), ("dev", 4, 2)):
        rows = [
            {"document": p.document[:160], "summary": p.summary[:40]} for p in make_pairs(count, seed=seed)
        ]
        (folder / "pairs" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    save("zcodepp", folder / "model")
    our_tokenizer().save_pretrained(folder / "words")
    pack(documents(40), folder / "words", folder / "pack", dev_share=0.2)
    return folder


def phases(stock: Path) -> dict[str, Phase]:
    """Each phase as a function of its run folder."""
    model, sources = str(stock / "model"), NamedPairs(data=str(stock / "pairs")).sources()
    on_pairs = resolve_run("zcodepp-micro", changes=BRIEF)
    few = few_shot(on_pairs, 8)
    few = replace(few, train=replace(few.train, steps=4, warmup_steps=1, validate_every=2))
    return {
        "finetune": lambda out: finetune(
            on_pairs, PairRequest(sources=sources, out=out, start=model, callbacks=[])
        ),
        "few-shot": lambda out: finetune(
            few, PairRequest(sources=sources, out=out, start=model, examples=8, callbacks=[])
        ),
        "ground": lambda out: ground(
            resolve_grounding("zcodepp-micro", start=model, changes=BRIEF),
            tasks=[str(stock / "pairs")],
            start=model,
            out=out,
            callbacks=[],
        ),
        "tune": lambda out: tune(
            TunePlan(method="prefix", prefix=Prefix(length=2), target_length=8),
            resolve_tuning(None, changes=BRIEF),
            PairRequest(start=model, sources=sources, out=out, callbacks=[]),
        ),
        "pretrain": lambda out: pretrain(
            resolve_pretraining("zcodepp-micro", changes=PACKED),
            corpora={str(stock / "pack"): 1.0},
            out=out,
            callbacks=[],
        ),
    }


NAMES = ("finetune", "few-shot", "ground", "tune", "pretrain")


def exported(out: Path) -> list[str]:
    return [name for name in (MODEL_FOLDER, ADAPTER_FOLDER, PRETRAINING_FOLDER) if (out / name).exists()]


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_lost_after_the_first_step_are_never_exported(
    name: str, stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Updater._step_if_finite

    def lose(self: Updater, number: int, totals: Any) -> None:
        step(self, number, totals)
        with torch.no_grad():
            self._trainable[0].view(-1)[0] = math.nan

    monkeypatch.setattr(Updater, "_step_if_finite", lose)
    for _ in range(2):  # and not when the same command is started again either
        with pytest.raises(DivergedError, match="--lr"):
            phases(stock)[name](tmp_path / "run")
        assert exported(tmp_path / "run") == []


@pytest.mark.parametrize("name", NAMES)
def test_steps_that_are_all_skipped_export_nothing(
    name: str, stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divide = Updater._divide_and_clip

    def poison(self: Updater, *arguments: Any, **options: Any) -> Any:
        return replace(divide(self, *arguments, **options), gradient_norm=math.inf)

    monkeypatch.setattr(Updater, "_divide_and_clip", poison)
    with pytest.raises(DivergedError, match="not finite at any of the 4 steps"):
        phases(stock)[name](tmp_path / "run")
    assert exported(tmp_path / "run") == []


def test_the_best_finite_model_is_exported_where_the_end_is_lost(
    stock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    step = Updater._step_if_finite

    def lose_late(self: Updater, number: int, totals: Any) -> None:
        step(self, number, totals)
        if number == 2:
            with torch.no_grad():
                self._trainable[0].view(-1)[0] = math.nan

    monkeypatch.setattr(Updater, "_step_if_finite", lose_late)
    done = phases(stock)["finetune"](tmp_path / "run")
    assert (done.result.best_step, done.result.is_finite) == (2, False)
    assert (
        "at step 4 its loss or its weights are not finite; the best finite model is from step 2"
        in caplog.text
    )


def test_a_best_checkpoint_of_a_version_that_did_not_look_is_not_exported(
    stock: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = phases(stock)["finetune"](out)
    best = done.result.best_checkpoint
    tensors = load_file(best / MODEL_FILE)
    next(iter(tensors.values())).view(-1)[0] = math.nan
    others = {
        file.name: file.read_bytes() for file in best.iterdir() if file.name not in (MODEL_FILE, "seal.json")
    }

    def write(folder: Path) -> None:
        save_file(tensors, folder / MODEL_FILE)
        for name, content in others.items():
            (folder / name).write_bytes(content)

    replace_folder(best, write)
    before = {file.name: file.read_bytes() for file in (out / MODEL_FOLDER).iterdir()}
    with pytest.raises(RunError, match=r"none of the 1 checkpoints .* can be used"):
        phases(stock)["finetune"](out)
    assert {file.name: file.read_bytes() for file in (out / MODEL_FOLDER).iterdir()} == before
