"""What `tune` does: it trains a prefix and nothing else, is taken up bit for bit, and its adapter knows its base."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from precis.data.synthetic.corpus import make_pairs
from precis.data.text.segments import UNIT_KINDS, Sentences, document_units, segments_of_units
from precis.generation.model_loader import load_model
from precis.generation.model_metadata import ModelUse
from precis.generation.summarizer import Summarizer
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.measure.model_scores import evaluate_models
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune
from precis.recipes.adapter_recipes import TunePlan, resolve_tuning
from precis.recipes.run_plan import RunPlan
from precis.training.callbacks import StepInfo, Trained
from precis.tuning import NoPrefix, Prefix, attached, method, read_adapter
from precis.tuning.prefix import Reparametrized, TopLayers
from precis.tuning.stack_prefixes import Prefixes
from precis_text.errors import UserError
from tests.devices import beside
from tests.tiny_models import documents, save

PLAN = TunePlan(method="hierblock+softsa", prefix=Prefix(length=4), target_length=8)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for split, seed in (("train", 1), ("dev", 2)):
        rows = [
            json.dumps({"document": pair.document[:160], "summary": pair.summary[:60]})
            for pair in make_pairs(12 if split == "train" else 4, seed=seed)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("zcodepp", tmp_path_factory.mktemp("models") / "base")


def brief(**changes: Any) -> RunPlan:
    return resolve_tuning(
        None,
        changes={
            "train.steps": 4,
            "train.epochs": None,
            "train.learning_rate": 0.05,
            "train.validate_every": 2,
            "train.save_every": 1,
            "train.keep_checkpoints": 9,
            "batch_size": 4,
            "max_source": 48,
            "max_target": 12,
            "generated_rows": 2,
            "generation.max_tokens": 8,
            **changes,
        },
    )


def tuned(base: Path, data: Path, out: Path, *, plan: TunePlan = PLAN, **options: Any) -> Trained:
    run = options.pop("run", brief())
    return tune(
        plan,
        run,
        PairRequest(
            start=str(base), sources=NamedPairs(data=str(data)).sources(), out=out, callbacks=[], **options
        ),
    )


@pytest.fixture(scope="module")
def finished(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tuned"
    assert tuned(base, data, out).adapter == out / "adapter"
    return out


def same(one: Path, other: Path) -> bool:
    left, right = (load_file(folder / "adapter" / "adapter.safetensors") for folder in (one, other))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_a_checkpoint_holds_what_is_trained_and_no_weight_of_the_base(finished: Path) -> None:
    weights = load_file(finished / "checkpoints" / "step-00000004" / "model.safetensors")
    assert weights
    assert all(name.startswith("precis_prefixes.") for name in weights)
    moments = load_file(finished / "checkpoints" / "step-00000004" / "optimizer.safetensors")
    assert {name.partition("/")[2] for name in moments} == set(weights)


def test_the_adapter_is_the_best_checkpoint_and_differs_from_where_it_began(
    finished: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    best = json.loads((finished / "checkpoints" / "best.json").read_text())["step"]
    table = load_file(finished / "checkpoints" / f"step-{best:08d}" / "model.safetensors")
    kept = load_file(finished / "adapter" / "adapter.safetensors")
    trained = table["precis_prefixes.tables.encoder.table"]
    torch.testing.assert_close(kept["encoder.1.keys"], trained[1, 0], atol=0, rtol=0)
    tuned(base, data, tmp_path / "other", run=brief(**{"train.seed": 1}))
    assert not same(finished, tmp_path / "other")


class StopAfter:
    """Asks a run to stop as a signal does."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_start(self, info: Any) -> None: ...

    def on_step(self, info: StepInfo) -> None:
        if info.step == self._step:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_validation(self, info: Any) -> None: ...

    def on_end(self, result: Any) -> None: ...


