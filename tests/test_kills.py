"""A run left alone is held against a recorded one, so that changed code is not held against itself."""

import json
from pathlib import Path

from faults.kills import RECORD, against_record, differences, outline, tree


def run(folder: Path, *, rows: int = 2, best: bool = True, token: bytes = b"abc") -> dict[str, object]:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps({"step": n}) + "\n" for n in range(rows)))
    (folder / "tokens.bin").write_bytes(token)
    (folder / "model.safetensors").write_bytes(bytes(5000))
    (folder / "state.json").write_text(json.dumps({"seconds": 5, "path": str(folder)}))
    if best:
        (folder / "checkpoints" / "best.json").write_text("{}")
    return outline(folder)


def test_what_a_run_left_alone_lacks_or_has_otherwise_than_the_recorded_one_is_told(tmp_path: Path) -> None:
    record = {"finetune": run(tmp_path / "recorded")}
    assert against_record("finetune", run(tmp_path / "same"), record) == []
    for number, (change, told) in enumerate(
        (
            ({"rows": 1}, "metrics.jsonl was {'rows': 2}, is {'rows': 1}"),
            ({"best": False}, "checkpoints/best.json was there, is not there"),
            ({"token": b"abd"}, "tokens.bin was {'digest'"),
        )
    ):
        (found,) = against_record("finetune", run(tmp_path / str(number), **change), record)  # type: ignore[arg-type]
        assert found.startswith(told)
    assert "--record" in against_record("tune", {}, record)[0]


def test_rows_of_a_batch_may_change_places_and_no_others(tmp_path: Path) -> None:
    def written(place: str, name: str, rows: str) -> Path:
        (tmp_path / place / "out").mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "out" / name).write_text("".join(f'{{"id": "{row}"}}\n' for row in rows))
        return tmp_path / place / "out"

    for name, rows, wrong in (
        ("summaries.jsonl", "ba", []),
        ("summaries.jsonl", "bab", ["summaries.jsonl differs"]),
        ("s.jsonl", "ba", ["s.jsonl differs"]),
    ):
        alone, now = written(f"alone {rows} {name}", name, "ab"), written(f"now {rows} {name}", name, rows)
        assert differences(tree(alone), now) == wrong


def test_the_record_has_every_writer_and_the_files_that_none_may_lose() -> None:
    record = json.loads(RECORD.read_text())
    assert {
        "finetune",
        "ground",
        "pretrain",
        "tune",
        "data pack",
        "tokenizer",
        "evaluate",
        "summarize",
    } <= record.keys()
    for writer in ("finetune", "ground", "pretrain", "tune"):
        assert record[writer]["checkpoints/best.json"] == "there"
        assert record[writer]["metrics.jsonl"]["rows"] > 1
