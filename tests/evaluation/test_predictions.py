"""Predictions on disk survive a kill and are never mixed."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from precis.data.pairs.pair import Pair
from precis.evaluation.predictions import Prediction, PredictionWriter, read_predictions, read_texts
from precis.storage.journal import _digest
from precis_text.control_characters import UNIT_MARK
from precis_text.errors import RunError, UserError

_PAIRS = [Pair(document=f"Document {i}.", summary="s", id=f"doc-{i}") for i in range(4)]
_MADE_BY = {"model": "runs/a", "beams": 4}


_HEADER = b'{"format": "precis-predictions-1", "made_by": {}}'


def sealed(*lines: bytes) -> str:
    """The text of a journal with these lines, which need not be JSON."""
    text, seal = "", ""
    for line in lines:
        seal = _digest(seal, line[:-1])
        text += f'{line[:-1].decode()}, "seal": "{seal}"}}\n'
    return text


def _write(path: Path, count: int, pairs: list[Pair] = _PAIRS, made_by: dict[str, object] = _MADE_BY) -> None:
    with PredictionWriter(path, pairs, made_by=made_by) as writer:
        for row in range(writer.done, count):
            writer.append(f"summary {row}\nüber 猫", document_tokens=9, tokens_read=row)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    _write(tmp_path / "a" / "p.jsonl", 4)
    found = read_predictions(tmp_path / "a" / "p.jsonl")
    assert found[2] == Prediction(
        id="doc-2", prediction="summary 2\nüber 猫", document_tokens=9, tokens_read=2
    )
    assert len(found) == 4


def test_each_prediction_is_on_disk_before_the_next_is_made(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.jsonl", _PAIRS)
    for row in range(3):
        writer.append("x")
        assert len(read_predictions(tmp_path / "p.jsonl")) == row + 1
    writer.close()


@pytest.mark.parametrize("cut", range(1, 200, 13))
def test_a_file_cut_anywhere_resumes_to_the_same_bytes(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "p.jsonl"
    _write(path, 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    _write(path, 4)
    assert path.read_bytes() == whole


def test_a_torn_header_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"format": "preci')
    _write(path, 1)
    assert len(read_predictions(path)) == 1


def test_somebodys_text_without_a_line_break_is_not_cut_off(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("my notes")
    with pytest.raises(UserError, match="line 1: is not a precis-predictions-1 file; delete"):
        PredictionWriter(tmp_path / "p.jsonl", [])
    assert (tmp_path / "p.jsonl").read_text() == "my notes"


def test_reading_leaves_a_torn_last_line_out(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    _write(path, 3)
    path.write_bytes(path.read_bytes()[:-5])
    assert len(read_predictions(path)) == 2


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    _write(tmp_path / "p.jsonl", 2)
    with pytest.raises(
        UserError, match=r"p\.jsonl was started with beams=4, now 1; delete the file after retraining"
    ):
        _write(tmp_path / "p.jsonl", 4, made_by={"model": "runs/a", "beams": 1})


@pytest.mark.parametrize(
    "pairs",
    [_PAIRS[::-1], [_PAIRS[0], Pair(document="Changed.", summary="s", id="doc-1"), *_PAIRS[2:]]],
    ids=["other order", "other document"],
)
def test_other_examples_are_refused_by_row(tmp_path: Path, pairs: list[Pair]) -> None:
    _write(tmp_path / "p.jsonl", 2)
    with pytest.raises(UserError, match=r"line \d: made for example 'doc-\d'"):
        _write(tmp_path / "p.jsonl", 4, pairs=pairs)


def test_marks_of_units_are_no_part_of_an_example(tmp_path: Path) -> None:
    marked = [replace(pair, document=f"{UNIT_MARK}{pair.document}") for pair in _PAIRS]
    _write(tmp_path / "p.jsonl", 4, pairs=marked)
    path = tmp_path / "p.jsonl"
    assert read_predictions(path, _PAIRS) == read_predictions(path, marked)


def test_fewer_examples_than_predictions_are_refused(tmp_path: Path) -> None:
    _write(tmp_path / "p.jsonl", 3)
    with pytest.raises(UserError, match="more than 2 predictions, but there are 2 examples"):
        _write(tmp_path / "p.jsonl", 2, pairs=_PAIRS[:2])


def test_pairs_without_ids_are_told_apart_by_row_and_document(tmp_path: Path) -> None:
    pairs = [Pair(document=f"Text {i}", summary="s") for i in range(2)]
    _write(tmp_path / "p.jsonl", 1, pairs=pairs)
    assert read_predictions(tmp_path / "p.jsonl")[0].id == "row-1"
    with pytest.raises(UserError, match="line 2"):
        _write(tmp_path / "p.jsonl", 2, pairs=pairs[::-1])


def test_a_full_file_opens_again_and_takes_no_more(tmp_path: Path) -> None:
    for _ in range(2):
        _write(tmp_path / "p.jsonl", 4)
    with pytest.raises(UserError, match="already holds all 4"):
        _write(tmp_path / "p.jsonl", 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json\n", "line 1: is not a precis-predictions-1 file"),
        ("[1]\n", "line 1: is not a precis-predictions-1 file"),
        ('{"id": "a"}\n', "line 1: is not a precis-predictions-1 file"),
        (sealed(b'{"format": "precis-predictions-1"}'), "line 1: is not a precis-predictions-1 file"),
        (sealed(_HEADER, b'{"id": "a"}'), "line 2: 'prediction'"),
    ],
)
def test_another_kind_of_file_is_refused_by_row(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_predictions(path)
    with pytest.raises(UserError, match=message):
        PredictionWriter(path, _PAIRS)
    assert path.read_text() == content


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UserError, match="no such predictions file"):
        read_predictions("nowhere.jsonl")


@pytest.mark.parametrize("change", ["another word", "a row gone", "two exchanged", "other settings"])
def test_a_row_that_was_changed_afterwards_is_named(tmp_path: Path, change: str) -> None:
    pairs = [Pair(document=f"text {number}", summary="s") for number in range(4)]
    file = tmp_path / "p.jsonl"
    with PredictionWriter(file, pairs, made_by={"beams": 4}) as writer:
        for number in range(4):
            writer.append(f"summary {number}")
    assert len(read_predictions(file)) == 4
    lines = file.read_text().splitlines(keepends=True)
    if change == "another word":
        lines[2] = lines[2].replace("summary", "sumary")
    elif change == "a row gone":
        del lines[2]
    elif change == "two exchanged":
        lines[2], lines[3] = lines[3], lines[2]
    else:
        lines[0] = lines[0].replace("4", "5")
    file.write_text("".join(lines))
    line = 1 if change == "other settings" else 3
    with pytest.raises(UserError, match=f"line {line}: has changed since it was written"):
        read_predictions(file)
    with pytest.raises(UserError, match=r"has changed since it was written.*delete the file"):
        PredictionWriter(file, pairs, made_by={"beams": 4})


def test_predictions_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("")
    (tmp_path / "p.jsonl").symlink_to(tmp_path / "thesis")
    with pytest.raises(UserError, match="is a link"):
        PredictionWriter(tmp_path / "p.jsonl", [])
    assert (tmp_path / "thesis").read_text() == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"[" * 100_000, "line 2: not JSON (is nested deeper"),
        (b'{"id": "a", "id": "b"}', "line 2: not JSON (has the key 'id' twice)"),
        (
            b'{"id": "a", "prediction": 5, "document_tokens": 1, "tokens_read": 1, "document": "x"}',
            "line 2: 'prediction' must be text, not a number",
        ),
        (
            b'{"id": "a", "prediction": "\\ud800", "document_tokens": 1, "tokens_read": 1, "document": "x"}',
            "line 2: 'prediction': invalid Unicode",
        ),
        (
            b'{"id": "a", "prediction": "p", "document_tokens": "1", "tokens_read": 1, "document": "x"}',
            "line 2: 'document_tokens' must be a whole number, not a string",
        ),
    ],
)
def test_a_row_that_we_did_not_write_is_named(line: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(sealed(_HEADER, line))
    with pytest.raises(UserError) as caught:
        read_predictions(path)
    assert says in str(caught.value)


def replaced(path: Path) -> None:
    """Put a copy in its place, as file synchronizers and editors do."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize("change", [replaced, Path.unlink])
