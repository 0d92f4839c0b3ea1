"""Claims about pre-training runs: from a pack to a model, taken up again, in one process or two."""

import json
import multiprocessing
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedModel

from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import Blocks, PackedText
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.models.zcodepp.replaced_token_detection import ZCodePPForPreTraining
from precis.objectives.pretraining_objectives import MassSpans, SpansAlone
from precis.objectives.replaced_tokens import ReplacedTokens
from precis.phases.train import memory_plan as memory_plan_module
from precis.phases.train.memory_plan import measure, memory_plan
from precis.phases.train.pretraining import pretrain, resolve_pretraining, words_of
from precis.recipes.catalogue import PRETRAINING
from precis.recipes.pretraining_runs import PreTrainRun, in_passes, pretraining_run
from precis.recipes.run_plan import ProphetNetShape
from precis.training.callbacks import JsonLines, read_metrics
from precis_text.errors import UserError
from tests.devices import ON_THE_CPU, keep_to_the_cpu
from tests.tiny_models import documents, our_tokenizer

SMALL = {
    "model.hidden_size": 16,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 32,
    "model.encoder_layers": 2,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "train.warmup_steps": 1,
    "train.log_every": 1,
    "train.precision": "fp32",
    "batch_size": 4,
    "block_length": 64,
    "validation_blocks": 4,
}


def small(steps: int = 4, **more: Any) -> PreTrainRun:
    return resolve_pretraining("zcodepp-micro", changes={**SMALL, "train.steps": steps, **more})


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    our_tokenizer().save_pretrained(folder / "words")
    pack(documents(60), folder / "words", folder / "pack", dev_share=0.2)
    return folder / "pack"


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForSeq2SeqLM.from_pretrained(folder / "model").state_dict()


@pytest.mark.long
@pytest.mark.draws
@pytest.mark.parametrize("updates", ["in-turn", "joint"])
def test_a_run_leaves_a_plain_model_and_all_of_its_parts(tmp_path: Path, packed: Path, updates: str) -> None:
    run = small(**{"objective.updates": updates})  # type: ignore[arg-type]
    done = pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "run", callbacks=None)
    assert done.model == tmp_path / "run" / "model"
    model = AutoModelForSeq2SeqLM.from_pretrained(done.model)
    words = AutoTokenizer.from_pretrained(done.model)
    ids = words("A report.", return_tensors="pt").input_ids
    whole = ZCodePPForPreTraining.from_pretrained(tmp_path / "run" / "pretraining").eval()
    assert torch.equal(whole.finished().get_input_embeddings().weight, model.get_input_embeddings().weight)
    assert whole.discriminator_table.delta.any()
    assert model.generate(ids, max_new_tokens=3).shape[1] <= 4
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    for kind in ("train", "validation"):
        own = [r for r in records if r["kind"] == kind]
        assert {"mlm", "mlm_accuracy", "rtd", "rtd_accuracy", "rtd_baseline", "csp", "csp_accuracy"} <= set(
            own[-1]
        )
    assert (tmp_path / "run" / "curves.png").stat().st_size > 1000


def test_an_interrupted_run_continues_bit_identically(tmp_path: Path, packed: Path) -> None:
    corpora = {str(packed): 1.0}
    pretrain(small(6), corpora=corpora, out=tmp_path / "whole", callbacks=[])

    class StopAt:
        def on_start(self, info: Any) -> None: ...
        def on_validation(self, info: Any) -> None: ...
        def on_end(self, result: Any) -> None: ...
        def on_step(self, info: Any) -> None:
            if info.step == 3:
                os.kill(os.getpid(), 15)

    half = pretrain(small(6), corpora=corpora, out=tmp_path / "halves", callbacks=[StopAt()])
    assert half.model is None
    assert half.result.interrupted
    again = pretrain(small(6), corpora=corpora, out=tmp_path / "halves", callbacks=[])
    assert again.result.step == 6
    one, two = weights(tmp_path / "whole"), weights(tmp_path / "halves")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_spans_alone_train_a_plain_model(tmp_path: Path, packed: Path) -> None:
    run = replace(small(), objective=SpansAlone())
    pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "run", callbacks=[])
    assert not (tmp_path / "run" / "pretraining").exists()
    assert weights(tmp_path / "run")


