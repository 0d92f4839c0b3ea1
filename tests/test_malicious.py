"""`faults.malicious` reports each folder that reads, writes or runs something if the check that stops it is taken out.

A case that no check of ours stops alone is named, with what stops it too.
"""

import json
import os
import pickle
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from transformers import AutoTokenizer

from faults import malicious, malicious_folders
from faults.malicious_folders import INDEX, Case, Ground
from precis.cli.framework import error_messages
from precis.data.text import unigram_tokenizer
from precis.generation import adapters, model_loader, model_location
from precis.storage import model_files
from precis.tuning import adapter_folder
from precis_text import bounded_io

pytestmark = pytest.mark.long
Change = Callable[[pytest.MonkeyPatch], object]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    malicious._import_everything()
    return Ground.make(tmp_path_factory.mktemp("malicious"))


def fault_of(name: str, ground: Ground) -> str:
    """What the command says about the case of this name; "" if it holds."""
    number = len(list(ground.scratch.glob("cases/*")))
    (case,) = (case for case in malicious_folders.CASES if case.name == name)
    folder = case.make(ground, number)
    return malicious._fault(case, malicious._try(folder, ground), ground)


def links_pass(patch: pytest.MonkeyPatch) -> None:
    for module in (model_location, adapter_folder, unigram_tokenizer):
        patch.setattr(module, "check_inside", lambda folder: None)


def links_and_devices_pass(patch: pytest.MonkeyPatch) -> None:
    links_pass(patch)
    patch.setattr(bounded_io, "_refuse", lambda path, mode: None)


def any_shard_is_taken(patch: pytest.MonkeyPatch) -> None:
    def shards(folder: Path) -> list[Path]:
        return [folder / name for name in json.loads((folder / INDEX).read_text())["weight_map"].values()]

    patch.setattr(model_files, "shards_of", shards)


def any_base_is_fetched(patch: pytest.MonkeyPatch) -> None:
    def ask(*_: Any, **__: Any) -> None:
        socket.getaddrinfo("localhost", 443)  # no network is needed to see that it was asked

    patch.setattr(adapters, "_known_base", lambda name, folder: name)
    patch.setattr(huggingface_hub, "get_hf_file_metadata", ask)


def pickles_are_opened(patch: pytest.MonkeyPatch) -> None:
    def load(folder: Path) -> None:
        for file in folder.iterdir():
            if file.suffix in (".bin", ".pt", ".ckpt", ".pkl"):
                pickle.loads(file.read_bytes())

    patch.setattr(model_loader, "_check_weight_files", load)


def nobody_is_told_not_to_trust(patch: pytest.MonkeyPatch) -> None:
    really = AutoTokenizer.from_pretrained

    def load(name: str, **options: Any) -> Any:
        return really(name, **{**options, "trust_remote_code": None})

    patch.setattr(AutoTokenizer, "from_pretrained", load)


@dataclass(frozen=True)
class Check:
    """A check of ours, how it is taken out, and the cases that it alone stops."""

    out: Change
    told: str
    cases: tuple[str, ...]


READ, RUN, TAKEN, CODE = "trespassed: .*open", "its code was run", "exit code 0", "given the name of code"
CHECKS = {
    "links to files outside": Check(
        links_pass, READ,
        ("link config.json", "link model.safetensors", "link tokenizer.json", "link tokenizer_config.json",
         "link generation_config.json", "link to passwd", "shard linked", "adapter linked"),
    ),
    "what is neither a file nor a folder": Check(
        links_pass, TAKEN, ("link to a folder", "link in a folder", "pipe precis.json", "socket")
    ),
    "devices": Check(links_and_devices_pass, READ, ("link to a device", "shard of a device")),
    "names of shards": Check(
        any_shard_is_taken, READ, ("shard above", "shard absolute", "shard passwd", "shard deep")
    ),
    "bases on the hub": Check(
        any_base_is_fetched, "trespassed: .*socket.getaddrinfo", ("base on the hub", "base on the hub, said")
    ),
    "pickles": Check(
        pickles_are_opened, RUN,
        ("pickle pytorch_model.bin", "pickle model.pt", "pickle model.ckpt", "pickle model.pkl", "pickle beside",
         "pickle of the optimizer"),
    ),
    "names of code": Check(
        lambda patch: patch.setattr(model_files, "_CODE", frozenset()), f"{CODE}|{TAKEN}",
        ("auto_map", "auto_map of the hub", "auto_map, trusted", "custom generate, decoding", "decoding that trusts"),
    ),
    "trust": Check(nobody_is_told_not_to_trust, CODE, ("tokenizer auto_map", "tokenizer auto_map list")),
    "names of files and kernels": Check(
        lambda patch: patch.setattr(model_files, "_ELSEWHERE", frozenset()), TAKEN, ("kernels", "gguf")
    ),
    "implementations of attention": Check(
        lambda patch: patch.setattr(model_files, "_refuse_unusual", lambda name, value, place: None), TAKEN,
        ("attention kernel", "attention kernel, public name", "attention kernel, inner name",
         "attention kernel of a stranger", "attention kernel, nested", "attention kernel by part", "experts kernel",
         "experts kernel, public name"),
    ),
    "control characters": Check(
        lambda patch: patch.setattr(error_messages, "_escaped", lambda character: character),
        "control characters reached the terminal", ("escapes as a type",),
    ),
}  # fmt: skip

