"""Claims about packed corpora: what is in them, that nothing is lost, and that workers leave no mark."""

import json
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import PackedText
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis_text.errors import RunError, UserError
from precis_text.sentences import split_sentences
from tests.tiny_models import our_tokenizer, tiny


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    our_tokenizer().save_pretrained(folder)
    return folder


def texts(count: int) -> list[str]:
    return [
        f"Report {n} came in at noon. Dr. Smith read it twice!\n\nNobody answered  the {n % 7} calls. Was it lost?"
        for n in range(count)
    ]


def test_a_pack_holds_every_token_of_every_document_in_order(tmp_path: Path, words: Path) -> None:
    tokenizer = load_tokenizer(words)
    pack(texts(30), words, tmp_path / "p", dev_share=0.0)
    corpus = PackedText.open(tmp_path / "p", verify=True)
    assert corpus.num_documents == 30
    for number, text in enumerate(texts(30)):
        start, stop = corpus.documents[number], corpus.documents[number + 1]
        ids = corpus.tokens[start:stop].tolist()
        assert ids == [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.sep_token_id]


def test_sentence_offsets_are_where_sentences_begin(tmp_path: Path, words: Path) -> None:
    tokenizer = load_tokenizer(words)
    strange = "  A\u00a0first one.   Second: naïve café — no. 3.5 is a number.\n\n\n日本語です。次。 Last"
    pack([strange, *texts(2)], words, tmp_path / "p", dev_share=0.0)
    corpus = PackedText.open(tmp_path / "p")
    starts = corpus.sentences[corpus.sentences < corpus.documents[1]].tolist()
    expected = split_sentences(strange)
    assert len(starts) == len(expected)
    for start, stop, sentence in zip(starts, [*starts[1:], corpus.documents[1] - 1], expected, strict=True):
        read = tokenizer.decode(corpus.tokens[start:stop].tolist())
        assert "".join(read.split()) == "".join(sentence.split())


