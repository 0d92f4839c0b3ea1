"""`run.toml`: what a run was asked for and every setting that it had, as `--config` reads it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RUN_FILE = "run.toml"
_OF_ONE_RUN = {"out", "restart", "config", "debug"}
_OF_MANY_RUNS = {"search", "trials", "space"}
_IN_SET = {"set", "recipe", "epochs", "steps", "batch-size", "batch-tokens", "block-length", "lr", "max-source"} | {
    "max-target", "seed", "precision", "validate-every", "patience", "select"
}  # fmt: skip


def run_file(command: Sequence[str], run: Mapping[str, Any]) -> str | None:
    """The text of `run.toml`, or None if the command is not known word by word.

    Args:
        command: the words of the command, an option each: `precis`, `finetune`, `--data=pairs`, `--skip-bad`.
        run: the resolved settings (`Settings.to_dict`).
    """
    if len(command) < 2 or not all(word.startswith("--") for word in command[2:]):
        return None
    options = _options(command[2:])
    if command[1] != "tune":  # whose settings come from its task
        options["recipe"] = [str(run["name"])]
    typed = (word.removeprefix("--set=").partition("=")[::2] for word in command if word.startswith("--set="))
    besides = [
        (path.strip(), text.strip()) for path, text in typed if path.strip().partition(".")[0] not in run
    ]
    lines = [
        f"# precis {command[1]} --config {RUN_FILE} --out NEW repeats this run; an option of the command line wins.",
        f"command = {json.dumps(command[1])}",
        "",
        "[options]",
        *(f"{name} = {_toml(values)}" for name, values in options.items()),
        "",
        "[set]",
        *(
            f"{json.dumps(path)} = {json.dumps(text, ensure_ascii=False)}"
            for path, text in (*besides, *assignments(run))
        ),
    ]
    return "\n".join(lines) + "\n"


def assignments(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each setting that `--set` takes, as its dotted name and its text."""
    for name, value in settings.items():
        if name in ("type", "name") or (name == "model" and value is None):
            continue
        if not isinstance(value, Mapping):
            yield f"{prefix}{name}", _text(value)
        elif "metric" in value:  # `select`: whether low or high is good follows from the metric
            yield f"{prefix}{name}", str(value["metric"])
        else:
            yield from assignments(value, f"{prefix}{name}.")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)


def _options(words: Sequence[str]) -> dict[str, list[str] | bool]:
    """Names of options without dashes, with their values or True."""
    found: dict[str, list[str] | bool] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if name in _OF_ONE_RUN | _OF_MANY_RUNS | _IN_SET:
            continue
        if not equals:
            found[name] = True
        else:
            before = found.get(name)
            found[name] = [*before, value] if isinstance(before, list) else [value]
    return found


def _toml(values: list[str] | bool) -> str:
    """A TOML value; strings are written as JSON writes them, which TOML reads."""
    if isinstance(values, bool):
        return "true"
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)