HELD_TWICE = {
    "without a file that opens": ("link in a circle", "pipe config.json"),
    "without a weight in the file that is named": ("shard is the index", "shard is a folder", "shard is a pickle"),
    "by the limit of names, or a file that is no JSON": ("many shards", "index without a map", "index of brackets"),
    "by an open that does not wait": (
        "pipe model.safetensors", "pipe tokenizer.json", "pipe generation_config.json", "pipe seal.json",
    ),
    "by transformers, which takes the folder's own files": ("vocabulary elsewhere", "tokenizer elsewhere"),
    "by transformers, which refuses the name": ("tokenizers elsewhere", "weights elsewhere", "settings elsewhere"),
    "by transformers, which does not know the kind": ("auto_map of a new kind", "auto_map of the hub, new kind"),
    "by transformers, which does not look there": (
        "custom pipelines", "custom generate", "tokenizer of a new class", "fused",
    ),
    "by a package that is missing": ("quantized", "quantized by awq"),
    "by the header that a pickle lacks": ("pickle as safetensors",),
    "by quotation marks, which escape too": (
        "escapes as a kind", "escapes as a kernel", "escapes as a size", "escapes as a number of layers",
        "escapes as a name of code", "escapes as decoding", "escapes in a use",
    ),
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_a_case_is_reported_if_its_check_is_taken_out_and_only_then(
    check: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = CHECKS[check].cases
    assert fault_of(cases[0], ground) == ""
    CHECKS[check].out(monkeypatch)
    for name in cases:
        assert re.match(rf".*(?:{CHECKS[check].told})", fault_of(name, ground)), name


def test_every_case_that_reads_writes_or_runs_has_its_check_or_a_second_one() -> None:
    kinds: tuple[Callable[[], list[Case]], ...] = (
        malicious_folders._pickles, malicious_folders._code, malicious_folders._escapes,
        malicious_folders._implementations, malicious_folders._places,
    )  # fmt: skip
    alone = [name for check in CHECKS.values() for name in check.cases]
    twice = [name for names in HELD_TWICE.values() for name in names]
    assert len(alone + twice) == len({*alone, *twice})
    assert {case.name for kind in kinds for case in kind()} <= {*alone, *twice}
    assert {*alone, *twice} <= {case.name for case in malicious_folders.CASES}


def _writes_inside(folder: Path) -> None:
    (folder / "new").write_text("")


def _deletes(folder: Path) -> None:
    (folder / "evil.py").unlink()


@pytest.mark.parametrize("trespass", [_writes_inside, _deletes])
def test_a_folder_that_is_changed_is_reported(
    trespass: Callable[[Path], None], ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loader, "_check_weight_files", trespass)
    assert fault_of("custom generate", ground).startswith("trespassed: ")


def test_a_file_outside_that_is_changed_is_reported(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ground.outside / "config.json"
    before = file.stat()
    monkeypatch.setattr(model_loader, "_check_weight_files", lambda folder: os.utime(file))
    assert fault_of("auto_map", ground) == "a file outside was changed"
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_command_fails_if_one_case_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [case for case in malicious_folders.CASES if case.name in ("link in a folder", "auto_map")]
    monkeypatch.setattr(malicious, "CASES", cases)
    monkeypatch.setattr(sys, "argv", ["malicious"])
    assert malicious.main() == 0
    assert capsys.readouterr().out.endswith("3 tried, 0 failed\n")
    links_pass(monkeypatch)
    assert malicious.main() == 1
    assert capsys.readouterr().out.endswith("3 tried, 1 failed\n")


def test_the_command_fails_if_nothing_watches_what_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(malicious, "CASES", ())
    monkeypatch.setattr(malicious, "_watch", lambda folder, ground, seen: None)
    monkeypatch.setattr(sys, "argv", ["malicious"])
    assert malicious.main() == 1
    assert "the control: an opened file outside was not noticed" in capsys.readouterr().out
