"""Options of a command from the environment: `PRECIS_SERVE_MAX_TOKENS=1000` stands for `--max-tokens 1000`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from precis.cli.framework.command_class import CheckedCommand
from precis_text.config import nearest
from precis_text.errors import UserError

_SWITCHES = {"true": True, "1": True, "false": False, "0": False}


class CommandOfService(CheckedCommand):
    """A command with options from the environment, as images and units set them.

    The command line overrides the environment, and the environment overrides the `--config` file.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the options of the environment before those of the command line, then parse.

        Raises:
            UserError: a variable names no option, or its value is not one of the option.
        """
        if ctx.resilient_parsing or "--help" in args:
            return super().parse_args(ctx, args)
        options = {name: one for one in self.params for name in one.opts if name.startswith("--")}
        return super().parse_args(ctx, [*words_of(os.environ, str(self.name), options, args), *args])


def words_of(
    environment: Mapping[str, str], command: str, options: Mapping[str, Any], typed: list[str]
) -> list[str]:
    """Return the words of options that the environment sets and the command line does not.

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
            words += _words(name, environment[variable], option, variable)
    return words


def _words(name: str, value: str, option: Any, variable: str) -> Iterator[str]:
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
