"""E-mails (.eml), mailboxes (.mbox), digests and saved pages (.mht).

Subject and body are read; quotations, signatures and attachments are left out and noted. A mailbox and a digest are
several documents, each with its subject.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, a2b_qp
from dataclasses import replace
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from precis_text.documents.character_sets import decode
from precis_text.documents.html_text import write_page
from precis_text.documents.mail_bodies import (
    behind_base64,
    plain_of_calendar,
    plain_of_enriched,
    without_packed,
)
from precis_text.documents.mail_quotes import (
    as_mail,
    described,
    foreign_lines,
    is_forward,
    is_reply,
    is_stub,
    plain_subject,
    sent_at,
)
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError

_HEADER = ("from", "to", "subject", "date", "received")
_HEADER_LINES = re.compile(rb"^content-type:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_BOUNDARY = re.compile(rb"(boundary\s*=\s*)([^\s\";][^\s;]*)", re.IGNORECASE)
_BEGINS = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]*\d\d:\d\d[^\n]*\r?\n(?=[!-9;-~]+:)")
_KEPT_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_NOT_READ = frozenset(
    ("calendar", "vcard", "x-vcard", "directory", "rfc822-headers", "css", "xml", "rtf", "csv", "javascript")
)  # texts that are no prose
_MAILS = frozenset(("message/rfc822", "message/global", "message/news", "message/partial"))
_REPORTS = frozenset(("message/delivery-status", "message/disposition-notification"))
_APPLE = re.compile(rb"\s*(\d{1,12})\s*\n(?=[!-9;-~]+:)")
_USUAL_PREAMBLE = re.compile(r"mime|multi-?part", re.IGNORECASE)
_FIRST_BOUNDARY = re.compile(r"^--(\S[^\n]{0,68}?)[ \t]*$", re.MULTILINE)
_SIGNED = re.compile(
    r"^-{5}BEGIN PGP SIGNED MESSAGE-{5}\n(?:\w[^\n]*\n)*\n(.*?)"
    r"^-{5}BEGIN PGP SIGNATURE-{5}.*?(?:^-{5}END PGP SIGNATURE-{5}$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PLAIN = {"enriched": plain_of_enriched, "richtext": plain_of_enriched, "calendar": plain_of_calendar}
_AROUND = "text around the parts of the mail"
_LONGEST_PREAMBLE = 40  # words
_STUB_SHARE = 0.4  # of the words of the HTML part
_MOST_DOCUMENTS, _MOST_PARTS = 20_000, 5_000
_PART = re.compile(rb"^content-type:", re.IGNORECASE | re.MULTILINE)
_MOST_NESTED = 20


def read(content: bytes) -> Passages | list[Passages]:
    """Read an e-mail, a saved page, or the mails of a mailbox or digest.

    Raises:
        UserError: it lacks a header, is encrypted, or its body contains no text.
    """
    if apple := _APPLE.match(content):  # .emlx: the number of its bytes, the mail, settings
        content = content[apple.end() : apple.end() + int(apple[1])]
    starts = [found.start() for found in _BEGINS.finditer(content)] if content.startswith(b"From ") else []
    if starts:
        mails = [content[start:stop] for start, stop in zip(starts, [*starts[1:], len(content)], strict=True)]
        return _read_all([_parsed(_KEPT_FROM.sub(rb"\1", mail.partition(b"\n")[2])) for mail in mails])
    message = _parsed(content)
    if not any(name in message for name in _HEADER) and "snapshot-content-location" not in message:
        if not (pasted := as_mail(decode(content, "", Writer()).replace("\r\n", "\n"))):
            raise UserError(
                "lacks an e-mail header (From, To, Subject, Date); it is damaged or not an e-mail"
            )
        message = _parsed(pasted.encode())
    if message.get_content_type() == "multipart/digest":
        return _read_all([mail for part in _parts(message) if (mail := _embedded(part)) is not None])
    if "snapshot-content-location" in message or str(message.get("from", "")).startswith("<Saved by"):
        return _read_saved_page(message)
    return _read_mail(message)


def _parsed(content: bytes) -> EmailMessage:
    """Parse a mail; boundaries that lack their quotation marks get them. Raise `UserError` if it has too many parts."""
    if len(_PART.findall(content)) > _MOST_PARTS:
        raise UserError(f"has more than {_MOST_PARTS:,} parts; it may be damaged or malicious")
    quoted = _HEADER_LINES.sub(lambda found: _BOUNDARY.sub(rb'\1"\2"', found.group()), content)
    return BytesParser(policy=policy.default).parsebytes(quoted)


def _read_all(mails: list[EmailMessage]) -> list[Passages]:
    """Read several mails; those without text are counted in the notes of the first one."""
    if len(mails) > _MOST_DOCUMENTS:
        raise UserError(f"contains {len(mails):,} mails; the limit is {_MOST_DOCUMENTS:,}, so split it")
    found: list[Passages] = []
    problems = []
    for number, mail in enumerate(mails, start=1):
        try:
            found.append(_read_mail(mail, number=number))
        except UserError as error:
            problems.append(f"mail {number:,} not read: {error}")
    if not found:
        raise UserError("contains no mail with text" + (f"; {problems[0]}" if problems else ""))
    if problems:
        more = f"; so {len(problems) - 1:,} more" if len(problems) > 1 else ""
        found[0] = replace(found[0], notes=[*found[0].notes, problems[0] + more])
    return found


def _read_mail(message: EmailMessage, *, number: int = 0) -> Passages:
    """Read one mail; `number` is its place in a mailbox, or 0."""
    if message.get_content_type() == "multipart/encrypted" or "enveloped-data" in str(
        message.get("content-type", "")
    ):
        raise UserError("is encrypted; decrypt it in your mail program and save it again")
    reader = _Mail(message)
    found = reader.finished(f"mail {number:,}: {reader.subject}".rstrip(": ") if number else "")
    if not reader.has_body:
        raise UserError("its body contains no text" + "".join(f"; {note}" for note in found.notes))
    return found


def _read_saved_page(message: EmailMessage) -> Passages:
    """Read a page that a browser saved with its pictures."""
    from precis_text.documents.web_page import read_page

    for part in message.walk():
        if part.get_content_type() in ("text/html", "application/xhtml+xml") and isinstance(
            part, EmailMessage
        ):
            writer = Writer()
            return read_page(_decoded(part, writer), writer)
    raise UserError("contains no page; save it again in the browser, as a single file")


class _Mail:
    """A reader of one mail."""

    def __init__(self, message: EmailMessage, depth: int = 0) -> None:
        self.writer, self.attached = Writer(), list[str]()
        self.has_body = False
        self._depth = depth
        self._message = message
        full = " ".join(str(message.get("subject", "")).split())
        self.subject = plain_subject(full)
        self._forward = is_forward(full)
        self._newsletter = any(name in message for name in ("list-unsubscribe", "list-id"))
        self._answers = is_reply(full) or "in-reply-to" in message
        title = self.subject.rstrip(" !")  # a mark would make it a sentence
        self.writer.heading(title)
        self.writer.names.append(title)
        self._read(message)

    def finished(self, title: str = "") -> Passages:
        """Return the text, with a note that names the attachments."""
        if names := self.attached:
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
            self.writer.notes.append(f"attachments not read: {', '.join(names[:3])}{more}")
        return self.writer.finished(title)

    def _read(self, part: EmailMessage) -> None:
        kind, main = part.get_content_type(), part.get_content_maintype()
        if main == "multipart" and not part.is_multipart():
            self._read_undivided(part)
        elif kind == "multipart/alternative":
            self._read_best(_parts(part))
        elif kind == "multipart/related":
            self._read_related(part)
        elif main == "multipart":
            for each in _parts(part):
                self._read(each)
        elif kind in _MAILS:
            self._read_embedded(part)
        elif kind in _REPORTS:
            self.writer.leave_out("reports of mail servers", part.as_string())
        elif self._is_text(part):
            self._read_text(part)
        elif kind not in ("application/pgp-signature", "application/pkcs7-signature"):
            self._attach(part)
        self._name_around(part)

    def _is_text(self, part: EmailMessage) -> bool:
        """Check whether a part is text to read; an invitation is one if it is the whole mail."""
        if part.get_content_maintype() != "text" or part.is_attachment():
            return False
        kind = part.get_content_subtype()
        return kind not in _NOT_READ or (kind == "calendar" and part is self._message)

    def _attach(self, part: EmailMessage) -> None:
        self.attached.append(_name(part))
        if part.get_content_maintype() == "text" and not part.get_filename():
            self.writer.leave_out("", _decoded(part, Writer()))

    def _name_around(self, part: EmailMessage) -> None:
        """Name the text before and behind the parts of a mail, but for what programs usually write there."""
        preamble, epilogue = part.preamble or "", part.epilogue or ""
        is_usual = _USUAL_PREAMBLE.search(preamble) is not None and len(preamble.split()) < _LONGEST_PREAMBLE
        self.writer.leave_out("" if is_usual else _AROUND, preamble)
        self.writer.leave_out(_AROUND, epilogue)

    def _read_undivided(self, part: EmailMessage) -> None:
        """Read a mail of several parts whose boundary is another one than its header says, or none."""
        body = str(part.get_payload())
        found = _FIRST_BOUNDARY.search(body)
        if found is None or self._depth > _MOST_NESTED:
            part.set_type("text/plain")
            self._read_text(part)
            return
        header = f'Content-Type: multipart/mixed; boundary="{found[1]}"\n\n'
        self._depth += 1
        again = _parsed((header + body).encode("ascii", "surrogateescape"))
        if again.is_multipart():
            self._read(again)
        else:
            again.set_type("text/plain")
            self._read_text(again)

    def _read_related(self, part: EmailMessage) -> None:
        """Read the page of a group of files: the part that the group names, or the first one that is text."""
        parts = _parts(part)
        start = str(part.get_param("start", ""))
        named = [each for each in parts if start and str(each.get("content-id", "")).strip() == start]
        texts = [each for each in parts if each.get_content_maintype() in ("text", "multipart", "message")]
        root = next(iter([*named, *texts, *parts]), None)
        if root is not None:
            self._read(root)
        for each in parts:
            if each is not root and each.get_content_maintype() != "image":
                self._attach(each)

    def _read_best(self, parts: list[EmailMessage]) -> None:
        """Read one of several forms of the same text: the plain one, unless it is a stub."""
        texts = {part.get_content_subtype(): part for part in parts if part.get_content_maintype() == "text"}
        holders = [part for part in parts if part.is_multipart()]  # pages with their pictures
        plain, page = texts.get("plain"), texts.get("html")
        inner = [each for part in holders for each in part.walk() if each.get_content_type() == "text/html"]
        shown = page if page is not None else next(iter(inner), None)
        if plain is not None and shown is not None and _is_stub(text := _decoded(plain, Writer()), shown):
            self.writer.leave_out("a shorter plain form of the mail", text)
            plain = None
        chosen = next((each for each in (plain, page, *holders, *texts.values()) if each is not None), None)
        if chosen is not None:
            self._read(chosen)
        for part in parts:
            for each in part.walk() if part is not chosen else ():
                is_form = (
                    each.get_content_maintype() == "text" and each.get_content_subtype() not in _NOT_READ
                )
                if not is_form and each.get_content_maintype() not in ("multipart", "image"):
                    self._attach(each)

    def _read_embedded(self, part: EmailMessage) -> None:
        """Read a mail that is a part of this one."""
        mail = _embedded(part)
        if mail is None or self._depth > _MOST_NESTED:
            self.attached.append(_name(part))
            return
        inner = _Mail(mail, self._depth + 1)
        self.has_body = self.has_body or inner.has_body
        inner.finished()
        self.writer.take(inner.writer)

    def _read_text(self, part: EmailMessage) -> None:
        text = _decoded(part, self.writer).replace("\r\n", "\n").replace("\r", "\n")
        body = Writer()
        if part.get_content_subtype() in ("html", "x-amp-html") or _is_page(text):
            write_page(text, body, quotes=True)
        else:
            flowed = str(part.get_param("format", "")).lower() == "flowed"
            lines = text.split("\n")
            text = "\n".join(_flowed(lines, joined=_param(part, "delsp") == "yes") if flowed else lines)
            text, packed = without_packed(_SIGNED.sub(r"\1", text), body)
            self.attached += packed
            body.add(_PLAIN.get(part.get_content_subtype(), str)(text).replace("\f", "\n"))
        if str(part.get("content-transfer-encoding", "")).strip().lower() == "base64":
            body.leave_out("text behind an encoded part", behind_base64(str(part.get_payload())))
        found = body.finished()
        self.has_body = self.has_body or bool(found.text.strip())
        self.writer.notes += found.notes
        for _, left in found.left:
            self.writer.leave_out("", left)
        self._write_own(found)

    def _write_own(self, body: Passages) -> None:
        """Write the lines that are the sender's own; all lines if the sender wrote none."""
        lines = body.text.split("\n")
        kinds = foreign_lines(
            lines,
            forward=self._forward,
            subject=self.subject if self._answers else "",
            sent=sent_at([f"Date: {self._message.get('date', '')}"]),
            newsletter=self._newsletter
            or bool(re.search("unsubscribe|abmelden|abbestellen|désabonner", body.text, re.I)),
        )
        if not any(line.strip() and not kind for line, kind in zip(lines, kinds, strict=True)):
            self.writer.add("\n".join(re.sub(r"^(?:\s{0,3}>)+ ?", "", line) for line in lines))
            return
        start = 0
        block: list[tuple[int, int]] = []
        for line, kind in zip([*lines, ""], [*kinds, ""], strict=True):
            stop = start + len(line)
            if kind:
                self.writer.leave_out("", line)
            if kind or not line.strip():
                if block:
                    self.writer.add_from(body, block[0][0], block[-1][1])
                block = []
            else:
                block.append((start, stop))
            start = stop + 1
        self.writer.notes += [note for note in described(kinds) if note not in self.writer.notes]


