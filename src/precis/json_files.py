"""JSON of others, read so that nothing in it is lost and nothing breaks: neither doubled keys nor endless brackets.

python's own reader              | here
---------------------------------|--------------------------------------------------
of a doubled key, the last value | refused
`[` 100,000 times: RecursionError| refused from `MAX_DEPTH` on
integers of 5,000 digits: a ValueError about interpreter settings | refused in plain words
millions of small values: 20 times the memory of the text | refused from `MAX_VALUES` on
NaN, Infinity                    | refused unless asked for
"""

import json
from pathlib import Path
from typing import Any, NoReturn

from precis.bounded import MIB, read_bounded
from precis.errors import UserError

MAX_DEPTH = 100
MAX_VALUES = 4_000_000
MAX_BYTES = 64 * MIB


class JsonError(ValueError):
    """Text that is not the JSON that is read here; the message says why, in one line, without the place."""


def parse_json(text: str | bytes, *, constants: bool = False) -> Any:
    """The value that a JSON text stands for.

    Args:
        constants: NaN and Infinity are allowed, which Python writes and JSON does not have.

    Raises:
        JsonError: it is not UTF-8, no JSON, nested deeper than `MAX_DEPTH`, has a key twice in one object, an integer
            of more than 4,300 digits, or brackets and commas enough for more than `MAX_VALUES` values.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise JsonError(f"is not UTF-8 at byte {error.start + 1}") from None
    openings = text.count("[") + text.count("{")
    if openings + text.count(",") > MAX_VALUES:
        raise JsonError(f"has more than {MAX_VALUES:,} values")
    decoder = _LENIENT if constants else _STRICT
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise JsonError(_too_deep()) from None
    except json.JSONDecodeError as error:
        raise JsonError(str(error)) from None
    except JsonError:
        raise
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise JsonError(str(error)) from None
        raise JsonError("has an integer of more than 4,300 digits") from None
    if openings > MAX_DEPTH and _is_deep(value):
        raise JsonError(_too_deep())
    return value


def read_json(path: Path, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        UserError: the file is missing, no regular file, may not be read, has more than `limit` bytes, or is not one
            JSON object as `parse_json` reads it; the message begins with the path.
    """
    try:
        value = parse_json(read_bounded(path, limit=limit).removeprefix(b"\xef\xbb\xbf"))
    except JsonError as error:
        raise UserError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: is not a JSON object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise JsonError(f"has the key {_short(name)} twice")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"has {name}, which is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise JsonError(f"has the number {digits[:40]}, which is beyond all that is counted")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object)


def _is_deep(value: Any) -> bool:
    """Whether lists and objects lie in one another deeper than `MAX_DEPTH`; without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _too_deep() -> str:
    return f"is nested deeper than {MAX_DEPTH} levels"


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:40] + "...")
