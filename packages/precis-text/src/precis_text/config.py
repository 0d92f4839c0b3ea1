"""Settings: frozen, keyword-only dataclasses that round-trip through JSON.

A choice between kinds of settings (`Softmax | TopP`) is a union type; the class name is stored under "type" when a
field allows more than one. An unknown key is an error that suggests the nearest known one, so a typo never becomes a
silent default.
"""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, Self, get_args, get_origin

from precis_text.errors import UserError

_TAG = "type"
_TOLD = 14  # names that an error message lists


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of every settings class. Fields hold JSON scalars, other `Settings`, or tuples of either."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON-ready values; `from_dict` rebuilds an equal object."""
        hints = typing.get_type_hints(type(self))
        return {
            field.name: _encode(getattr(self, field.name), tagged=len(_choices(hints[field.name])) > 1)
            for field in dataclasses.fields(self)
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from the result of `to_dict`.

        Raises:
            UserError: if a key is unknown, a key without a default is missing, or a tag names a type that the field
                does not allow.
        """
        hints = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in names:
                raise UserError(f"{cls.__name__} does not have a setting {key!r}{nearest(key, names)}")
        missing = [
            field.name for field in dataclasses.fields(cls) if _required(field) and field.name not in values
        ]
        if missing:
            raise UserError(f"{cls.__name__} lacks the setting {missing[0]!r}")
        return cls(**{key: _decode(value, hints[key]) for key, value in values.items()})


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """Return `; did you mean ...?` for an error message, or the list of known words if none is close."""
    options = list(known)
    close = difflib.get_close_matches(word, options, n=2, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(repr(c) for c in close)}?"
    more = f", ... ({len(options)} in all)" if len(options) > _TOLD else ""
    return f"; known: {', '.join(sorted(options)[:_TOLD])}{more}"


def _choices(hint: Any) -> list[type[Settings]]:
    """Return the settings classes that a field's type allows."""
    options = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return [o for o in options if isinstance(o, type) and issubclass(o, Settings)]


def _encode(value: Any, *, tagged: bool = False) -> Any:
    if isinstance(value, Settings):
        body = value.to_dict()
        return {_TAG: type(value).__name__, **body} if tagged else body
    if isinstance(value, tuple | list):
        return [_encode(v, tagged=tagged) for v in value]
    return value


def _decode(value: Any, hint: Any) -> Any:
    choices = _choices(hint)
    if isinstance(value, Mapping) and choices:
        if len(choices) == 1:
            return choices[0].from_dict(value)
        by_name = {c.__name__: c for c in choices}
        body = dict(value)
        name = str(body.pop(_TAG, ""))
        if name not in by_name:
            raise UserError(f"unknown type {name!r}{nearest(name, by_name)}")
        return by_name[name].from_dict(body)
    if isinstance(value, list | tuple) and get_origin(hint) is tuple and _choices(get_args(hint)[0]):
        return tuple(_decode(item, get_args(hint)[0]) for item in value)
    return _as_tuples(value)


def _as_tuples(value: Any) -> Any:
    """Turn JSON lists, nested ones too, into the tuples that settings hold."""
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value
