"""Forms of a mail's text that are older or rarer than plain text and HTML, and what is packed into plain text.

text/enriched     <bold>, <param>: marks of RFC 1896
text/calendar     an invitation: its subject, place and description
begin 644 name    a file in lines of letters (uuencode), =ybegin (yEnc)
BEGIN PGP MESSAGE encrypted text
"""

from __future__ import annotations

import re

from precis_text.documents.passages import Writer

_PARAMETER = re.compile(r"<param>.*?</param>", re.IGNORECASE | re.DOTALL)
_MARK = re.compile(r"</?[a-zA-Z][\w-]{0,59}>")
_SMALLER = "\ue003"
_PACKED = re.compile(
    r"^begin(?:-base64)? [0-7]{3,4} (?P<uu>[^\n]{1,200})\n.*?^(?:end|====)[ \t]*$|"
    r"^=ybegin [^\n]*name=(?P<yenc>[^\n]{1,200})\n.*?^=yend[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_ENCRYPTED = re.compile(r"^-----BEGIN PGP MESSAGE-----$.*?(?:^-----END PGP MESSAGE-----$|\Z)", re.M | re.S)
_FOLDED = re.compile(r"\r?\n[ \t]")
_ENTRY = re.compile(r"^(SUMMARY|LOCATION|DESCRIPTION|COMMENT)(?:;[^:\n]*)?:(.*)$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([nN,;\\])")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]*={0,2}\s*")


def plain_of_enriched(text: str) -> str:
    """Return enriched text without its marks: one line feed is a space, each further one is written."""
    text = _MARK.sub("", _PARAMETER.sub("", text.replace("<<", _SMALLER))).replace(_SMALLER, "<")
    return re.sub(r"\n+", lambda found: "\n" * (len(found.group()) - 1) or " ", text)


def plain_of_calendar(text: str) -> str:
    """Return the subject, place and description of an invitation, each as a paragraph."""
    entries = [found.group(2) for found in _ENTRY.finditer(_FOLDED.sub("", text))]
    shown = (_ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], entry) for entry in entries)
    return "\n\n".join(dict.fromkeys(entry.strip() for entry in shown))


def without_packed(text: str, writer: Writer) -> tuple[str, list[str]]:
    """Take packed files and encrypted parts out of a text; return the rest, and the names of the files."""
    names = []
    for found in _PACKED.finditer(text):
        names.append((found["uu"] or found["yenc"]).strip())
        writer.leave_out("", found.group())
    text = _PACKED.sub("", text)
    for found in _ENCRYPTED.finditer(text):
        writer.leave_out("encrypted text", found.group())
    return _ENCRYPTED.sub("", text), names


def behind_base64(encoded: str) -> str:
    """Return the plain text that a mailing list added behind a part in base64."""
    lines = encoded.strip().split("\n")
    end = next((number for number, line in enumerate(lines) if not _BASE64_LINE.fullmatch(line)), len(lines))
    return "\n".join(lines[end:])
