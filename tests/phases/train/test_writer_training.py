"""`finetune` and `tune` of causal models: the writer's own prompts, resumed bit for bit, used like any writer."""

from __future__ import annotations

import copy
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import read_pairs
from precis.data.synthetic.corpus import make_pairs
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.generation.model_metadata import ModelUse
from precis.generation.writers.causal_model import CausalModel
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.measure.model_scores import evaluate_models
from precis.phases.plans.finetuning_plan import plan_finetuning
from precis.phases.plans.tuning_plan import LowRankTuning, PrefixTuning, plan_tuning
from precis.phases.train import writer_training
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.writer_training import Prompts, train_writer
from precis.recipes.catalogue import FOR_WRITERS, recipe
from precis.recipes.overrides import with_changes
from precis.recipes.run_plan import RunPlan
from precis.training import Trained
from precis.training.callbacks import StepInfo
from precis.tuning.low_rank import TENSORS, LowRank
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, llama, our_tokenizer, save, save_llama

_RANK = LowRank(rank=2, alpha=4.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for split, count, seed in (("train", 12, 1), ("dev", 3, 2)):
        pairs = make_pairs(count, seed=seed)
        rows = [{"document": pair.document[:300], "summary": pair.summary[:60]} for pair in pairs]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_llama(tmp_path_factory.mktemp("models") / "llama")
    ModelUse(licence="apache-2.0").save(folder)
    return folder


def brief(**changes: Any) -> RunPlan:
    wanted = {
        "train.steps": 4,
        "train.epochs": None,
        "train.learning_rate": 0.02,
        "train.warmup_steps": 0,
        "train.validate_every": 2,
        "train.save_every": 1,
        "train.keep_checkpoints": 9,
        "batch_size": 4,
        "max_target": 20,
        "generated_rows": 2,
    }
    return with_changes(recipe(FOR_WRITERS), {**wanted, **changes})


def trained(base: Path, data: Path, out: Path, *, low_rank: LowRank | None, **options: Any) -> Trained:
    run = options.pop("run", brief())
    asked = {"sources": NamedPairs(data=str(data)).sources(), "callbacks": [], **options}
    return train_writer(run, PairRequest(start=str(base), out=out, **asked), low_rank=low_rank)


@pytest.fixture(scope="module", params=[None, _RANK], ids=["finetune", "tune"])
def kind(request: pytest.FixtureRequest) -> LowRank | None:
    return request.param


@pytest.fixture(scope="module")
def finished(base: Path, data: Path, kind: LowRank | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    done = trained(base, data, out, low_rank=kind, callbacks=None)
    assert (done.model if kind is None else done.adapter) == out / ("model" if kind is None else "adapter")
    return out


def exported(run: Path) -> dict[str, torch.Tensor]:
    adapter = run / "adapter" / TENSORS
    return load_file(adapter if adapter.is_file() else run / "model" / "model.safetensors")


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


def test_a_stopped_run_goes_on_bit_for_bit(
    finished: Path, base: Path, data: Path, kind: LowRank | None, tmp_path: Path
) -> None:
    stopped = trained(base, data, tmp_path / "run", low_rank=kind, callbacks=[StopAfter(1)])
    assert stopped.adapter is None
    assert stopped.model is None
    trained(base, data, tmp_path / "run", low_rank=kind)
    one, other = exported(finished), exported(tmp_path / "run")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_checkpoints_hold_what_is_trained(finished: Path, kind: LowRank | None) -> None:
    names = load_file(finished / "checkpoints" / "step-00000004" / "model.safetensors").keys()
    assert all(("lora_" in name) is (kind is not None) for name in names)
    assert names


def test_the_result_is_a_writer_with_the_trained_weights(
    finished: Path, base: Path, kind: LowRank | None
) -> None:
    found = open_writer(finished)
    plain = load_model(base, kind=AutoModelForCausalLM).model.state_dict()
    ours = found.chat.parts.state_dict()
    assert plain.keys() == ours.keys()
    changed = {name for name in plain if not torch.equal(plain[name], ours[name])}
    if kind is None:
        assert changed == set(plain)
    else:
        assert {name.split(".")[-2] for name in changed} == {
            *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
        }
    assert found.max_source == brief().max_source
    (summary,) = found.summarize([next(iter(make_pairs(1, seed=4))).document], words=30)
    assert summary.text


def test_the_licence_the_use_and_the_end_marks_travel(
    finished: Path, base: Path, kind: LowRank | None
) -> None:
    use = locate(finished).use
    assert (use.licence, use.max_source) == ("apache-2.0", 1024)
    card = (finished / ("model" if kind is None else "adapter") / "README.md").read_text()
    assert 'license: "apache-2.0"' in card
    assert "| written |" in card
    if kind is None:
        own, before = (
            json.loads((place / "generation_config.json").read_text()) for place in (finished / "model", base)
        )
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            assert own[name] == before[name]
        assert "max_new_tokens" not in own


@pytest.mark.long
def test_a_run_folder_is_scored_like_a_model(finished: Path, base: Path, data: Path, tmp_path: Path) -> None:
    pairs = list(read_pairs(data / "dev.jsonl"))
    found = evaluate_models([str(base), str(finished)], pairs, out=tmp_path / "scores")
    assert [len(texts) for texts in found.values()] == [3, 3]


def test_a_trained_adapter_is_no_model_to_train_further(finished: Path, data: Path, tmp_path: Path) -> None:
    if (finished / "adapter").is_dir():
        with pytest.raises(UserError, match="is an adapter; start from a whole model"):
            trained(finished, data, tmp_path / "more", low_rank=_RANK)
    else:
        done = trained(finished, data, tmp_path / "more", low_rank=_RANK)
        assert done.adapter is not None


@pytest.mark.long
def test_other_prompts_are_another_run(
    finished: Path, base: Path, data: Path, kind: LowRank | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="instruction"):
        trained(base, data, finished, low_rank=kind, instruction="Say it in verse.")
    with pytest.raises(UserError, match="max_source=1024, now 400"):
        trained(base, data, finished, low_rank=kind, run=brief(max_source=400))
    monkeypatch.setattr(writer_training, "prompts_digest", lambda: "changed")
    with pytest.raises(UserError, match="was started with other prompts"):
        trained(base, data, finished, low_rank=kind)


def test_validation_measures_strict_and_free_summaries(finished: Path) -> None:
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    (last,) = [row for row in rows if row["kind"] == "validation" and row["step"] == 4]
    for name in ("rouge1", "rougeL", "free_rouge1", "free_rougeL"):
        assert last[f"{name}_low"] <= last[name] <= last[f"{name}_high"]
    assert 0 <= last["written"] <= 1


def prompts(*, context: int = 1024, instruction: str = "", seed: int = 0) -> tuple[Prompts, CausalModel]:
    model, tokenizer = llama(seed=seed)
    chat = CausalModel(model, tokenizer, context=context)
    writer = Writer(chat, instruction=instruction)
    writer.settings = GenerationSettings(max_tokens=20)
    return Prompts(writer, chat, chat.closing()), chat


def read(found: Prompts, document: str, summary: str = "A short one.", *, target: int = 20) -> Any:
    return found.ids_of([Pair(document=document, summary=summary)], brief(max_target=target))


@pytest.mark.parametrize("words", [40, 900])
@pytest.mark.parametrize("instruction", ["", "Say it in verse."])
def test_a_prompt_is_the_one_that_the_writer_sends(
    words: int, instruction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, chat = prompts(context=600, instruction=instruction)
    text = " ".join(" ".join(pair.document for pair in make_pairs(12, seed=5)).split()[:words])
    sent: list[list[int]] = []
    reply = chat.reply

    def keep(messages: Any, answer: str, **options: Any) -> Any:
        sent.append(chat.ids(messages, answer))
        return reply(messages, answer, **options)

    monkeypatch.setattr(chat, "reply", keep)
    found.writer.summarize([text], short="write")
    rows = read(found, text)
    assert rows.sources[0].tolist() == sent[0]
    assert rows.truncated_sources == (words > 100)
    assert len(sent[0]) + 20 <= 600
    assert (instruction in chat.tokenizer.decode(sent[0])) or not instruction


def chatty() -> tuple[Prompts, CausalModel]:
    """Prompts with a tokenizer that reads its control tokens in a text, as those of chat models do."""
    tokenizer = copy.deepcopy(bert_tokenizer())
    tokenizer.chat_template = llama()[1].chat_template
    model = llama()[0]
    model.generation_config.eos_token_id = [tokenizer.pad_token_id, tokenizer.eos_token_id]
    chat = CausalModel(model, tokenizer, context=1024)
    return Prompts(Writer(chat), chat, chat.closing()), chat


def test_a_summary_ends_as_the_chat_template_ends_a_reply() -> None:
    found, chat = chatty()
    end = chat.tokenizer.eos_token_id  # the second of the declared ones
    row = read(found, "Ann sings in the hall.", "ann sings").targets[0].tolist()
    assert (chat.tokenizer.decode(row[:-1]), row[-1]) == ("ann sings", end)
    long = read(found, "Ann sings in the hall.", "ann sings " * 30)
    assert (len(long.targets[0]), long.targets[0][-1], long.truncated_targets) == (20, end, 1)
    full = read(found, "Ann sings in the hall.", "ann sings " * 9 + "ann")
    assert (len(full.targets[0]), full.truncated_targets) == (20, 0)


def test_a_template_without_an_end_mark_gets_the_tokenizer_s() -> None:
    _, chat = chatty()
    chat.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    assert chat.closing() == chat.tokenizer.eos_token_id


def test_control_tokens_in_a_summary_are_text() -> None:
    found, chat = chatty()
    row = read(found, "ann sings", "ann [SEP] sings").targets[0].tolist()
    assert row.count(chat.tokenizer.eos_token_id) == 1


def test_an_unknown_option_of_prompts_is_refused() -> None:
    found, _ = prompts()
    with pytest.raises(TypeError, match="segmentor"):
        found.ids_of([Pair(document="Ann sings.", summary="Ann.")], brief(), segmentor=None)  # type: ignore[call-arg]


def test_pairs_without_words_are_refused_or_skipped() -> None:
    found, _ = prompts()
    pairs = [Pair(document="Ann sings.", summary="Ann sings."), Pair(document="Bob rows.", summary=" ")]
    with pytest.raises(UserError, match="pair 2: the summary gives no tokens; remove the pair"):
        found.ids_of(pairs, brief())
    told: list[tuple[int, str]] = []
    rows = found.ids_of(pairs, brief(), skip=lambda index, problem: told.append((index, problem)))
    assert rows.kept is not None
    assert (len(rows), rows.kept.tolist(), told[0][0]) == (1, [0], 1)
    with pytest.raises(UserError, match="zero pairs"):
        found.ids_of([], brief())


def test_a_model_without_a_chat_template_is_refused(base: Path, data: Path, tmp_path: Path) -> None:
    model, _ = llama()
    model.save_pretrained(tmp_path / "plain")
    our_tokenizer().save_pretrained(tmp_path / "plain")
    with pytest.raises(UserError, match=r"lacks a chat template .* use an instruct model") as refused:
        trained(tmp_path / "plain", data, tmp_path / "out", low_rank=_RANK)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("most", "message"), [(128, "leave no room for a document"), (60, "use 128 or more")]
)
def test_a_context_too_small_for_the_prompt_is_refused(
    most: int, message: str, base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        trained(base, data, tmp_path / "out", low_rank=_RANK, run=brief(max_source=most))


def test_lengths_beyond_the_model_are_lowered_and_told(data: Path, tmp_path: Path) -> None:
    small = save_llama(tmp_path / "small", positions=600)
    told: list[str] = []
    trained(
        small, data, tmp_path / "out", low_rank=_RANK, notify=told.append,
        run=brief(**{"max_target": 200, "train.steps": 1, "generated_rows": 0}),
    )  # fmt: skip
    assert any("max_source is 600 instead of 1024" in line for line in told)
    assert any("max_target is 150 instead of 200" in line for line in told)
    assert locate(tmp_path / "out").use.max_source == 600


def test_a_tokenizer_that_cannot_pad_is_enough(base: Path, data: Path, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.pad_token = None
    model.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    run = brief(**{"train.steps": 1, "generated_rows": 0})
    assert trained(tmp_path / "m", data, tmp_path / "out", low_rank=_RANK, run=run).adapter is not None


def pairs_in(data: Path) -> NamedPairs:
    return NamedPairs(data=str(data))


def test_a_causal_model_gets_lora_and_its_recipe(base: Path, data: Path, tmp_path: Path) -> None:
    planned = plan_tuning(base, pairs_in(data), out=tmp_path, settings=["lora.rank=5", "batch_size=3"])
    assert isinstance(planned, LowRankTuning)
    assert (planned.low_rank.rank, planned.plan.batch_size, planned.plan.train.learning_rate) == (5, 3, 2e-4)
    whole = plan_finetuning(pairs_in(data), model=str(base), out=str(tmp_path / "w"))
    assert (whole.plan.name, whole.plan.label_smoothing) == (FOR_WRITERS, 0.0)


def test_an_encoder_decoder_keeps_prefixes_and_refuses_lora(data: Path, tmp_path: Path) -> None:
    bart = save("bart", tmp_path / "bart")
    assert isinstance(plan_tuning(bart, pairs_in(data), out=tmp_path / "o"), PrefixTuning)
    with pytest.raises(
        UserError, match=r"--method lora is for causal language models, and .*bart is not one"
    ):
        plan_tuning(bart, pairs_in(data), out=tmp_path / "o", method="lora")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": ["prefix.length=3"]}, "--set prefix.length=3 is for a prefix"),
        ({"settings": ["lora.rank=0"]}, "lora.rank=0"),
        ({"settings": ["lora.width=3"]}, "lora.width: unknown setting of lora"),
    ],
)
def test_settings_that_do_not_apply_are_refused(
    options: dict[str, Any], message: str, base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        plan_tuning(base, pairs_in(data), out=tmp_path, **options)


def test_what_a_causal_model_cannot_is_refused(base: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--search is for encoder-decoders"):
        plan_finetuning(pairs_in(data), model=str(base), search=True, out=str(tmp_path / "s"))
    request = plan_finetuning(pairs_in(data), model=str(base), out=str(tmp_path / "t")).request
    with pytest.raises(UserError, match="--tokenizer is for new models"):
        train_writer(brief(), replace(request, tokenizer="x"))
    with pytest.raises(UserError, match=r"not an encoder-decoder; .* `precis tune` adapts it"):
        plan_tuning(base, pairs_in(data), out=tmp_path / "p", method="prefix").run()
