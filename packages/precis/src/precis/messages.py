"""The callback types for messages and progress, errors in Python's names, and silence for libraries' progress bars.

The public functions check their arguments by the annotations: a text is not a list.
"""

import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

from precis_text.errors import UserError

Notify = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""

OnProgress = Callable[[int, int, int], None]
"""Called with inputs done, inputs known, and tokens written in the current batch."""

OnPartial = Callable[[int, str], None]
"""Called with the index of the input or document, and its summary so far."""


_COMMAND_OR_OPTION = re.compile(r"precis [a-z]+(?: [^;`]*)?|(?<![\w-])--([a-z][a-z-]*)")
_OTHER_NAMES = {"curve": "sizes", "lr": "learning_rate", "set": "settings"}


_TEXT, _PLAIN = (str, PathLike), (str, bytes, Real, list, tuple, set, Mapping, NoneType)
_KINDS: Mapping[Any, tuple[Any, str]] = {
    str: (_TEXT, "a text"), Path: (_TEXT, "the path of a file or folder"), int: (Integral, "a whole number"),
    float: (Real, "a number"), Callable: (Callable, "a function"), Mapping: (Mapping, "a dict"),
    Sequence: (Collection, "a list"), Iterable: (Iterable, "a list"), NoneType: (NoneType, "None"),
}  # fmt: skip


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function's arguments, with those of its keyword arguments."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(function).items():
        found |= get_type_hints(get_args(hint)[0]) if get_origin(hint) is Unpack else {name: hint}
    return found


def _misfit(name: str, value: Any, hint: Any) -> tuple[str, Any, str] | None:
    """Return the argument, or the part of it, that does not fit its annotation, and what it must be.

    For other classes than `_KINDS` only plain data is refused, since other objects may behave like those of the class.
    """
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        found = [_misfit(name, value, each) for each in inner]
        parts = [each for each in found if each and each[0] != name]
        whole = (name, value, " or ".join(each[2] for each in found if each))
        return None if None in found else (*parts, whole)[0]
    kind, words = _KINDS.get(origin, (origin, f"a {getattr(origin, '__name__', origin)}"))
    fits = (
        isinstance(value, kind) if origin in _KINDS else not isinstance(value, _PLAIN) or type(value) is kind
    )
    if origin in (Any, Literal):
        return None
    if not fits or (words == "a list" and isinstance(value, str | bytes | Mapping)):
        return name, value, words
    items = value.items() if origin is Mapping else enumerate(value) if origin is Sequence else ()
    return next(filter(None, (_misfit(f"{name}[{key!r}]", part, inner[-1]) for key, part in items)), None)


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks the kinds of its arguments, and whose errors have the names of Python.

    For `--document-column`, its `UserError` has `document_column`, except in whole commands.
    """

    def named(found: re.Match[str]) -> str:
        option = found[1]
        return found[0] if option is None else _OTHER_NAMES.get(option, option).replace("-", "_")

    @contextmanager
    def renamed() -> Iterator[None]:
        try:
            yield
        except UserError as error:
            error.args = (_COMMAND_OR_OPTION.sub(named, str(error)), *error.args[1:])
            raise

    def followed(items: Iterator[Any]) -> Iterator[Any]:
        with renamed():
            yield from items

    @wraps(function)
    def renaming(*values: Any, **options: Any) -> Any:
        given = signature(function).bind_partial(*values, **options).arguments
        for name, value in {**given, **options}.items():
            if found := _misfit(name, value, _hints(function).get(name, Any)):
                raise UserError(f"{found[0]}={reprlib.repr(found[1])} must be {found[2]}")
        with renamed():
            result = function(*values, **options)
        return followed(result) if isinstance(result, Iterator) else result

    return renaming


def silent(sentence: str) -> None:
    """Discard the message."""


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide transformers' bar "Loading weights" while the body runs; the user's own choice holds again afterwards."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    was_shown, hub_was_silent = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()
        if hub_was_silent:
            disable_progress_bars()
