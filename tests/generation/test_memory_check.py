"""An input that cannot fit is refused before it is encoded."""

from pathlib import Path

import pytest
import torch

from precis.generation import memory_check
from precis.generation.memory_check import free_bytes, refuse_too_much, scores_bytes
from precis.generation.summarizer import Summarizer
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.tiny_models import documents, tiny

SHORT = GenerationSettings(max_tokens=4)


def test_scores_of_all_pairs_are_counted_where_a_model_holds_them() -> None:
    t5, _ = tiny("t5")
    ours, _ = tiny("zcodepp")
    assert scores_bytes(t5, rows=2, length=1000) == 3 * 2 * t5.config.num_heads * 1000**2 * 4
    assert scores_bytes(ours, rows=2, length=1000) == 0
    bart, _ = tiny("bart")
    whole = scores_bytes(bart, rows=1, length=1000)
    assert whole == 3 * bart.config.encoder_attention_heads * 1000**2 * 4
    assert scores_bytes(bart.half(), rows=1, length=1000) == whole // 2
    windows, _ = tiny("led")
    assert scores_bytes(windows, rows=1, length=1000) == 0


def test_this_machine_says_what_is_free() -> None:
    free = free_bytes(torch.device("cpu"))
    assert free is not None
    assert 2**20 < free < 2**50


def test_too_long_an_input_is_one_line_before_the_encoder_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny("t5")
    summarizer = Summarizer(model, tokenizer, settings=SHORT)
    summarizer.max_source = 100_000
    monkeypatch.setattr(memory_check, "free_bytes", lambda _: 10 * 2**20)
    monkeypatch.setattr(model.get_encoder(), "forward", lambda *_, **__: pytest.fail("was encoded"))
    text = " ".join(documents(60))
    with pytest.raises(UserError, match=r"tokens needs about .* GiB of memory .* use --long chunk"):
        summarizer.summarize([text])


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_missing_memory_is_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny("t5")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(model.get_encoder(), "forward", fail)
    with pytest.raises(UserError, match=r"not enough memory for an input of \d+ tokens"):
        Summarizer(model, tokenizer, settings=SHORT).summarize(["Ann sings."])
    with pytest.raises(UserError, match=r"not enough memory for a batch of 2 inputs of \d+ tokens"):
        Summarizer(model, tokenizer, settings=SHORT).summarize(["Ann sings.", "Bob hums."])


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny("t5")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(model.get_encoder(), "forward", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        Summarizer(model, tokenizer, settings=SHORT).summarize(["Ann sings."])


def test_an_input_that_needs_all_that_is_free_is_read_and_one_that_needs_more_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t5, _ = tiny("t5")
    need = scores_bytes(t5, rows=2, length=2049)
    for free in (need, need + 1, None):
        monkeypatch.setattr(memory_check, "free_bytes", lambda _, free=free: free)
        refuse_too_much(t5, rows=2, length=2049)
    monkeypatch.setattr(memory_check, "free_bytes", lambda _: need - 1)
    with pytest.raises(UserError, match=r"attention over an input of 2,049 tokens needs about "):
        refuse_too_much(t5, rows=2, length=2049)
    refuse_too_much(t5, rows=2, length=2048)  # needs no check


@pytest.mark.parametrize(("used", "free"), [(3, 7), (11, 0)])
def test_a_container_has_free_what_its_limit_leaves(
    used: int, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_check, "Path", lambda path: tmp_path / path.lstrip("/"))
    for name, text in {
        "proc/meminfo": f"MemTotal: {2**20} kB\nMemAvailable: {2**19} kB\n",
        "sys/fs/cgroup/memory.max": f"{10 * 2**20}\n",
        "sys/fs/cgroup/memory.current": f"{used * 2**20}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert free_bytes(torch.device("cpu")) == free * 2**20
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert free_bytes(torch.device("cpu")) == 2**29


def test_where_the_system_lists_no_free_memory_its_free_pages_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_check, "Path", lambda path: tmp_path / path.lstrip("/"))
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert free_bytes(torch.device("cpu")) == 7 * 4096
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemAvailable:\n")
    assert free_bytes(torch.device("cpu")) == 7 * 4096
    assert free_bytes(torch.device("meta")) is None


def test_of_a_card_the_free_bytes_count_and_not_all_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (3, 8))
    assert free_bytes(torch.device("cuda")) == 3
