"""Claims about making packs: never half of one, none twice, and none where it does not fit."""

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from precis.data.packs.packed_text import PackedText
from precis.phases.data.corpus_packing import make_pack
from precis_text.errors import RunError, UserError
from tests.tiny_models import documents, our_tokenizer


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    our_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with 30 documents."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents(30)))
    return path


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_packing_leaves_nothing_and_a_second_try_works(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("precis.data.packs.pack_writer.PartWriter.write_facts", _dies)
        with pytest.raises(KeyboardInterrupt):
            make_pack([source], tmp_path / "p", tokenizer=words)
    assert not list(tmp_path.glob("p*"))
    made = make_pack([source], tmp_path / "p", tokenizer=words, dev_share=0.0)
    assert made.is_new
    assert made.counts.documents == 30
    assert PackedText.open(made.folder, verify=True).num_documents == 30
    assert sorted(path.name for path in tmp_path.glob("p*")) == ["p"]
    assert not (tmp_path / "p" / "lock").exists()


def test_what_a_killed_packing_left_is_cleared(tmp_path: Path, source: Path, words: str) -> None:
    left = tmp_path / "p.tmp-0123abcd"
    (left / "dev").mkdir(parents=True)
    (left / "stray.bin").write_text("half")
    make_pack([source], tmp_path / "p", tokenizer=words)
    assert not left.exists()
    assert not (tmp_path / "p" / "stray.bin").exists()


@pytest.mark.parametrize("name", ["p.new", "p.old", "p.tmp-mine"])
def test_folders_of_others_beside_a_pack_are_left_alone(
    name: str, tmp_path: Path, source: Path, words: str
) -> None:
    make_pack([source], tmp_path / "p", tokenizer=words)
    thesis = tmp_path / name / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    make_pack([source], tmp_path / "p", tokenizer=words, restart=True)
    assert thesis.read_text() == "mine"


def test_a_pack_with_a_file_of_somebody_is_not_made_anew(tmp_path: Path, source: Path, words: str) -> None:
    make_pack([source], tmp_path / "p", tokenizer=words)
    (tmp_path / "p" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"contains notes\.txt, which this command did not write"):
        make_pack([source], tmp_path / "p", tokenizer=words, restart=True)
    assert (tmp_path / "p" / "notes.txt").read_text() == "mine"


def test_the_same_work_is_not_done_twice(tmp_path: Path, source: Path, words: str) -> None:
    first = make_pack([source], tmp_path / "p", tokenizer=words, dev_share=0.1)
    before = (tmp_path / "p" / "pack.json").stat().st_mtime_ns
    again = make_pack([source], tmp_path / "p", tokenizer=words, dev_share=0.1, workers=2)
    assert not again.is_new
    assert again.counts == first.counts
    assert again.entries == 700
    assert (tmp_path / "p" / "pack.json").stat().st_mtime_ns == before


@pytest.mark.filterwarnings("ignore:the texts give only")
def test_other_files_or_settings_need_restart(tmp_path: Path, source: Path, words: str) -> None:
    settings: dict[str, Any] = {"tokenizer": words, "dev_share": 0.1}
    make_pack([source], tmp_path / "p", **settings)
    changes: list[dict[str, Any]] = [
        {"dev_share": 0.2},
        {"tokenizer": None, "vocab_size": 600},
        {"skip_bad": True},
    ]
    for change in changes:
        with pytest.raises(
            UserError, match=r"is already a pack, of other files or settings; replace it with --restart"
        ):
            make_pack([source], tmp_path / "p", **{**settings, **change})
    source.write_text(source.read_text() + '{"text": "One more."}\n')
    with pytest.raises(UserError, match="of other files or settings"):
        make_pack([source], tmp_path / "p", **settings)
    made = make_pack([source], tmp_path / "p", restart=True, **settings)
    assert made.counts.documents + made.counts.held_out == 31


def test_a_restart_that_fails_keeps_the_old_pack(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pack([source], tmp_path / "p", tokenizer=words)
    monkeypatch.setattr("precis.data.packs.pack_writer.PartWriter.write_facts", _dies)
    with pytest.raises(KeyboardInterrupt):
        make_pack([source], tmp_path / "p", tokenizer=words, restart=True)
    assert PackedText.open(tmp_path / "p", verify=True).num_documents > 0


def test_a_pack_can_be_made_anew_with_its_own_tokenizer(tmp_path: Path, source: Path, words: str) -> None:
    digest = PackedText.open(make_pack([source], tmp_path / "p", tokenizer=words).folder).digest
    own = str(tmp_path / "p" / "tokenizer")
    made = make_pack([source], tmp_path / "p", tokenizer=own, restart=True)
    assert PackedText.open(made.folder, verify=True).digest == digest


@pytest.mark.filterwarnings("ignore:the texts give only")
def test_a_tokenizer_is_trained_where_none_is_given(tmp_path: Path, source: Path) -> None:
    told: list[str] = []
    made = make_pack([source], tmp_path / "p", vocab_size=600, notify=told.append)
    assert made.entries <= 600
    assert told[0].startswith("trained a tokenizer of 600 entries on 30 documents, ")
    assert PackedText.open(made.folder, verify=True).facts["entries"] == made.entries


def test_a_full_disk_is_seen_before_anything_is_written(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "precis.phases.data.corpus_packing.shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})
    )
    with pytest.raises(UserError, match="the disk has"):
        make_pack([source], tmp_path / "p", tokenizer=words)
    assert not list(tmp_path.glob("p*"))


def test_a_disk_that_fills_up_leaves_nothing(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("precis.data.packs.pack_writer.PartWriter.add", full)
    with pytest.raises(RunError, match="the disk is full and nothing was kept"):
        make_pack([source], tmp_path / "p", tokenizer=words)
    assert not list(tmp_path.glob("p*"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lock")
def test_two_processes_do_not_pack_into_one_folder(tmp_path: Path, source: Path, words: str) -> None:
    program = (
        "import sys; from pathlib import Path; from precis.storage.locks import locked_place\n"
        "with locked_place(Path(sys.argv[1]), doing='packing into'): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "p")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match="another process is packing into"):
            make_pack([source], tmp_path / "p", tokenizer=words)
        assert not (tmp_path / "p").exists()
        holder.communicate()
    assert make_pack([source], tmp_path / "p", tokenizer=words).is_new


def test_what_cannot_be_packed_is_said(tmp_path: Path, source: Path, words: str) -> None:
    blank = tmp_path / "blank.jsonl"
    blank.write_text('{"text": " "}\n{"body": "x"}\n')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    for sources, out, message in (
        ([blank], "p", "1 empty, 1 bad); the first bad one is"),
        ([source], "rows.jsonl", "is a file"),
        ([source], "other", "contains something other than a pack"),
        ([source], "rows.jsonl/p", "is a file"),
        ([source], "p" * 253, "cannot be created"),  # with .lock at its end a name of more than 255
    ):
        with pytest.raises(UserError) as caught:
            make_pack(sources, tmp_path / out, tokenizer=words, skip_bad=True)
        assert message in str(caught.value)
    with pytest.raises(UserError, match="--dev-share"):
        make_pack([source], tmp_path / "p", tokenizer=words, dev_share=0.9)


def test_sources_and_versions_are_recorded_without_folders(tmp_path: Path, source: Path, words: str) -> None:
    make_pack([source], tmp_path / "p", tokenizer=words)
    content = (tmp_path / "p" / "pack.json").read_text()
    facts = json.loads(content)
    assert facts["sources"] == [{"name": "rows.jsonl", "bytes": source.stat().st_size}]
    assert {"python", "tokenizers"} <= set(facts["versions"])
    assert str(tmp_path) not in content


def _books(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        text = " ".join(documents(40)[number:]) * 12
        (folder / f"book{number}.txt").write_text(f"Book {number}. {text}")
    return folder


@pytest.mark.long
def test_few_books_warn_and_the_named_share_gives_a_block_to_validate_on(tmp_path: Path, words: str) -> None:
    told: list[str] = []
    books = _books(tmp_path / "books", 5)
    made = make_pack([books], tmp_path / "p", tokenizer=words, notify=told.append)
    share = made.share_to_validate
    assert (made.counts.held_out, made.dev_blocks) == (0, 0)
    assert share is not None
    assert any(f"pack again with --dev-share {share:g} --restart" in line for line in told), told
    told.clear()
    again = make_pack(
        [books], tmp_path / "p", tokenizer=words, dev_share=share, restart=True, notify=told.append
    )
    assert again.dev_blocks > 0
    assert again.counts.tokens > 512
    assert told == []


def test_one_book_cannot_be_held_out_and_is_told_so(tmp_path: Path, words: str) -> None:
    told: list[str] = []
    made = make_pack([_books(tmp_path / "books", 1)], tmp_path / "p", tokenizer=words, notify=told.append)
    assert (made.dev_blocks, made.share_to_validate) == (0, None)
    assert "add documents, or split long ones" in told[-1]


def test_rows_of_the_hub_are_streamed_up_to_a_limit(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled: list[int] = []
    asked: list[tuple[str, dict[str, Any]]] = []

    def rows() -> Iterator[dict[str, str]]:
        for number, text in enumerate(documents(30)):
            pulled.append(number)
            yield {"text": f"{text} {number}"}

    def load_dataset(path: str, **options: Any) -> dict[str, Any]:
        asked.append((path, options))
        return {"train": datasets.IterableDataset.from_generator(rows), "validation": None}

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    mine: Any = {"tokenizer": words, "dev_share": 0.0, "rows": 7}
    made = make_pack(["hub:o/c4:en", source], tmp_path / "p", **mine)
    assert asked == [("o/c4", {"name": "en", "streaming": True})]
    assert made.counts.documents == 37
    assert len(pulled) <= 8
    facts = PackedText.open(made.folder).facts
    assert facts["sources"][1] == {"name": "hub:o/c4:en", "rows": 7}
    assert not make_pack(["hub:o/c4:en", source], tmp_path / "p", **mine).is_new
    assert len(asked) == 1  # the same pack needs no network
    with pytest.raises(UserError, match="is already a pack, of other files or settings"):
        make_pack(["hub:o/c4:en", source], tmp_path / "p", **{**mine, "rows": 9})


def test_a_row_of_the_hub_without_its_column_and_names_that_are_given_twice(
    tmp_path: Path, source: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"train": datasets.IterableDataset.from_generator(lambda: iter([{"body": "Ann sings."}]))}
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: found)
    with pytest.raises(UserError, match=r"hub:o/n: train row 1: no column 'text'"):
        make_pack(["hub:o/n"], tmp_path / "p", tokenizer=words)
    with pytest.raises(UserError, match="hub:o/n: is named twice; name every data set once"):
        make_pack(["hub:o/n", "hub:o/n"], tmp_path / "p", tokenizer=words)
    with pytest.raises(UserError, match="--rows 3 limits data sets on the hub"):
        make_pack([source], tmp_path / "p", tokenizer=words, rows=3)
