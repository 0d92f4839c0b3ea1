"""Claims about reading a pack: blocks are the running text, and a damaged pack is named."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import PackedText
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis.storage.seal import seal
from precis_text.errors import UserError
from tests.tiny_models import our_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pack of 30 documents, none held out."""
    our_tokenizer().save_pretrained(tmp_path / "words")
    texts = [f"Report {n} came in at noon. Dr. Smith read it twice!\n\nWas it lost?" for n in range(30)]
    pack(texts, tmp_path / "words", tmp_path / "pack", dev_share=0.0)
    seal(tmp_path / "pack")
    return tmp_path / "pack"


def test_arrays_are_memory_maps_of_the_smallest_kind(folder: Path) -> None:
    corpus = PackedText.open(folder)
    assert all(isinstance(array, np.memmap) for array in (corpus.tokens, corpus.documents, corpus.sentences))
    assert corpus.tokens.dtype == np.uint16
    assert corpus.num_tokens == corpus.documents[-1] == corpus.sentences[-1]


def test_blocks_cut_the_running_text_and_leave_out_what_fills_none(folder: Path) -> None:
    corpus = PackedText.open(folder)
    blocks = corpus.blocks(32)
    rows = blocks.rows(np.arange(len(blocks)))
    assert rows.shape == (corpus.num_tokens // 30, 32)
    assert (rows[:, 0] == 1).all()
    assert (rows[:, -1] == 2).all()
    kept = 30 * len(blocks)
    assert 0 < corpus.num_tokens - kept < 30
    assert (rows[:, 1:-1].ravel() == corpus.tokens[:kept]).all()
    some = np.array([5, 0, 5])
    assert (blocks.rows(some) == rows[some]).all()


def test_starts_of_sentences_are_counted_from_the_block_s_first_token(folder: Path) -> None:
    corpus = PackedText.open(folder)
    blocks = corpus.blocks(32)
    rows = blocks.rows(np.arange(len(blocks)))
    seen = 0
    for index in range(len(blocks)):
        own = blocks.sentence_starts(index)
        inside = [s for s in corpus.sentences.tolist() if index * 30 <= s < (index + 1) * 30]
        assert own.tolist() == [s - index * 30 + 1 for s in inside]
        assert (rows[index, own] == corpus.tokens[inside]).all()
        seen += len(inside)
    assert seen == (corpus.sentences < len(blocks) * 30).sum() > 80


def test_rows_of_512_unless_said_otherwise_and_none_too_short(folder: Path) -> None:
    assert PackedText.open(folder).blocks().length == 512
    with pytest.raises(UserError, match="block_length=8 is too short; use 16 or more"):
        PackedText.open(folder).blocks(8)


@pytest.mark.parametrize("beyond", [-1, 10**6])
def test_a_block_that_does_not_exist_is_refused(folder: Path, beyond: int) -> None:
    with pytest.raises(IndexError):
        PackedText.open(folder).blocks(32).rows(np.array([0, beyond]))


def _edit_facts(folder: Path, change: Callable[[dict], object]) -> None:
    facts = json.loads((folder / "pack.json").read_text())
    change(facts)
    (folder / "pack.json").write_text(json.dumps(facts))


def _flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def _other_tokenizer(folder: Path) -> None:
    train_tokenizer(["entirely other words"] * 9, vocab_size=500).save_pretrained(folder / "tokenizer")
    (folder / "seal.json").unlink()
    seal(folder)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda pack: (pack / "tokens.bin").unlink(), "tokens.bin: is missing"),
    "short": (lambda pack: (pack / "tokens.bin").write_bytes(b"ab"), "tokens.bin: has 2 bytes instead of"),
    "flipped": (lambda pack: _flip(pack / "tokens.bin"), "tokens.bin has changed"),
    "offsets": (lambda pack: _flip(pack / "documents.bin"), "documents.bin has changed"),
    "version": (lambda pack: _edit_facts(pack, lambda f: f.update(format=99)), "the pack has format 99"),
    "a list": (lambda pack: (pack / "pack.json").write_text("[1]"), "pack.json: is not a JSON object"),
    "not json": (lambda pack: (pack / "pack.json").write_text("{"), "pack.json: is not valid JSON"),
    "no sizes": (lambda pack: _edit_facts(pack, lambda f: f.pop("arrays")), "is damaged (no 'arrays')"),
    "tokenizer": (_other_tokenizer, "not the tokenizer that produced the ids"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.filterwarnings("ignore:the texts give only")
def test_a_damaged_pack_is_named_with_the_remedy(folder: Path, damage: str) -> None:
    PackedText.open(folder, verify=True)
    do, expected = DAMAGES[damage]
    do(folder)
    with pytest.raises(UserError) as caught:
        PackedText.open(folder, verify=True)
    assert expected in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "precis data pack --restart" in str(caught.value)


def test_files_of_different_packs_are_told_apart_without_reading_them(folder: Path) -> None:
    offsets = np.fromfile(folder / "documents.bin", np.int64)
    offsets[-1] += 1
    offsets.tofile(folder / "documents.bin")
    with pytest.raises(UserError, match="its files do not belong together"):
        PackedText.open(folder)


def test_what_is_no_pack_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such folder; make a pack with `precis data pack"):
        PackedText.open(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"not a pack \(it lacks pack.json\)"):
        PackedText.open(tmp_path)
