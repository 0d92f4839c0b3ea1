"""The notebooks and the script under `examples/` are valid and run, at toy size, without a network."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
_TOY = {
    "TRAIN, TEST": "12, 4",
    "SETTINGS: list[str]": repr(
        [
            "model.hidden_size=32",
            "model.intermediate_size=64",
            "model.encoder_layers=2",
            "model.decoder_layers=1",
            "model.vocab_size=600",
            "train.steps=2",
            "train.warmup_steps=1",
            "generation.max_tokens=8",
            "generated_rows=2",
        ]
    ),
}


def _code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _run(notebook: Path) -> dict:
    """Run the cells one after another, with the numbers of `_TOY`; give what they defined."""
    names: dict = {"__name__": notebook.stem}
    for number, cell in enumerate(_code(notebook)):
        for name, value in _TOY.items():
            cell = re.sub(rf"^{re.escape(name)} = .*$", f"{name} = {value}", cell, flags=re.MULTILINE)
        exec(compile(cell, f"{notebook.name}, cell {number}", "exec"), names)
    return names


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_of_format_4_with_an_id_for_each_cell_and_no_output(notebook: Path) -> None:
    whole = json.loads(notebook.read_text(encoding="utf-8"))
    assert (whole["nbformat"], whole["nbformat_minor"] >= 5) == (4, True)
    ids = [cell["id"] for cell in whole["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(not cell["outputs"] for cell in whole["cells"] if cell["cell_type"] == "code")


@pytest.mark.long
def test_the_script_writes_the_units_that_say_what_the_summary_says(tmp_path: Path) -> None:
    document = "Ann: The tea is cold.\nBob: The ferry sails at nine.\nAnn: Fine."
    for split in ("train", "dev"):
        row = {"id": split, "document": document, "summary": "The ferry sails at nine."}
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    words = ["--task", "samsum", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--units", "1"]
    subprocess.run([sys.executable, str(EXAMPLES / "oracle_extracts.py"), *words], check=True)
    for split in ("train", "dev"):
        assert json.loads((tmp_path / "out" / f"{split}.jsonl").read_text()) == {
            "id": split,
            "document": document,
            "summary": "Bob: The ferry sails at nine.",
        }


def test_the_notebook_for_research_keeps_its_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run(EXAMPLES / "research.ipynb")["trained"] > 0


@pytest.mark.slow
def test_the_first_ten_minutes_end_with_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = _run(EXAMPLES / "first_ten_minutes.ipynb")
    assert len(names["summaries"]) == 4
