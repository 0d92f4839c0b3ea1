"""Language detection for marks, and the word lists that marks need.

Script and function words decide; the result is None if neither does. Marks only need to know which lists apply. A
library for a hundred languages would add none to the four with lists (`languages.toml`), and it guesses on a summary of
ten words. Neighbours of the four (`other_languages.toml`) are only distinguished.
"""

from __future__ import annotations

import builtins
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from precis_text.tables import read_table

_SURE = 0.12  # least share of words that are a language's function words; other texts have a few by chance
_AHEAD = 1.5  # required ratio to the share of the next language
_SCRIPTS = {
    "CJK": "zh", "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CYRILLIC": "cyrillic", "ARABIC": "arabic",
    "HEBREW": "he", "GREEK": "el", "DEVANAGARI": "devanagari", "THAI": "th",
}  # fmt: skip
_CASED = ("latin", "cyrillic", "el", "armenian")
_LETTERS = 4000  # characters of a text used to detect its language


@dataclass(frozen=True, kw_only=True)
class Language:
    """The words of a language, in lower case.

    Attributes:
        code: ISO 639-1.
        function: words that carry no content.
        negations: words that negate a statement; `negative` ones may replace them, `plain` phrases do not negate.
        limits: phrases with a negation that restrict how often, how long or for whom a statement holds.
        contrasts: negations that contrast two things after a comma: "the exception, not the rule".
        numbers: number words with their values; `scale` has those that multiply.
        idle: number words that mostly do not count, such as "one" and "second".
        months: month names, January first.
        joins: words between number words.
        rounded: words that mark a number as inexact.
    """

    code: str
    function: frozenset[str]
    negations: frozenset[str]
    negative: frozenset[str]
    plain: tuple[tuple[str, ...], ...]
    limits: tuple[tuple[str, ...], ...]
    contrasts: frozenset[str]
    fails: frozenset[str]
    numbers: Mapping[str, float]
    scale: Mapping[str, int]
    idle: frozenset[str]
    months: tuple[str, ...]
    joins: frozenset[str]
    rounded: frozenset[str]
    stemmer: str

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case."""
        return stemmed(self.stemmer, word)

    @property
    def capitalizes_nouns(self) -> bool:
        """True if capitals do not mark names."""
        return self.code == "de"


@cache
def languages() -> Mapping[str, Language]:
    """Load the languages that have lists, by code."""
    records = read_table("languages.toml")
    return {code: _language(code, record) for code, record in records.items()}


def _language(code: str, record: Mapping[str, Any]) -> Language:
    sets = {
        name: frozenset(record[name].split())
        for name in ("function", "negations", "negative", "fails", "contrasts", "joins", "rounded", "idle")
    }
    small, tens = record["small"].split(), record["tens"].split()
    numbers: dict[str, float] = {word: value for value, word in enumerate(small)}
    numbers |= {word: 10 * value for value, word in enumerate(tens, start=2)}
    if code == "de":
        ones = ["", "ein", *small[2:10]]
        numbers |= {f"{one}und{ten}": numbers[ten] + n for ten in tens for n, one in enumerate(ones) if n}
    numbers |= {word: value for value, word in enumerate(record["ordinals"].split(), start=1)}
    return Language(
        code=code, **sets, plain=tuple(tuple(phrase.split()) for phrase in record["plain"]),
        limits=tuple(tuple(phrase.split()) for phrase in record["limits"]), numbers={**numbers, **record["count"]},
        scale=record["scale"], months=tuple(record["months"].split()), stemmer=record["stemmer"],
    )  # fmt: skip


@cache
def _neighbours() -> Mapping[str, frozenset[str]]:
    """Load the function words of languages without lists for marks, by code."""
    records = read_table("other_languages.toml")
    return {code: frozenset(words.split()) for code, words in records.items()}


def function_words(code: str) -> frozenset[str]:
    """Return the function words of a language; none of an unknown one."""
    known = languages().get(code)
    return known.function if known else _neighbours().get(code, frozenset())


@lru_cache(maxsize=65536)
def stemmed(name: str, word: str) -> str:
    """Return the stem of a word in lower case by a stemmer of nltk."""
    return str(_stemmer(name).stem(word))


@cache
def _stemmer(name: str) -> Any:
    return _part_of_nltk("nltk.stem.snowball").SnowballStemmer(name)


@cache
def _part_of_nltk(name: str) -> Any:
    """Run one module of nltk, whose package imports scipy for a second; other threads see no change."""
    (root,) = find_spec("nltk").submodule_search_locations  # type: ignore[union-attr, misc]
    place = Path(root, *name.split(".")[1:])
    if place.is_dir():
        return SimpleNamespace(stopwords=None)  # of nltk.corpus; no stem needs them
    part = ModuleType(name)
    part.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    SourceFileLoader(name, f"{place}.py").exec_module(part)
    return part


def _import(name: str, scope: Any = None, own: Any = None, wanted: Any = (), level: int = 0) -> Any:
    if not name.startswith("nltk"):
        return __import__(name, scope, own, wanted, level)
    part = _part_of_nltk(name)
    for each in wanted or ():
        if not hasattr(part, each):
            setattr(part, each, _part_of_nltk(f"{name}.{each}"))
    return part


def script_of(text: str) -> str | None:
    """Return the script of most letters: "latin", an ISO 639-1 code if it implies one, else a name; None if no letters.

    Kana among Chinese characters mean Japanese.
    """
    letters = [letter for letter in text[:_LETTERS] if letter.isalpha()]
    if not letters:
        return None
    names = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    (most, _), *_ = names.most_common(1)
    if most == "CJK" and names["HIRAGANA"] + names["KATAKANA"] > 0.1 * len(letters):
        return "ja"
    return _SCRIPTS.get(most, most.lower())


def has_case(text: str) -> bool:
    """Check whether the script of a text marks names by capitals."""
    return script_of(text) in _CASED


def language_of(text: str) -> str | None:
    """Detect the ISO 639-1 code of a text from script or function words; return a shared script's name, or None.

    The code may be that of a language without lists, such as "pt".
    """
    script = script_of(text)
    if script != "latin":
        return script
    words = Counter(text[:_LETTERS].lower().replace("'", " ").replace("’", " ").split())
    listed = _shares(words, {code: known.function for code, known in languages().items()})
    (next_share, _), (share, code) = listed[-2:]
    (other_next, _), (other, neighbour) = _shares(words, _neighbours())[-2:]
    if other > share:
        return neighbour if other >= _SURE and other > other_next else None
    return code if share >= _SURE and share >= _AHEAD * next_share else None


def _shares(words: Counter[str], lists: Mapping[str, frozenset[str]]) -> list[tuple[float, str]]:
    """Return the share of the words that each list has, 0 to 1, the largest last."""
    total = sum(words.values())
    return sorted((sum(words[word] for word in listed) / total, code) for code, listed in lists.items())
