"""A given dense Z-Code++ is fine-tuned by fusion-in-encoder (Z-Code++ 2.3), with the same weights."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import precis
from precis.data.pairs.pair import Pair
from precis.generation.model_loader import load_model
from precis.phases.data.corpus_packing import make_pack
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train.finetuning import finetune
from precis.phases.train.grounding import ground
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.trainable_model import load_trainable, read_long_documents, with_fusion
from precis.recipes.planning import resolve_grounding, resolve_run
from precis.recipes.run_plan import Fusion
from precis_text.errors import UserError
from tests.phases.train.test_finetuning import BRIEF, write
from tests.tiny_models import save

FUSION = ("model.chunk_length=4", "model.global_layers=1")


def test_it_trains_by_fusion_and_the_finished_model_keeps_reading_so(tmp_path: Path) -> None:
    data = write(tmp_path / "train.jsonl", *(Pair(f"Ann sings song {n}.", "Ann sings.") for n in range(12)))
    start = str(save("zcodepp", tmp_path / "dense"))
    run = resolve_run(
        "zcodepp-micro",
        pretrained=True,
        assignments=(*BRIEF, *FUSION, "generated_rows=0", "train.select=loss"),
    )
    finetune(
        run,
        PairRequest(
            sources=NamedPairs(data=str(data)).sources(), out=tmp_path / "run", start=start, callbacks=[]
        ),
    )
    made = load_model(str(tmp_path / "run"), device="cpu").model.config
    assert (made.chunk_length, made.global_layers) == (4, 1)
    identity = json.loads((tmp_path / "run" / "settings.json").read_text())["identity"]
    assert identity["fusion"] == {"chunk_length": 4, "global_layers": 1}


def test_it_has_the_same_weights_and_other_states_than_the_dense_model(tmp_path: Path) -> None:
    given = load_trainable(str(save("zcodepp", tmp_path / "dense")))
    fused = with_fusion(given, Fusion(chunk_length=4, global_layers=1))
    assert given.model.config.chunk_length is None
    for name, weight in given.model.state_dict().items():
        assert torch.equal(fused.model.state_dict()[name], weight), name
    assert fused.parameters == given.parameters
    ids = torch.arange(5, 17)[None]
    whole = with_fusion(fused, Fusion(chunk_length=None))
    with torch.inference_mode():
        dense, local, again = (
            one.model.eval().get_encoder()(ids).last_hidden_state for one in (given, fused, whole)
        )
    assert torch.equal(dense, again)
    assert not torch.allclose(dense, local, atol=1e-4)


def test_other_models_and_other_parts_of_the_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is a bart; model\.chunk_length and model\.global_layers are for"):
        with_fusion(load_trainable(str(save("bart", tmp_path / "bart"))), Fusion())
    with pytest.raises(UserError, match=r"keeps its shape; omit model\.hidden_size"):
        resolve_run(None, pretrained=True, assignments=(*FUSION, "model.hidden_size=32"))


@pytest.mark.parametrize("task", ["arxiv", "pubmed"])
def test_the_papers_long_tasks_are_read_by_fusion_in_batches_of_one_pair(task: str, tmp_path: Path) -> None:
    run = resolve_run("zcodepp-large", task_name=task)
    assert (run.shape.chunk_length, run.shape.global_layers) == (256, 1)  # type: ignore[union-attr]
    assert (run.batch_size, run.train.gradient_accumulation) == (1, 64)
    asked = resolve_run("zcodepp-large", task_name=task, assignments=["batch_size=4"])
    assert (asked.batch_size, asked.train.gradient_accumulation) == (4, 1)
    dense = load_trainable(str(save("zcodepp", tmp_path / "dense")))
    told: list[str] = []
    given = resolve_run(None, pretrained=True, task_name=task)
    assert read_long_documents(given, dense, told.append).model == Fusion(chunk_length=256, global_layers=1)
    assert "by fusion-in-encoder, with chunks of 256 and 1 global layer" in told[0]
    kept = resolve_run(None, pretrained=True, task_name=task, assignments=["model.chunk_length=none"])
    assert read_long_documents(kept, dense, told.append) == kept


def test_shorter_tasks_stay_dense() -> None:
    run = resolve_run("zcodepp-large", task_name="multi_news")
    assert (run.shape.chunk_length, run.batch_size) == (None, 64)  # type: ignore[union-attr]


def test_a_given_model_is_grounded_by_fusion_and_keeps_reading_so(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", *(Pair(f"Ann sings song {n}.", "Ann sings.") for n in range(12)))
    start = str(save("zcodepp", tmp_path / "dense"))
    short = ("train.steps=1", "train.warmup_steps=1", "max_source=48", "max_target=16", "batch_size=4")
    run = resolve_grounding(None, start=start, assignments=(*short, *FUSION))
    pairs = [str(tmp_path / "train.jsonl")]
    done = ground(run, tasks=pairs, start=start, out=tmp_path / "run", callbacks=[])
    made = load_model(str(done.folder), device="cpu").model.config
    assert (made.chunk_length, made.global_layers) == (4, 1)
    with pytest.raises(UserError, match=r"keeps its shape; omit model\.hidden_size"):
        resolve_grounding(None, start=start, assignments=("model.hidden_size=32",))


@pytest.mark.long
@pytest.mark.parametrize("without_rtd", [False, True])
def test_a_given_model_is_pre_trained_further_by_fusion(without_rtd: bool, tmp_path: Path) -> None:
    rows = ({"text": " ".join(f"Ann sings song {n} of {k}." for k in range(9))} for n in range(60))
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pack = make_pack([tmp_path / "texts.jsonl"], tmp_path / "pack", vocab_size=450, dev_share=0.2)
    shape = ["hidden_size=32", "intermediate_size=64", "encoder_layers=2", "decoder_layers=1"]
    brief: Any = {
        "recipe": "zcodepp-micro", "steps": 1, "batch_size": 2, "block_length": 32, "without_rtd": without_rtd,
        "callbacks": [],
    }  # fmt: skip
    settings = ["validation_blocks=2", "train.warmup_steps=1"]
    first = precis.pretrain(
        pack.folder, out=tmp_path / "first", settings=[*settings, *(f"model.{s}" for s in shape)], **brief
    )
    more = precis.pretrain(
        pack.folder, out=tmp_path / "more", model=first.folder, settings=[*settings, *FUSION], **brief
    )
    dense, local = (load_model(str(run.folder), device="cpu").model.config for run in (first, more))
    assert (dense.chunk_length, local.chunk_length, local.global_layers) == (None, 4, 1)
    identity = json.loads((more.folder / "settings.json").read_text())["identity"]
    assert identity["fusion"] == {"chunk_length": 4, "global_layers": 1}
    with pytest.raises(UserError, match=r"keeps its shape; omit model\.hidden_size"):
        precis.plan_pretraining(pack.folder, model=first.folder, settings=["model.hidden_size=64"])
