"""A count of the words that a reader loses: those of the file, by another way, against those that came out.

The other way is coarse on purpose. It knows no layout and drops nothing but scripts, styles and raised characters, so
that it sees what a reader forgets:

    web pages, EPUB, HTML of mails    all text nodes, by the standard library's parser
    Word, presentations, OpenDocument all text nodes of the XML, by a regular expression
    notebooks                         the sources of all cells
    the others                        all words of the file, without marks

PDF, pictures, subtitles, Slack's exports, plain text and old spreadsheets lack a figure.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from binascii import Error, a2b_base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from email import policy
from email.message import Message
from email.parser import BytesParser
from html import unescape
from html.parser import HTMLParser
from io import BytesIO

from precis_text.bounded_io import parse_json
from precis_text.documents.passages import Passages, Share

LOW = 0.95
"""A note reports the loss if a smaller share of the words came out."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_RAISED = re.compile("[⁰¹²³⁴-⁹⁺⁻⁼⁽⁾ⁿ]+")
_MEETING = re.compile(r"(?<=[a-z])(?=[A-Z\d])|(?<=\d)(?=[A-Za-z])")  # words that elements set side by side
_INLINE = frozenset([
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub",
    "time", "tt", "u", "var", "wbr",
])  # fmt: skip
_SCRIPTS = frozenset(("script", "style", "sup", "msup", "head", "rt", "rp", "annotation"))
_OFFICE = re.compile(rb"<(?:\w+:)?(\w+)(?:\s[^<>]*)?/?>([^<]*)")
_OFFICE_PARTS = re.compile(
    r"(?:word/(?:document|footnotes|endnotes|comments|header|footer)\d*|ppt/(?:slides/slide|notesSlides/notesSlide)\d+"
    r"|(?:word|ppt)/(?:diagrams/data|charts/chart)\d+)\.xml"
)
_OFFICE_SPACES = frozenset((b"p", b"tab", b"br", b"tc", b"v"))
_OFFICE_NO_TEXT = frozenset((
    b"instrText", b"delInstrText", b"posOffset", b"align", b"pctWidth", b"pctHeight", b"fldData", b"attrName",
    b"tableStyleId", b"f", b"formatCode",
))  # fmt: skip
_OPEN_TEXT = re.compile(r"<[^<>]*>")
_OPEN_INLINE = re.compile(r"</?text:(?:span|a|bookmark[\w-]*|soft-page-break|reference-mark[\w-]*)\b[^<>]*>")
_SHEET_PARTS = (
    "xl/worksheets/sheet", "xl/comments", "xl/threadedComments", "xl/drawings/drawing", "xl/charts/",
)  # fmt: skip
_SHEET = re.compile(rb"<(?:\w+:)?t(?: [^<>]*)?>([^<]*)<")
_RTF = re.compile(
    r"\{\s*\\(?:\*\\(?!footnote)|fonttbl|colortbl|stylesheet|info|pict|header|footer|super|listtable|"
    r"listoverridetable)[a-z]*"
    r"|[{}]|\\'[0-9a-f]{2}|\\u-?\d+ ?\??|\\[a-z]+-?\d* ?|\\.|[^\\{}]+"
)
_LATEX = re.compile(
    r"(?<!\\)%[^\n]*|\\(?:begin|end|label|ref|eqref|hypertarget|setcounter|cite\w*|bibliography\w*|includegraphics|"
    r"input)\*?(?:\[[^\]]*\])?\{[^{}]*\}(?:\[\]\{(?:[^{}]|\{[^{}]*\})*\})?|\\[a-zA-Z]+\*?"
)


def counted(module: str, content: bytes, documents: Sequence[Passages]) -> list[Passages]:
    """Return the documents, each with the share of words that were read; the first one has that of the whole file.

    A share below `LOW` is added to the notes.

    Args:
        module: the reader's.
    """
    whole = _WAYS.get(module)
    if whole is None or not documents:
        return [*documents]
    given = words(whole(content))
    read = words(passages.text for passages in documents)
    left = words(text for passages in documents for _, text in passages.left)
    found = (given & read).total()
    share = Share(given.total(), found, (given - read & left).total())
    first = replace(documents[0], share=share)
    if share.kept < LOW:
        note = f"only {share.kept:.0%} of the file's {share.words:,} words were read or named; compare it with the file"
        first = replace(first, notes=[*first.notes, note])
    return [first, *documents[1:]]


