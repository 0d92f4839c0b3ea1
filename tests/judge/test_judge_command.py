"""`precis judge` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis_judge.judging_study import open_study
from tests.judge.studies import judge_all

Precis = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three systems' summaries of five documents."""
    found = {}
    for name in ("ours", "theirs", "others"):
        found[name] = tmp_path / f"{name}.jsonl"
        rows = [{"id": n, "document": f"Ferry {n} was late.", "summary": f"{name} {n}"} for n in range(5)]
        found[name].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return found


def test_a_study_is_made_judged_and_reported(precis: Precis, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "study"
    made = precis(
        *("judge", "new", "--predictions", files["ours"], "--predictions", files["theirs"]),
        *("--judge", "Ann", "--judge", "Ben", "--out", out),
    )
    assert made.code == 0, made.err
    assert "systems: ours, theirs" in made.out
    assert precis("judge", "report", out).error.endswith(
        "does not have verdicts yet; collect them with precis judge serve"
    )
    judge_all(open_study(out), lambda judge, item, key: float(judge == "Ann"))
    reported = precis("judge", "report", out)
    assert reported.code == 0, reported.err
    assert "ours against theirs" in reported.out
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    again = precis(
        "judge", "new", "--predictions", files["ours"], "--predictions", files["theirs"], "--out", out
    )
    assert (again.code, "already has verdicts" in again.error) == (2, True)


def test_predictions_of_an_evaluation_are_judged_beside_the_references(
    precis: Precis, pairs: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in (pairs / "test.jsonl").read_text().splitlines()]
    texts = tmp_path / "lead.txt"
    texts.write_text("".join(row["document"].split(".")[0].replace("\n", " ") + ".\n" for row in rows))
    line = (
        "judge",
        "new",
        "--predictions",
        texts,
        "--data",
        pairs,
        "--protocol",
        "zcodepp",
        "--out",
        tmp_path / "s",
    )
    refused = precis(*line)
    assert (refused.code, "unknown system 'reference'" in refused.error) == (2, True)
    assert precis(*line, "--reference", "--documents", "4", "--gold", "0").code == 0
    study = open_study(tmp_path / "s")
    assert study.systems == ("lead", "reference")
    assert {item.second for item in study.layout.items} == {"reference"}
    assert len(study.documents) == 4


def test_the_human_summary_is_shown_beside_both_on_wish(precis: Precis, pairs: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (pairs / "test.jsonl").read_text().splitlines()]
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    for number, file in enumerate(files):
        file.write_text("".join(f"Summary {number} of {n}.\n" for n in range(len(rows))))
    named = [word for file in files for word in ("--predictions", file)]
    line = ("judge", "new", *named, "--out", tmp_path / "s", "--show-reference")
    assert "human references come with the documents" in precis(*line).error
    both = precis(*line, "--data", pairs, "--reference")
    assert (both.code, "--show-reference would show judges" in both.error) == (2, True)
    assert precis(*line, "--data", pairs).code == 0
    study = open_study(tmp_path / "s")
    assert study.systems == ("one", "two")
    for page in study.layout.pages["judge-1"]:
        document = study.documents[study.layout.items[page.item].document]
        assert study.truth(page) == document.truth
        assert document.truth in {row["summary"] for row in rows}
    plain = precis("judge", "new", *named, "--data", pairs, "--out", tmp_path / "plain")
    assert plain.code == 0
    shown = open_study(tmp_path / "plain")
    assert {shown.truth(page) for page in shown.layout.pages["judge-1"]} == {""}


def _change(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"id": 2', '"id": 9', "lacks a row with the id"),
        ('"id": 2', '"id": 1', "appears a second time"),
        ('"id": 2', '"id": null', "'id' must be a name or a number"),
        ("Ferry 2", "Boat 2", "has a different document in"),
        ('"document"', '"text"', "needs a text in 'document'; or name the documents with --data"),
        ('"summary": "theirs 3"', '"summary": 3', "line 4: needs a text in 'summary'"),
    ],
)
def test_files_that_do_not_fit_are_named_with_the_row(
    precis: Precis, files: dict[str, Path], tmp_path: Path, old: str, new: str, message: str
) -> None:
    _change(files["theirs"], old, new)
    out = tmp_path / "study"
    made = precis(
        "judge", "new", "--predictions", files["ours"], "--predictions", files["theirs"], "--out", out
    )
    assert (made.code, message in made.error) == (2, True), made.error
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("judge new --predictions {ours} --out s", "judges compare systems, but there is only one"),
        ("judge new --predictions {ours} --predictions {ours} --out s", "has the same name 'ours'"),
        (
            "judge new --predictions nowhere.jsonl --out s",
            "nowhere.jsonl does not exist; name a file of predictions",
        ),
        (
            "judge new --predictions {ours} --predictions {theirs} --documents 9 --out s",
            "only 5 are available",
        ),
        (
            "judge new --predictions {ours} --predictions {theirs} --split dev --out s",
            "apply to --data; add --data",
        ),
        (
            "judge new --predictions {ours} --predictions {theirs} --reference --out s",
            "name the documents with --data",
        ),
        ("judge serve nowhere", "is not a study; make one with precis judge new"),
        ("judge plan --preference 0.5", "above 0.5 and below 1"),
        ("judge plan --ties 1", "from 0 to below 1"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    precis: Precis,
    files: dict[str, Path],
    words: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = precis(*(word.format(**files) for word in words.split()))
    assert (done.code, message in done.error) == (2, True), done.error


def test_a_plan_prints_documents_or_power(precis: Precis) -> None:
    planned = precis("judge", "plan", "--preference", "0.7", "--judges", "1", "--judges", "3")
    assert (planned.code, "documents" in planned.out) == (0, True)
    assert "%" in precis("judge", "plan", "--preference", "0.7", "--judges", "3", "--documents", "40").out


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "no.such.host.invalid"])
def test_an_address_that_is_none_is_refused(
    precis: Precis, files: dict[str, Path], tmp_path: Path, host: str
) -> None:
    out = tmp_path / "study"
    assert (
        precis(
            "judge", "new", "--predictions", files["ours"], "--predictions", files["theirs"], "--out", out
        ).code
        == 0
    )
    served = precis("judge", "serve", out, "--host", host)
    assert (served.code, "--host" in served.error) == (2, True)
