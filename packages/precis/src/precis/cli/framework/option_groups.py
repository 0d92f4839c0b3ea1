"""Option groups that several commands share: dataclasses whose fields are options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["OptionGroup", "expanded"]


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