def words(texts: Iterable[str]) -> Counter[str]:
    """Count words in small letters; each sign of Chinese and Japanese is one, and raised digits are none."""
    found: Counter[str] = Counter()
    for text in texts:
        shown = _RAISED.sub(" ", text.replace("\u00ad", "").replace("\u200b", ""))
        found.update(_WORD.findall(_MEETING.sub(" ", shown).lower()))
    return found


class _Nodes(HTMLParser):
    """A collector of all text nodes; those of elements within a line are joined."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SCRIPTS:
            self._inside.append(tag)
        elif tag == "body":
            self._inside.clear()
        if tag not in _INLINE:
            self.texts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        if tag not in _INLINE:
            self.texts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)

    def unknown_decl(self, data: str) -> None:
        if data.startswith("CDATA[") and not self._inside:
            self.texts.append(data.removeprefix("CDATA["))


def _page_text(page: str) -> str:
    nodes = _Nodes()
    nodes.feed(page)
    nodes.close()
    return "".join(nodes.texts)


def _decoded(content: bytes) -> str:
    """Decode by a declared character set, as UTF-8, or as Western European, without any table of names."""
    found = re.search(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w.-]{1,40})", content[:4096], re.IGNORECASE)
    declared = found.group(1).decode() if found else "utf-8"
    wider = {"gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252", "shift_jis": "cp932"}
    for name in (wider.get(declared.lower(), declared), "utf-8"):
        try:
            return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else name)
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("cp1252", "replace")


def _of_page(content: bytes) -> list[str]:
    return [_page_text(_decoded(content))]


def _of_mail(content: bytes) -> list[str]:
    mails = (
        re.split(rb"(?:\A|(?<=\n\n))From [^\n]*\d\d:\d\d[^\n]*\n", content)
        if content.startswith(b"From ")
        else [content]
    )
    mails = [re.sub(rb'(?i)(\bboundary=)([^\s";]+)', rb'\1"\2"', mail) for mail in mails]
    texts: list[str] = []
    for mail in filter(None, mails):
        found: list[tuple[str, str]] = []
        for part in _parts_of(BytesParser(policy=policy.default).parsebytes(mail)):
            payload = part.get_payload(decode=True)
            if part.get_content_maintype() != "text" or not isinstance(payload, bytes) or part.get_filename():
                continue
            charset = f'charset="{part.get_content_charset("utf-8")}"\n'.encode()
            text = _decoded(charset + payload).partition("\n")[2]
            found.append(
                (
                    part.get_content_subtype(),
                    _page_text(text) if part.get_content_subtype() == "html" else text,
                )
            )
        texts += [text for _, text in _without_twins(found)]
    if not texts:  # a body that the standard library does not take apart
        body = content.replace(b"\r\n", b"\n").partition(b"\n\n")[2]
        texts = [_page_text(body.decode("utf-8", "replace"))]
    return texts


def _parts_of(message: Message) -> Iterator[Message]:
    """Yield all parts of a mail, those of encoded mails inside too."""
    yield message
    inner = message.get_payload()
    coding = str(message.get("content-transfer-encoding", "")).strip().lower()
    parts = [part for part in inner if isinstance(part, Message)] if isinstance(inner, list) else []
    if message.get_content_maintype() == "message" and coding == "base64" and parts:
        with suppress(Error):
            parts = [BytesParser(policy=policy.default).parsebytes(a2b_base64(parts[0].as_bytes()))]
    for part in parts:
        yield from _parts_of(part)


def _without_twins(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Drop a text that another form of the same mail repeats: a plain one and a page with most of its words."""
    kept: list[tuple[str, str]] = []
    for kind, text in texts:
        own = words([text])
        for place, (other_kind, other) in enumerate(kept):
            shared = (own & words([other])).total()
            if kind != other_kind and shared > 0.6 * min(own.total(), words([other]).total()):
                kept[place] = (kind, min(text, other, key=lambda each: words([each]).total()))
                break
        else:
            kept.append((kind, text))
    return kept


def _parts(content: bytes, names: Callable[[str], bool]) -> list[bytes]:
    found = []
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for name in archive.namelist():
            try:
                found += [archive.read(name)] if names(name) else []
            except (zipfile.BadZipFile, zlib.error, EOFError):
                continue  # the reader names it
    return found


def _of_book(content: bytes) -> list[str]:
    pages = _parts(content, lambda name: name.lower().endswith((".xhtml", ".html", ".htm")))
    shown = (_decoded(page) for page in pages if b'epub:type="toc"' not in page and b"<nav" not in page)
    return [_page_text(re.sub(r"<(title|script|a|p|div|span)((?:\s[^<>]*)?)/>", "", page)) for page in shown]


