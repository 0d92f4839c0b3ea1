"""Help pages: what most people need first, in panels that fit on a screen."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from typer.core import TyperOption
from typer.main import get_command

from precis.cli.application import app
from precis.cli.framework.options import RECIPE_NAMES
from precis.cli.framework.panels import PANELS
from precis.recipes.catalogue import RECIPES
from tests.cli.test_frozen import COMMANDS, commands

_BASIC = 16
_FOUND = commands(get_command(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_panel_has_at_most_sixteen_options(name: str) -> None:
    options = [each for each in _FOUND[name].params if isinstance(each, TyperOption)]
    sizes = Counter(each.rich_help_panel for each in options)
    assert sizes[None] + len(("--help",)) <= _BASIC, [o.opts[0] for o in options if not o.rich_help_panel]


def test_every_name_in_the_table_of_panels_is_an_option_of_some_command() -> None:
    known = {each.name for command in _FOUND.values() for each in command.params}
    assert {name for names in PANELS.values() for name in names} <= known


def test_panels_stand_in_one_order_in_every_command(precis: Callable[..., Any]) -> None:
    for name in ("finetune", "summarize", "evaluate"):
        page = precis(*name.split(), "--help").out
        places = [page.index(f"─ {panel} ─") for panel in ("Options", *PANELS) if f"─ {panel} ─" in page]
        assert places == sorted(places)
        assert len(places) >= 3


def test_a_paragraph_of_a_help_page_breaks_only_at_the_width_of_the_terminal(
    precis: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    for name in ("evaluate", "pretrain", "judge new"):
        description = precis(*name.split(), "--help").out.partition("╭")[0]
        paragraphs = [each for each in description.split("\n") if each.strip()]
        assert len(paragraphs) == 1 + len(str(_FOUND[name].help).split("\n\n"))  # the usage line, then these


@pytest.mark.parametrize("name", ["", "data", *COMMANDS])
def test_a_flag_has_no_type_on_a_help_page(name: str, precis: Callable[..., Any]) -> None:
    assert "<bool>" not in precis(*name.split(), "--help").out


def test_the_recipes_that_completion_offers_are_those_of_the_catalogue() -> None:
    assert sorted(RECIPE_NAMES) == sorted(RECIPES)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("precis fine", "finetune"),
        ("precis finetune --max-s", "--max-source"),
        ("precis finetune --recipe zcodepp-mi", "zcodepp-mini"),
    ],
)
def test_a_shell_completes_commands_options_and_recipes(
    typed: str, offered: str, precis: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_PRECIS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    outcome = precis()
    assert (outcome.code, offered in outcome.out.split()) == (0, True)


def test_a_command_of_another_package_is_in_the_panel_that_it_names() -> None:
    assert get_command(app).commands["judge"].rich_help_panel == "Use a model"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("command", "option"), [("data pack", "workers"), ("judge report", "leave_out")])
def test_options_outside_the_topic_of_their_usual_panel_are_in_none(command: str, option: str) -> None:
    (found,) = [each for each in _FOUND[command].params if each.name == option]
    assert found.rich_help_panel is None


def test_a_help_page_imports_neither_markdown_nor_tracebacks_and_leaves_both_whole() -> None:
    code = (
        "import sys; from precis.cli import main; assert main(['data', 'pack', '--help']) == 0; "
        "assert not {'markdown_it', 'pygments', 'rich.markdown', 'rich.traceback'} & {*sys.modules}; "
        "from rich.markdown import Markdown; from rich.traceback import Traceback; assert Markdown('a').parsed"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
