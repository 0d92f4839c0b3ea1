"""A file of summaries is whole or not there, and a kill loses and doubles nothing."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from precis.generation.summarizer import Summary
from precis.phases.use.input_documents import Document
from precis.phases.use.summaries_file import SummariesFile, refuse_existing
from precis.phases.use.summarization import Result
from precis.phases.use.summary_format import as_json, as_text, as_text_alone
from precis.storage.locks import locked_place
from precis_text.errors import RunError, UserError

DOCUMENTS = [Document(str(number), f"Text {number}.", id=str(number)) for number in range(6)]
MADE_BY = {"model": "m", "words": 5}


def result(document: Document) -> Result:
    if document.name == "3":
        return Result(document, None)
    return Result(
        document, Summary(text=f"Über {document.name}.", document_tokens=3, tokens_read=3, summary_tokens=2)
    )


def begin(path: Path, count: int, **made_by: object) -> SummariesFile:
    """Write some, and stop without an end."""
    with SummariesFile(path, made_by={**MADE_BY, **made_by}, render=as_json) as file:
        for document, _ in zip(file.left(DOCUMENTS), range(count), strict=False):
            file.append(result(document))
    return file


def end(path: Path, render: Callable[[Mapping[str, Any]], str] = as_json) -> SummariesFile:
    with SummariesFile(path, made_by=MADE_BY, render=render) as file:
        for document in file.left(DOCUMENTS):
            file.append(result(document))
        file.finish()
    return file


@pytest.mark.parametrize("count", range(7))
def test_what_was_begun_goes_on_with_each_document_once(count: int, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    begin(out, count)
    assert not out.exists()
    file = end(out)
    assert (file.done, file.failed, file.first_failure) == (
        6,
        1,
        "3: the document gives no tokens that the model knows",
    )
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list("012345")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_kill_at_any_byte_loses_and_doubles_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    end(whole)
    begin(tmp_path / "out.jsonl", 4)
    part = (tmp_path / "out.jsonl.part").read_bytes()
    for size in range(0, len(part), 7):
        out = tmp_path / f"{size}.jsonl"
        (tmp_path / f"{size}.jsonl.part").write_bytes(part[:size])
        end(out)
        assert out.read_bytes() == whole.read_bytes()


def test_a_lock_that_a_kill_left_beside_the_finished_file_is_removed_unless_it_is_held(
    tmp_path: Path,
) -> None:
    out, lock = tmp_path / "out.jsonl", tmp_path / "out.jsonl.lock"
    end(out)
    for content, stays in (("7 host\n", False), ("a user's text", True)):
        lock.write_text(content)
        with pytest.raises(UserError, match="already exists"):
            refuse_existing(out)
        assert lock.exists() is stays
    lock.unlink()
    with locked_place(out, doing="writing"):
        with pytest.raises(UserError, match="already exists"):
            refuse_existing(out)
        assert lock.exists()


def test_a_file_that_is_there_is_never_touched(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    with pytest.raises(UserError, match="already exists, so nothing was summarized"):
        end(out)
    assert out.read_text() == "mine"
    out.unlink()
    (tmp_path / "elsewhere").write_text("mine")
    out.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is a link"):
        end(out)
    (tmp_path / "out2.part").write_text("mine")
    with pytest.raises(UserError, match=r"out2\.part, line 1: is not a precis-summaries-1 file; resume with"):
        end(tmp_path / "out2")
    assert (tmp_path / "out2.part").read_text() == "mine"


def test_a_kill_between_the_last_two_steps_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", die)
        with pytest.raises(KeyboardInterrupt):
            end(out)
    whole = out.read_bytes()
    assert (tmp_path / "out.jsonl.part").exists()
    end(out)
    assert out.read_bytes() == whole
    assert not (tmp_path / "out.jsonl.part").exists()


def test_a_file_that_has_appeared_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    begin(out, 6)
    out.write_text("mine")
    with pytest.raises(UserError, match="already exists; move it away"):
        end(out)
    assert out.read_text() == "mine"
    out.unlink()
    assert end(out).done == 6


def test_other_settings_or_documents_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    begin(out, 3, words=9)
    with pytest.raises(UserError, match="was started with words=9, now 5; resume with the same options"):
        end(out)
    (tmp_path / "out.jsonl.part").unlink()
    begin(out, 3)
    other = [DOCUMENTS[0], Document("1", "Another text."), *DOCUMENTS[2:]]
    with SummariesFile(out, made_by=MADE_BY, render=as_json) as file:
        with pytest.raises(UserError, match="its summary 2 does not belong to 1"):
            list(file.left(other))
        with pytest.raises(UserError, match="contains 3 summaries, but there are 2 documents"):
            list(file.left(DOCUMENTS[:2]))


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    code = (
        "import sys; from pathlib import Path; from precis.storage.locks import locked_place\n"
        "with locked_place(Path(sys.argv[1]), doing='writing'):\n  print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match="another process is writing"):
            begin(out, 1)
        holder.kill()


def test_texts_stand_under_their_names(tmp_path: Path) -> None:
    end(tmp_path / "out.txt", as_text)
    text = (tmp_path / "out.txt").read_text()
    assert text.startswith("0\nÜber 0.\n\n1\nÜber 1.\n")
    assert "3\n(no summary: the document gives no tokens that the model knows)\n" in text
    assert as_text_alone({"name": "a", "summary": "Über."}) == "Über.\n"


def test_a_row_as_deep_as_any_that_is_read_can_be_taken_up(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(97):
        deep = [deep]
    documents = [Document("deep", "Ann sings.", row={"x": deep})]
    with SummariesFile(tmp_path / "out.jsonl", made_by=MADE_BY, render=as_json) as file:
        for document in file.left(documents):
            file.append(result(document))
        file.finish()
    assert json.loads((tmp_path / "out.jsonl").read_text())["row"] == {"x": deep}


def replaced(part: Path) -> None:
    """Put a copy in its place, as file synchronizers and editors do."""
    copy = part.with_name("copy")
    copy.write_bytes(part.read_bytes())
    copy.replace(part)


@pytest.mark.parametrize("change", [replaced, Path.unlink])
@pytest.mark.parametrize("count", [2, 6])
def test_an_unfinished_file_that_is_replaced_or_deleted_stops_the_command_and_no_row_is_lost(
    count: int, change: Callable[[Path], object], tmp_path: Path
) -> None:
    out, part = tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    with SummariesFile(out, made_by=MADE_BY, render=as_json) as file:
        for document, _ in zip(file.left(DOCUMENTS), range(count), strict=False):
            file.append(result(document))
        change(part)
        with pytest.raises(RunError, match=rf"part: was replaced or deleted .*; its {count} records are in"):
            _write_on(file)
        kept = next(tmp_path.glob("out.jsonl.part.kept-*"))
        part.unlink(missing_ok=True)
        assert not out.exists()
        raise_if_left = pytest.raises(RunError, match="was replaced or deleted")
        with raise_if_left:
            file.__exit__(None, None, None)
    kept.rename(part)
    assert end(out).done == 6
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list("012345")


def _write_on(file: SummariesFile) -> None:
    """Write the next line or, after the last one, the finished file."""
    if file.done < len(DOCUMENTS):
        file.append(result(DOCUMENTS[file.done]))
    else:
        file.finish()


def test_what_a_kill_left_of_the_finished_file_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    begin(out, 6)
    (tmp_path / "out.jsonl.tmp-0123abcd").write_text("half of it")
    (tmp_path / "out.jsonl.tmp-mine").write_text("mine")
    end(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.tmp-mine"]
