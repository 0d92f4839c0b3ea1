"""The adapter that comes with a model writes short summaries, and the plain model all others."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import precis
from precis.cli import main
from precis.data.text.prompts import Prompt
from precis.extract import default_model
from precis.generation.model_location import locate
from precis.generation.model_metadata import PACKAGES
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis.phases.measure.model_process import _said
from precis.phases.use.input_documents import Document
from precis.phases.use.summary_job import SummaryJob
from precis.server.engine import Ask
from precis.server.response_body import answer
from precis.server.schemas import OneSummary
from precis.server.served_model import ServedModel
from precis.storage.seal import seal
from precis.tuning.low_rank import TENSORS, LowRank, add_low_rank
from precis_text.errors import UserError
from precis_text.length import ANY_LENGTH, Length, make_length
from precis_text.support.write_or_quote import SMALL_CLOSENESS
from tests.generation.writers.fake_chat import FakeChat
from tests.generation.writers.test_writer import BOATS, LONG
from tests.tiny_models import llama, save_llama

_LONG: dict[str, Any] = {"words": 41}
_SHORT: dict[str, Any] = {"words": 40}


def write_adapter(folder: Path, *, seed: int, half: bool = True) -> Path:
    """Write an adapter of the tiny model that changes what it writes, in float16 or float32, sealed."""
    folder.mkdir()
    adapter = add_low_rank(llama()[0], LowRank(rank=3, alpha=6.0), seed=1)
    torch.manual_seed(seed)
    for name, parameter in adapter.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=1.0)
    adapter.write_files(folder)
    if half:
        tensors = load_file(folder / TENSORS)
        save_file({name: tensor.half() for name, tensor in tensors.items()}, folder / TENSORS)
    seal(folder)
    return folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package of the model `writer`, with an adapter."""
    folder = tmp_path / "tiny_writer_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    save_llama(folder / "weights")
    write_adapter(folder / "adapter", seed=2)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(PACKAGES, "writer", folder.name)
    default_model._summarizer_of.cache_clear()
    return folder


def _text(adapter: Path | str | None, **length: Any) -> tuple[str, bool]:
    (summary,) = open_writer(locate("writer", adapter), check="free").summarize(
        [BOATS], short="write", **length
    )
    return summary.text, summary.adapted


@pytest.mark.long
def test_a_short_summary_is_that_of_the_adapter_and_a_longer_one_that_of_the_model(package: Path) -> None:
    adapter = package / "adapter"
    assert _text(None, **_SHORT) == (_text(adapter, **_SHORT)[0], True)
    assert _text(None, **_LONG) == (_text("none", **_LONG)[0], False)
    assert _text("none", **_SHORT)[0] != _text(adapter, **_SHORT)[0], "the adapter of this test has no effect"
    assert _text("none", **_LONG)[0] != _text(adapter, **_LONG)[0]


@pytest.mark.long
def test_none_leaves_the_adapter_out_and_a_named_one_replaces_it(package: Path, tmp_path: Path) -> None:
    own = write_adapter(tmp_path / "own", seed=3)
    assert _text("none", **_SHORT) == (_text("none", **_SHORT)[0], False)
    for length in (_SHORT, _LONG):
        text, adapted = _text(own, **length)
        assert not adapted, "the adapter of the package is not used"
        assert text not in (_text(None, **length)[0], _text("none", **length)[0])
    assert locate("writer", "none").source == "writer"
    assert locate(locate("writer"), "none").short is None


def test_a_package_without_an_adapter_writes_all_by_itself(package: Path) -> None:
    plain = _text("none", **_SHORT)
    shutil.rmtree(package / "adapter")
    assert locate("writer").short is None
    assert _text(None, **_SHORT) == plain


def test_an_adapter_beside_a_model_of_the_user_is_not_taken(package: Path) -> None:
    assert locate(package / "weights").short is None


