"""The heads of lists of decisions, or of tasks, in written minutes: "We agreed:", "Nächste Schritte"."""

from __future__ import annotations

from precis_text.tables import read_table

_TABLE = read_table("minutes_heads.toml")


def heads_in(part: str, language: str) -> tuple[str, ...]:
    """Return the heads of "decisions" or "actions" in a language, in small letters; none of an unknown language."""
    listed = _TABLE[part].get(language, "")
    return tuple(filter(None, listed.split("|")))


DECISIONS, TASKS = (
    frozenset(head for code in _TABLE[part] for head in heads_in(part, code))
    for part in ("decisions", "actions")
)
"""The heads in all languages."""
