"""The check that resumed work has the settings that it was started with."""

from collections.abc import Mapping
from typing import Any

from precis_text.errors import UserError


def refuse_change(place: object, before: Mapping[str, Any], now: Mapping[str, Any], *, remedy: str) -> None:
    """Refuse to resume the work in a place with other settings.

    Args:
        place: the file or folder, or words for it.
        before: the JSON values that the work was started with.
        now: those of this call; None counts as absent.

    Raises:
        UserError: a value has changed; the message names the first one, and ends with the remedy.
    """
    change = first_change(before, now)
    if change is not None:
        name, old, new = change
        found = f"without {name}" if old is None else f"with {name}={old!r}"
        raise UserError(f"{place} was started {found}, now {new!r}; {remedy}")


def first_change(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return the dotted name, old and new value of the first difference of two JSON values; None counts as absent."""
    if before == after:
        return None
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return path, before, after
    for name in sorted(before.keys() | after.keys()):
        change = first_change(before.get(name), after.get(name), f"{path}.{name}" if path else name)
        if change is not None:
            return change
    return None