def test_a_changed_adapter_and_one_of_another_model_are_refused(package: Path, tmp_path: Path) -> None:
    file = package / "adapter" / TENSORS
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    with pytest.raises(UserError, match=rf"adapter: {TENSORS} has changed"):
        open_writer("writer")
    shutil.rmtree(package / "weights")
    shutil.rmtree(package / "adapter")
    save_llama(package / "weights", seed=7)
    write_adapter(package / "adapter", seed=2)
    with pytest.raises(UserError, match="was trained on LlamaForCausalLM"):
        open_writer("writer")


@pytest.mark.long
def test_threads_that_ask_for_both_lengths_at_once_get_what_each_gets_alone(package: Path) -> None:
    made = open_writer("writer", check="free")
    lengths = [_SHORT, _LONG] * 3

    def text(length: dict[str, Any]) -> str:
        return made.summarize([BOATS], short="write", **length)[0].text

    alone = [text(length) for length in lengths]
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(text, lengths)] == alone
    assert alone[0] != alone[1]


def test_the_included_writer_must_be_close_to_the_document_and_a_model_of_the_user_need_not(
    package: Path, tmp_path: Path
) -> None:
    own = write_adapter(tmp_path / "own", seed=3)
    for model, adapter, closeness in (
        ("writer", None, SMALL_CLOSENESS),
        ("writer", "none", SMALL_CLOSENESS),
        ("writer", own, SMALL_CLOSENESS),
        (package / "weights", None, -1.0),
    ):
        assert open_writer(locate(model, adapter)).closeness == closeness


def test_a_writer_quotes_what_is_not_close_enough() -> None:
    chat = FakeChat(lambda _: "The harbour sold the boats to Bob.")
    document = "Ann sold three boats to Bob. The harbour of the town has a new light. It rained all week."
    for closeness, origin in ((-1.0, "written"), (SMALL_CLOSENESS, "quoted")):
        (summary,) = Writer(chat, closeness=closeness).summarize([document], words=12)
        assert summary.sentences[0].origin == origin


@pytest.mark.parametrize(
    ("asked", "short"),
    [
        ({"length": make_length(words=40)}, True),
        ({"length": make_length(words=41)}, False),
        ({"length": make_length(sentences=1)}, True),
        ({"length": make_length(sentences=2)}, False),
        ({"length": make_length(tokens=10)}, False),
        ({"length": ANY_LENGTH}, False),
        ({"form": "tldr", "length": make_length(sentences=2)}, True),
        ({"form": "tldr", "length": make_length(sentences=3)}, False),
        ({"form": "tldr", "length": make_length(words=100)}, False),
        ({"form": "headline", "length": make_length(sentences=1)}, True),
        ({"form": "headline", "length": make_length(words=12)}, True),
        ({"form": "key-points", "length": make_length(words=30)}, False),
        ({"form": "teaser", "length": make_length(words=30)}, False),
        ({"length": make_length(words=30), "language": "en"}, True),
        ({"length": make_length(words=30), "language": "de"}, False),
        ({"length": make_length(words=30), "question": "Who paid?"}, False),
        ({"length": make_length(words=30), "instruction": "Write a poem."}, False),
    ],
)
def test_the_rule_of_what_is_short(asked: dict[str, Any], short: bool) -> None:
    assert Prompt(**asked).is_short is short


@pytest.mark.parametrize(
    ("options", "adapted"),
    [
        ({"type": "tldr"}, True),
        ({"type": "headline"}, True),
        ({"type": "teaser"}, False),
        ({"type": "key-points"}, False),
        ({"type": "tldr", "about": "the harbour"}, False),
        ({"words": 30, "instruction": "Name the harbour."}, False),
        ({"words": 30, "instruction": ""}, True),
        ({"words": 30}, True),
        ({"sentences": 1}, True),
        ({}, False),
    ],
)
def test_the_forms_and_options_that_the_adapter_writes(options: dict[str, Any], adapted: bool) -> None:
    plain, short = (FakeChat(lambda _: "Ann sold Bob 3 boats in March.") for _ in range(2))
    (summary,) = Writer(plain, short=short).summarize([LONG], **options)
    assert summary.adapted is adapted
    assert (len(plain.prompts), len(short.prompts)) == ((0, 1) if adapted else (1, 0))


