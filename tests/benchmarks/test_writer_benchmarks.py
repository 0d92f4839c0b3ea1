"""What the benchmarks of writers draw and count, without a model."""

import json
import random
from pathlib import Path

from benchmarks.faithfulness.planted import Pair
from benchmarks.writers.promises import counted, drawn
from benchmarks.writers.threshold import kept, measured, upper

BOATS = (
    "Ann sold 3 boats to Bob in March. It rained all day in the harbour. Bob paid 900 pounds for the boats."
)
MILL = "The old mill in Arlen burned down in 1904. Nobody was hurt. Carl built another mill there in 1906."


def test_more_documents_only_add_rows_and_long_ones_are_left_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        texts = [f"{BOATS} {n}" for n in range(6)] + [BOATS * 9]
        lines = [
            json.dumps({"document": text, "summary": f"Ann of {name} sold boats to Bob."}) for text in texts
        ]
        (folder / "dev.jsonl").write_text("\n".join(lines) + "\n")
    few, many = (drawn(tmp_path, count, seed=0, most_words=40, sets=("a", "b")) for count in (3, 20))
    assert many[:3] == few
    assert [row["id"] for row in few] == ["a 1", "b 1", "a 2"]
    assert len(many) == 12


def test_broken_promises_are_counted() -> None:
    rows = [{"document": BOATS}] * 3
    found = counted(rows, ["Bob paid Carl 7 pounds.", "Ann sold 3 boats to Bob in March.", " "], words=5)
    assert found == {
        "without a summary": 1,
        "over 5 words": 1,
        "names without support": 1,
        "numbers without support": 1,
    }


def test_right_sentences_are_kept_and_planted_and_foreign_ones_are_not() -> None:
    pairs = [
        Pair(BOATS, "Ann sold Bob 3 boats in March."),
        Pair(MILL, "The mill in Arlen burned down in 1904."),
    ]
    learning, test = measured(pairs, random.Random(0))
    assert learning["right"][0] > 0.9
    assert test["right"][0] > 0.9
    assert kept(learning["elsewhere"] + test["elsewhere"], 0.5) == 0
    assert kept(learning["number"] + test["number"], 0.5) == 0
    assert 0.05 < upper(5, 100) < 0.12
