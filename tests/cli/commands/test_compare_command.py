"""`precis compare`: several models on the same documents, each in a process of its own."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.cli import main
from precis.evaluation.predictions import read_predictions
from tests.generation.writers.endpoint_server import refuses, says, serving
from tests.tiny_models import documents, save, save_llama

Precis = Callable[..., Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder-decoder and a causal model."""
    folder = tmp_path_factory.mktemp("models")
    save("zcodepp", folder / "ours")
    save_llama(folder / "llama")
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents, two of them with a reference, and a row without a document."""
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    texts = documents(3)
    written = [
        {"id": "one", "document": texts[0], "summary": "Ann sings in the hall."},
        {"id": "two", "document": texts[1]},
        {"id": "two", "document": texts[2], "summary": ["Bob listens.", "Bob hears <it>."]},
        {"id": "none", "document": " "},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in written))
    return file


@pytest.fixture(scope="module")
def compared(models: Path, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison."""
    out = tmp_path_factory.mktemp("compared") / "out"
    assert main([*map(str, command(models, rows, out))]) == 0
    return out


def command(models: Path, rows: Path, out: Path, *more: object) -> list[object]:
    named = ["--model", models / "ours", "--model", models / "llama"]
    return ["compare", rows, *named, "--words", 20, "--threads", 1, "--out", out, *more]


@pytest.mark.long
def test_models_are_compared_and_the_page_shows_documents_and_marks(compared: Path) -> None:
    found = json.loads((compared / "comparison.json").read_text())
    assert found["documents"] == 3
    speed = {row["model"]: row for row in found["tables"]["Speed and memory"]}
    assert list(speed) == ["ours", "llama"]
    for row in speed.values():
        assert float(row["memory MiB"].replace(",", "")) > 50
        assert float(row["seconds to open"]) > 0
    shape = {row["model"]: row for row in found["tables"]["Summaries"]}
    assert {row["over the cap"] for row in shape.values()} == {"0"}
    assert shape["llama"]["written %"] == "0"  # a random model: quotations replace what it writes
    assert shape["llama"]["quoted %"] == "100"
    assert found["scores"]["examples"] == 2
    assert list(found["scores"]["differences_to_first"]) == ["llama"]
    agreement = found["tables"]["Agreement"]
    assert agreement[0]["ours"] == "-"
    assert agreement[0]["llama"] == agreement[1]["ours"]
    page = (compared / "report.html").read_text()
    assert "two (2)" in page
    assert "Bob hears &lt;it&gt;." in page
    assert "quoted, since" in page
    assert [part for part in ("<script", "http:", "https:", "src=", "href=") if part in page] == []


@pytest.mark.long
def test_people_can_judge_the_summaries_blind(compared: Path, precis: Precis, tmp_path: Path) -> None:
    outcome = precis(
        *("judge", "new", "--predictions", compared, "--repeats", 0, "--gold", 0, "--out", tmp_path / "s")
    )
    assert outcome.code == 0, outcome.err
    assert "systems: llama, ours" in outcome.out
    assert "on 3 documents" in outcome.out


@pytest.mark.long
def test_a_repeated_command_resumes_and_other_options_are_refused(
    models: Path, rows: Path, compared: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(compared, out)
    file = out / "predictions" / "llama.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]))  # as after a kill
    ours = (out / "predictions" / "ours.jsonl").read_bytes()
    refused = precis(*command(models, rows, out, "--free"))
    assert (refused.code, "--free False, now True" in refused.error) == (2, True)
    outcome = precis(*command(models, rows, out))
    assert outcome.code == 0
    assert "left out:" in outcome.err
    assert "line 4" in outcome.err
    assert (out / "predictions" / "ours.jsonl").read_bytes() == ours
    assert file.read_bytes().splitlines(keepends=True)[:3] == lines[:3]
    again = read_predictions(file)
    assert [each.prediction for each in again] == [json.loads(line)["prediction"] for line in lines[1:]]
    assert ["opening" in each.details for each in again] == [True, False, True]  # two processes


@pytest.mark.long
def test_a_model_that_fails_leaves_the_summaries_of_the_others(
    rows: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with serving(says("Ann sings in the hall."), refuses(500, "the model crashed")) as server:
        named = [word for name in ("tiny", "broken") for word in ("--model", f"{server.address}#{name}")]
        outcome = precis("compare", rows, *named, "--limit", 1, "--out", out)
    assert outcome.code == 1
    assert "answered 500: the model crashed" in outcome.error
    assert "Traceback" not in outcome.err
    (kept,) = read_predictions(out / "predictions" / "tiny.jsonl")
    assert kept.details["seconds"] > 0
    assert "memory" not in kept.details  # the server has its own
    assert not (out / "report.html").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--model", "nowhere"], "no such folder"),
        (["--summary-column", "title"], "no document has a text there"),
        (["--sentences", 3], "give one of words"),
    ],
)
def test_bad_options_are_refused_before_a_model_runs(
    more: list[object], told: str, models: Path, rows: Path, precis: Precis, tmp_path: Path
) -> None:
    outcome = precis(*command(models, rows, tmp_path / "out", *more))
    assert (outcome.code, told in outcome.error) == (2, True), outcome.err
    assert not (tmp_path / "out" / "predictions").exists()
