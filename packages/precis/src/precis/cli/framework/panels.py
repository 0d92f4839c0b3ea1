"""Help pages: panels of options, the most used ones first; paragraphs without line breaks; flags without a type.

Options that several commands share are the fields of a dataclass, an `OptionGroup`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from types import SimpleNamespace
from typing import Any, TypeVar

from typer.core import TyperArgument, TyperOption

__all__ = ["PANELS", "HelpPage", "OptionGroup", "arranged", "expanded"]

#: Panel -> its parameters; those in no panel come first, under "Options".
PANELS: dict[str, tuple[str, ...]] = {
    "Training": ("steps", "batch_tokens", "block_length", "without_rtd", "validate_every", "patience", "select",
        "share", "sampling_seed", "seeds", "trials", "space", "curve", "cap", "temperature", "leave_out", "precision",
        "answer"),
    "Decoding": ("tokens", "min_words", "short", "draft", "long", "length_penalty", "no_repeat_ngram", "decoding"),
    "Scores": ("bleu", "meteor", "meteor_jar", "bertscore", "bertscore_layer", "rouge_tokenizer", "stemmer", "faithful",
        "likelihood", "checker"),
    "Ray": ("workers", "address", "verify"),
    "Limits": ("max_tokens", "queue_tokens", "max_seconds", "max_body_mb", "max_files_mb", "requests_per_minute",
        "model_memory", "grace", "max_connections", "max_connections_per_address", "head_seconds", "min_rate",
        "root_path", "max_beams"),
    "Language models": ("language", "free", "allow_remote"),
    "Data": ("document_column", "summary_column", "units_column", "skip_bad", "whole_tables"),
    "Advanced": ("settings", "tokenizer", "restart", "threads", "device"),
}  # fmt: skip
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
_ORDER = [None, *PANELS]
#: Commands that use a model without training it, where the batch size affects only memory.
_WITHOUT_TRAINING = ("evaluate", "summarize", "serve", "attention", "spectrum")
#: Options of a command for which their usual panel would be wrong.
_BASIC = (("pack", "workers"), ("report", "leave_out"), ("pack", "tokenizer"), ("convert", "tokenizer"))

Parameter = TypeVar("Parameter", bound=TyperArgument | TyperOption)


class HelpPage:
    """A mixin for commands and groups, because typer breaks paragraphs at source lines and shows `<bool>` on flags."""

    def __init__(self, *arguments: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002  typer's name
        paragraphs = cleandoc(help or "").split("\n\n")
        unwrapped = "\n\n".join(" ".join(each.split()) for each in paragraphs)
        super().__init__(*arguments, **{**options, "help": unwrapped})

    def format_help(self, *arguments: Any) -> None:
        """Print the page."""
        _import_pages()
        super().format_help(*arguments)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, among them `--help`, with an empty type on flags."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            if isinstance(each, TyperOption) and each.is_flag:
                each.metavar = ""
        return parameters


def _import_pages() -> None:
    """Import typer's help pages without Markdown and tracebacks, which precis does not show; they take long."""
    unused = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
    added: Any = {
        name: SimpleNamespace(**{kind: object}) for name, kind in unused.items() if name not in sys.modules
    }
    sys.modules.update(added)
    try:
        import typer.rich_utils  # noqa: F401
    finally:
        for name in added:
            del sys.modules[name]


def arranged(command: str, parameters: list[Parameter]) -> list[Parameter]:
    """Set the panel of each parameter, and return the parameters in the order of the panels."""
    for parameter in parameters:
        if isinstance(parameter, TyperOption):
            parameter.rich_help_panel = _panel(command, str(parameter.name))
    return sorted(parameters, key=lambda each: _ORDER.index(getattr(each, "rich_help_panel", None)))


def _panel(command: str, name: str) -> str | None:
    if name == "instruction" and command in ("finetune", "tune"):
        return "Data"
    if name == "batch_size" and command in _WITHOUT_TRAINING:
        return "Advanced"
    if name == "max_source" and command == "summarize":
        return "Decoding"
    if (command, name) in _BASIC:
        return None
    return _PANEL_OF.get(name)


class OptionGroup:
    """The base of dataclasses whose fields are options of a command, annotated like its parameters."""


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the fields of its groups as parameters; a call rebuilds the groups."""
    own = inspect.signature(command, eval_str=True).parameters
    groups = {
        name: (each.annotation, inspect.signature(each.annotation, eval_str=True).parameters)
        for name, each in own.items()
        if isinstance(each.annotation, type) and issubclass(each.annotation, OptionGroup)
    }
    if not groups:
        return command
    parameters = [
        field.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in own.items()
        for field in (groups[name][1].values() if name in groups else (each,))
    ]

    @wraps(command)
    def run(**given: Any) -> Any:
        made = {
            name: kind(**{field: given.pop(field) for field in fields})
            for name, (kind, fields) in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
