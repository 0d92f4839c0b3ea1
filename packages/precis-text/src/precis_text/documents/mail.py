"""E-mails (.eml): subject and body; quoted replies, signatures and attachments are left out and noted."""

from __future__ import annotations

import re
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from precis_text.documents.html_text import write_page
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_QUOTED_PAGE = re.compile(
    r"<(blockquote\b|div[^>]{0,2000}\b(?:class|id)=[\"']?(?:gmail_quote|divRplyFwdMsg|appendonsend|OutlookMessageHeader))",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"^\s*-{3,} ?(?:Original Message|Urspr.ngliche Nachricht|Message d.origine) ?-{3,}\s*$", re.I
)
_FORWARDS = re.compile(
    r"(?:fwd?|wg|tr|rv|enc|vb|doorst)\s*:", re.I
)  # at the start of a forwarded mail's subject
_REPLIES = re.compile(r"\A\s*(?:(?:re|aw|sv|antw|rif|odp|vs|fwd?|wg|tr|rv)\s*(?:\[\d+\])?\s*:\s*)+", re.I)
# Outlook puts the header of the answered mail above it, in the language of the person who answers.
_FROM = r"(?:From|Von|De|Da|Van|Från|Fra|Od|От)"
_SENT = (
    r"(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado(?: el)?|Enviada|Fecha|Inviato|Data|Verzonden|Skickat|Sendt|Wysłano"
    r"|Отправлено)"
)
_HEADER = re.compile(rf"^[* \t]*{_FROM}\s?:.+(?:\n.*){{0,2}}\n[* \t]*{_SENT}\s?:", re.MULTILINE)
_TAG = r"<[^>]{0,2000}>"
_HEADER_PAGE = re.compile(
    rf"<(?:p|div|table)\b[^>]{{0,2000}}>(?:\s|{_TAG}){{0,40}}{_FROM}\s*:(?:[^<]|{_TAG}){{1,600}}?{_SENT}\s*:",
    re.IGNORECASE,
)
_RULE = re.compile(r"^\s*_{5,}\s*$")
_SAYS = re.compile(  # "On Monday Ann wrote:", perhaps on two or three lines
    r"(?:\b(?:wrote|writes|schrieb|écrit|escribió|escreveu|scritto|schreef|skrev|napisał\w*|kirjoitti|написал\w*)\b.{0,80}"
    r"|\d.{0,200}@.{0,120}|@.{0,160}\d.{0,80}|写道|写信给.{0,80})[:：]\s*$",
    re.IGNORECASE,
)
_MOST_SAYS = 3  # lines


def read(content: bytes) -> Passages:
    """Read an e-mail.

    Raises:
        UserError: it lacks a header, is encrypted, or its body contains no text.
    """
    message = BytesParser(policy=policy.default).parsebytes(content)
    if not any(name in message for name in ("from", "to", "subject", "date", "received")):
        raise UserError("lacks an e-mail header (From, To, Subject, Date); it is damaged or not an e-mail")
    if message.get_content_type() == "multipart/encrypted" or "pkcs7-mime" in message.get_content_type():
        raise UserError("is encrypted; decrypt it in your mail program and save it again")
    body = message.get_body(preferencelist=("plain", "html"))
    writer = Writer()
    subject = str(message.get("subject", ""))
    writer.heading(_REPLIES.sub("", subject))
    if isinstance(body, EmailMessage):
        add = _add_page if body.get_content_subtype() == "html" else _add_text
        add(body, writer, is_forward=bool(_FORWARDS.match(subject.strip())))
    _name_attachments(message, writer)
    if not isinstance(body, EmailMessage) or len(writer.finished().text.strip()) == 0:
        raise UserError("its body contains no text" + "".join(f"; {note}" for note in writer.notes))
    return writer.finished()


def _add_text(body: EmailMessage, writer: Writer, *, is_forward: bool) -> None:
    lines = _decoded(body, writer).replace("\r\n", "\n").split("\n")
    if body.get_param("format") == "flowed":
        lines = _flowed(lines)
    own, left = _own_lines(lines, is_forward=is_forward)
    if any(line.strip() for line in own) and left:
        writer.notes.append(f"{left:,} quoted lines left out")
    else:
        own = [line.lstrip("> ") for line in lines]
    writer.add("\n".join(own))


def _add_page(body: EmailMessage, writer: Writer, *, is_forward: bool) -> None:
    page = _decoded(body, writer)
    marks = (_QUOTED_PAGE,) if is_forward else (_QUOTED_PAGE, _HEADER_PAGE)
    quoted = min((found.start() for mark in marks if (found := mark.search(page))), default=None)
    own = Writer()
    write_page(page[:quoted], own)
    if quoted is not None and own.finished().text.strip():
        writer.notes.append("quoted message left out")
        page = page[:quoted]
    write_page(page, writer)


def _decoded(part: EmailMessage, writer: Writer) -> str:
    """Decode a part; note an unknown character set and the characters that it lacks."""
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    charset = part.get_content_charset("utf-8")
    try:
        text = content.decode(charset, "replace")
    except LookupError:
        text = content.decode("utf-8", "replace")
        writer.notes.append(f"its character set {charset!r} is unknown and was read as UTF-8")
    if lost := text.count("�"):
        writer.notes.append(f"{lost:,} characters are not in its character set")
    return text


def _own_lines(lines: list[str], *, is_forward: bool) -> tuple[list[str], int]:
    """Return the sender's own lines and the number left out: quotations, their attributions, the signature."""
    end = next(
        (place for place, line in enumerate(lines) if line == "-- " or _FORWARDED.match(line)), len(lines)
    )
    header = None if is_forward else _HEADER.search("\n".join(lines[:end]))
    if header is not None:
        end = "\n".join(lines[:end]).count("\n", 0, header.start())
        while end and (_RULE.match(lines[end - 1]) or not lines[end - 1].strip()):
            end -= 1
    own: list[str] = []
    for line in lines[:end]:
        if not line.startswith(">"):
            own.append(line)
            continue
        _drop_blank_end(own)
        if said := _says(own):
            del own[-said:]
            _drop_blank_end(own)
    return own, sum(bool(line.strip()) for line in lines) - sum(bool(line.strip()) for line in own)


def _drop_blank_end(lines: list[str]) -> None:
    while lines and not lines[-1].strip():
        lines.pop()


def _says(own: list[str]) -> int:
    """Count the last lines that name the author of the quotation after them."""
    for count in range(1, min(_MOST_SAYS, len(own)) + 1):
        is_whole = len(own) == count or not own[-count - 1].strip()
        if not own[-count].strip():
            return 0
        if is_whole and _SAYS.search(" ".join(own[-count:])):
            return count
    return 0


def _flowed(lines: list[str]) -> list[str]:
    """Join each line that ends in a space with the next one (RFC 3676)."""
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
