"""Instructions that stand before a document in grounded pre-training, several for each kind; see `wordings.toml`.

Z-Code++ (section 2.1, Table 1) puts a natural-language instruction before every document of its second phase and
shows two or three for a kind. The wordings here are ours. Those under `training` are trained on; those under
`held_out` never are, so that a model can be asked in words that it has not met. A wording may name a length ("in one
sentence", "in at most 40 words"); it is then given only to pairs whose summary has it, or the model would learn to
disregard it.

They are in English, as the paper's are. A kind of another language, `news-de`, has wordings in that language besides
those of the kind that it names with `also`.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar, final

from precis.config import nearest
from precis.data.pairs.pair import Pair
from precis.data.text.sentences import split_sentences
from precis.data.text.words import length_in_words
from precis.errors import UserError

VERSION = "precis-wordings-2"  # part of a run's identity: change it when a wording changes

_WORDS = "{words}"  # in a wording: how many words the summary has, rounded up
_TEN = 10

GENERAL = "Summarize the following text:"
"""The instruction for a document of unknown kind; every kind that asks for a summary is trained with it."""


Record = TypeVar("Record")


@final
class Records(Mapping[str, Record]):
    """Records of a TOML file by name, in its order, read when the first of them is asked for.

    Args:
        file: name of a TOML file beside this module; each of its tables is a record.
        build: makes a record of its name, its table and all tables of the file.

    Raises:
        UserError: at the first use, naming file and record, where `build` refuses one or the file is no TOML.
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
    """An instruction.

    Attributes:
        sentences: least and most sentences of a summary that it asks for; if None, it fits any.
    """

    text: str
    sentences: tuple[int, int] | None = None

    def fits(self, count: int) -> bool:
        """Whether the wording asks for a summary of `count` sentences."""
        return self.sentences is None or self.sentences[0] <= count <= self.sentences[1]


@dataclass(frozen=True, slots=True)
class Kind:
    """The wordings for one kind of document and summary."""

    training: tuple[Wording, ...]
    held_out: tuple[Wording, ...]


def _build(name: str, table: dict[str, Any], tables: Mapping[str, Any]) -> Kind:
    """A kind from its table in the file.

    Raises:
        UserError: the table lacks one of the two lists, or a wording is neither a text nor a text with its bounds.
    """
    parts = {name: wordings for name, wordings in table.items() if name != "also"}
    if set(parts) != {"training", "held_out"}:
        raise UserError(f"has {', '.join(table)} instead of training and held_out")
    also = table.get("also")
    if also is not None and also not in tables:
        raise UserError(f"also={also!r} is no other kind{nearest(also, tables)}")
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
        pair: a pair whose summary's sentences are counted (`precis.data.text.sentences`).
        uniform: a number in [0, 1); equal numbers give equal wordings.
        held_out: choose among the wordings that are kept from training.

    Raises:
        UserError: an unknown kind.
        ValueError: `uniform` is not in [0, 1).
    """
    if kind not in KINDS:
        raise UserError(f"unknown kind of instruction {kind!r}{nearest(kind, KINDS)}")
    if not 0 <= uniform < 1:
        raise ValueError(f"uniform={uniform} must be in [0, 1)")
    wordings = KINDS[kind].held_out if held_out else KINDS[kind].training
    count = len(split_sentences(pair.summary)) if any(w.sentences for w in wordings) else 0
    fitting = [wording for wording in wordings if wording.fits(count)]
    text = fitting[int(uniform * len(fitting))].text
    return (
        text.replace(_WORDS, str(-(-length_in_words(pair.summary) // _TEN) * _TEN))
        if _WORDS in text
        else text
    )
