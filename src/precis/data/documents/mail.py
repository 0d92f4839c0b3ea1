"""E-mails (.eml): subject and body; quoted replies, signatures and attachments are left out and named."""

from __future__ import annotations

import re
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from precis.data.documents.page_text import write_page
from precis.data.documents.passages import Passages, Writer
from precis.errors import UserError

_QUOTED_PAGE = re.compile(
    r"<(blockquote\b|div[^>]*\b(?:class|id)=[\"']?(?:gmail_quote|divRplyFwdMsg|appendonsend|OutlookMessageHeader))",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"^\s*-{3,} ?(?:Original Message|Urspr.ngliche Nachricht|Message d.origine) ?-{3,}\s*$", re.I
)
_SAYS = re.compile(r"^[^\n>]{3,200}:\s*$")  # "On Monday Ann wrote:"


def read(content: bytes) -> Passages:
    """Read an e-mail.

    Raises:
        UserError: it has no header, is encrypted, or its body holds no text.
    """
    message = BytesParser(policy=policy.default).parsebytes(content)
    if not any(name in message for name in ("from", "to", "subject", "date", "received")):
        raise UserError("has no header of an e-mail (From, To, Subject, Date); it is broken or no e-mail")
    if message.get_content_type() == "multipart/encrypted" or "pkcs7-mime" in message.get_content_type():
        raise UserError("is encrypted; decrypt it in your mail program and save it again")
    body = message.get_body(preferencelist=("plain", "html"))
    writer = Writer()
    writer.heading(str(message.get("subject", "")))
    if isinstance(body, EmailMessage):
        (_add_page if body.get_content_subtype() == "html" else _add_text)(body, writer)
    _name_attachments(message, writer)
    if not isinstance(body, EmailMessage) or len(writer.finished().text.strip()) == 0:
        raise UserError("its body holds no text" + "".join(f"; {note}" for note in writer.notes))
    return writer.finished()


def _add_text(body: EmailMessage, writer: Writer) -> None:
    lines = _decoded(body, writer).replace("\r\n", "\n").split("\n")
    if body.get_param("format") == "flowed":
        lines = _flowed(lines)
    own, left = _own_lines(lines)
    if any(line.strip() for line in own) and left:
        writer.notes.append(f"{left:,} quoted lines left out")
    else:
        own = [line.lstrip("> ") for line in lines]
    writer.add("\n".join(own))


def _add_page(body: EmailMessage, writer: Writer) -> None:
    page = _decoded(body, writer)
    quoted = _QUOTED_PAGE.search(page)
    own = Writer()
    write_page(page[: quoted.start()] if quoted else page, own)
    if quoted and own.finished().text.strip():
        writer.notes.append("the quoted message left out")
        page = page[: quoted.start()]
    write_page(page, writer)


def _decoded(part: EmailMessage, writer: Writer) -> str:
    """The text of a part; what its character set does not have is counted."""
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    charset = part.get_content_charset("utf-8")
    try:
        text = content.decode(charset, "replace")
    except LookupError:
        text = content.decode("utf-8", "replace")
        writer.notes.append(f"its character set {charset!r} is not known and was read as UTF-8")
    if lost := text.count("�"):
        writer.notes.append(f"{lost:,} characters are not of its character set")
    return text


def _own_lines(lines: list[str]) -> tuple[list[str], int]:
    """The lines that the sender wrote, and how many were left out: quotations, who said them, the signature."""
    end = next(
        (place for place, line in enumerate(lines) if line == "-- " or _FORWARDED.match(line)), len(lines)
    )
    own: list[str] = []
    for line in lines[:end]:
        if not line.startswith(">"):
            own.append(line)
            continue
        while own and not own[-1].strip():
            own.pop()
        if own and _SAYS.match(own[-1]) and (len(own) < 2 or not own[-2].strip() or "\n" not in own[-1]):
            own.pop()
    return own, sum(bool(line.strip()) for line in lines) - sum(bool(line.strip()) for line in own)


def _flowed(lines: list[str]) -> list[str]:
    """Lines that end in a space go on in the next one (RFC 3676)."""
    joined: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on and joined and not line.startswith(">"):
            joined[-1] += line
        else:
            joined.append(line)
        goes_on = line.endswith(" ") and line != "-- "
    return joined


def _name_attachments(message: EmailMessage, writer: Writer) -> None:
    names = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    if names:
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        writer.notes.append(f"attachments not read: {', '.join(names[:3])}{more}")