@pytest.mark.long
@pytest.mark.parametrize("start", ["the run", "its model alone"])
def test_pretraining_can_be_taken_up_on_another_corpus(tmp_path: Path, packed: Path, start: str) -> None:
    pretrain(small(), corpora={str(packed): 1.0}, out=tmp_path / "one", callbacks=[])
    first = tmp_path / "one" if start == "the run" else tmp_path / "one" / "model"
    told: list[str] = []
    run = small(1, **{"train.learning_rate": 1e-9, "train.weight_decay": 0.0})
    pretrain(
        run,
        corpora={str(packed): 1.0},
        out=tmp_path / "two",
        start=str(first),
        callbacks=[],
        notify=told.append,
    )
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert all(torch.allclose(one[name], two[name], atol=1e-6) for name in one)
    wholes = [
        ZCodePPForPreTraining.from_pretrained(tmp_path / n / "pretraining").state_dict()
        for n in ("one", "two")
    ]
    same = all(torch.allclose(wholes[0][name], wholes[1][name], atol=1e-6) for name in wholes[0])
    assert same == (start == "the run")  # from the model alone, generator and detection head are new
    assert any(f"from {first}" in line for line in told)


def test_other_settings_and_other_corpora_are_refused(tmp_path: Path, packed: Path) -> None:
    corpora = {str(packed): 1.0}
    pretrain(small(), corpora=corpora, out=tmp_path / "run", callbacks=[])
    with pytest.raises(UserError, match=r"objective\.weights\.rtd=30"):
        pretrain(
            small(**{"objective.weights.rtd": 50.0}),  # type: ignore[arg-type]
            corpora=corpora,
            out=tmp_path / "run",
            callbacks=[],
        )
    with pytest.raises(UserError, match="no such folder; make a pack"):
        pretrain(small(), corpora={str(tmp_path / "none"): 1.0}, out=tmp_path / "other")
    with pytest.raises(UserError, match="not a pack"):
        pretrain(small(), corpora={str(tmp_path): 1.0}, out=tmp_path / "other")


def test_packs_with_different_tokens_are_refused(tmp_path: Path, packed: Path) -> None:
    facts = json.loads((packed / "pack.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    for path in packed.glob("*.bin"):
        (other / path.name).write_bytes(path.read_bytes())
    (other / "pack.json").write_text(json.dumps({**facts, "tokenizer": "0" * 16}))
    with pytest.raises(UserError, match="different tokenizers; pack one of them again with --tokenizer"):
        pretrain(small(), corpora={str(packed): 1.0, str(other): 1.0}, out=tmp_path / "run")


def test_a_restart_that_is_refused_leaves_the_finished_model(tmp_path: Path, packed: Path) -> None:
    corpora = {str(packed): 1.0}
    done = pretrain(small(2), corpora=corpora, out=tmp_path / "run", callbacks=[])
    assert done.model is not None
    with pytest.raises(UserError):
        pretrain(
            small(2, block_length=60_000), corpora=corpora, out=tmp_path / "run", restart=True, callbacks=[]
        )
    assert (done.model / "model.safetensors").exists()
    assert (tmp_path / "run" / "pretraining" / "model.safetensors").exists()


def test_a_run_does_not_write_over_the_model_that_it_starts_from(tmp_path: Path, packed: Path) -> None:
    run, corpora = tmp_path / "run", {str(packed): 1.0}
    pretrain(small(2), corpora=corpora, out=run, callbacks=[])
    for start in (run, run / "model"):
        with pytest.raises(UserError, match="which the run would overwrite; use another --out"):
            pretrain(small(2), corpora=corpora, out=run, start=str(start), restart=True, callbacks=[])
    assert (run / "model" / "model.safetensors").exists()


@pytest.mark.long
def test_what_is_exported_is_the_last_model(
    tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr("precis.phases.train.pretraining.mean_loss", lambda *_: {"loss": next(values)})
    run = small(3, **{"train.validate_every": 1})
    pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "run", callbacks=[])
    whole = ZCodePPForPreTraining.from_pretrained(tmp_path / "run" / "pretraining")
    saved = load_file(tmp_path / "run" / "checkpoints" / "step-00000003" / "model.safetensors")
    assert torch.equal(whole.generator.table.weight, saved["generator.embedding.tokens.weight"])


@pytest.mark.long
def test_a_generator_that_is_taken_up_keeps_its_shape_or_is_left_behind(tmp_path: Path, packed: Path) -> None:
    corpora, one = {str(packed): 1.0}, str(tmp_path / "one")
    more = {"objective.mask_decoder": True, "objective.generator_layers": 2}
    pretrain(small(2, **more), corpora=corpora, out=one, callbacks=[])
    for wrong in ({**more, "objective.generator_layers": 3}, {**more, "block_length": 128}):
        with pytest.raises(UserError, match="its generator has generator_"):
            pretrain(small(2, **wrong), corpora=corpora, out=tmp_path / "two", start=one, callbacks=[])
    anew = small(2, **{**more, "objective.generator_layers": 3})
    pretrain(anew, corpora=corpora, out=tmp_path / "three", start=f"{one}/model", callbacks=[])
    kept = ZCodePPForPreTraining.from_pretrained(tmp_path / "three" / "pretraining")
    assert kept.config.generator_layers == 3


def test_a_small_and_a_large_corpus_are_validated_together(tmp_path: Path, packed: Path) -> None:
    """One held-out block beside many: no block is left out, and no weight is the user's business."""
    our_tokenizer().save_pretrained(tmp_path / "words")
    for name, count in (("large", 400), ("small", 30)):
        pack(documents(count, seed=count), tmp_path / "words", tmp_path / name, dev_share=0.3)
    parts = [PackedText.open(tmp_path / name).dev for name in ("large", "small")]
    held_out = [dev for dev in parts if dev is not None]
    blocks = [dev.blocks(64) for dev in held_out]
    joined = Blocks(held_out, 64)
    rows = joined.rows(np.arange(len(joined)))
    assert (rows == np.concatenate([part.rows(np.arange(len(part))) for part in blocks])).all()
    last = len(joined) - 1
    assert joined.sentence_starts(last).tolist() == blocks[1].sentence_starts(len(blocks[1]) - 1).tolist()
    corpora = {str(tmp_path / "large"): 1.0, str(tmp_path / "small"): 1.0}
    assert pretrain(small(1), corpora=corpora, out=tmp_path / "run", callbacks=[]).model is not None


@pytest.mark.parametrize("wrong", [{"objective.weights.rtd": -3.0}, {"objective.weights.mlm": float("nan")}])
def test_impossible_weights_of_the_losses_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="use 0 or more"):
        small(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"model.num_attention_heads": 7}, {"objective.generator_layers": 0}])
