"""Whether a run that is taken up again is the one that was begun: every setting that its curve depends on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precis.errors import UserError
from precis.training.settings import FREE_ON_RESUME

# Digests tell a reader nothing; these are what they are of, by the name that recipes record them under.
_DIGESTS = {
    "data": ("other training pairs", "other validation pairs"),
    "tokenizer": ("another tokenizer",),
    "base": ("another base model",),
    "corpora": ("another corpus",),
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
            f"the run in {folder} was started with {words}; give it what it began with, or begin anew with --restart "
            "or another --out"
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
    """What the run was started with instead, where digests are all that is known: "other training pairs"; else None."""
    head, _, rest = name.partition(".")
    if head == "sets" and rest:  # of grounding: the kind of pairs, then their digests
        return f"other pairs of {rest}"
    if head not in _DIGESTS or rest:
        return None
    words = _DIGESTS[head]
    if not (isinstance(before, list) and isinstance(after, list)) or len(before) != len(after):
        return " or ".join(words)
    changed = {
        min(n, len(words) - 1) for n, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
    }
    return " and ".join(words[n] for n in sorted(changed))
