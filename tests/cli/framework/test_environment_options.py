"""Options from the environment: which ones, in what order, and what is refused."""

from types import SimpleNamespace

import pytest

from precis.cli.framework.command_class import environment_words
from precis_text.errors import UserError


def option(name: str, *, multiple: bool = False, flag: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        opts=[name], secondary_opts=[f"--no-{name[2:]}"] if flag else [], multiple=multiple, is_flag=flag
    )


OPTIONS = {
    name: option(name, multiple=name == "--model", flag=name == "--fast")
    for name in ("--max-tokens", "--model", "--fast")
}


def words(environment: dict[str, str], *typed: str) -> list[str]:
    return environment_words(environment, "serve", OPTIONS, list(typed))


def test_variables_become_options_unless_they_are_typed() -> None:
    environment = {"PRECIS_SERVE_MAX_TOKENS": "99", "PRECIS_SERVE_MODEL": "a 'b c'", "HOME": "/"}
    assert words(environment) == ["--max-tokens", "99", "--model", "a", "--model", "b c"]
    assert words(environment, "--max-tokens=5", "--model", "x") == []


def test_switches_are_true_or_false() -> None:
    assert words({"PRECIS_SERVE_FAST": "true"}) == ["--fast"]
    assert words({"PRECIS_SERVE_FAST": "0"}) == ["--no-fast"]
    with pytest.raises(UserError, match="PRECIS_SERVE_FAST=yes: write true or false"):
        words({"PRECIS_SERVE_FAST": "yes"})


def test_a_variable_of_no_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"PRECIS_SERVE_MAX_TOKEN: .*PRECIS_SERVE_MAX_TOKENS"):
        words({"PRECIS_SERVE_MAX_TOKEN": "9"})
    with pytest.raises(UserError, match="separate values by spaces"):
        words({"PRECIS_SERVE_MODEL": "'a"})
