"""The commands and options that exist: users' scripts depend on them, so a change here is a decision."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from precis import __version__
from precis.cli.application import app

COMMANDS = {
    "tokenizer": (
        "--corpus --data --document-column --from --out --skip-bad --summary-column --task --temperature --vocab-size"
    ),
    "pretrain": (
        "--batch-size --block-length --config --corpus --epochs --lr --model --out --plan --precision "
        "--recipe --restart --seed --set --steps --temperature --threads --without-rtd"
    ),
    "finetune": (
        "--answer --batch-size --batch-tokens --config --data --dev --document-column --epochs --examples "
        "--instruction --lr --max-source --max-target --model --out --patience --precision --recipe --restart "
        "--sampling-seed --search --seed --select --set --skip-bad --space --steps --summary-column --task "
        "--threads --tokenizer --trials --validate-every"
    ),
    "extractor": (
        "--cap --config --data --epochs --leave-out --lr --max-source --model --out --restart --seed --set "
        "--skip-bad --tasks --threads"
    ),
    "ground": (
        "--batch-size --batch-tokens --cap --config --data --epochs --leave-out --lr --max-source "
        "--max-target --model --out --precision --recipe --restart --seed --set --skip-bad --steps --tasks "
        "--temperature --threads --validate-every"
    ),
    "tune": (
        "--batch-size --batch-tokens --config --data --dev --document-column --epochs --examples "
        "--instruction --lr --max-source --max-target --method --model --out --patience --precision --restart "
        "--sampling-seed --seed --select --set --share --skip-bad --steps --summary-column --task --threads "
        "--units-column --validate-every"
    ),
    "evaluate": (
        "--adapter --baselines --batch-size --beams --bleu --checker --data --decoding --document-column --faithful "
        "--instruction --length-penalty --likelihood --limit --long --meteor --meteor-jar --mode --model "
        "--no-baselines --no-repeat-ngram --no-stemmer --out --predictions --rouge-tokenizer --skip-bad --split "
        "--stemmer --summary-column --task --threads --units-column"
    ),
    "summarize": (
        "--adapter --batch-size --beams --device --document-column --draft --instruction --json --keep-going "
        "--long --max-source --min-words --mode --model --out --recursive --sentences --short --skip-bad "
        "--support --threads --tokens --units-column --words -r files"
    ),
    "batch": (
        "--adapter --address --beams --device --document-column --format --instruction --long --max-source --min-words "
        "--mode --model --out --recursive --sentences --short --tokens --units-column --verify --words --workers -r "
        "files"
    ),
    "convert": "--out --tokenizer source",
    "reproduce": "--data --latex --mode --model --out --precision --scale --seeds --steps --threads table",
    "serve": (
        "--adapter --allow-origin --batch-size --device --grace --host --keys --max-body-mb --max-files-mb "
        "--max-seconds --max-tokens "
        "--mode --model --model-memory --name --port --queue-tokens --requests-per-minute --threads"
    ),
    "export onnx": "--int8 --out model",
    "probe attention": (
        "--adapter --batch-size --data --document-column --instruction --max-source --max-target --model --out "
        "--rows --skip-bad --split --summary-column --task --threads --units-column"
    ),
    "probe spectrum": (
        "--adapter --batch-size --data --document-column --instruction --lower-share --max-source --max-target "
        "--model --out --rows --site --skip-bad --split --summary-column --task --threads --units-column"
    ),
    "judge new": (
        "--data --document-column --documents --each --gold --judge --out --predictions --protocol --reference "
        "--repeats --seed --skip-bad --split --summary-column --task"
    ),
    "judge plan": (
        "--document-spread --documents --judge-spread --judges --power --preference --significance --ties"
    ),
    "judge report": "--leave-out --seed study",
    "judge serve": "--host --port study",
    "probe curves": "--by --metric --out runs",
    "probe metrics": "--checker --likelihood --out --reference-system --samples --threads scored",
    "data list": "",
    "data pack": (
        "--dev-share --document-column --out --restart --skip-bad --tokenizer --vocab-size --workers sources"
    ),
    "data check": "--document-column --summary-column --task --units-column source",
    "data show": "--document-column --rows --split --summary-column --task --units-column source",
    "data synthetic": "--dev --out --seed --test --train",
}


def commands(group: Any, prefix: str = "") -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        inner = commands(command, f"{prefix}{name} ") if hasattr(command, "commands") else None
        found.update(inner if inner is not None else {f"{prefix}{name}": command})
    return found


def test_the_commands_are_these() -> None:
    assert sorted(commands(get_command(app))) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_are_these(name: str) -> None:
    parameters = commands(get_command(app))[name].params
    names = [o for p in parameters for o in (*p.opts, *p.secondary_opts) if o not in ("--help", "-h")]
    assert " ".join(sorted(names)) == COMMANDS[name]


@pytest.mark.parametrize("name", ["", *COMMANDS, "data", "export", "judge", "probe"])
def test_help_exists_and_every_option_is_explained(name: str, precis: Callable[..., Any]) -> None:
    outcome = precis(*name.split(), "--help")
    assert outcome.code == 0
    assert "Usage: precis" in outcome.out
    for parameter in commands(get_command(app))[name].params if name in COMMANDS else []:
        assert parameter.help, parameter.name


def test_the_version_is_printed(precis: Callable[..., Any]) -> None:
    outcome = precis("--version")
    assert (outcome.code, outcome.out) == (0, f"precis {__version__}\n")


def test_help_loads_no_heavy_library() -> None:
    program = (
        "import sys; from precis.cli import main; code = main(['finetune', '--help']); "
        "heavy = {'torch', 'transformers', 'datasets', 'numpy'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
