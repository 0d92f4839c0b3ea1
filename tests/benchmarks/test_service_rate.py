"""Every way of making many summaries is timed, and a way that fails ends the benchmark."""

from pathlib import Path

import pytest

from benchmarks.service import rate


@pytest.mark.long
def test_the_command_and_the_server_are_timed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["rate", "--documents", "3", "--ways", "summarize", "serve"])
    assert rate.main() == 0
    rows = [line.split("|")[1:-1] for line in capfd.readouterr().out.splitlines() if line.startswith("| s")]
    assert [row[0].strip() for row in rows] == ["summarize", "serve"]
    assert all(float(cell) > 0 for row in rows for cell in row[1:5])


def test_a_way_that_fails_ends_the_benchmark(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="precis summarize ended with 2"):
        rate.run("summarize", str(tmp_path / "missing.jsonl"))
