"""Which modules something passes on its way: those whose functions are called with it among their arguments.

`modules_passed` follows a text or its token ids, `stays` follows a place on disk, `modules_entered` follows the calls.

What is followed is a text or its token ids. A rare word marks the text; a rare id marks the tokens. A module counts
where one of its functions, methods or generators is given a text with the word, or whole numbers with the id, in a
list, a tuple, a dictionary, a dataclass or a tensor.
"""

import dataclasses
import sys
from collections import Counter, UserDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

_DEEPEST = 3


def modules_passed(
    work: Callable[[], object], *, word: str, token: int, until: str, package: str = "precis"
) -> list[str]:
    """The modules in the order in which they were reached, up to the first call of the function named `until`.

    Args:
        work: what is done.
        word: in the text that is followed, and in no other.
        token: the id that the word's tokens alone have.
        until: `module:function` at which the way ends; it counts.
    """
    passed: list[str] = []
    arrived = False

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal arrived
        module = frame.f_globals.get("__name__", "")
        if event != "call" or arrived or not module.startswith(package):
            return
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        if frame.f_code.co_name == "__init__":
            names = names[1:]  # nothing is in the object yet
        if not any(_holds(frame.f_locals.get(name), word, token) for name in names):
            return
        if module not in passed:
            passed.append(module)
        arrived = f"{module}:{frame.f_code.co_name}" == until

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    assert arrived, f"{until} was not reached with what was followed; passed: {passed}"
    return passed


def _holds(value: Any, word: str, token: int, depth: int = 0) -> bool:
    if isinstance(value, str):
        return word in value
    if isinstance(value, torch.Tensor):
        return not value.is_floating_point() and value.dtype != torch.bool and bool((value == token).any())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu" and bool((value == token).any())
    if depth == _DEEPEST or isinstance(value, type):
        return False
    if isinstance(value, dict | UserDict):  # another mapping may read a file, or not be ready yet
        return any(_holds(each, word, token, depth + 1) for each in value.values())
    if isinstance(value, list | tuple):
        return any(
            each == token if type(each) is int else _holds(each, word, token, depth + 1)
            for each in value[:64]
        )
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return any(_holds(getattr(value, each.name, None), word, token, depth + 1) for each in fields)
    return False


def stays(work: Callable[[], object], *, place: Path, package: str = "precis") -> list[str]:
    """The modules that are given a place, its files, or a value that holds one of these; a module again when it is
    reached again from another one.

    Args:
        work: what is done.
        place: the folder that is followed.
    """
    visited: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith(package) or visited[-1:] == [module]:
            return
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        if any(_names(frame.f_locals.get(name), str(place)) for name in names):
            visited.append(module)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return visited


def _names(value: Any, place: str, depth: int = 0) -> bool:
    if isinstance(value, str | Path):
        return str(value) == place or str(value).startswith(f"{place}/")
    if depth == _DEEPEST or isinstance(value, type):
        return False
    if isinstance(value, dict):
        return any(_names(each, place, depth + 1) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_names(each, place, depth + 1) for each in value[:64])
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return any(_names(getattr(value, each.name, None), place, depth + 1) for each in fields)
    return False


@contextmanager
def openings(place: Path) -> Iterator[Counter[tuple[str, str]]]:
    """Count how often a folder is listed ("") and its files are opened while the block runs, by name and opener.

    The opener is the first of the packages precis, transformers and tokenizers up the stack.
    """
    counts: Counter[tuple[str, str]] = Counter()
    running = True

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if not running or event not in ("open", "os.listdir", "os.scandir"):
            return
        if not isinstance(given[0], str | PathLike) or not Path(given[0]).is_relative_to(place):
            return
        name = str(Path(given[0]).relative_to(place)) if event == "open" else ""
        counts[name, _opener()] += 1

    sys.addaudithook(hook)  # stays for the life of the process, so it must know when to be silent
    try:
        yield counts
    finally:
        running = False


def _opener() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in ("precis", "precis_text", "transformers", "huggingface_hub"):
            return "precis" if package.startswith("precis") else package
        frame = frame.f_back
    return "python"


def modules_entered(work: Callable[[], object], *, package: str = "precis") -> list[str]:
    """Every module whose functions are called while `work` runs, in the order in which they are reached."""
    entered: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(package) and module not in entered:
            entered.append(module)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered
