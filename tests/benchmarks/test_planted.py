"""What plants errors: one each, of the kind that it says; the table counts what is marked."""

import json
import random
from pathlib import Path

import pytest

from benchmarks.faithfulness import planted

NAMES = ("Velmark", "Harstad", "Sundby", "Lindholm", "Askeby", "Torsvik")
ROWS = [
    {
        "document": f"The council of {name} met on Monday. It will rebuild the pier for {20 + n} crowns. It is old.",
        "summary": f"The council of {name} will rebuild the pier for {20 + n} crowns.",
    }
    for n, name in enumerate(NAMES)
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "towns").mkdir()
    (tmp_path / "towns" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def test_an_error_of_each_kind_is_planted_in_a_document_of_its_own(data: Path) -> None:
    pairs = planted.read_pairs(data / "towns", seed=0)
    found = planted.cases(pairs, count=6, rng=random.Random(0), inside=False)
    assert [case.kind for case in found] == ["name", "number", "negation"] * 2
    assert len({case.pair.document for case in found}) == 6
    for case in found:
        text, put = case.planted.text, case.planted.text[case.planted.start : case.planted.end]
        assert text != case.pair.summary
        assert put not in case.pair.document
        assert put in NAMES or put.isdigit() or put == "will not"


def test_the_table_counts_marked_errors_clean_summaries_and_extracts(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["planted", "--data", str(data), "--sets", "towns", "--documents", "6"])
    assert planted.main() == 0
    heads, _, row = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    found = dict(zip(heads, row, strict=True))
    assert (found["planted"], found["clean"], found["extracts"]) == ("6/6", "0/6", "0/6")
