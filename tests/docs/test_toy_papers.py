"""The rows of PAPERS.md that no page of the guide runs: a user's own commands, at toy size.

Seconds of a processor (AMD EPYC, Zen 4, busy with other work), each without the eight of the start: ablation 24,
prophetnet 29, multilingual 17, prefixes 35, the three tasks 5 together; 110 in all.
"""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from precis.cli import main
from tests.docs.test_commands import toy
from tests.docs.world import make_world
from tests.tiny_models import save

#: A study -> the steps to run; of the prefixes' 49 those of one task, since all would take two minutes of a processor.
STUDIES = {"zcodepp-ablation": "", "prophetnet": "", "multilingual": "", "discourse-prefix": "--only 'e2e-*'"}
TASKS = {
    "persona-chat": "finetune --recipe zcodepp-micro",
    "wikilingua_ru_en": "finetune --recipe zcodepp-micro",
    "dart": "tune --model models/base --method hierblock",
}


@pytest.fixture(scope="module", autouse=True)
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the commands run."""
    folder, before = tmp_path_factory.mktemp("papers"), Path.cwd()
    make_world(folder)
    _write(folder / "DATA" / "glue" / "MNLI", [
        {"premise": f"Ann has {n}.", "hypothesis": f"Bob has {n}.", "label": n % 3} for n in range(60)
    ], splits=("train", "dev"))  # fmt: skip
    turns = [[{"history": [f"Hello, {n}."], "candidates": ["No.", "I sing."]}] for n in range(60)]
    _write(folder / "DATA" / "personachat", [
        {"personality": [f"I have {n} songs."], "utterances": turns[n]} for n in range(60)
    ], splits=("train", "dev"))  # fmt: skip
    _write(folder / "DATA" / "dart", [
        {"tripleset": [[f"Oak {n}", "food", "Thai"]], "target": f"Oak {n} is Thai.", "references": [], "gem_id": f"{n}"}
        for n in range(60)
    ])  # fmt: skip
    _write(folder / "DATA" / "wikilingua_ru_en", [
        {"source": f"Налейте {n} стаканов воды.", "target": f"Pour {n} glasses.", "references": [], "gem_id": f"{n}"}
        for n in range(60)
    ])  # fmt: skip
    save("zcodepp", folder / "models" / "base")
    os.chdir(folder)
    yield folder
    os.chdir(before)


def _write(
    place: Path, rows: list[dict[str, object]], *, splits: tuple[str, ...] = ("train", "dev", "test")
) -> None:
    """Write the rows as each split: into a folder, or beside it where a set has a prefix, as GLUE's have."""
    for split in splits:
        file = (
            place.with_name(f"{place.name}.{split}.jsonl")
            if place.parent.name == "glue"
            else place / f"{split}.jsonl"
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    """Run a command of precis at toy size; return what it prints."""
    code = main(toy(shlex.split(f"precis {command}")))
    printed = capfd.readouterr()
    assert code == 0, f"{command}\n{printed.err}"
    return printed.out


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_runs_whole(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = run(f"reproduce {name} --scale smoke --data DATA --out runs/{name} {STUDIES[name]}", capfd)
    assert "| claim | the paper | here | scale | verdict |" in text
    missing = text.partition("Missing: ")[2].partition(".")[0]
    assert (not STUDIES[name] and not missing) or "samsum-prefix-0" in missing


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_trained_on_and_scored(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    command, _, options = TASKS[name].partition(" ")
    run(f"{command} {options} --task {name} --data DATA --out runs/{name}", capfd)
    text = run(
        f"evaluate --model runs/{name} --task {name} --data DATA --long truncate --out runs/{name}/scores",
        capfd,
    )
    assert name in text
