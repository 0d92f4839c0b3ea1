"""Document archives (.docx, .epub), with limits on the number of files and on their unpacked size."""

from __future__ import annotations

import zipfile
from io import BytesIO

from precis_text.bounded_io import MIB, size
from precis_text.errors import UserError

_MOST_FILES = 20_000
_MOST_TEXT = 64 * MIB  # of XML and HTML, unpacked
_TEXTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")


def open_archive(content: bytes, *, what: str) -> zipfile.ZipFile:
    """Open an archive; the file sizes in its directory limit how much of each file is read.

    Raises:
        UserError: it is damaged, encrypted, or unpacks to more than the limit.
    """
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UserError(f"is damaged or not {what} ({error}); save or download it again") from None
    files = archive.infolist()
    if len(files) > _MOST_FILES:
        raise UserError(f"contains {len(files):,} files; the limit is {_MOST_FILES:,}")
    unpacked = sum(file.file_size for file in files if file.filename.lower().endswith(_TEXTS))
    if unpacked > _MOST_TEXT:
        raise UserError(f"contains text that unpacks to {size(unpacked)}; the limit is {size(_MOST_TEXT)}")
    if any(file.flag_bits & 1 for file in files):
        raise UserError("is password-protected; save it without a password")
    return archive
