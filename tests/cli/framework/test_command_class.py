"""What holds for the options of every command: given once, not empty, finite."""

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.core import TyperOption
from typer.main import get_command

from precis.cli.application import app

Precis = Callable[..., Any]


def every_option(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_option(command, (*words, name))
        else:
            options = [one for one in command.params if isinstance(one, TyperOption) and one.name != "help"]
            yield (*words, name), options


COMMANDS = dict(every_option(get_command(app)))
NEEDED = {
    "batch": "x",
    "compare": "x",
    "convert": "none.pt",
    "export onnx": "x",
    "reproduce": "prophetnet",
    "data pack": "x",
    "errors": "x",
    "probe curves": "x",
    "probe metrics": "x",
    "judge serve": "x",
    "judge report": "x",
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_takes_one_value_is_refused_if_it_is_given_two(
    words: tuple[str, ...], precis: Precis
) -> None:
    command = " ".join(words)
    for option in COMMANDS[words]:
        if option.multiple or option.is_flag:
            continue
        needed = [NEEDED[command]] if command in NEEDED else []
        for other in COMMANDS[words]:
            if other.required and other is not option:
                needed += [other.opts[0], _value(other)]
        name, value = option.opts[0], _value(option)
        outcome = precis(*words, *needed, name, value, f"{name}={value}")
        assert outcome.code == 2
        assert outcome.error == (f"error: {name} is given twice: {value} and {value}; this command takes one")


def _value(option: Any) -> str:
    kind = option.type_descriptor.annotation
    choices = option.type_descriptor.choices
    if choices is not None:
        first = next(iter(choices))
        return str(getattr(first, "value", first))  # of an enumeration or of a literal type
    if "float" in str(kind):
        return "0.5" if (getattr(option, "min", None) or 0) <= 0.5 else "1"  # shares and temperatures
    return str(min(500, getattr(option, "max", None) or 500)) if "int" in str(kind) else "/nowhere"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate --out x --data a --data b --data c", "--data is given 3 times: a and b and c"),
        ("evaluate --out x --baselines --no-baselines", "--baselines and --no-baselines are opposites"),
        ("tune --out x --model m --lr nan", "--lr nan: must be a finite number"),
        ("tune --out x --model m --share 1e309", "--share inf: must be a finite number"),
        ("finetune --data x --out ''", "--out is empty"),
        ("summarize '' --model m", "FILES is empty"),
        ("finetune --data x --out y --seed -1", "--seed"),
        ("tune --data x --model m --out y --sampling-seed -1", "--sampling-seed"),
    ],
)
def test_what_nobody_means_is_refused(line: str, message: str, precis: Precis) -> None:
    outcome = precis(*shlex.split(line))
    assert (outcome.code, message in outcome.error) == (2, True), outcome.error


def test_what_means_something_may_be_repeated(precis: Precis) -> None:
    for line in (
        "evaluate --out x --model a --model b --beams 1 --beams 2 --bleu --bleu",
        "finetune --data /nowhere --out x --set batch_size=2 --set max_source=9 --instruction ''",
    ):
        assert "twice" not in precis(*shlex.split(line)).error


def test_the_help_is_shown_whatever_else_is_asked(precis: Precis) -> None:
    outcome = precis("finetune", "--data", "a", "--data", "b", "--help")
    assert (outcome.code, "Usage: precis finetune" in outcome.out) == (0, True)
