"""What holds for the options of every command: given once, not empty, and a number that is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from precis.cli.config_file import with_config
from precis.cli.groups import expanded
from precis.cli.options import settings_of
from precis.cli.panels import arranged
from precis.cli.usage import shortened
from precis.errors import UserError

__all__ = ["CheckedCommand", "Commands", "described", "words_of"]

# Here no text at all is a choice: no instruction, no words to begin with.
_MAY_BE_EMPTY = ("instruction", "initial_text")


class CheckedCommand(TyperCommand):
    """A command that refuses what would otherwise be taken in silence.

    An option that takes one value is refused where it is given several, since only the last would count. So are a flag
    beside its opposite, an empty value (a variable of the shell that is not set), `nan` and what is infinite.
    Its help page has the options in panels.
    """

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **options: Any) -> None:
        super().__init__(name, params=arranged(name or "", params or []), **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then check.

        Raises:
            UserError: a value is not what a user can have meant.
        """
        if not ctx.resilient_parsing:
            args = self._with_config(ctx, args)
        typed = list(args)  # parsing takes the words out of the list
        try:
            rest = super().parse_args(ctx, args)  # shows the help, if that is asked for
        except typer.TyperException as error:
            if getattr(error, "ctx", ctx) is None:  # the parser does not always say whose option it is
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

    def _with_config(self, ctx: Any, args: list[str]) -> list[str]:
        """The words, after those of the file that `--config` names, if the command has that option."""
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
"""Where a context keeps the words of its command line, an option each."""


def words_of(context: typer.Context) -> list[str]:
    """The command line as a run records it: `precis`, the command, and each option in one word, `--data=pairs`."""
    return ["precis", *context.meta[WORDS]]


def one_word_each(words: list[str], options: Mapping[str, TyperOption]) -> Iterator[str]:
    """The words of a command line with each option's value behind an equals sign."""
    rest = iter(words)
    for word in rest:
        option = options.get(word)
        yield word if option is None or option.is_flag else f"{word}={next(rest, '')}"


Function = TypeVar("Function", bound=Callable[..., Any])
_DESCRIBED: dict[Callable[..., Any], tuple[str, dict[str, Any]]] = {}


def described(name: str, **options: Any) -> Callable[[Function], Function]:
    """Say what a function is called as a command, and what `Commands.command` takes besides; `Commands.add` adds it."""

    def keep(function: Function) -> Function:
        _DESCRIBED[function] = name, options
        return function

    return keep


class Commands(typer.Typer):
    """A group whose commands are `CheckedCommand`s."""

    def add(self, *functions: Callable[..., Any]) -> None:
        """Register functions that are `described`, in this order."""
        for function in functions:
            name, options = _DESCRIBED[function]
            self.command(name, **options)(function)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """As `typer.Typer.command`; parameters that are an `OptionGroup` stand for its options."""
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
        return  # the same flag again says nothing new
    values = list(_values(option, typed))
    times = "twice" if count == 2 else f"{count} times"
    what = f": {' and '.join(map(shortened, values))}" if len(values) == count else ""
    raise UserError(f"{name} is given {times}{what}; this command takes one")


def _values(option: TyperOption, typed: list[str]) -> Iterator[str]:
    """The values of an option, as they were typed."""
    for word, following in zip(typed, [*typed[1:], ""], strict=False):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        if name in option.opts:
            yield value if equals else following


def _refuse_empty(parameter: Any, text: Any) -> None:
    """Look at the text itself: an empty path would be the current folder by now."""
    texts = text if isinstance(text, list | tuple) else [text]
    if parameter.name not in _MAY_BE_EMPTY and any(one == "" for one in texts):
        raise UserError(f"{_name(parameter)} is empty; give it a value, or leave it out")


def _refuse_infinite(parameter: Any, value: Any) -> None:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, float) and not math.isfinite(one):
            raise UserError(f"{_name(parameter)} {one}: must be a finite number")


def _name(parameter: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return str(parameter.metavar or parameter.name).rstrip(".").upper()
    return str(parameter.opts[0])
