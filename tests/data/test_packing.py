"""Claims about packed corpora: what is in them, that nothing is lost, and that workers leave no mark."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tiny_models import our_tokenizer

from precis.data.corpus import Corpus
from precis.data.packing import pack
from precis.data.sentences import split_sentences
from precis.data.text_sources import TextReport, read_texts, text_files
from precis.data.tokenizer import load_tokenizer
from precis.errors import UserError
from precis.recipes.pack import make_pack


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


def written(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_pack_holds_every_token_of_every_document_in_order(tmp_path: Path, words: Path) -> None:
    tokenizer = load_tokenizer(words)
    pack(texts(30), words, tmp_path / "p", dev_share=0.0)
    corpus = Corpus.open(tmp_path / "p", verify=True)
    assert corpus.num_documents == 30
    for number, text in enumerate(texts(30)):
        start, stop = corpus.documents[number], corpus.documents[number + 1]
        ids = corpus.tokens[start:stop].tolist()
        assert ids == [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.sep_token_id]


def test_sentence_offsets_are_where_sentences_begin(tmp_path: Path, words: Path) -> None:
    tokenizer = load_tokenizer(words)
    strange = "  A\u00a0first one.   Second: naïve café — no. 3.5 is a number.\n\n\n日本語です。次。 Last"
    pack([strange, *texts(2)], words, tmp_path / "p", dev_share=0.0)
    corpus = Corpus.open(tmp_path / "p")
    starts = corpus.sentences[corpus.sentences < corpus.documents[1]].tolist()
    expected = split_sentences(strange)
    assert len(starts) == len(expected)
    for start, stop, sentence in zip(starts, [*starts[1:], corpus.documents[1] - 1], expected, strict=True):
        read = tokenizer.decode(corpus.tokens[start:stop].tolist())
        assert "".join(read.split()) == "".join(sentence.split())


def test_workers_leave_no_mark(tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precis.data.packing._CHUNK", 2000)
    for workers in (1, 2):
        pack(texts(200), words, tmp_path / str(workers), workers=workers, dev_share=0.1)
    for name in ("tokens", "documents", "sentences", "dev/tokens", "dev/documents", "dev/sentences"):
        one, two = ((tmp_path / n / f"{name}.bin").read_bytes() for n in ("1", "2"))
        assert one == two, name


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
        dev = Corpus.open(tmp_path / name).dev
        assert dev is not None
        pieces = np.split(np.asarray(dev.tokens), dev.documents[1:-1])
        sides.append(sorted(tuple(piece.tolist()) for piece in pieces))
    assert sides[0] == sides[1]


def test_blocks_cut_the_running_text_and_say_what_is_left_over(tmp_path: Path, words: Path) -> None:
    pack(texts(30), words, tmp_path / "p", dev_share=0.0)
    corpus = Corpus.open(tmp_path / "p")
    blocks = corpus.blocks(32)
    rows = blocks.rows(np.arange(len(blocks)))
    assert rows.shape == (corpus.num_tokens // 30, 32)
    assert (rows[:, 0] == 1).all()
    assert (rows[:, -1] == 2).all()
    kept = corpus.num_tokens - blocks.left_over
    assert (rows[:, 1:-1].ravel() == corpus.tokens[:kept]).all()
    for index in (0, 3, len(blocks) - 1):
        for starts, own in (
            (corpus.documents, blocks.document_starts(index)),
            (corpus.sentences, blocks.sentence_starts(index)),
        ):
            inside = [s - index * 30 + 1 for s in starts.tolist() if index * 30 <= s < (index + 1) * 30]
            assert own.tolist() == inside
    with pytest.raises(IndexError):
        blocks.rows(np.array([len(blocks)]))


@pytest.mark.parametrize("damage", ["missing", "short", "flipped", "version", "not json"])
def test_a_damaged_pack_is_named(tmp_path: Path, words: Path, damage: str) -> None:
    pack(texts(5), words, tmp_path / "p", dev_share=0.0)
    tokens, facts = tmp_path / "p" / "tokens.bin", tmp_path / "p" / "pack.json"
    content = tokens.read_bytes()
    if damage == "missing":
        tokens.unlink()
    elif damage == "short":
        tokens.write_bytes(content[:-2])
    elif damage == "flipped":
        tokens.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "version":
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "format": 99}))
    else:
        facts.write_text("{")
    with pytest.raises(UserError, match=r"pack the texts again|pack\.json"):
        Corpus.open(tmp_path / "p", verify=True)


def test_files_of_every_kind_are_read_and_their_rows_named(tmp_path: Path) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    (tmp_path / "a.txt").write_text("A text file.\nIs one document.")
    (tmp_path / "a.summary.txt").write_text("not a document")
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write('{"text": "zipped"}\n{"text": "  "}\n')
    parquet.write_table(arrow.table({"text": ["a row"]}), tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text("text,other\ncomma,1\n")
    report = TextReport()
    found = list(read_texts(text_files([tmp_path]), report=report))
    assert found == ["A text file.\nIs one document.", "zipped", "a row", "comma"]
    assert report.empty == 1


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{", "line 2: invalid JSON"),
        (
            '{"body": "x"}',
            "line 2: there is no column 'text' (columns: 'body'); name one with --document-column",
        ),
        ('{"text": 3}', "line 2: column 'text' holds no text"),
        ('{"text": "\\ud800"}', "line 2: invalid Unicode"),
    ],
)
def test_a_bad_row_stops_and_is_named_or_is_passed_over(tmp_path: Path, row: str, problem: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"text": "good"}}\n{row}\n')
    with pytest.raises(UserError) as caught:
        list(read_texts([path]))
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    report = TextReport()
    assert list(read_texts([path], skip_bad=True, report=report)) == ["good"]
    assert len(report.skipped) == 1


def test_a_killed_packing_leaves_no_pack_and_a_second_try_works(
    tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "rows.jsonl", texts(20))

    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("precis.data.packing._write_facts", dies)
        with pytest.raises(KeyboardInterrupt):
            make_pack([source], tmp_path / "p", tokenizer=str(words))
    assert not (tmp_path / "p").exists()
    made = make_pack([source], tmp_path / "p", tokenizer=str(words), dev_share=0.0)
    assert made.counts.documents == 20
    assert Corpus.open(made.folder, verify=True).num_documents == 20
    with pytest.raises(UserError, match="is a pack already; --restart"):
        make_pack([source], tmp_path / "p", tokenizer=str(words))
    assert make_pack([source], tmp_path / "p", tokenizer=str(words), restart=True).folder == tmp_path / "p"


def test_a_full_disk_is_seen_before_anything_is_written(
    tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "rows.jsonl", texts(20))
    free = type("Usage", (), {"free": 10})
    monkeypatch.setattr("precis.recipes.pack.shutil.disk_usage", lambda _: free)
    with pytest.raises(UserError, match="the disk has"):
        make_pack([source], tmp_path / "p", tokenizer=str(words))
    assert not list(tmp_path.glob("p*"))


def test_nothing_to_pack_is_said(tmp_path: Path, words: Path) -> None:
    source = written(tmp_path / "rows.jsonl", [" ", "\n"])
    with pytest.raises(UserError, match="no document to pack"):
        make_pack([source], tmp_path / "p", tokenizer=str(words))
    with pytest.raises(UserError, match="no such file"):
        make_pack([tmp_path / "none.txt"], tmp_path / "p", tokenizer=str(words))
