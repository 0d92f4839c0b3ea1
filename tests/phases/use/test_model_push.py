"""`precis push` lists and uploads exactly the sealed files of a model, and tells what stays."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from precis.generation.model_metadata import ModelUse
from precis.phases.run_folder import export_folder
from precis.phases.use.model_push import plan_push, push
from precis_text.errors import RunError, UserError


def export(folder: Path, *, licence: str = "cc-by-sa-4.0", base: str | None = None) -> Path:
    def write(place: Path) -> None:
        (place / "model.safetensors").write_bytes(b"weights")
        ModelUse(licence=licence).save(place)
        if base is not None:
            (place / "base.json").write_text(json.dumps({"model": base, "beside": ""}))

    export_folder(folder, write, card="---\n---\n")
    return folder


def test_a_dry_run_lists_the_files_and_needs_no_network(tmp_path: Path) -> None:
    export(tmp_path / "run" / "model")
    (tmp_path / "run" / "model" / ".notes").write_text("mine")
    plan = plan_push(tmp_path / "run", "ann/first")
    assert [name for name, _ in plan.files] == ["README.md", "model.safetensors", "precis.json"]
    assert dict(plan.files)["model.safetensors"] == 7
    assert (plan.name, plan.licence, plan.remarks) == ("ann/first", "cc-by-sa-4.0", ())


def test_an_upload_sends_these_files_to_a_private_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    hub = huggingface_hub.HfApi
    monkeypatch.setattr(hub, "create_repo", lambda _, name, **options: sent.append((name, options)))
    monkeypatch.setattr(hub, "upload_folder", lambda _, **options: sent.append(options))
    plan = plan_push(export(tmp_path / "model"), "hub:ann/first")
    assert push(plan).endswith("/ann/first")
    assert sent[0] == ("ann/first", {"private": True, "exist_ok": True})
    assert sent[1]["allow_patterns"] == ["README.md", "model.safetensors", "precis.json"]


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", fails)
    with pytest.raises(
        RunError, match="ann/first: cannot be uploaded: no route to host; check the connection"
    ):
        push(plan_push(export(tmp_path / "model"), "ann/first"))


def test_a_base_of_this_machine_and_an_unknown_licence_are_told(tmp_path: Path) -> None:
    export(tmp_path / "run" / "adapter", base=str(tmp_path / "base"), licence="")
    (tmp_path / "run" / "adapter" / "adapter.json").write_text("{}")
    plan = plan_push(tmp_path / "run", "ann/first")
    assert "base.json" not in dict(plan.files)
    assert "names a folder of this machine" in plan.remarks[0]
    assert "no licence is known" in plan.remarks[1]
    named = plan_push(export(tmp_path / "other", base="facebook/bart-base"), "ann/first")
    assert "base.json" in dict(named.files)


@pytest.mark.parametrize("name", ["first", "ann/first/more", "ann/fi rst", ""])
def test_a_name_that_the_hub_would_refuse(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a name on the hub; write owner/name"):
        plan_push(export(tmp_path / "model"), name)


def test_changed_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (export(tmp_path / "model") / "model.safetensors").write_bytes(b"weighty")
    with pytest.raises(UserError, match=r"model\.safetensors has changed since it was written"):
        plan_push(tmp_path / "model", "ann/first")
    with pytest.raises(UserError, match="lacks a model with a card"):
        plan_push(tmp_path / "empty", "ann/first")
    with pytest.raises(UserError, match="no such folder"):
        plan_push(tmp_path / "none", "ann/first")
