"""Every help page is drawn and explains its options. `tests/golden` records which commands and options exist."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from precis import __version__
from precis.cli.application import app


def commands(group: Any, prefix: str = "") -> dict[str, Any]:
    found = {}
    for name, command in group.commands.items():
        inner = commands(command, f"{prefix}{name} ") if hasattr(command, "commands") else None
        found.update(inner if inner is not None else {f"{prefix}{name}": command})
    return found


COMMANDS = commands(get_command(app))


@pytest.mark.parametrize("name", ["", *COMMANDS, "data", "export", "judge", "probe"])
def test_help_exists_and_every_option_is_explained(name: str, precis: Callable[..., Any]) -> None:
    outcome = precis(*name.split(), "--help")
    assert outcome.code == 0
    assert "Usage: precis" in outcome.out
    for parameter in COMMANDS[name].params if name in COMMANDS else []:
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