def _of_office(content: bytes) -> list[str]:
    found = []
    for part in _parts(content, lambda name: _OFFICE_PARTS.fullmatch(name) is not None):
        part = re.sub(rb"<mc:Fallback>.*?</mc:Fallback>", b"", part, flags=re.DOTALL)
        part = re.sub(
            rb'<w:r\b(?:(?!</w:r>).)*<w:vertAlign w:val="superscript"/>.*?</w:r>', b"", part, flags=re.DOTALL
        )
        found.append(unescape(b"".join(_office_texts(part)).decode("utf-8", "replace")))
    return found


def _office_texts(part: bytes) -> Iterator[bytes]:
    """Yield every text behind an opening tag, whatever its name."""
    for name, text in _OFFICE.findall(part):
        if name in _OFFICE_SPACES:
            yield b" "
        if name not in _OFFICE_NO_TEXT and (name in (b"t", b"delText") or text.strip()):
            yield text


def _of_open_document(content: bytes) -> list[str]:
    if content.startswith(b"PK"):
        parts = _parts(content, lambda name: name == "content.xml")
    else:  # a document of a single file, whose text is in its body
        parts = [content.partition(b"<office:body>")[2]]
    return [
        unescape(_OPEN_TEXT.sub(" ", _OPEN_INLINE.sub("", part.decode("utf-8", "replace")))) for part in parts
    ]


def _of_sheets(content: bytes) -> list[str]:
    if not content.startswith(b"PK"):
        return []
    parts = _parts(content, lambda name: name == "xl/sharedStrings.xml" or name.startswith(_SHEET_PARTS))
    return [unescape(b" ".join(_SHEET.findall(part)).decode("utf-8", "replace")) for part in parts]


def _of_notebook(content: bytes) -> list[str]:
    cells = parse_json(content.removeprefix(b"\xef\xbb\xbf"), constants=True).get("cells", [])
    found = []
    for cell in cells:
        text = "".join(cell.get("source") or "") if isinstance(cell, dict) else ""
        found += (
            _of_markdown(text.encode("utf-8", "replace"))
            if text and cell.get("cell_type") == "markdown"
            else [text]
        )
    return found


def _of_markdown(content: bytes) -> list[str]:
    text = re.sub(
        r"!\[[^\[\]]*(?=\][(\[])|\]\((?:\\.|\([^()\s]*\)|[^()\s\\])*(?:\s+\"[^\"]*\")?\)|\]\[[^\[\]]*\]|"
        r"<[a-zA-Z/!][^<>]*[=/!-][^<>]*>|</?\w+>|"
        r"^[ ]{0,3}\[[^\]]+\]:.*$|&\w+;",
        " ",
        _decoded(content),
        flags=re.M,
    )
    return [re.sub(r"\[\[[^\[\]|]*\||\[\^[^\]]*\]|^```.*$|\^[^\s^]{1,12}\^", " ", text, flags=re.M)]


def _of_latex(content: bytes) -> list[str]:
    text = _decoded(content)
    body = text.partition("\\begin{document}")[2] or text
    return [_LATEX.sub(" ", body).replace("{", "").replace("}", "")]


def _of_rich_text(content: bytes) -> list[str]:
    text: list[str] = []
    hidden, depth = 0, 0  # depth of the group that is no text
    for found in _RTF.finditer(content.decode("latin-1")):
        token = found.group()
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        hidden = 0 if depth < hidden else hidden
        if token.startswith("{\\") and not hidden:
            hidden = depth
        elif not hidden:
            text.append(_rtf_text(token))
    return ["".join(text)]


def _rtf_text(token: str) -> str:
    if token.startswith("\\'"):
        return bytes.fromhex(token[2:4]).decode("cp1252", "replace")
    if code := re.match(r"\\u(-?\d+)", token):
        return chr(int(code.group(1)) % 65536)
    if token.startswith(("\\par", "\\cell", "\\row", "\\line", "\\tab")):
        return " "
    return "" if token[0] in "\\{}" else token.strip("\r\n")


_WAYS: dict[str, Callable[[bytes], list[str]]] = {
    "web_page": _of_page, "mail": _of_mail, "epub": _of_book, "word_file": _of_office,
    "presentation": _of_office, "open_document": _of_open_document, "spreadsheet": _of_sheets,
    "delimited_table": lambda content: [_decoded(content)], "notebook": _of_notebook,
    "markdown": _of_markdown, "latex": _of_latex, "rich_text": _of_rich_text,
}  # fmt: skip
