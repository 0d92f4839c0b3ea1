"""The questions to judges: criteria with a question each, as data (`protocols.toml`, or a user's file)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from precis_text.bounded_io import MIB, read_bounded
from precis_text.config import Settings, nearest
from precis_text.errors import UserError

_KEY = re.compile(r"[a-z][a-z0-9-]{0,29}")
_MOST_CRITERIA = 9
_MOST_TEXT = 500


@dataclass(frozen=True, kw_only=True)
class Criterion(Settings):
    """One question about two summaries.

    Attributes:
        gold: whether a summary of another document is clearly worse by this criterion, so that it can check judges.
    """

    key: str
    name: str
    question: str
    gold: bool = False


@dataclass(frozen=True, kw_only=True)
class Protocol(Settings):
    """The questions about every comparison.

    Attributes:
        against: the system that all others are compared with; if None, all pairs of systems are compared.
    """

    title: str
    instructions: str
    criteria: tuple[Criterion, ...]
    against: str | None = None

    def __post_init__(self) -> None:
        keys = [one.key for one in self.criteria]
        if not keys or len(keys) > _MOST_CRITERIA:
            raise UserError(f"a protocol needs 1 to {_MOST_CRITERIA} criteria, not {len(keys)}")
        for key in keys:
            if not _KEY.fullmatch(key):
                raise UserError(f"criterion key {key!r}: use up to 30 lower-case letters, digits and hyphens")
            if keys.count(key) > 1:
                raise UserError(f"criterion {key!r} is given twice; give each criterion its own key")
        for one in self.criteria:
            for text in (one.name, one.question):
                if not isinstance(text, str) or not text.strip() or len(text) > _MOST_TEXT:
                    raise UserError(
                        f"criterion {one.key!r}: name and question must be texts of 1 to {_MOST_TEXT} characters"
                    )

    @property
    def keys(self) -> tuple[str, ...]:
        """The criteria's keys, in order."""
        return tuple(one.key for one in self.criteria)

    @property
    def gold_keys(self) -> tuple[str, ...]:
        """The criteria by which gold items check judges."""
        return tuple(one.key for one in self.criteria if one.gold)


def _shipped() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("protocols.toml").read_text("utf-8"))


def protocol(name: str) -> Protocol:
    """Return a protocol by name, or from a TOML file with `title`, `instructions` and `[[criteria]]`.

    "discourse" has the five criteria of Discourse-Aware Prompt Design (section 6.5, A.10), "zcodepp" those of
    Z-Code++'s Table 5, each system compared with the reference.

    Raises:
        UserError: the name is unknown, or the file is not a protocol.
    """
    if not name.endswith(".toml"):
        known = _shipped()
        if name not in known:
            raise UserError(f"no such .toml file, and unknown protocol {name!r}{nearest(name, known)}")
        return protocol_of(known[name], name)
    path = Path(name)
    try:
        record = tomllib.loads(read_bounded(path, limit=MIB).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    return protocol_of(record, str(path))


def protocol_of(record: Mapping[str, Any], place: str) -> Protocol:
    """Return the protocol in a record; `place` is its file, for messages.

    Raises:
        UserError: the record is not a protocol.
    """
    try:
        criteria = record.get("criteria")
        if not isinstance(criteria, list) or not all(isinstance(one, dict) for one in criteria):
            raise UserError("[[criteria]] is missing; add at least one")
        return Protocol.from_dict({**record, "criteria": tuple(Criterion.from_dict(one) for one in criteria)})
    except (UserError, TypeError) as error:
        raise UserError(f"{place}: {error}") from None
