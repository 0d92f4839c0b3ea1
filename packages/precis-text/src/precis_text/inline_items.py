"""The items of lists that are written within a line: "1. The quay ... 2. The wall ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKER = re.compile(
    r"(?:^|(?<= ))(?P<bullet>[•⁃▪◦‣] ?)?(?P<open>\(?)(?P<number>\d{1,3}|[A-Za-z])(?P<close>\.\)|[.)]) (?=[^\W_a-z])"
)
_BULLET = re.compile(r"(?:^|(?<= ))[•⁃▪◦‣] ?(?=\S)")
_LOOK_BACK = 40  # characters
_BEFORE_FIRST = ".!?:;,。："


def item_starts(text: str, *, counted: frozenset[str]) -> Iterator[int]:
    """Yield the offsets at which items open a sentence, in order.

    Markers of one form count up from 1 or a, and the first one opens the line or follows a mark.

    Args:
        counted: words whose number is not a marker ("Section 2.").
    """
    bullets = [found.start() for found in _BULLET.finditer(text)]
    starts = set(bullets) if len(bullets) > 1 and bullets[0] == 0 else set()
    runs: dict[tuple[str, str, str], list[re.Match[str]]] = {}
    for found in _MARKER.finditer(text):
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()].split()
        if before and before[-1].lower() in counted:
            continue
        run = runs.setdefault(_form(found), [])
        if run and _rank(found) == _rank(run[-1]) + 1:
            if found["number"].isupper() and not _follows_mark(text, found.start()):
                continue  # an initial: "A. Lund met B. Moe"
            run.append(found)
        elif _opens_list(text, found):
            starts.update(_of_run(run))
            runs[_form(found)] = [found]
    for run in runs.values():
        starts.update(_of_run(run))
    yield from sorted(starts)


def _form(found: re.Match[str]) -> tuple[str, str, str]:
    number = found["number"]
    return found["open"], found["close"], "1" if number.isdigit() else "A" if number.isupper() else "a"


def _rank(found: re.Match[str]) -> int:
    number = found["number"]
    return int(number) if number.isdigit() else ord(number.lower()) - ord("a") + 1


def _opens_list(text: str, found: re.Match[str]) -> bool:
    if found.start() == 0:
        return True
    return _rank(found) == 1 and _follows_mark(text, found.start())


def _follows_mark(text: str, start: int) -> bool:
    before = text[max(0, start - _LOOK_BACK) : start].rstrip()
    return before != "" and before[-1] in _BEFORE_FIRST


def _of_run(run: list[re.Match[str]]) -> list[int]:
    return [found.start() for found in run] if len(run) > 1 else []
