"""`run.toml` repeats a run; what the command line says wins over it; what is wrong in it is one line."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from precis.cli.application import app
from precis.phases.run_folder import RUN_FILE, assignments, run_file
from precis.recipes.catalogue import PRETRAINING, RECIPES, recipe
from precis.recipes.overrides import with_overrides
from precis.recipes.pretraining_runs import pretraining_run
from precis.recipes.run_plan import ExtractPlan
from precis_text.config import Settings
from tests.outcomes import Run
from tests.tiny_models import SMALL_RUN

BRIEF = ["--validate-every", "3", *SMALL_RUN]


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


@pytest.mark.long
def test_a_runs_file_repeats_it_to_the_same_bits_and_the_command_line_wins(
    precis: Run, pairs: Path, finished: Path, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    begun = precis("finetune", "--data", pairs, "--out", first, "--steps", 4, "--seed", 3, *BRIEF)
    assert begun.code == 0, begun.err
    again = precis("finetune", "--config", first / RUN_FILE, "--out", second)
    assert again.code == 0, again.err
    assert weights(second) == weights(first)
    assert (second / RUN_FILE).read_text() == (first / RUN_FILE).read_text()
    other = precis(
        "finetune", "--config", first / RUN_FILE, "--out", third, "--steps", 2, "--set", "label_smoothing=0"
    )
    assert other.code == 0, other.err
    run = json.loads((third / "settings.json").read_text())["run"]
    assert (run["train"]["steps"], run["label_smoothing"], run["train"]["seed"]) == (2, 0.0, 3)


@pytest.mark.long
def test_the_settings_of_a_prefix_are_repeated_too(
    precis: Run, pairs: Path, finished: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    brief = [
        "--steps",
        2,
        "--max-source",
        64,
        "--max-target",
        16,
        "--set",
        "generated_rows=2",
        "--threads",
        1,
    ]
    prefix = ["--method", "uniblock", "--set", "prefix.length=3", "--set", "prefix.layers=top:1"]
    begun = precis("tune", "--model", finished, "--data", pairs, "--out", first, *prefix, *brief)
    assert begun.code == 0, begun.err
    again = precis("tune", "--config", first / RUN_FILE, "--out", second)
    assert again.code == 0, again.err
    one, other = ((run / "adapter" / "adapter.safetensors").read_bytes() for run in (first, second))
    assert one == other
    assert '"prefix.length" = "3"' in (second / RUN_FILE).read_text()


@pytest.mark.parametrize(
    "run",
    [*map(recipe, RECIPES), *map(pretraining_run, PRETRAINING)],
    ids=lambda run: f"{type(run).__name__}-{run.name}",
)
def test_every_setting_of_a_recipe_survives_the_file(run: Settings) -> None:
    texts = [f"{path}={text}" for path, text in assignments(run.to_dict())]
    assert with_overrides(run, texts) == run


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("finetune", recipe("zcodepp-micro")),
        ("ground", recipe("zcodepp-micro")),
        ("tune", recipe("zcodepp-micro")),
        ("pretrain", pretraining_run("zcodepp-micro")),
        ("extractor", ExtractPlan()),
    ],
)
def test_a_runs_file_holds_options_of_its_command_alone(command: str, run: Settings) -> None:
    options = get_command(app).commands[command].params  # type: ignore[attr-defined]
    known = {name.removeprefix("--") for option in options for name in option.opts}
    text = run_file(["precis", command, "--model=runs/first", "--threads=1"], run.to_dict())
    assert text is not None
    assert tomllib.loads(text)["options"].keys() <= known


def test_a_flag_and_a_list_survive_the_file(precis: Run, pairs: Path, tmp_path: Path) -> None:
    done = precis("finetune", "--data", pairs, "--out", tmp_path / "run", "--steps", 1, "--skip-bad", *BRIEF)
    assert done.code == 0, done.err
    content = tomllib.loads((tmp_path / "run" / RUN_FILE).read_text())
    assert content["command"] == "finetune"
    assert content["options"] == {
        "data": str(pairs),
        "skip-bad": True,
        "threads": "1",
        "recipe": "zcodepp-micro",
    }
    assert content["set"]["model.hidden_size"] == "32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[options", "is not TOML"),
        ('command = "tune"', "is for precis tune; this is precis finetune"),
        ("[options]\nrecip = 'x'", "does not have an option 'recip'; did you mean 'recipe'?"),
        ("[model]\nx = 1", "unknown table 'model'; write options under [options], settings under [set]"),
        ("[options]\nskip-bad = 3", "skip-bad is 3; write true or false"),
        ("[options]\nrecipe = true", "recipe is true; it takes a value"),
        (
            "[set]\ntrain.learning_rat = 1",
            "--set train.learning_rat: unknown setting of train; did you mean 'learning_rate'?",
        ),
        ("options = 3", "options is not a table; write [options]"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, message: str, precis: Run, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(text)
    (tmp_path / "pairs.jsonl").write_text('{"document": "Ann sings.", "summary": "Ann."}\n')
    outcome = precis(
        "finetune",
        "--config",
        tmp_path / "my.toml",
        "--data",
        tmp_path / "pairs.jsonl",
        "--out",
        tmp_path / "run",
    )
    assert outcome.code == 2
    assert message in outcome.error


def test_a_file_that_is_not_there_is_named(precis: Run, tmp_path: Path) -> None:
    outcome = precis("finetune", "--config", tmp_path / "none.toml", "--out", tmp_path / "run")
    assert (outcome.code, "none.toml: no such file" in outcome.error) == (2, True)


def test_a_pipe_is_refused_and_not_waited_for(precis: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    outcome = precis("finetune", "--config", str(tmp_path / "pipe.toml"), "--out", str(tmp_path / "run"))
    assert outcome.code == 2
    assert "pipe.toml: is" in outcome.error