def test_a_file_that_is_replaced_or_deleted_stops_the_evaluation_and_nothing_is_lost(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "p.jsonl"
    writer = PredictionWriter(path, _PAIRS, made_by=_MADE_BY)
    writer.append("summary 0")
    change(path)
    with pytest.raises(
        RunError, match=r"p\.jsonl: was replaced or deleted by another program; its 1 records are"
    ):
        writer.append("summary 1")
    writer.close()
    next(tmp_path.glob("p.jsonl.kept-*")).rename(path)
    _write(path, 4)
    assert [row.prediction for row in read_predictions(path, _PAIRS)][:2] == [
        "summary 0",
        "summary 1\nüber 猫",
    ]


def test_a_file_that_is_replaced_after_the_last_prediction_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    writer = PredictionWriter(path, _PAIRS[:1])
    writer.append("summary 0")
    replaced(path)
    with pytest.raises(RunError, match="was replaced or deleted"), writer:
        pass


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    code = (
        "import sys; from precis.evaluation.predictions import PredictionWriter\n"
        "with PredictionWriter(sys.argv[1], []):\n  print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "p.jsonl")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match="another process is writing"):
            PredictionWriter(tmp_path / "p.jsonl", [])
        holder.kill()


def test_summaries_of_another_program_are_matched_by_ids(tmp_path: Path) -> None:
    file = tmp_path / "theirs.jsonl"
    file.write_text('{"id": "b", "summary": "of b"}\n{"id": 7, "prediction": "of 7"}\n')
    pairs = [Pair(document="Seven.", summary="s", id="7"), Pair(document="B.", summary="s", id="b")]
    assert read_texts(file, pairs) == ["of 7", "of b"]
    file.write_text('{"id": "row-2", "summary": "second"}\n{"id": "row-1", "summary": "first"}\n')
    assert read_texts(file, [replace(pair, id="") for pair in pairs]) == ["first", "second"]


@pytest.mark.parametrize(
    ("lines", "ids", "says"),
    [
        (['{"id": "a", "summary": "x"}'] * 2, "a", "line 2: 'a' appears a second time"),
        (['{"summary": "x"}'], "a", "line 1: 'id' must be a name or a number"),
        (['{"id": true, "summary": "x"}'], "a", "line 1: 'id' must be a name or a number"),
        (['{"id": "", "summary": "x"}'], "a", "line 1: 'id' must be a name or a number"),
        (['{"id": 1.5, "summary": "x"}'], "a", "line 1: 'id' must be a name or a number"),
        (["no json"], "a", "line 1: "),
        ([], "a", "is empty; name a file with rows"),
        (['{"id": "a", "summary": "x"}'], "aa", "two pairs have the id 'a'"),
        (['{"id": "a", "summary": "x"}'], "abc", "lacks the summaries of 2 documents, the first is 'b'"),
        (['{"id": "a", "summary": "x"}', '{"id": "b"}'], "a", "has 1 row without a pair .* the first is 'b'"),
        (['{"id": "a"}'], "a", "line 1: needs one text in 'summary' or 'prediction'$"),
        (['{"id": "a", "summary": "x", "prediction": "y"}'], "a", "but has both; remove one"),
        (['{"id": "a", "summary": 5}'], "a", "line 1: needs a text in 'summary', not a number"),
        (['{"id": "a", "summary": "\\ud800"}'], "a", "line 1: 'summary': invalid Unicode"),
    ],
)
def test_rows_of_another_program_that_do_not_match_are_named(
    lines: list[str], ids: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "theirs.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(UserError, match=says):
        read_texts(tmp_path / "theirs.jsonl", [Pair(document=name, summary="s", id=name) for name in ids])


def test_predictions_for_other_pairs_are_not_read(tmp_path: Path) -> None:
    _write(tmp_path / "p.jsonl", 4)
    with pytest.raises(UserError, match="has 4 predictions for 3 examples"):
        read_predictions(tmp_path / "p.jsonl", _PAIRS[:3])
    with pytest.raises(UserError, match="line 2: made for example 'doc-0', not for 'doc-3'"):
        read_predictions(tmp_path / "p.jsonl", _PAIRS[::-1])


def test_a_file_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    lines = [_HEADER, *(_line_of_version_1(number) for number in range(2))]
    (tmp_path / "p.jsonl").write_text(sealed(*lines))
    with PredictionWriter(tmp_path / "p.jsonl", _PAIRS) as writer:
        assert writer.done == 2


def _line_of_version_1(number: int) -> bytes:
    digest = ("71babed595d171c7", "bd0e27d6daf47e88")[number]
    counts = '"document_tokens": 1, "tokens_read": 1'
    return f'{{"id": "doc-{number}", "prediction": "p", {counts}, "document": "{digest}"}}'.encode()
