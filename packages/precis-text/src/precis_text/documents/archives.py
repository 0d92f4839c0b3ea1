"""Document archives (.docx, .odt, .pptx, .epub), with limits on the number of files and on their unpacked size."""

from __future__ import annotations

import posixpath
import zipfile
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from lxml import etree

from precis_text.bounded_io import MIB, size
from precis_text.errors import UserError

_MOST_FILES = 20_000
_MOST_TEXT = 64 * MIB  # of XML and HTML, unpacked
_TEXTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".json")


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


def refuse_document_types(archive: zipfile.ZipFile, *, what: str, remedy: str) -> None:
    """Refuse document types, which an entity expansion bomb needs and office formats forbid.

    Raises:
        UserError: a part has one.
    """
    for name in archive.namelist():
        if name.endswith((".xml", ".rels")) and b"<!DOCTYPE" in archive.read(name):
            raise UserError(f"has a document type in {name}, which {what} forbids; {remedy}")


def part_of(archive: zipfile.ZipFile, name: str, *, what: str) -> Any:
    """Parse a part of an archive as XML, without entities and the network.

    Raises:
        UserError: it is missing or damaged, or has a document type, whatever its character set and name.
    """
    try:
        root = etree.fromstring(archive.read(name), _parser())
    except (KeyError, etree.XMLSyntaxError) as error:
        raise UserError(f"is damaged or not {what}: {name}: {error}; save or download it again") from None
    if root.getroottree().docinfo.doctype:
        raise UserError(f"has a document type in {name}, which {what} must not have; save it again")
    return root


def optional_part(archive: zipfile.ZipFile, name: str, *, what: str) -> Any:
    """Parse a part as `part_of` does; None if the archive lacks it."""
    return part_of(archive, name, what=what) if name in archive.namelist() else None


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_pis=True
    )


def local(element: Any) -> str:
    """Return an element's name without its namespace; "" for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Any, name: str) -> str:
    """Return the attribute of this local name, whatever its namespace; "" if there is none."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return ""


def own_text(element: Any) -> str:
    """Return the text directly in an element, before its first child; "" if it is blank."""
    text = element.text if isinstance(element.tag, str) else None
    return text if text and text.strip() else ""


def shown_branch(alternatives: Any) -> list[Any]:
    """Return what is in the branch of an `AlternateContent` that holds text; in the first one if none does."""
    branches = [each for each in alternatives if local(each)]
    for branch in branches:
        if any(own_text(each) or local(each) in ("relIds", "textpath", "chart") for each in branch.iter()):
            return [*branch]
    return [*branches[0]] if branches else []


def related(archive: zipfile.ZipFile, part: str, *, what: str) -> dict[str, tuple[str, str]]:
    """Return the parts of an office file that a part refers to, by their id: the last word of the kind, the name."""
    folder, name = posixpath.split(part)
    root = optional_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"), what=what)
    found = {}
    for each in root if root is not None else ():
        if local(each) == "Relationship" and each.get("TargetMode") != "External":
            target = unquote(each.get("Target", ""))
            place = (
                target.lstrip("/")
                if target.startswith("/")
                else posixpath.normpath(posixpath.join(folder, target))
            )
            found[each.get("Id", "")] = (each.get("Type", "").rpartition("/")[2], place)
    return found
