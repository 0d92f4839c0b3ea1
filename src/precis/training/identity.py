"""Whether a run that is taken up again is the one that was begun: every setting that its curve depends on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precis.errors import UserError
from precis.training.settings import FREE_ON_RESUME

# Digests tell a reader nothing; these are what they are of, by the name that recipes record them under.
_DIGESTS = {
    "data": ("training pairs", "validation pairs"),
    "tokenizer": ("tokenizer",),
    "base": ("base model",),
    "corpora": ("corpus",),
}


def refuse_other_settings(folder: Path, *, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare what the run in `folder` was begun with and what it is given now.

    Raises:
        UserError: at the first setting that the curve depends on and that has changed.
    """
    old = {name: value for name, value in before.items() if name not in FREE_ON_RESUME}
    new = {name: value for name, value in now.items() if name not in FREE_ON_RESUME}
    change = first_change(old, new)
    if change is None:
        return
    words = _in_words(*change)
    if words is not None:
        raise UserError(
            f"{words} not the same as when the run in {folder} was started; give it what it began with, or begin anew "
            "with --restart or another --out"
        )
    name, value, other = change
    raise UserError(
        f"the run in {folder} was started with {name}={value!r} and is now given {other!r}; "
        f"keep the old value, or begin anew with --restart or another --out"
    )


def first_change(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The dotted name, old and new value of the first difference between two JSON values; None is as good as absent."""
    if before == after:
        return None
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return path, before, after
    for name in sorted(before.keys() | after.keys()):
        change = first_change(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        if change is not None:
            return change
    return None


def _in_words(name: str, before: Any, after: Any) -> str | None:
    """Which of the things whose digests are recorded has changed: "the training pairs are"; None: no digest."""
    head, _, rest = name.partition(".")
    if head == "sets" and rest:  # of grounding: the kind of pairs, then their digests
        return f"the pairs of {rest} are"
    if head not in _DIGESTS or rest:
        return None
    what = _DIGESTS[head]
    if not (isinstance(before, list) and isinstance(after, list)):
        return f"the {what[0]} is"
    changed = [index for index, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]]
    if len(before) != len(after) or len(changed) != 1:
        return f"the {what[0]} {'are' if what[0].endswith('s') else 'is'}" if len(what) == 1 else _both(what)
    which = what[min(changed[0], len(what) - 1)]
    return f"the {which} {'are' if which.endswith('pairs') else 'is'}"


def _both(what: tuple[str, ...]) -> str:
    return f"the {' or the '.join(what)} are"
