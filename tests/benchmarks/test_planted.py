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


@pytest.mark.parametrize(
    ("summary", "stands"),
    [
        ("Nobody in Velmark wants its 3.5 km road.", True),
        ("The NATO met in Velmark.", False),
        ("The road of Harstad is old.", False),
        ("The road has 5 km.", False),
        ("It is old. Roads in Velmark are.", True),
    ],
)
def test_names_and_numbers_of_a_summary_are_looked_up_token_by_token(summary: str, stands: bool) -> None:
    document = "Velmark has a road of 3.5 km. It is old, and nobody wants it."
    assert planted.stands_in(planted.Pair(document, summary)) is stands


def test_the_tables_count_marked_errors_clean_summaries_and_extracts(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = {
        **ROWS[0],
        "summary": "The council of Velmark and Mister Quill will rebuild the pier for 20 crowns.",
    }
    with (data / "towns" / "train.jsonl").open("a") as rows:
        rows.write(json.dumps(foreign) + "\n")
    monkeypatch.setattr("sys.argv", ["planted", "--data", str(data), "--sets", "towns", "--documents", "7"])
    assert planted.main() == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    any_heads, _, any_row, heads, _, row = [line.strip("| ").split(" | ") for line in lines]
    of_any, within = dict(zip(any_heads, any_row, strict=True)), dict(zip(heads, row, strict=True))
    assert (of_any["planted"], of_any["clean"], of_any["extracts"]) == ("7/7", "1/7", "0/7")
    assert (within["planted"], within["clean"]) == ("6/6", "0/6")