def test_pieces_of_a_long_document_are_summarized_without_the_adapter() -> None:
    plain, short = (FakeChat(lambda _: "Boats left the harbour.", context=400) for _ in range(2))
    (summary,) = Writer(plain, short=short).summarize([LONG], words=20, long="chunk")
    assert summary.adapted
    assert summary.pieces > 1
    assert len(short.prompts) == 1
    assert len(plain.prompts) >= summary.pieces
    assert not any("20 words" in prompt for prompt in plain.prompts)


def test_a_document_that_is_its_own_summary_and_a_model_without_an_adapter_say_so() -> None:
    plain, short = (FakeChat(lambda _: "Ann sold Bob 3 boats.") for _ in range(2))
    (kept,) = Writer(plain, short=short).summarize(["Ann sold 3 boats to Bob."], words=30)
    (without,) = Writer(plain).summarize([BOATS], words=30)
    assert (kept.kept, kept.adapted, without.adapted) == (True, False, False)


@pytest.mark.long
def test_summarize_says_whether_the_adapter_was_used(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "boats.txt"
    file.write_text(LONG)
    command = ["summarize", str(file), "--model", "writer"]
    for options, adapted in (
        (["--words", "40"], True),
        (["--type", "tldr"], True),
        (["--words", "40", "--adapter", "none"], False),
        (["--words", "60"], False),
    ):
        assert main([*command, *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["adapted"] is adapted
        assert main([*command, *options]) == 0
        assert ("with the adapter for short summaries" in capsys.readouterr().err) is adapted


def test_the_library_uses_the_adapter(package: Path) -> None:
    found = precis.summarize(LONG, model="writer", words=20)
    writer = default_model._summarizer_of("writer", None)
    (summary,) = writer.summarize([LONG], words=20)
    assert (found, summary.adapted) == (summary.text, True)


def _asked(length: Length) -> Ask:
    return Ask(model="m", mode="abstract", length=length)


@pytest.mark.long
def test_the_service_switches_by_request_and_counts_shared_weights_once(package: Path) -> None:
    served, plain = (ServedModel.load("writer", name="m", adapter=adapter) for adapter in (None, "none"))
    for length, adapted in ((make_length(words=40), True), (make_length(words=60), False)):
        (summary,) = served.make([LONG], _asked(length), lambda *_: None, None)
        told = answer(0, LONG, summary, support=False)
        assert OneSummary.model_validate(told).adapted is adapted
    (summary,) = plain.make([LONG], _asked(make_length(words=40)), lambda *_: None, None)
    assert answer(0, LONG, summary, support=False)["adapted"] is False
    tensors = load_file(package / "adapter" / TENSORS).values()
    buffers = served.size - plain.size - sum(4 * tensor.numel() for tensor in tensors)
    assert 0 <= buffers < 1000, "only the adapter comes on top, and the small buffers of positions"


def test_resumed_work_does_not_mix_summaries_with_and_without_the_adapter(package: Path) -> None:
    made = [
        SummaryJob(model="writer", adapter=adapter).locate_model().made_by() for adapter in (None, "none")
    ]
    assert len(made[0].pop("short_adapter")) == 16
    assert made[0] == made[1]


def test_compare_records_the_adapter(package: Path) -> None:
    options = SummaryJob(model="writer", length=make_length(words=30))
    (result,) = options.locate_model().load(keep_going=True).results([Document("boats", text=LONG)])
    assert _said(result)["adapted"] is True


def test_batch_keeps_the_word_none_and_makes_folders_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none").mkdir()
    jobs = [SummaryJob(model="writer", adapter=name).on_every_machine() for name in ("none", "./none")]
    assert [job.adapter for job in jobs] == ["none", str(tmp_path / "none")]