@pytest.mark.slow
def test_workers_leave_no_mark(tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precis.data.packs.pack_writer._CHUNK", 2000)
    for workers in (1, 2):
        pack(texts(200), words, tmp_path / str(workers), workers=workers, dev_share=0.1)
    for name in ("tokens", "documents", "sentences", "dev/tokens", "dev/documents", "dev/sentences"):
        one, two = ((tmp_path / n / f"{name}.bin").read_bytes() for n in ("1", "2"))
        assert one == two, name
    one, two = (json.loads((tmp_path / n / "pack.json").read_text()) for n in ("1", "2"))
    assert (one["arrays"], one["digest"]) == (two["arrays"], two["digest"])


def test_exact_duplicates_are_dropped_whatever_their_white_space(tmp_path: Path, words: Path) -> None:
    counts = pack(
        ["One text.", "Another.", " One \n text. ", "Another."], words, tmp_path / "p", dev_share=0.0
    )
    assert (counts.documents, counts.duplicates) == (2, 2)


def test_held_out_documents_are_the_same_in_any_order_and_in_no_training_block(
    tmp_path: Path, words: Path
) -> None:
    forward = pack(texts(300), words, tmp_path / "a", dev_share=0.1)
    pack(list(reversed(texts(300))), words, tmp_path / "b", dev_share=0.1)
    assert 12 <= forward.held_out <= 50
    assert forward.documents + forward.held_out == 300
    sides = []
    for name in ("a", "b"):
        dev = PackedText.open(tmp_path / name).dev
        assert dev is not None
        pieces = np.split(np.asarray(dev.tokens), dev.documents[1:-1])
        sides.append(sorted(tuple(piece.tolist()) for piece in pieces))
    assert sides[0] == sides[1]


def test_a_long_document_is_tokenized_in_pieces_cut_at_blank_lines(
    tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "\n\n".join(texts(40))
    newline = our_tokenizer().convert_tokens_to_ids("\n")
    pack([long, *texts(2)], words, tmp_path / "whole", dev_share=0.0)
    monkeypatch.setattr("precis.data.packs.pack_writer._PIECE", 500)
    pack([long, *texts(2)], words, tmp_path / "cut", dev_share=0.0)
    whole, cut = (PackedText.open(tmp_path / name) for name in ("whole", "cut"))
    assert whole.num_documents == cut.num_documents == 3
    lost = whole.num_tokens - cut.num_tokens
    assert lost % 2 == 0  # two line feeds at each cut
    assert 2 * 7 <= lost <= 2 * 12
    kept = [np.asarray(corpus.tokens)[corpus.tokens != newline].tolist() for corpus in (whole, cut)]
    assert kept[0] == kept[1]
    assert len(whole.sentences) == len(cut.sentences)


@pytest.mark.parametrize("text", ["x" * 5000, "no stop " * 700, "a line\n" * 900])
def test_a_long_document_without_blank_lines_is_cut_too(
    tmp_path: Path, words: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.data.packs.pack_writer._PIECE", 500)
    pack([text], words, tmp_path / "p", dev_share=0.0)
    corpus = PackedText.open(tmp_path / "p")
    assert "".join(load_tokenizer(words).decode(corpus.tokens[:-1].tolist()).split()) == "".join(text.split())


def test_a_large_vocabulary_takes_wider_numbers_and_loses_none(tmp_path: Path) -> None:
    names = ["[CLS]", "[SEP]", "[UNK]", *(f"w{n}" for n in range(70_000))]
    backend = Tokenizer(models.WordLevel({name: n for n, name in enumerate(names)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    )
    tokenizer.save_pretrained(tmp_path / "words")
    pack(["w69999 w1"], tmp_path / "words", tmp_path / "p", dev_share=0.0)
    corpus = PackedText.open(tmp_path / "p")
    assert corpus.tokens.dtype == np.uint32
    assert corpus.tokens.tolist() == [70_002, 4, 1]


def test_a_tokenizer_without_the_marks_between_documents_is_refused(tmp_path: Path) -> None:
    tiny("t5")[1].save_pretrained(tmp_path / "words")
    with pytest.raises(UserError, match=r"words: the tokenizer lacks \[CLS\] or \[SEP\]"):
        pack(texts(2), tmp_path / "words", tmp_path / "p")


@pytest.mark.long
def test_a_worker_that_dies_ends_the_packing_with_one_line(
    tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.data.packs.pack_writer._CHUNK", 200)

    def deadly() -> Iterator[str]:
        for number, text in enumerate(texts(400)):
            if number == 300:
                for child in multiprocessing.active_children():
                    child.kill()
            yield text

    with pytest.raises(RunError, match=r"a tokenizing process died .*; use fewer --workers"):
        pack(deadly(), words, tmp_path / "p", workers=2)


@pytest.mark.slow
def test_the_workers_of_a_killed_packing_end_too(tmp_path: Path, words: Path) -> None:
    program = (
        "from itertools import count; from pathlib import Path; import precis.data.packs.pack_writer as packing\n"
        "if __name__ == '__main__':\n"
        "    packing._CHUNK = 100\n"
        "    packing.pack((f'text {n} ' * 9 for n in count()), Path('words'), Path('p'), workers=2,\n"
        "                 progress=lambda _: print('working', flush=True))\n"
    )
    (tmp_path / "forever.py").write_text(program)
    (tmp_path / "words").symlink_to(words)
    process = subprocess.Popen([sys.executable, "forever.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"working\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)  # returns when the last process that holds our end of the pipe is gone
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_document_of_ten_megabytes_is_packed(tmp_path: Path, words: Path) -> None:
    text = " ".join(texts(110_000))[:10_000_000]
    counts = pack([text], words, tmp_path / "p", dev_share=0.0)
    corpus = PackedText.open(tmp_path / "p", verify=True)
    assert (counts.documents, counts.characters) == (1, 10_000_000)
    assert 300_000 < len(corpus.sentences) < 500_000