def test_the_plan_of_an_impossible_shape_is_one_clear_line(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match="shape is impossible"):
        memory_plan(small(**{"model.vocab_size": 700, **wrong}))


def test_the_plan_counts_the_mask_decoder() -> None:
    plain = small(**{"model.vocab_size": 700, "objective.generator_layers": 2})
    enhanced = small(
        **{"model.vocab_size": 700, "objective.generator_layers": 2, "objective.mask_decoder": True}
    )
    assert measure(enhanced).parameters == measure(plain).parameters + 64 * 16


TWICE = {"train.gradient_accumulation": 2, "gradient_checkpointing": True}


def _worker(rank: int, port: int, packed: Path, out: Path) -> None:
    os.environ |= ON_THE_CPU | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    torch.set_num_threads(1)
    pretrain(small(**TWICE), corpora={str(packed): 1.0}, out=out, callbacks=[JsonLines()])
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_give_the_curve_of_one(
    tmp_path: Path, packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Corruption and sampling come from the position of a row, so that even what is replaced is the same."""
    keep_to_the_cpu(monkeypatch)
    pretrain(small(**TWICE), corpora={str(packed): 1.0}, out=tmp_path / "one", callbacks=[JsonLines()])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_worker, args=(r, port, packed, tmp_path / "two")) for r in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    alone, together = (read_metrics(tmp_path / name / "metrics.jsonl") for name in ("one", "two"))
    for one, two in zip(alone, together, strict=True):
        for name in ("loss", "mlm", "rtd", "csp", "rtd_accuracy", "gradient_norm"):
            if name in one:
                assert two[name] == pytest.approx(one[name], rel=1e-5), (name, one["step"])


@pytest.mark.parametrize("name", [name for name in PRETRAINING if name.startswith("zcodepp")])
def test_every_zcodepp_recipe_has_the_papers_weights(name: str) -> None:
    objective = pretraining_run(name).objective
    assert isinstance(objective, ReplacedTokens)
    weights = objective.weights
    assert (weights.mlm, weights.rtd, weights.csp) == (1.0, 30.0, 1.0)


def test_prophetnet_large_is_the_papers_run() -> None:
    run = pretraining_run("prophetnet-large")
    assert isinstance(run.objective, MassSpans)
    assert isinstance(run.model, ProphetNetShape)
    assert (run.batch_size, run.train.steps, run.train.learning_rate) == (1024, 500_000, 3e-4)
    assert (run.objective.block, run.corruption.recovered, run.model.ngram) == (64, 0.15, 2)


@pytest.mark.parametrize(
    ("name", "objective", "why"),
    [
        ("zcodepp-micro", MassSpans(), "MASS spans train a precis-prophetnet, .* model is a zcodepp"),
        ("prophetnet-micro", ReplacedTokens(), "replaced tokens train a zcodepp, .* is a precis-prophetnet"),
        ("prophetnet-micro", SpansAlone(), "spans behind sentinels train a zcodepp"),
    ],
)
def test_an_objective_that_the_model_cannot_have_is_refused(name: str, objective: object, why: str) -> None:
    with pytest.raises(UserError, match=why):
        resolve_pretraining(name, changes={"objective": objective})


@pytest.mark.parametrize(
    ("processes", "size", "passes"),
    [(1, 8, 256), (8, 64, 32), (128, 1024, 2), (256, 2048, 1), (512, 2048, 1)],
)
def test_large_takes_its_step_in_passes_that_fit(processes: int, size: int, passes: int) -> None:
    run = in_passes(pretraining_run("zcodepp-large"), processes)
    assert (run.batch_size, run.train.gradient_accumulation) == (size, passes)


def test_random_words_are_all_pieces_of_our_tokenizer_bytes_included(packed: Path) -> None:
    words = words_of(load_tokenizer(packed / "tokenizer"))
    assert [*words.pieces] == [*range(4, words.mask)]
    assert words.first_sentinel == words.mask + 1


def test_a_batch_without_equal_parts_is_refused() -> None:
    with pytest.raises(UserError, match="batch_size=7 cannot be split into equal parts of 2 to 4 blocks"):
        in_passes(small(batch_size=7, rows_at_once=2), 2)
    with pytest.raises(UserError, match="rows_at_once=0"):
        small(rows_at_once=0)


@pytest.mark.long
def test_passes_change_neither_the_curve_nor_what_may_be_taken_up(tmp_path: Path, packed: Path) -> None:
    """Fewer rows at a time: the same blocks in each step; a run goes on with another number of passes."""
    whole = pretrain(
        small(**TWICE), corpora={str(packed): 1.0}, out=tmp_path / "whole", callbacks=[JsonLines()]
    )
    for run in (small(**TWICE, rows_at_once=1), small(**TWICE)):  # the second finds the first one's work done
        done = pretrain(run, corpora={str(packed): 1.0}, out=tmp_path / "parts", callbacks=[JsonLines()])
        assert done.result.step == whole.result.step
    one, two = (read_metrics(tmp_path / name / "metrics.jsonl") for name in ("whole", "parts"))
    for mine, theirs in zip(one, two, strict=True):
        assert theirs["loss"] == pytest.approx(mine["loss"], rel=1e-5)


def test_large_is_the_papers_run() -> None:
    run = pretraining_run("zcodepp-large")
    assert isinstance(run.objective, ReplacedTokens)
    assert (run.batch_size, run.train.steps, run.objective.generator_layers) == (2048, 1_000_000, 6)


@pytest.mark.long
def test_the_memory_plan_counts_what_a_row_keeps() -> None:
    """Doubling the layers about doubles it, and checkpointing needs less; the table has the three rows."""
    run = small(**{"model.vocab_size": 700})
    deeper = replace(run, model=replace(run.model, encoder_layers=4, decoder_layers=2))
    thin = replace(run, gradient_checkpointing=True)
    plain = measure(run)
    assert 1.4 < measure(deeper).activations / plain.activations < 2.1
    assert measure(thin).activations < 0.7 * plain.activations
    table = memory_plan(run)
    assert [line.split()[0] for line in table.splitlines()[5:8]] == ["1", "8", "128"]
    assert 700 * 16 <= plain.tables < plain.parameters  # token tables and what else is in no layer


@pytest.mark.long
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_plan_computes_from_narrow_models_what_the_whole_model_keeps(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model of the run's width is built outside the meta device, and the bytes are those of one."""
    wide: dict[str, Any] = {
        "model.hidden_size": 64,
        "model.num_attention_heads": 8,
        "model.intermediate_size": 128,
    }
    wide |= {"model.vocab_size": 3000, "model.dropout": 0.1, "train.precision": precision}
    run = small(**wide)
    whole = memory_plan_module._of_all_layers(run)
    widths: list[int] = []
    build = memory_plan_module._model

    def watched(narrow: PreTrainRun, depth: Sequence[int]) -> PreTrainedModel:
        model = build(narrow, depth)
        if next(model.parameters()).device.type != "meta":
            widths.append(narrow.model.hidden_size)
        return model

    monkeypatch.setattr(memory_plan_module, "_model", watched)
    measured = measure(run)
    assert set(widths) == {8, 16, 24}
    assert measured.activations == pytest.approx(whole[0].max(), rel=0.005)
    assert measured.shared == pytest.approx(whole[1].max(), rel=0.005)


def test_the_bytes_of_a_row_hold_for_many_rows() -> None:
    changes: dict[str, Any] = {"model.vocab_size": 2048, "model.dropout": 0.1}
    run = small(**changes)
    depth = (2, 1, run.objective.own_layers)
    of_row, shared = memory_plan_module._of_rows(run, depth, 2048)
    model = memory_plan_module._model(run, depth)
    five = memory_plan_module._kept_bytes(run, model, rows=5)
    assert five == pytest.approx(shared + 5 * of_row, rel=0.005)
