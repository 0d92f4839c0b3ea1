"""`benchmarks/speculative.py` measures on the pairs that it was asked for."""

from pathlib import Path

import pytest

from benchmarks import speculative

COUNTS = {"train": 3, "dev": 2, "test": 2}


def test_pairs_of_other_settings_are_refused_and_the_same_are_used_again(tmp_path: Path) -> None:
    folder = speculative._pairs(tmp_path, COUNTS, seed=1)
    written = (folder / "test.jsonl").stat().st_mtime_ns
    assert speculative._pairs(tmp_path, COUNTS, seed=1) == folder
    assert (folder / "test.jsonl").stat().st_mtime_ns == written
    with pytest.raises(SystemExit, match=r"pairs: made with .*'test': 2.*not .*'test': 5"):
        speculative._pairs(tmp_path, {**COUNTS, "test": 5}, seed=1)


def test_pairs_whose_writing_was_killed_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = speculative.write_synthetic  # type: ignore[attr-defined]

    def killed(out: Path, counts: dict[str, int], *, seed: int) -> None:
        write(out, {**counts, "test": 1}, seed=seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(speculative, "write_synthetic", killed)
    with pytest.raises(KeyboardInterrupt):
        speculative._pairs(tmp_path, COUNTS, seed=1)
    monkeypatch.setattr(speculative, "write_synthetic", write)
    folder = speculative._pairs(tmp_path, COUNTS, seed=1)
    assert len((folder / "test.jsonl").read_text().splitlines()) == 2