def test_a_run_that_was_told_to_stop_goes_on_bit_for_bit(
    finished: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    sources = NamedPairs(data=str(data)).sources()
    stopped = tune(
        PLAN,
        brief(),
        PairRequest(start=str(base), sources=sources, out=tmp_path / "run", callbacks=[StopAfter(1)]),
    )
    assert stopped.adapter is None
    assert not (tmp_path / "run" / "adapter").exists()
    assert tuned(base, data, tmp_path / "run").adapter is not None
    assert same(finished, tmp_path / "run")


def test_a_run_is_not_continued_on_another_base_nor_with_another_method(
    finished: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    adapter = (finished / "adapter" / "adapter.safetensors").read_bytes()
    other = save("zcodepp", tmp_path / "other", seed=1)
    weights = (base / "model.safetensors").read_bytes()
    try:  # the same place with other weights
        (base / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
        with pytest.raises(UserError, match="was started with another base model"):
            tuned(base, data, finished)
    finally:
        (base / "model.safetensors").write_bytes(weights)
    with pytest.raises(UserError, match=r"was started without tuning\.decoder\.layer, now "):
        tuned(base, data, finished, plan=replace(PLAN, method="prefix"))
    assert (finished / "adapter" / "adapter.safetensors").read_bytes() == adapter


def test_a_run_folder_is_a_model_and_so_are_base_and_adapter_together(finished: Path, base: Path) -> None:
    texts = [text[:150] for text in documents(3)]
    as_run = Summarizer.from_pretrained(finished)
    together = Summarizer.from_pretrained(base, adapter=finished)
    assert attached(as_run.model) is not None
    assert as_run.max_source == together.max_source == 48
    assert as_run.settings == together.settings
    written = [s.text for s in as_run.summarize(texts)]
    assert written == [s.text for s in together.summarize(texts)]
    ids = beside(as_run.model, torch.tensor([[1, 9, 8, 7, 2]]))
    bare = load_model(base).model(input_ids=ids, decoder_input_ids=ids).logits
    assert not torch.equal(bare, as_run.model(input_ids=ids, decoder_input_ids=ids).logits)


def test_an_adapter_finds_its_base_when_both_were_moved(
    base: Path, data: Path, finished: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(base, old / "base")
    tuned(old / "base", data, old / "run")
    old.rename(tmp_path / "new")
    assert attached(load_model(tmp_path / "new" / "run").model) is not None
    (tmp_path / "new" / "base").rename(tmp_path / "gone")
    with pytest.raises(UserError, match=r"its base model .* no longer exists; use --model BASE --adapter"):
        load_model(tmp_path / "new" / "run")
    assert attached(load_model(tmp_path / "gone", adapter=tmp_path / "new" / "run").model) is not None


def test_an_adapter_on_another_model_is_refused_in_one_line(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"was trained on ZCodePP.* weights"):
        load_model(save("zcodepp", tmp_path / "other", seed=1), adapter=finished)
    with pytest.raises(UserError, match="does not fit this Bart"):
        load_model(save("bart", tmp_path / "bart"), adapter=finished)
    with pytest.raises(UserError, match="no adapter here"):
        load_model(tmp_path / "bart", adapter=tmp_path / "bart")


def test_what_was_tuned_is_no_model_to_train_further(finished: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is an adapter; start from a whole model"):
        finetune(
            brief(),
            PairRequest(
                sources=NamedPairs(data=str(data)).sources(), start=str(finished), out=tmp_path / "run"
            ),
        )
    with pytest.raises(UserError, match="is an adapter; start from a whole model"):
        tuned(finished, data, tmp_path / "run")


def test_predictions_are_not_mixed_with_those_of_another_adapter(
    finished: Path, base: Path, data: Path, tmp_path: Path
) -> None:
    pairs = list(make_pairs(2, seed=3))
    system = evaluate_models([str(base)], pairs, adapter=str(finished / "adapter"), out=tmp_path)
    assert list(system) == ["tuned beam 5"]
    (tmp_path / "second").mkdir()
    tuned(base, data, tmp_path / "second" / "tuned", run=brief(**{"train.seed": 1}))
    with pytest.raises(UserError, match="adapter"):
        evaluate_models([str(base)], pairs, adapter=str(tmp_path / "second" / "tuned"), out=tmp_path)


def test_the_whole_model_under_sparse_attention_is_exported_with_its_attention(
    base: Path, data: Path, tmp_path: Path
) -> None:
    run = brief(**{"train.learning_rate": 1e-3})
    done = tuned(base, data, tmp_path / "run", plan=TunePlan(method="truncsa", prefix=NoPrefix()), run=run)
    assert done.adapter is not None
    weights = load_file(tmp_path / "run" / "model" / "model.safetensors")
    before = load_file(base / "model.safetensors")
    assert set(weights) == set(before)
    assert not all(torch.equal(weights[name], before[name]) for name in before)
    loaded = load_model(tmp_path / "run")
    found = attached(loaded.model)
    assert found is not None
    assert found.tuning.encoder == method("truncsa", NoPrefix()).encoder


def test_a_reparametrised_prefix_is_folded_when_it_is_exported(
    base: Path, data: Path, tmp_path: Path
) -> None:
    plan = TunePlan(method="prefix", prefix=Prefix(length=3, keys=Reparametrized(width=8)), target_length=8)
    tuned(base, data, tmp_path / "run", plan=plan)
    kept = load_file(tmp_path / "run" / "adapter" / "adapter.safetensors")
    assert {tuple(tensor.shape) for tensor in kept.values()} == {(2, 3, 16)}


def test_documents_shorter_than_the_segments_are_counted_trained_on_and_summarized(
    base: Path, tmp_path: Path
) -> None:
    settings = replace(PLAN.attention, encoder_segments=40)
    plan = replace(PLAN, prefix=Prefix(length=40), attention=settings)
    rows = [{"document": "Ann sings.", "summary": "Ann sings."}] * 3
    rows += [{"document": "Bob dances and sings. " * 20, "summary": "Bob."}] * 3
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dev.write_text(json.dumps(rows[0]) + "\n")
    told: list[str] = []
    options = {
        "sources": NamedPairs(data=str(train), dev=str(dev)).sources(),
        "callbacks": [],
        "notify": told.append,
    }
    done = tune(plan, brief(), PairRequest(start=str(base), out=tmp_path / "run", **options))  # type: ignore[arg-type]
    assert done.adapter is not None
    assert any("3 of 6 training documents have fewer than 40 tokens" in line for line in told)
    (summary,) = Summarizer.from_pretrained(tmp_path / "run").summarize(["Bob dances."])
    assert summary.tokens_read == summary.document_tokens


def test_more_segments_than_any_document_has_tokens_or_units_is_one_line(base: Path, tmp_path: Path) -> None:
    rows = '{"document": "Ann sings.", "summary": "Ann sings."}\n' * 3
    (tmp_path / "pairs.jsonl").write_text(rows + '{"document": "Bob dances.", "summary": "Bob."}\n')
    plan = replace(PLAN, prefix=Prefix(length=40), attention=replace(PLAN.attention, encoder_segments=40))
    with pytest.raises(UserError, match=r"40 segments, but no training document has more than \d+ tokens"):
        tuned(base, tmp_path / "pairs.jsonl", tmp_path / "run", plan=plan)
    settings = replace(PLAN.attention, encoder_segments=2)
    with pytest.raises(UserError, match="2 segments, but no training document has more than 1 units"):
        tuned(
            base,
            tmp_path / "pairs.jsonl",
            tmp_path / "other",
            plan=replace(PLAN, attention=settings, units=UNIT_KINDS["paragraphs"]),
        )


def test_sharding_is_refused_with_what_to_do(
    base: Path, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "2")
    with pytest.raises(UserError, match="FSDP shards it"):
        tuned(base, data, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("units", ["equal", "sentences"])
def test_two_processes_train_the_prefix_of_one(base: Path, data: Path, tmp_path: Path, units: str) -> None:
    """Of 12 rows in batches of 11 one is left: the second process has none, and its stand-in row must be cut too."""
    base = shutil.copytree(base, tmp_path / "base")
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"dropout": 0.0, "attention_dropout": 0.0}))
    command = [
        "tune", "--model", base, "--data", data, "--method", "hierblock", "--set", "prefix.length=4", "--steps", 6,
        "--batch-size", 11, "--lr", 0.01, "--max-source", 48, "--max-target", 12, "--set", "target_length=8",
        "--set", "generated_rows=0", "--select", "loss", "--threads", 1, "--set", f"units={units}",
        "--set", "prefix.keys=direct",
    ]  # fmt: skip
    alone, together = tmp_path / "alone", tmp_path / "together"
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "precis"]
    for start, out in ((launch, together), ([sys.executable, "-m", "precis"], alone)):
        words = [*start, *map(str, command), "--out", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    one, two = (load_file(out / "adapter" / "adapter.safetensors") for out in (alone, together))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, atol=1e-5, rtol=1e-4)


def seen_segments(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor | None]:
    """What each encoding is told of its source."""
    seen: list[torch.Tensor | None] = []
    whole = Prefixes.encoder

    def encoder(self: Prefixes, valid: torch.Tensor) -> Any:
        seen.append(None if self.source_segments is None else self.source_segments.clone())
        return whole(self, valid)

    monkeypatch.setattr(Prefixes, "encoder", encoder)
    return seen


@pytest.mark.long
def test_segments_of_sentences_reach_training_validation_and_the_finished_adapter(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everywhere the encoder is told the same segments of the same document."""
    seen = seen_segments(monkeypatch)
    plan = replace(PLAN, method="uniblock", units=Sentences())
    run = brief(**{"batch_size": 1, "train.steps": 2, "max_source": 300})
    done = tuned(base, data, tmp_path / "run", plan=plan, run=run)
    assert all(segments is not None for segments in seen)
    told = {tuple(segments[0].tolist()) for segments in seen if segments is not None and len(segments) == 1}
    assert done.adapter is not None
    assert read_adapter(done.adapter).tuning.units == "sentences"
    summarizer = Summarizer.from_pretrained(tmp_path / "run")
    for text in [p.document for p in NamedPairs(data=str(data)).sources().train.read()]:
        seen.clear()
        summarizer.summarize([text])
        (segments,) = seen
        assert segments is not None
        expected = segments_of_units(document_units(text, summarizer.tokenizer, Sentences()), 2)
        assert segments[0].tolist() == expected
        assert set(expected) == {0, 1}
    assert any(
        tuple(segments_of_units(document_units(p.document, summarizer.tokenizer, Sentences()), 2)) in told
        for p in NamedPairs(data=str(data)).sources().train.read()
    )
    equal = tuned(base, data, tmp_path / "equal", plan=replace(plan, units=None), run=run)
    assert equal.adapter is not None
    assert not same(tmp_path / "run", tmp_path / "equal")


def test_units_need_blocks() -> None:
    with pytest.raises(UserError, match="units needs two or more segments of the source, but softsa has one"):
        TunePlan(method="softsa", prefix=Prefix(length=4), units=Sentences())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"method": "hirblock"}, "unknown method 'hirblock'"),
        ({"target_length": 0}, "target_length=0"),
        ({"prefix": Prefix(length=1)}, "2 segments, but the prefix has length 1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_anything_is_read(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TunePlan(**{"method": "hierblock", "prefix": Prefix(length=4), **plan})


def test_layers_that_the_base_has_not_are_refused_before_pairs_become_ids(
    base: Path, data: Path, tmp_path: Path
) -> None:
    plan = TunePlan(method="prefix", prefix=Prefix(length=4, layers=TopLayers(count=9)))
    said: list[str] = []
    with pytest.raises(UserError, match="9"):
        tuned(base, data, tmp_path / "run", plan=plan, notify=said.append)
    assert not said


@pytest.mark.parametrize(
    ("asked", "trained", "length"), [(90, 40, 40), (90, None, 49), (49, 40, 49), (30, 40, 30)]
)
def test_a_length_beyond_the_positions_of_a_frozen_base_is_lowered_to_what_the_base_has_read(
    data: Path, tmp_path: Path, asked: int, trained: int | None, length: int
) -> None:
    """The position of a token that no input of the base had is as random as before its training."""
    base = save("bart", tmp_path / "base", positions=49)
    if trained is not None:
        ModelUse(max_source=trained).save(base)
    told: list[str] = []
    plan = TunePlan(method="prefix", prefix=Prefix(length=2))
    run = brief(**{"train.steps": 1, "max_source": asked, "max_target": 20})
    tuned(base, data, tmp_path / "out", plan=plan, run=run, notify=told.append)
    assert Summarizer.from_pretrained(tmp_path / "out").max_source == length
    if trained == length:
        assert (
            "the base was trained on up to 40 tokens, and its positions stay as they are: max_source is 40"
            in told
        )
