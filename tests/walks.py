"""Count how often something changes files on its way: the files whose functions are called with it, in order.

What is followed is a text, its bytes or token ids, or a value that names its place, such as the sources of a run. A
rare word marks the text, a rare id the tokens. A call counts if an argument holds one of them in a list, a dictionary,
a dataclass or a tensor. A bare name, a text or a path, is not the thing itself and does not count. Continuing a
generator is no call, and code that dataclasses generate is in no file.

`stays` follows a place on disk, also by its bare name; `modules_entered` follows the calls.
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Followed:
    """What is followed: a word of the text, an id that its tokens alone have, and the path of its file or folder."""

    word: str
    token: int
    place: str


def stays_of(
    work: Callable[[], object], followed: Followed, *, until: str, inside: tuple[str, ...] = ()
) -> list[str]:
    """The modules at which what is followed stays, in order; a return to a module is another stay.

    Args:
        work: what is done.
        until: `module:function` at whose first call with it the way ends; it counts.
        inside: beginnings of the names of modules that are left out.
    """
    calls: list[str] = []
    begun: list[FrameType] = []  # kept, so that no other frame gets the same identity
    known: set[int] = set()
    arrived = False

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal arrived
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event != "call" or arrived or not module.startswith("precis") or code.co_filename == "<string>":
            return
        if id(frame) in known:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if code.co_name == "__init__":
            names = names[1:]  # nothing is in the object yet
        if not any(_is_given(frame.f_locals.get(name), followed) for name in names):
            return
        known.add(id(frame))
        begun.append(frame)
        arrived = f"{module}:{code.co_name}" == until
        if not module.startswith(inside or "\0"):
            calls.append(module)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    assert arrived, f"{until} was not reached with what was followed; passed: {calls}"
    return [module for number, module in enumerate(calls) if not number or calls[number - 1] != module]


def _is_given(value: Any, followed: Followed) -> bool:
    """Whether an argument holds what is followed; a bare name, or names in a list, do not count."""
    return _holds(value, followed, named=False)


def _holds(value: Any, followed: Followed, *, named: bool, depth: int = 0) -> bool:
    if isinstance(value, str | Path):
        return followed.word in str(value) or (named and followed.place in str(value))
    if isinstance(value, bytes):
        return followed.word.encode() in value
    if isinstance(value, torch.Tensor):
        whole = not value.is_floating_point() and value.dtype != torch.bool
        return whole and bool((value == followed.token).any())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iu" and bool((value == followed.token).any())
    if depth == _DEEPEST or isinstance(value, type):
        return False
    if isinstance(value, dict | UserDict):  # another mapping may read a file, or not be ready yet
        return any(_holds(each, followed, named=named, depth=depth + 1) for each in value.values())
    if isinstance(value, list | tuple):
        return any(
            each == followed.token
            if type(each) is int
            else _holds(each, followed, named=named, depth=depth + 1)
            for each in value[:64]
        )
    if dataclasses.is_dataclass(value):
        fields = (getattr(value, each.name, None) for each in dataclasses.fields(value))
        return any(_holds(each, followed, named=True, depth=depth + 1) for each in fields)
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
