"""Which modules something passes on its way: those whose functions are called with it among their arguments.

What is followed is a text or its token ids. A rare word marks the text; a rare id marks the tokens. A module counts
where one of its functions, methods or generators is given a text with the word, or whole numbers with the id, in a
list, a tuple, a dictionary, a dataclass or a tensor.
"""

import dataclasses
import sys
from collections import UserDict
from collections.abc import Callable
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
