"""Folders that a run exports: whole, or as they were; `data check` holds what was written against its seal."""

import errno
import json
import os
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from safetensors import SafetensorError

from precis.data.synthetic.corpus import make_pairs
from precis.phases.data.corpus_packing import make_pack
from precis.phases.folder_check import check_seals, damaged
from precis.phases.run_folder import SettingsFile, export_folder, save_tokenizer
from precis.training.callbacks import StartInfo
from precis_text.errors import RunError, UserError
from tests.tiny_models import our_tokenizer, save


def full_disk(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_in_safetensors(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


def full_disk_in_tokenizers(place: Path) -> None:
    (place / "half").write_text("half a tokenizer")
    raise Exception("No space left on device (os error 28)")


def _write_whole(new: Path, *, text: str) -> None:
    (new / "whole").write_text(text)


@pytest.mark.parametrize("write", [full_disk, full_disk_in_safetensors, full_disk_in_tokenizers])
def test_a_full_disk_leaves_what_was_there_and_says_so_in_one_line(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    export_folder(tmp_path / "model", lambda place: (place / "whole").write_text("before"))
    with pytest.raises(
        RunError, match=r"model cannot be written: .*No space left on device.*; free some space"
    ) as told:
        export_folder(tmp_path / "model", write)
    assert "\n" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["seal.json", "whole"]


def test_what_somebody_put_into_a_folder_is_never_replaced(tmp_path: Path) -> None:
    place = tmp_path / "model"
    export_folder(place, lambda new: (new / "whole").write_text("before"))
    export_folder(place, lambda new: (new / "whole").write_text("after"))
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"model: contains thesis\.txt, which this command did not write"):
        export_folder(place, lambda new: (new / "whole").write_text("again"))
    assert {path.name: path.read_text() for path in place.iterdir() if path.name != "seal.json"} == {
        "thesis.txt": "mine",
        "whole": "after",
    }


@pytest.mark.parametrize("name", ["model.old", "model.new", "model.tmp-mine"])
def test_folders_of_others_beside_an_export_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("mine")
    for text in ("before", "after"):
        export_folder(tmp_path / "model", partial(_write_whole, text=text))
    assert (tmp_path / name / "thesis.txt").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_files_have_the_mode_that_new_files_get(tmp_path: Path) -> None:
    def write(new: Path) -> None:
        (new / "weights").write_text("private")
        (new / "weights").chmod(0o600)

    export_folder(tmp_path / "model", write)
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    assert {path.stat().st_mode for path in (tmp_path / "model").iterdir()} == {usual}


def test_a_place_without_rights_is_not_called_full(tmp_path: Path) -> None:
    def refused(place: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))

    with pytest.raises(PermissionError):
        export_folder(tmp_path / "model", refused)


def test_a_plain_model_folder_has_no_seal_and_is_no_damage(tmp_path: Path) -> None:
    checked = check_seals(str(save("bart", tmp_path / "m")))
    assert checked is not None
    assert [each.state for each in checked] == ["no seal"]
    assert not damaged(checked)


def test_a_flipped_bit_of_a_sealed_folder_is_named(tmp_path: Path) -> None:
    save_tokenizer(our_tokenizer(), tmp_path / "words")
    checked = check_seals(str(tmp_path / "words"))
    assert checked is not None
    assert [(each.state, each.damage) for each in checked] == [("sealed and whole", None)]
    file = tmp_path / "words" / "tokenizer.json"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    checked = check_seals(str(tmp_path / "words"))
    assert checked is not None
    assert "words: tokenizer.json has changed since it was written" in damaged(checked)


@pytest.mark.parametrize("name", ["tokens.bin", "dev/sentences.bin", "tokenizer/tokenizer.json", "pack.json"])
def test_a_pack_is_sealed_and_each_of_its_files_is_looked_at(tmp_path: Path, name: str) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": pair.document}) + "\n" for pair in make_pairs(40, seed=1)))
    save_tokenizer(our_tokenizer(), tmp_path / "words")
    pack = make_pack([rows], tmp_path / "p", tokenizer=str(tmp_path / "words"), dev_share=0.2).folder
    checked = check_seals(str(pack))
    assert checked is not None
    assert [(each.state, each.damage) for each in checked] == [("sealed and whole", None)]
    content = bytearray((pack / name).read_bytes())
    content[len(content) // 2] ^= 4
    (pack / name).write_bytes(content)
    checked = check_seals(str(pack))
    assert checked is not None
    assert name in damaged(checked)


def test_pairs_have_no_seals_to_look_at(tmp_path: Path) -> None:
    assert check_seals(str(tmp_path)) is None
    assert check_seals("hub:a/b") is None


def test_a_finished_run_keeps_its_settings_and_a_resumed_one_tells_what_has_changed(tmp_path: Path) -> None:
    told: list[str] = []

    def started(every: int, resumed_from: Path | None) -> SettingsFile:
        run = {"name": "own", "train": {"steps": 9, "validate_every": every}}
        file = SettingsFile({"run": run, "command": ["precis", "finetune"]}, told.append)
        file.on_start(
            StartInfo(
                folder=tmp_path, first_step=4 if resumed_from else 0, total_steps=9, trainable_parameters=1,
                parameters=1, processes=1, device="cpu", resumed_from=resumed_from,
            )
        )  # fmt: skip
        return file

    def written() -> str:
        assert json.loads((tmp_path / "settings.json").read_text())["run"]["train"]["steps"] == 9
        return tomllib.loads((tmp_path / "run.toml").read_text())["set"]["train.validate_every"]

    started(20, None)
    assert (written(), told) == ("20", [])
    checkpoint = tmp_path / "step-4"
    started(20, checkpoint)
    assert told == []
    resumed = started(10, checkpoint)
    assert told == [f"{tmp_path}: from step 5 on: train.validate_every=10, not 20"]
    assert written() == "20"
    resumed.on_step()
    assert written() == "10"
