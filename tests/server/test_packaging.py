"""The image and the unit start what `precis serve` takes, as somebody who may do little."""

import json
import re
from pathlib import Path

import typer

from precis.cli.commands.serve_command import serve
from precis.cli.framework.command_class import Commands

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "packaging" / "Dockerfile").read_text().replace("\\\n", " ")
UNIT = (ROOT / "packaging" / "precis.service").read_text()


def instructions(name: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in DOCKERFILE.splitlines() if line.startswith(f"{name} ")]


def settings(name: str) -> list[str]:
    return [line.split("=", 1)[1] for line in UNIT.splitlines() if line.startswith(f"{name}=")]


def parsed(words: list[str]) -> dict:
    """The options of `precis serve` that a command line sets."""
    app = Commands()
    app.add(serve)
    command = typer.main.get_command(app)
    assert words[1] == "serve"
    return command.make_context("serve", words[2:]).params


def test_the_image_starts_a_service_with_keys_for_others() -> None:
    options = parsed(json.loads(instructions("ENTRYPOINT")[0]))
    assert (options["host"], options["port"]) == ("0.0.0.0", 8000)
    assert str(options["keys"]) == "/run/keys.txt"
    assert instructions("EXPOSE") == ["8000"]


def test_the_unit_starts_a_service_and_waits_longer_than_it_does() -> None:
    (start,) = settings("ExecStart")
    options = parsed(start.split())
    assert options["host"] == "127.0.0.1"
    assert settings("LoadCredential") == [f"{Path(options['keys']).name}:/etc/precis/keys.txt"]
    assert int(settings("TimeoutStopSec")[0]) > options["grace"] + 10


def test_neither_runs_as_root() -> None:
    assert re.fullmatch("[1-9][0-9]+", instructions("USER")[-1])
    assert settings("DynamicUser") == ["yes"]
    assert settings("CapabilityBoundingSet") == [""]


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    copied = [part for line in instructions("COPY") if "--from" not in line for part in line.split()[:-1]]
    taken = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert taken == set(copied)
    for name in copied:
        assert (ROOT / name).exists(), name


def test_the_image_takes_the_torch_of_the_constraints() -> None:
    (version,) = re.findall("^torch==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert f'"{version}${{TORCH_HASH' in DOCKERFILE


def test_the_image_takes_nothing_from_pypi_without_a_hash() -> None:
    """Our own folders have no hash, and torch's build for the CPU is in no lock."""
    for line in instructions("RUN"):
        for command in line.split("&&"):
            if "pip install" in command:
                words = command.split()
                assert "--no-deps" in words, command
                own = all(word.strip("'").startswith("./packages") for word in words[-3:])
                assert own or "--require-hashes" in words or "--index-url" in words, command
