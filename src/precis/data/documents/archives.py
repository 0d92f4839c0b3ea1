"""Archives of documents (.docx, .epub): how many files they hold, and how far those grow, has bounds."""

from __future__ import annotations

import zipfile
from io import BytesIO

from precis.errors import UserError
from precis.untrusted import MIB, size

_MOST_FILES = 20_000
_MOST_TEXT = 64 * MIB  # of XML and HTML, unpacked
_TEXTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")


def open_archive(content: bytes, *, what: str) -> zipfile.ZipFile:
    """Open an archive; what its directory says of the files' sizes is a bound on what is read of them.

    Raises:
        UserError: it is broken, encrypted, or unpacks to more than is read.
    """
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UserError(f"is broken or not {what} ({error}); save or download it again") from None
    files = archive.infolist()
    if len(files) > _MOST_FILES:
        raise UserError(f"holds {len(files):,} files; at most {_MOST_FILES:,} are read")
    unpacked = sum(file.file_size for file in files if file.filename.lower().endswith(_TEXTS))
    if unpacked > _MOST_TEXT:
        raise UserError(f"holds texts that unpack to {size(unpacked)}; at most {size(_MOST_TEXT)} are read")
    if any(file.flag_bits & 1 for file in files):
        raise UserError("is locked with a password; save it without one")
    return archive
