"""`--config run.toml`: options and settings from a file; the command line overrides it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from precis_text.bounded_io import read_bounded, stat_or_none, suggest
from precis_text.config import nearest
from precis_text.errors import UserError

__all__ = ["Config", "typed_options", "with_config"]

Config = Annotated[Path | None, typer.Option("--config", help=(
    "Read options from this TOML file, such as a run's run.toml. The command line overrides it."
))]  # fmt: skip
_LARGEST = 1 << 20  # bytes
_TABLES = ("options", "set")


def with_config(
    words: list[str], options: Mapping[str, Any], excluded_by: Mapping[str, set[str]], command: str
) -> list[str]:
    """Prepend the words of the `--config` file to those of a command line.

    Args:
        words: the command line, as typed.
        options: spelling -> parameter of the command.
        excluded_by: setting -> spellings of the options that determine it.
        command: the name of the command, which the file must match.

    Raises:
        UserError: the file is missing, not TOML, or for another command, or contains an unknown option.
    """
    places = [value for name, value in typed_options(words) if name == "--config"]
    if len(places) != 1:
        return words  # none, or several, which another check refuses
    file = Path(places[0])
    content = _read(file, command)
    typed = {name for name, _ in typed_options(words)}
    mine: list[str] = []
    for name, value in content["options"].items():
        option = options.get(f"--{name}")
        if option is None:
            names = [known.removeprefix("--") for known in options]
            raise UserError(
                f"{file}: precis {command} does not have an option {name!r}{nearest(name, names)}"
            )
        if not typed & {*option.opts, *option.secondary_opts}:
            mine += _words(f"--{name}", value, option, file)
    own = {value.partition("=")[0].strip() for name, value in typed_options(words) if name == "--set"}
    for path, value in _flat(content["set"]):
        if path not in own and not typed & excluded_by.get(path, set()):
            mine += ["--set", f"{path}={value}"]
    return [*mine, *words]


def _read(file: Path, command: str) -> dict[str, Any]:
    if stat_or_none(file) is None:
        raise UserError(f"{file}: no such file; --config names a TOML file, such as run.toml{suggest(file)}")
    try:
        content = tomllib.loads(read_bounded(file, limit=_LARGEST).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file}: is not TOML ({error})") from None
    other = content.pop("command", command)
    if other != command:
        raise UserError(f"{file}: is for precis {other}; this is precis {command}")
    for name in content:
        if name not in _TABLES:
            raise UserError(
                f"{file}: unknown table {name!r}; write options under [options], settings under [set]"
            )
    tables = {name: content.get(name, {}) for name in _TABLES}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise UserError(f"{file}: {name} is not a table; write [{name}]")
    return tables


def typed_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each option as typed, with its value, or with the word after it."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            return
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            yield name, value if equals else following


def _words(name: str, value: Any, option: Any, file: Path) -> list[str]:
    if isinstance(value, bool):
        if not option.is_flag:
            raise UserError(f"{file}: {name.removeprefix('--')} is {str(value).lower()}; it takes a value")
        return [name] if value else list(option.secondary_opts[:1])
    if option.is_flag:
        raise UserError(f"{file}: {name.removeprefix('--')} is {value!r}; write true or false")
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) for one in values):
        raise UserError(
            f"{file}: {name.removeprefix('--')} does not have a valid option value; write text or a number"
        )
    return [word for one in values for word in (name, str(one))]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings by dotted name, at any level of nesting."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield f"{prefix}{name}", str(value).lower()
        elif isinstance(value, list):
            yield f"{prefix}{name}", ",".join(map(str, value))
        else:
            yield f"{prefix}{name}", str(value)
