"""The golden files: what was recorded, and what has moved since."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
TOLERANCE = 2e-4  # of a loss: processors round in other ways, and twenty steps build on it


def read(name: str) -> dict[str, Any]:
    """What was recorded under a name."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def write(name: str, record: Mapping[str, Any]) -> None:
    """Record anew."""
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(_rounded(record), indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def moved(was: Any, now: Any) -> list[str]:
    """In words, what differs: numbers by more than the tolerance, everything else at all."""
    if isinstance(was, dict) and isinstance(now, dict):
        gone = [f"{key}: {'is gone' if key in was else 'is new'}" for key in sorted(was.keys() ^ now.keys())]
        return gone + [
            f"{key}: {line}" for key in sorted(was.keys() & now.keys()) for line in moved(was[key], now[key])
        ]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        lines = [
            f"[{i}] {line}" for i, pair in enumerate(zip(was, now, strict=True)) for line in moved(*pair)
        ]
        return lines[:1]
    if isinstance(was, float) and isinstance(now, float):
        same = abs(was - now) <= TOLERANCE * max(abs(was), 1.0)
        return [] if same else [f"{was} has become {now:.7g}"]
    return [] if was == now else [_difference(was, now)]


def _difference(was: Any, now: Any) -> str:
    if not (isinstance(was, str) and isinstance(now, str)):
        return f"{was!r} has become {now!r}"
    before, after = was.splitlines(), now.splitlines()
    pairs = zip([*before, *[""] * len(after)], [*after, *[""] * len(before)], strict=False)
    line, (old, new) = next((i, pair) for i, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return f"line {line}: {old.strip()!r} has become {new.strip()!r}"


def _rounded(record: Any) -> Any:
    if isinstance(record, float):
        return float(f"{record:.7g}")
    if isinstance(record, Mapping):
        return {key: _rounded(value) for key, value in record.items()}
    return [_rounded(value) for value in record] if isinstance(record, list) else record
