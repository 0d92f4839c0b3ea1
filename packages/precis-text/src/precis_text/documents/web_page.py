"""Web pages: the article without menus, advertisements and comments.

trafilatura says which text is the article, and drops much of it: lists, cells, words in spans. So its answer only
chooses the part of the page: the smallest element that holds it. This part is read whole, but for what looks like a
frame and is not in the answer. Where the answer is a small share of the page's prose, the whole page is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from precis_text.documents.character_sets import declared_in, decode
from precis_text.documents.chat_pages import write_chat
from precis_text.documents.html_text import Leave, parse_page, tag_of, write_tree
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError
from precis_text.tables import read_table

_FEWEST = 250  # characters of an article: in a shorter one trafilatura finds no parts and includes menus
_HELD = 0.9  # share of the answer that the chosen part holds
_LEAST = 0.5  # least share of the page's prose in the answer
_FRAME = frozenset(("nav", "header", "footer", "aside"))
_BOXES = frozenset(("div", "section", "aside", "dialog", "form", "ul", "ol", "table", "p", "nav"))
_TABLE = read_table("documents/web_page.toml")
_CONSENT, _AROUND = (re.compile(_TABLE[name], re.I) for name in ("consent", "around"))
_LINKS = 0.6  # share of words in links from which a box is a menu
_PROSE = re.compile(r"[^.!?。！？।؟]{20,}[.!?。！？।؟]")  # a sentence
_WORDS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|\w+")
_RUN = 5  # words in a row by which a text is known again
_NO_TEXT = frozenset(("script", "style", "head", "noscript", "template"))
_MENUS = "menus and other parts around the article"
_MARKS = _TABLE["marks"]


def read(content: bytes) -> Passages:
    """Read the main part of a page, or all of it if no main part is found.

    Raises:
        UserError: the page contains no text.
    """
    writer = Writer()
    return read_page(decode(content, declared_in(content), writer), writer)


def read_page(page: str, writer: Writer) -> Passages:
    """Read a decoded page; the arguments of `read` and its errors."""
    root = parse_page(page)
    if root is not None and not write_chat(root, writer):
        _write_article(root, _answer(page), writer)
    found = writer.finished()
    if not found.text:
        raise UserError(
            "contains no text, perhaps because scripts write it; print it to a PDF in a browser and use that"
        )
    return found


def _answer(page: str) -> str:
    """Return the text that trafilatura takes for the article."""
    from trafilatura import extract

    found = extract(page, favor_recall=True, include_comments=False, include_tables=True, prune_xpath=_MARKS)
    return found or ""


def _write_article(root: Any, answer: str, writer: Writer) -> None:
    """Write the part of the page that holds the answer, or else all of it."""
    measured = _measured(root, _runs_in(answer))
    whole = measured[root]
    is_found = len(answer) >= _FEWEST and whole.known >= _LEAST * (whole.prose or whole.words)
    part = _smallest(root, measured) if is_found else root
    write_tree(part, writer, leave=_leave(measured, part, is_found=is_found))
    inside = set(part.iter())
    for element in measured:
        if element not in inside and tag_of(element) not in ("script", "style", "head", "title"):
            writer.leave_out(_MENUS, element.text or "")
        if (element not in inside or element is part) and element is not root:
            writer.leave_out(_MENUS, element.tail or "")


@dataclass(slots=True)
class _Measure:
    """The content of an element, in words.

    Attributes:
        words: all of them.
        prose: those in sentences, outside links.
        known: those of the article.
        linked: those in links.
        links: number of links.
    """

    words: int = 0
    prose: int = 0
    known: int = 0
    linked: int = 0
    links: int = 0


def _measured(root: Any, known: set[tuple[str, ...]]) -> dict[Any, _Measure]:
    """Measure every element, in one pass from the last to the first."""
    elements = [each for each in root.iter() if isinstance(each.tag, str)]
    measured = {each: _Measure() for each in elements}
    for each in reversed(elements):
        found, tag = measured[each], tag_of(each)
        if tag in _NO_TEXT:
            found.words = found.prose = found.known = found.linked = found.links = 0
        else:
            _count(found, each.text, known, in_link=tag == "a")
        if tag == "a" and each.get("href"):
            found.links, found.linked, found.prose = found.links + 1, found.words, 0
        parent = measured.get(each.getparent())
        if parent is not None:
            _count(parent, each.tail, known, in_link=False)
            for name in _Measure.__slots__:
                setattr(parent, name, getattr(parent, name) + getattr(found, name))
    return measured


def _count(found: _Measure, text: str | None, known: set[tuple[str, ...]], *, in_link: bool) -> None:
    words = _WORDS.findall(text) if text else []
    found.words += len(words)
    found.prose += len(words) if not in_link and text and _PROSE.search(text) else 0
    if any(
        tuple(words[start : start + _RUN]) in known for start in range(0, max(1, len(words) - _RUN + 1), 3)
    ):
        found.known += len(words)


def _runs_in(answer: str) -> set[tuple[str, ...]]:
    """Return the runs of words of a text, and its short lines."""
    found = set()
    for line in answer.split("\n"):
        words = _WORDS.findall(line)
        found |= {tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1))}
    return found - {()}


def _smallest(root: Any, measured: dict[Any, _Measure]) -> Any:
    """Return the smallest element that holds nearly all of the article."""
    needed = _HELD * measured[root].known
    part = root
    while True:
        for inner in part:
            if inner in measured and measured[inner].known >= needed:
                part = inner
                break
        else:
            return part


def _leave(measured: dict[Any, _Measure], part: Any, *, is_found: bool) -> Leave:
    """Return a test for what belongs to the frame of a page.

    Args:
        part: the element that is read.
        is_found: whether `part` is an article.
    """
    most = measured[part].prose / 2

    def leave(element: Any) -> str | None:
        tag, found = tag_of(element), measured[element]
        if element is part or tag not in _BOXES | _FRAME or found.prose > most:
            return None
        name = f"{element.get('id') or ''} {element.get('class') or ''} {element.get('role') or ''}"
        if tag in _BOXES and _CONSENT.search(name):
            return "a request for consent"
        if is_found and found.known > 0.5 * found.words:
            return None
        is_frame = tag in _FRAME and (tag == "nav" or not _is_in_article(element, part))
        if is_frame or "navigation" in name.split() or (is_found and _AROUND.search(name)) or _is_menu(found):
            return _MENUS
        return None

    return leave


def _is_in_article(element: Any, part: Any) -> bool:
    while element is not None and element is not part:
        element = element.getparent()
        if element is not None and tag_of(element) in ("article", "main"):
            return True
    return False


def _is_menu(found: _Measure) -> bool:
    """Check whether a box holds links and nothing else to read."""
    return found.links >= 3 and found.linked > _LINKS * found.words and not found.prose
