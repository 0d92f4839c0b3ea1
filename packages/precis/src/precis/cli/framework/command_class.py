"""Checks of the options of every command (given once, not empty, finite), and options from the environment."""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from precis.cli.framework.config_file import typed_options, with_config
from precis.cli.framework.error_messages import shortened
from precis.cli.framework.panels import HelpPage, arranged, expanded
from precis.cli.framework.signals import EndedBySignal
from precis.recipes.run_options import settings_of
from precis_text.config import nearest
from precis_text.errors import UserError

__all__ = ["CheckedCommand", "CommandOfService", "Commands", "describe_command", "examples", "words_of"]

# An empty text is a valid choice here: no instruction, no initial words.
_MAY_BE_EMPTY = ("instruction", "initial_text")
_SETTING = re.compile(r"(?<![\w.-])(?<!--set )(?:\w+\.)*(\w+)=(?=\S)")
_SWITCHES = {"true": True, "1": True, "false": False, "0": False}  # of the environment


class CheckedCommand(HelpPage, TyperCommand):
    """A command that refuses mistakes which the parser would accept silently.

    It refuses several values for an option that takes one, since only the last would count. It also refuses a flag with
    its opposite, an empty value (such as an unset shell variable), `nan` and infinite numbers.
    Its help page shows the options in panels.
    """

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **options: Any) -> None:
        super().__init__(name, params=arranged(name or "", params or []), **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then check; raise `UserError` if a value is certainly a mistake."""
        if not ctx.resilient_parsing:
            args = self._with_config(ctx, args)
        typed = list(args)  # parsing empties the list
        try:
            rest = super().parse_args(ctx, args)  # shows the help page for --help
        except typer.TyperException as error:
            if getattr(error, "ctx", ctx) is None:  # the parser does not always set it
                error.ctx = ctx  # type: ignore[attr-defined]
            raise
        if not ctx.resilient_parsing:
            texts, _, order = self.make_parser(ctx).parse_args(list(typed))
            for parameter in self.params:
                _refuse_empty(parameter, texts.get(str(parameter.name)))
                _refuse_infinite(parameter, ctx.params.get(str(parameter.name)))
                if isinstance(parameter, TyperOption):
                    _refuse_repeated(parameter, sum(one is parameter for one in order), typed)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run; a `UserError` names settings as options, `--min-words 3` for `min_words=3`, unless so typed."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            typed = _SETTING.findall(" ".join(ctx.meta.get(WORDS, ())))
            options = {one.name: f"{one.opts[0]} " for one in self.params if one.name not in typed}
            error.args = (_SETTING.sub(lambda found: options.get(found[1], found[0]), str(error)),)
            raise

    def _with_config(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the words after those of the `--config` file, if the command has that option."""
        options = {
            spelling: one
            for one in self.params
            if isinstance(one, TyperOption)
            for spelling in (*one.opts, *one.secondary_opts)
        }
        if "--config" not in options:
            return args
        deciding: dict[str, set[str]] = {}
        for name, option in options.items():
            for path in settings_of(str(option.name)):
                deciding.setdefault(path, set()).add(name)
        words = with_config(args, options, deciding, str(self.name))
        ctx.meta[WORDS] = [str(self.name), *one_word_each(words, options)]
        return words


WORDS = "precis.words"
"""The key of a context's `meta` for the words of its command line, one per option."""


def words_of(context: typer.Context) -> list[str]:
    """Return the command line that a run records: `precis`, the command, and one word per option, `--data=pairs`."""
    return ["precis", *context.meta[WORDS]]


def one_word_each(words: list[str], options: Mapping[str, TyperOption]) -> Iterator[str]:
    """Yield the words of a command line, with each option and its value joined by an equals sign."""
    rest = iter(words)
    for word in rest:
        option = options.get(word)
        yield word if option is None or option.is_flag else f"{word}={next(rest, '')}"


Function = TypeVar("Function", bound=Callable[..., Any])
_DESCRIBED: dict[Callable[..., Any], tuple[str, dict[str, Any]]] = {}


def describe_command(name: str, **options: Any) -> Callable[[Function], Function]:
    """Attach a command name and options of `Commands.command` to a function, for `Commands.add`."""

    def keep(function: Function) -> Function:
        _DESCRIBED[function] = name, options
        return function

    return keep


def examples(*lines: str) -> str:
    """Return the end of a help page: examples, and other lines, each a paragraph."""
    return "\n\n".join(("Examples:", *lines))


class _Group(HelpPage, TyperGroup):
    """A group of commands with a `HelpPage`. After Ctrl-C typer would return the exit code and say nothing."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse, and let typer see no Ctrl-C."""
        with _ctrl_c_as_signal():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and let typer see no Ctrl-C."""
        with _ctrl_c_as_signal():
            return super().invoke(ctx)


@contextmanager
def _ctrl_c_as_signal() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise EndedBySignal(signal.SIGINT) from error


class Commands(typer.Typer):
    """A group whose commands are `CheckedCommand`s."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def add(self, *functions: Callable[..., Any]) -> None:
        """Register functions decorated with `describe_command`, in this order."""
        for function in functions:
            name, options = _DESCRIBED[function]
            self.command(name, **options)(function)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Extend `typer.Typer.command`: an `OptionGroup` parameter expands to its options."""
        register = super().command(name, **{"cls": CheckedCommand, **options})
        return lambda function: register(expanded(function))


def _refuse_repeated(option: TyperOption, count: int, typed: list[str]) -> None:
    if count < 2 or option.multiple:
        return
    name = option.opts[0]
    if option.is_flag:
        opposites = [word for word in option.secondary_opts if word in typed]
        if opposites and any(word in typed for word in option.opts):
            raise UserError(f"{name} and {opposites[0]} are opposites; give one of them")
        return  # repeating a flag is harmless
    values = [value for name, value in typed_options(typed) if name in option.opts]
    times = "twice" if count == 2 else f"{count} times"
    what = f": {' and '.join(map(shortened, values))}" if len(values) == count else ""
    raise UserError(f"{name} is given {times}{what}; this command takes one")


def _refuse_empty(parameter: Any, text: Any) -> None:
    """Check the text itself: parsing has already turned an empty path into the current folder."""
    texts = text if isinstance(text, list | tuple) else [text]
    if parameter.name not in _MAY_BE_EMPTY and any(one == "" for one in texts):
        raise UserError(f"{_name(parameter)} is empty; give it a value, or omit it")


def _refuse_infinite(parameter: Any, value: Any) -> None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, float) and not math.isfinite(one):
            raise UserError(f"{_name(parameter)} {one}: must be a finite number")


def _name(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or parameter.name).rstrip(".").upper()
    return str(parameter.opts[0])


class CommandOfService(CheckedCommand):
    """A command with options from the environment, as images and units set them.

    The command line overrides the environment, and the environment overrides the `--config` file.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the options of the environment, see `environment_words`, before those of the command line; then parse."""
        if ctx.resilient_parsing or "--help" in args:
            return super().parse_args(ctx, args)
        options = {name: one for one in self.params for name in one.opts if name.startswith("--")}
        return super().parse_args(ctx, [*environment_words(os.environ, str(self.name), options, args), *args])


def environment_words(
    environment: Mapping[str, str], command: str, options: Mapping[str, Any], typed: list[str]
) -> list[str]:
    """Return the words of options that the environment sets and the command line does not.

    `PRECIS_SERVE_MAX_TOKENS=1000` stands for `--max-tokens 1000`.

    Args:
        environment: variables; those that start with PRECIS_ and the command's name count.
        options: spelling -> parameter of the command.
        typed: the command line.

    Raises:
        UserError: a variable names no option, or its value is not one of the option.
    """
    prefix = f"PRECIS_{command.upper()}_"
    given = {word.partition("=")[0] for word in typed}
    words: list[str] = []
    for variable in sorted(name for name in environment if name.startswith(prefix)):
        name = "--" + variable.removeprefix(prefix).lower().replace("_", "-")
        option = options.get(name)
        if option is None:
            known = [prefix + one.removeprefix("--").upper().replace("-", "_") for one in options]
            raise UserError(
                f"{variable}: precis {command} does not have this option{nearest(variable, known)}"
            )
        if not given & {*option.opts, *option.secondary_opts}:
            words += _words_for(name, environment[variable], option, variable)
    return words


def _words_for(name: str, value: str, option: Any, variable: str) -> Iterator[str]:
    if option.is_flag:
        if value.lower() not in _SWITCHES:
            raise UserError(f"{variable}={value}: write true or false")
        yield from [name] if _SWITCHES[value.lower()] else option.secondary_opts[:1]
        return
    try:
        values = shlex.split(value) if option.multiple else [value]
    except ValueError as error:
        raise UserError(
            f"{variable}: {error}; separate values by spaces, and quote those with spaces"
        ) from None
    for one in values:
        yield from (name, one)
