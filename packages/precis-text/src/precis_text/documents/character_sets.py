"""Character sets under the names that pages and mails use, as browsers read them (the WHATWG's list).

gb2312 is gbk    shift_jis is cp932    ks_c_5601-1987 is cp949    iso-8859-1 and us-ascii are cp1252
"""

from __future__ import annotations

import codecs
import re

import webencodings

from precis_text.documents.passages import Writer

_LATIN = "cp1252"
_FEWEST_OF_UTF16, _ZEROS = 16, 0.7  # bytes, and the share of zeros in every second one
_ASCII = frozenset(("", "us-ascii", "ascii", "ansi_x3.4-1968"))
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]{1,40})|^\s*<\?xml[^>]{0,100}encoding\s*=\s*["']([\w.-]{1,40})""",
    re.IGNORECASE,
)
_DECLARED_WITHIN = 4096  # bytes
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def declared_in(page: bytes) -> str:
    """Return the character set that a page names in its first lines; "" if it names none."""
    found = _DECLARED.search(page[:_DECLARED_WITHIN])
    return (found[1] or found[2]).decode("ascii", "replace") if found else ""


def _unmarked(content: bytes) -> str:
    """Return the kind of UTF-16 of a text in Latin letters that lacks its mark; "" for any other text."""
    start = content[:400]
    if len(start) < _FEWEST_OF_UTF16 or len(content) % 2:
        return ""
    for name, zeros, letters in (
        ("utf-16-le", start[1::2], start[::2]),
        ("utf-16-be", start[::2], start[1::2]),
    ):
        if zeros.count(0) > _ZEROS * len(zeros) and not letters.count(0):
            return name
    return ""


def decode(content: bytes, declared: str, writer: Writer) -> str:
    """Decode a text by its byte order mark, by its declared character set, as UTF-8, or as Western European.

    What was guessed, and letters that are not in the character set, are noted in `writer`.

    Args:
        declared: the name of the character set, "" if there is none.
    """
    for mark, marked in _MARKS:
        if content.startswith(mark):
            return content.decode(marked, "replace")
    if unmarked := _unmarked(content):
        return content.decode(unmarked, "replace")
    name = declared.strip().strip("\"'").lower()
    codec = "" if name in _ASCII else _codec(name)
    for each in dict.fromkeys(filter(None, (codec, "utf-8"))):
        try:
            return content.decode(each)
        except UnicodeDecodeError:
            continue
    if codec and name not in ("utf-8", "utf8"):
        text = content.decode(codec, "replace")
        lost = text.count("\ufffd")
        writer.notes.append(
            f"{lost:,} {'letter is' if lost == 1 else 'letters are'} not in its character set {name}"
        )
        return text
    which = (
        "is not UTF-8 as declared"
        if codec
        else f"{declared!r} is unknown"
        if codec is None
        else "is not declared"
    )
    writer.notes.append(f"its character set {which} and was read as Western European")
    return content.decode(_LATIN, "replace")


def _codec(name: str) -> str | None:
    """Return Python's name of a character set; None if it is unknown."""
    found = webencodings.lookup(name)
    try:
        codec = found.codec_info.name if found is not None else codecs.lookup(name).name
        b"".decode(codec)  # codecs that are no character sets fail here
    except (LookupError, AttributeError):
        return None
    return "gb18030" if codec == "gbk" else codec
