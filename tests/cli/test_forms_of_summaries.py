"""Forms and questions from the command line and from Python, with the model that comes with precis."""

import json
from pathlib import Path

import pytest

import precis
from precis.cli import main

TALK = """Ann: Good morning. The first item is the summer fair.
Bob: We had 300 visitors last year.
Ann: Then let's keep the same date, the fourth of July.
Cem: I'll book the hall by Friday.
"""


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    (tmp_path / "talk.txt").write_text(TALK)
    return tmp_path / "talk.txt"


def test_minutes_are_printed_with_their_parts_and_turns(
    talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summarize", str(talk), "--type", "minutes"]) == 0
    out, _ = capsys.readouterr()
    assert "Decisions\n- [turn 3] Ann: Then let's keep the same date, the fourth of July." in out
    assert "- [turn 4] Cem: I'll book the hall by Friday. (owner: Cem; due: by Friday)" in out


def test_json_has_the_lines_and_support_names_their_places(
    talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summarize", str(talk), "--type", "minutes", "--json", "--support"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["type"] == "minutes"
    for line, sentence in zip(record["lines"], record["support"]["sentences"], strict=True):
        start, stop = line["place"]
        assert TALK[start:stop] in line["text"]
        assert record["summary"][sentence["start"] : sentence["end"]] == line["text"]
        assert sentence["aligned"][0]["start"] == start


def test_a_question_without_an_answer_is_said_to_be(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summarize", str(talk), "--about", "What do penguins eat?"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() == 'No sentence shares enough words with "What do penguins eat?".'
    assert "word for word" not in err


def test_python_takes_the_same_options() -> None:
    points = precis.summarize(TALK, type="key-points", words=20)
    assert all(line.startswith("- ") for line in points.split("\n"))
    assert len(points.split()) <= 20
    assert "book the hall" in precis.summarize(TALK, about="Who books the hall?", sentences=1)


def test_a_refusal_has_no_source(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summarize", str(talk), "--about", "What do penguins eat?", "--support"]) == 0
    assert capsys.readouterr().out.strip() == 'No sentence shares enough words with "What do penguins eat?".'


def test_topics_have_the_time_of_their_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = (
        "The pipes of the city lost a quarter of their water last year",
        "Engineers listened to 200 miles of pipe with microphones at night",
        "They found 212 leaks in one district and mended them within months",
        "The council now plans to do the same in four other districts",
    )
    cues = [f"{n + 1}\n00:0{n}:30,000 --> 00:0{n}:59,000\n{text}.\n" for n, text in enumerate(said)]
    (tmp_path / "talk.srt").write_text("\n".join(cues))
    assert main(["summarize", str(tmp_path / "talk.srt"), "--type", "minutes", "--short", "write"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- ")]
    assert lines
    for line in lines:
        (number,) = [n for n, text in enumerate(said) if text in line]
        assert f"[0:0{number}:30]" in line


def test_notes_of_a_text_file_are_shown(
    talk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summarize", str(talk), "--words", "20", "--out", str(tmp_path / "out.txt")]) == 0
    assert "tokens" in capsys.readouterr().err


def test_a_question_is_answered_by_a_row_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        "boat,owner,berth",
        "Wave,Ann Lund,7",
        "Gull,Bob Hart,9",
        "Heron,Cleo Marsh,11",
        "Pike,Dan Frost,3",
    ]
    (tmp_path / "boats.csv").write_text("\n".join(rows) + "\n")
    assert main(["summarize", str(tmp_path / "boats.csv"), "--about", "Who is the owner of the Heron?"]) == 0
    out, error = capsys.readouterr()
    assert out.strip() == "boat: Heron | owner: Cleo Marsh | berth: 11"
    assert "boats.csv: read as one table, for --about; " in error
