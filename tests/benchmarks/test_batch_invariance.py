"""Claims about the count of summaries that depend on their company."""

from pathlib import Path

import pytest

from benchmarks.batch_invariance import main, told_of_writer
from precis.generation.summary import Summary
from precis.generation.writers.writer_opening import open_writer
from tests.tiny_models import save_llama

DOCUMENTS = [f"Ann sold Bob {n} boats on Monday. It rained until {n} o'clock." for n in range(2, 5)]


def test_a_writer_is_asked_alone_and_in_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(save_llama(tmp_path / "llama"))
    rows = tmp_path / "documents.jsonl"
    rows.write_text("".join(f'{{"document": "{text}"}}\n' for text in DOCUMENTS))
    monkeypatch.setattr("sys.argv", ["x", "--model", model, "--documents", str(rows), "--limit", "2"])
    main()
    assert capsys.readouterr().out.splitlines() == [
        "together: 2 of 2 equal to the single-document summary",
        "together in another order: 2 of 2 equal to the single-document summary",
    ]


def test_a_writer_whose_texts_depend_on_their_company_is_counted(tmp_path: Path) -> None:
    writer = open_writer(str(save_llama(tmp_path / "llama")), check="free")
    first = writer.summarize([DOCUMENTS[0]])[0]

    class Forgetful:
        """Gives every document of a company the first one's summary."""

        def stream(self, documents: list[str], **options: int | None) -> list[Summary]:
            return writer.summarize(documents) if len(documents) == 1 else [first] * len(documents)

    together, _ = told_of_writer(Forgetful(), DOCUMENTS, seed=0)  # type: ignore[arg-type]
    alone = [writer.summarize([text])[0].text for text in DOCUMENTS]
    assert alone.count(first.text) < len(DOCUMENTS)
    assert together == f"together: {alone.count(first.text)} of 3 equal to the single-document summary"


def test_what_is_kept_is_not_made_again(tmp_path: Path) -> None:
    writer = open_writer(str(save_llama(tmp_path / "llama")), check="free")
    told = told_of_writer(writer, DOCUMENTS, seed=0, words=9, out=tmp_path)
    alone = tmp_path / "alone.jsonl"
    lines = alone.read_text().splitlines()
    alone.write_text("\n".join(lines[:2]) + "\n")
    asked: list[str] = []

    class Counting:
        """Notes which documents it is asked for."""

        def stream(self, documents: list[str], *, words: int | None) -> list[Summary]:
            asked.extend(documents)
            return writer.summarize(documents, words=words)

    assert told_of_writer(Counting(), DOCUMENTS, seed=0, words=9, out=tmp_path) == told  # type: ignore[arg-type]
    assert asked == DOCUMENTS[2:]
    assert alone.read_text().splitlines() == lines