def _parts(part: EmailMessage) -> list[EmailMessage]:
    return (
        [each for each in part.iter_parts() if isinstance(each, EmailMessage)] if part.is_multipart() else []
    )


def _embedded(part: EmailMessage) -> EmailMessage | None:
    """Return the mail that a part holds, also an encoded one."""
    if part.get_content_type() not in _MAILS:
        return None
    inner: Any = part.get_payload()
    mail = inner[0] if isinstance(inner, list) and inner else None
    coding = str(part.get("content-transfer-encoding", "")).strip().lower()
    if isinstance(mail, EmailMessage) and coding in ("base64", "quoted-printable"):
        encoded = mail.as_bytes(policy=policy.compat32)
        try:
            return _parsed(a2b_base64(encoded) if coding == "base64" else a2b_qp(encoded))
        except Error:
            return None
    return mail if isinstance(mail, EmailMessage) else None


def _name(part: Any) -> str:
    return part.get_filename() or part.get_content_type()


def _param(part: EmailMessage, name: str) -> str:
    return str(part.get_param(name, "")).lower()


def _is_page(text: str) -> bool:
    return text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))


def _is_stub(plain: str, page: Any) -> bool:
    """Check whether a plain text says less than the page of the same mail."""
    shown = Writer()
    write_page(_decoded(page, Writer()), shown)
    words, full = len(plain.split()), len(shown.finished().text.split())
    return (is_stub(plain) and full > 2 * words) or words < _STUB_SHARE * full


def _decoded(part: EmailMessage, writer: Writer) -> str:
    """Decode a part by the character set that it names."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    declared = part.get_content_charset("") or ""
    if not declared and part.get_content_subtype() == "html":
        found = re.search(
            rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.-]{1,40})", content[:4096], re.IGNORECASE
        )
        declared = found[1].decode() if found else ""
    return decode(content, declared, writer)


def _flowed(lines: list[str], *, joined: bool) -> list[str]:
    """Join each line that ends in a space with the next one, if both are quoted alike (RFC 3676).

    Args:
        joined: whether the space at the end is a mark only (DelSp=yes).
    """
    found: list[str] = []
    depth, goes_on = -1, False
    for line in lines:
        bare = line.lstrip(">")
        marks = len(line) - len(bare)
        text = bare[1:] if bare.startswith(" ") and (marks or bare[1:2] in (" ", ">", "F")) else bare
        if goes_on and marks == depth and text != "-- ":
            found[-1] += text
        else:
            found.append(">" * marks + (" " if marks else "") + text)
        goes_on, depth = text.endswith(" ") and text != "-- ", marks
        if goes_on and joined:
            found[-1] = found[-1][:-1]
    return found
