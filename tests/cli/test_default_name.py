"""`default` names the model that comes with precis in every command that takes a model."""

import json
from pathlib import Path

import pytest

from precis.generation.adapters import BASE_FILE
from precis.generation.model_location import default_model, locate, names_apart
from precis.server.served_model import ServedModel
from precis_text.errors import UserError
from tests.outcomes import Run
from tests.tiny_models import save

TEXT = (
    "The council met on Monday evening. It voted to repair the old bridge before winter. "
    "The work will cost 40,000 crowns and begins in May. Two members were absent."
)


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    """Four pairs, as train and as dev."""
    rows = [
        {"document": TEXT.replace("Monday", day), "summary": f"The council met on {day} evening."}
        for day in ("Monday", "Tuesday", "Friday", "Sunday")
    ]
    for split in ("train", "dev"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "pairs" / f"{split}.jsonl").parent.mkdir(exist_ok=True)
        (tmp_path / "pairs" / f"{split}.jsonl").write_text(text)
    return tmp_path / "pairs"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A short document."""
    (tmp_path / "report.txt").write_text(TEXT)
    return tmp_path / "report.txt"


def test_summarize_gives_what_it_gives_without_a_model(precis: Run, report: Path) -> None:
    named = precis("summarize", report, "--sentences", 1, "--model", "default")
    assert named.code == 0
    assert named.out == precis("summarize", report, "--sentences", 1).out
    assert "no --model" not in named.err


def test_summarize_warns_of_other_languages_when_it_is_named(precis: Run, tmp_path: Path) -> None:
    italian = "Il consiglio si è riunito lunedì. Vuole riparare il vecchio ponte. I lavori iniziano a maggio."
    (tmp_path / "rapporto.txt").write_text(italian, encoding="utf-8")
    told = precis("summarize", tmp_path / "rapporto.txt", "--sentences", 1, "--model", "default").err
    assert "seems to be Italian" in told


def test_evaluate_names_its_row(precis: Run, pairs_file: Path, tmp_path: Path) -> None:
    words = ("--model", "default", "--data", pairs_file / "dev.jsonl", "--out", tmp_path / "scores")
    done = precis("evaluate", *words)
    assert done.code == 0
    assert "default extract" in done.out


def test_a_folder_of_that_name_is_another_model(
    precis: Run, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("zcodepp", tmp_path / "default")
    monkeypatch.chdir(tmp_path)
    done = precis("evaluate", "--model", "./default", "--data", "pairs/dev.jsonl", "--out", "scores")
    assert done.code == 0
    assert "default greedy" in done.out


def test_it_is_not_taken_for_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save("zcodepp", tmp_path / "default")
    monkeypatch.chdir(tmp_path)
    assert len(set(names_apart(["default", "./default"]))) == 2
    with pytest.raises(UserError, match="is given twice, also as default"):
        names_apart(["default", default_model()])


@pytest.mark.long
def test_extractor_starts_from_it(precis: Run, pairs_file: Path, tmp_path: Path) -> None:
    words = ("--model", "default", "--tasks", pairs_file, "--out", tmp_path / "run", "--epochs", 1)
    assert precis("extractor", *words).code == 0
    assert locate(tmp_path / "run").use.modes == ("extract",)


@pytest.mark.long
def test_finetune_starts_from_it(precis: Run, pairs_file: Path, tmp_path: Path) -> None:
    words = ("--model", "default", "--data", pairs_file, "--out", tmp_path / "run", "--steps", 1)
    done = precis("finetune", *words, "--set", "generated_rows=0", "--set", "train.select=loss")
    assert done.code == 0, done.err
    settings = [locate(place).settings.model["hidden_size"] for place in (tmp_path / "run", "default")]
    assert settings[0] == settings[1]


@pytest.mark.long
def test_an_adapter_remembers_it_by_its_name(precis: Run, pairs_file: Path, tmp_path: Path) -> None:
    words = ("--model", "default", "--data", pairs_file, "--out", tmp_path / "run", "--steps", 1)
    assert precis("tune", *words, "--set", "generated_rows=0", "--set", "train.select=loss").code == 0
    assert json.loads((tmp_path / "run" / "adapter" / BASE_FILE).read_text())["model"] == "default"
    found = locate(tmp_path / "run")
    assert (found.base, found.place) == ("default", default_model())
    assert found.adapter == tmp_path / "run" / "adapter"


def test_the_service_takes_it() -> None:
    assert ServedModel.load("default", name="default").modes == ("extract",)


@pytest.mark.slow
def test_batch_takes_it(precis: Run, report: Path, tmp_path: Path) -> None:
    assert precis("batch", report, "--out", tmp_path / "all", "--model", "default").code == 0
    assert json.loads((tmp_path / "all" / "summaries.jsonl").read_text())["mode"] == "extract"


@pytest.mark.slow
def test_export_takes_it(precis: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    done = precis("export", "onnx", "default", "--out", tmp_path / "onnx")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    "command",
    [
        *("summarize", "evaluate", "serve", "batch", "finetune", "tune", "ground", "pretrain", "extractor"),
        *("export onnx", "probe attention"),
    ],
)
def test_its_name_is_in_the_help(command: str, precis: Run) -> None:
    page = " ".join(precis(*command.split(), "--help").out.replace("\u2502", " ").split())
    assert "default, the" in page
