"""`precis data pack` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.data.packs.packed_text import PackedText
from tests.tiny_models import documents, our_tokenizer

Precis = Callable[..., Any]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    our_tokenizer().save_pretrained(folder)
    return folder


def written(path: Path, texts: list[str], *, column: str = "text") -> Path:
    path.write_text("".join(json.dumps({column: text}) + "\n" for text in texts))
    return path


def test_the_last_lines_say_what_was_packed_and_what_comes_next(
    tmp_path: Path, words: Path, precis: Precis
) -> None:
    texts = documents(60)
    source = written(tmp_path / "rows.jsonl", [*texts, texts[0], " "])
    command = ["data", "pack", source, "--tokenizer", words, "--dev-share", "0.2", "--out", tmp_path / "p"]
    outcome = precis(*command)
    assert outcome.code == 0, outcome.err
    corpus = PackedText.open(tmp_path / "p", verify=True)
    assert corpus.dev is not None
    assert corpus.num_documents + corpus.dev.num_documents == 60
    lines = outcome.out.splitlines()
    assert lines[0] == f"documents: {corpus.num_documents}, {corpus.num_tokens:,} tokens"
    assert lines[1] == f"held out:  {corpus.dev.num_documents}, {corpus.dev.num_tokens:,} tokens"
    assert lines[2] == "dropped:   1 duplicate, 1 empty, 0 bad"
    assert lines[3].endswith(" tokens per second, 1 process")
    assert lines[4] == f"tokenizer: {tmp_path / 'p' / 'tokenizer'}, 700 entries"
    assert lines[5:] == [f"next: precis pretrain --corpus {tmp_path / 'p'} --out runs/pretrain"]
    again = precis(*command)
    assert again.code == 0
    assert again.out == outcome.out
    assert "nothing to do" in again.err
    changed = precis(*command[:-3], "0.1", "--out", tmp_path / "p")
    assert changed.code == 2
    assert "--restart" in changed.error
    assert precis(*command[:-3], "0.1", "--out", tmp_path / "p", "--restart").code == 0


@pytest.mark.filterwarnings("ignore:the texts give only")
def test_text_alone_is_enough(tmp_path: Path, precis: Precis) -> None:
    for number, text in enumerate(documents(20)):
        (tmp_path / f"{number}.txt").write_text(text)
    outcome = precis("data", "pack", f"{tmp_path}/*.txt", "--vocab-size", "600", "--out", tmp_path / "p")
    assert outcome.code == 0, outcome.err
    assert "trained a tokenizer" in outcome.err
    corpus = PackedText.open(tmp_path / "p", verify=True)
    held_out = corpus.dev.num_documents if corpus.dev is not None else 0
    assert corpus.num_documents + held_out == 20


def test_a_bad_row_is_named_and_can_be_passed_over(tmp_path: Path, words: Path, precis: Precis) -> None:
    source = written(tmp_path / "rows.jsonl", documents(5))
    source.write_text(source.read_text() + "{\n")
    command = ["data", "pack", source, "--tokenizer", words, "--out", tmp_path / "p"]
    refused = precis(*command)
    assert refused.code == 2
    assert f"{source}: line 6: invalid JSON" in refused.error
    assert "--skip-bad" in refused.error
    assert not (tmp_path / "p").exists()
    passed = precis(*command, "--skip-bad")
    assert passed.code == 0
    assert "1 row skipped (first: " in passed.err
    assert "0 empty, 1 bad" in passed.out


def test_another_column_is_named(tmp_path: Path, words: Path, precis: Precis) -> None:
    source = written(tmp_path / "rows.jsonl", documents(5), column="body")
    command = ["data", "pack", source, "--tokenizer", words, "--out", tmp_path / "p"]
    refused = precis(*command)
    assert refused.code == 2
    assert (
        "no column 'text' for the document; the columns are 'body'; did you mean 'body'? Use --document-column"
        in refused.error
    )
    assert precis(*command, "--document-column", "body").code == 0


def test_missing_sources_and_tokenizers_are_named(tmp_path: Path, words: Path, precis: Precis) -> None:
    out = ["--out", tmp_path / "p"]
    missing = precis("data", "pack", tmp_path / "none.txt", "--tokenizer", words, *out)
    assert (missing.code, "none.txt: no such file" in missing.error) == (2, True)
    source = written(tmp_path / "rows.jsonl", documents(5))
    unknown = precis("data", "pack", source, "--tokenizer", tmp_path / "nowhere", *out)
    assert (unknown.code, "nowhere: no such folder" in unknown.error) == (2, True)
