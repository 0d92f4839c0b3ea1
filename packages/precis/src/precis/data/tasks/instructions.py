"""Instructions before a document in grounded pre-training, several for each kind; see `wordings.toml`.

Z-Code++ (section 2.1, Table 1) puts a natural-language instruction before every document of its second phase and
shows two or three for a kind. The wordings here are ours. Those under `training` are for training; those under
`held_out` never are, so that a model can be tested on unseen wordings. A wording may name a length ("in one sentence",
"in at most 40 words"). Only pairs whose summary has that length get it, or the model would learn to ignore it.

The wordings are in English, as in the paper. A kind in another language, `news-de`, has wordings in that language,
plus those of the kind named in its `also`.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar, final

from precis.data.pairs.pair import Pair
from precis_text.config import nearest
from precis_text.errors import UserError
from precis_text.words import length_in_words

VERSION = "precis-wordings-2"  # part of a run's identity: change it when a wording changes

_WORDS = "{words}"  # in a wording: the number of words in the summary, rounded up
_TEN = 10

GENERAL = "Summarize the following text:"
"""The instruction for a document of unknown kind; training uses it for every kind with summaries."""


Record = TypeVar("Record")


@final
class Records(Mapping[str, Record]):
    """Records of a TOML file by name, in its order; the file is read at the first access.

    Args:
        file: name of a TOML file in this package; each of its tables is a record.
        build: makes a record from its name, its table and all tables of the file.

    Raises:
        UserError: at the first access, with file and record, if the file is not TOML or `build` refuses a record.
    """

    def __init__(self, file: str, build: Callable[[str, dict[str, Any], Mapping[str, Any]], Record]) -> None:
        self._file, self._build = file, build

    def __getitem__(self, name: str) -> Record:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _records(self) -> dict[str, Record]:
        try:
            tables = tomllib.loads(files(__package__).joinpath(self._file).read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{self._file}: is not TOML: {error}") from error
        records = {}
        for name, table in tables.items():
            try:
                records[name] = self._build(name, table, tables)
            except (UserError, TypeError) as error:
                raise UserError(f"{self._file}: [{name}]: {error}") from error
        return records


@dataclass(frozen=True, slots=True)
class Wording:
    """An instruction, with the least and most `sentences` that it requests; None if it fits any summary."""

    text: str
    sentences: tuple[int, int] | None = None

    def fits(self, count: int) -> bool:
        """Check whether the wording requests a summary of `count` sentences."""
        return self.sentences is None or self.sentences[0] <= count <= self.sentences[1]


@dataclass(frozen=True, slots=True)
class Kind:
    """The wordings for one kind of document and summary."""

    training: tuple[Wording, ...]
    held_out: tuple[Wording, ...]


def _build(name: str, table: dict[str, Any], tables: Mapping[str, Any]) -> Kind:
    """Build a kind from its table; raise `UserError` if one of the two lists is missing, or a wording is wrong."""
    parts = {name: wordings for name, wordings in table.items() if name != "also"}
    if set(parts) != {"training", "held_out"}:
        raise UserError(f"has {', '.join(table)} instead of training and held_out")
    also = table.get("also")
    if also is not None and also not in tables:
        raise UserError(f"also={also!r} is not another kind{nearest(also, tables)}")
    shared = tables[also] if also else {}
    return Kind(**{part: tuple(map(_wording, [*shared.get(part, ()), *own])) for part, own in parts.items()})


def _wording(entry: Any) -> Wording:
    if isinstance(entry, str):
        return Wording(entry)
    match entry:
        case {"text": str(text), "sentences": [int(least), int(most)]} if (
            0 < least <= most and len(entry) == 2
        ):
            return Wording(text, (least, most))
    raise UserError(f'wording {entry!r} must be a text, or {{ text = "...", sentences = [least, most] }}')


KINDS: Mapping[str, Kind] = Records("wordings.toml", _build)


def wording_for(kind: str, pair: Pair, uniform: float, *, held_out: bool = False) -> str:
    """Choose an instruction for a pair among the wordings of its kind that fit the length of its summary.

    Args:
        kind: a key of `KINDS`.
        pair: a pair whose summary's sentences are counted (`precis_text.sentences`).
        uniform: a number in [0, 1); equal numbers give equal wordings.
        held_out: choose among the wordings that training never uses.

    Raises:
        UserError: an unknown kind.
        ValueError: `uniform` is not in [0, 1).
    """
    if kind not in KINDS:
        raise UserError(f"unknown kind of instruction {kind!r}{nearest(kind, KINDS)}")
    if not 0 <= uniform < 1:
        raise ValueError(f"uniform={uniform} must be in [0, 1)")
    wordings = KINDS[kind].held_out if held_out else KINDS[kind].training
    from precis_text.sentences import split_sentences  # its rules are in a file, read on import

    count = len(split_sentences(pair.summary)) if any(w.sentences for w in wordings) else 0
    fitting = [wording for wording in wordings if wording.fits(count)]
    text = fitting[int(uniform * len(fitting))].text
    return (
        text.replace(_WORDS, str(-(-length_in_words(pair.summary) // _TEN) * _TEN))
        if _WORDS in text
        else text
    )
