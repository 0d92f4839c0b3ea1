"""`data check` holds what was written against its seal."""

import json
from pathlib import Path

import pytest
from tiny_models import our_tokenizer, save

from precis.data.synthetic.corpus import make_pairs
from precis.phases.check_seals import check_seals, damaged
from precis.phases.pack import make_pack
from precis.phases.run_folder import save_tokenizer


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
