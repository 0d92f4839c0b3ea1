"""The callback types for messages and progress, checks and errors of the public functions, and hidden progress bars."""

import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from inspect import formatannotation, signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

from precis_text.config import nearest
from precis_text.errors import UserError

Notify = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""

OnProgress = Callable[[int, int, int], None]
"""Called with inputs done, inputs known, and tokens written in the current batch."""

OnPartial = Callable[[int, str], None]
"""Called with the index of the input or document, and its summary so far."""


_COMMAND_OR_OPTION = re.compile(r"precis [a-z]+(?: [^;`]*)?|(?<![\w-])--([a-z][a-z-]*)")  # a command stays
_OTHER_NAMES = {"curve": "sizes", "lr": "learning_rate", "set": "settings"}
_TEXT, _PLAIN = (str, PathLike), (str, bytes, Real, list, tuple, set, Mapping, NoneType)
_ABSTRACT: Mapping[Any, Any] = {
    str: _TEXT,
    Path: _TEXT,
    int: Integral,
    bool: Integral,
    float: Real,
    NoneType: NoneType,
}


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function's arguments, with those of its keyword arguments."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(function).items():
        found |= get_type_hints(get_args(hint)[0]) if get_origin(hint) is Unpack else {name: hint}
    return found


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value fits an annotation; objects that behave like those of a class also do."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(each, inner[1]) for each in value.values())
    if origin in (Sequence, Iterable):
        is_list = isinstance(value, Collection if origin is Sequence else Iterable)
        is_list = is_list and not isinstance(value, str | bytes | Mapping)
        return is_list and (origin is Iterable or all(_fits(each, inner[0]) for each in value))
    if origin in _ABSTRACT:
        return isinstance(value, _ABSTRACT[origin])
    return origin in (Any, Literal) or type(value) is origin or not isinstance(value, _PLAIN)


def _check(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    hints = _hints(function)
    for name, value in values.items():
        if name not in hints and "options" not in hints:
            problem = f"{function.__name__}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{problem}{nearest(name, [each for each in hints if each != 'return'])}")
        if not _fits(value, hint := hints.get(name, Any)):
            kind = re.sub(r"\b\w+\.", "", formatannotation(hint)).removesuffix(" | None")
            wanted = "a whole number" if kind == "int" else f"of the type {kind}"
            raise UserError(f"{name}={reprlib.repr(value)} must be {wanted}")


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks its arguments; its `UserError` has `document_column` for `--document-column`."""

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
        _check(function, {**signature(function).bind_partial(*values).arguments, **options})
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
