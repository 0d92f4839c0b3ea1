"""Compare the words of PDFs, and their order, with those of pdftotext.

    python -m benchmarks.pdf_reading_order [--out FILE]

The files are the test data in the source distributions of pikepdf and ocrmypdf (MPL-2.0), pypdf (BSD-3-Clause) and
rst2pdf (MIT). They are fetched by name from the package index into a temporary folder, each content once. pdftotext is
in Debian's package poppler-utils.

    words   share of pdftotext's words that precis gives, or names as left out
    order   share of neighbouring words in pdftotext's reading order that are neighbours in precis's text

pdftotext knows no paragraphs and keeps running heads, so a file below a bound is one to look at, not always a fault.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from precis_text.documents.reader import read_content
from precis_text.errors import UserError

SOURCES = ("pikepdf", "pypdf", "ocrmypdf", "rst2pdf")
_FEWEST_WORDS = 20
_WORDS, _ORDER = 0.95, 0.8  # below these a file is named


@dataclass(frozen=True)
class Compared:
    """The comparison of one file; `notes` holds what precis said."""

    name: str
    count: int
    words: float
    order: float
    notes: tuple[str, ...]


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, with hyphens at line ends joined."""
    joined = re.sub(r"(?<=\w)[-\u00ad\u2010]\s*\n\s*(?=[^\W\d_])", "", text)
    return re.findall(r"[^\W_]+", joined.lower())


def share(wanted: Sequence[object], found: Sequence[object]) -> float:
    """Return the share of `wanted` in `found`, with repetitions, in 0 to 1."""
    wanted_counts = Counter(wanted)
    return (wanted_counts & Counter(found)).total() / max(1, wanted_counts.total())


def compare(path: Path) -> Compared | None:
    """Compare one file; None if pdftotext finds too few words in it, or cannot read it."""
    done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, check=False, timeout=120)
    wanted = words_of(done.stdout.decode("utf-8", "replace"))
    if done.returncode or len(wanted) < _FEWEST_WORDS:
        return None
    try:
        found = read_content(path.read_bytes(), name=path.name)
    except UserError as error:
        return Compared(path.name, len(wanted), 0.0, 0.0, (str(error),))
    ours = words_of(found.text)
    order = share([*pairwise(wanted)], [*pairwise(ours)])
    return Compared(path.name, len(wanted), share(wanted, ours), order, tuple(found.notes))


def fetched(folder: Path) -> Iterator[Path]:
    """Yield the PDFs in the source distributions of `SOURCES`."""
    for name in SOURCES:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", name]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    yield from _pdfs(folder)


def _pdfs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.pdf") if path.is_file())


def main() -> int:
    """Print a line for each file below a bound, and the medians; return 1 if fewer than 40 files are compared."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=Path, help="a folder of PDFs to compare in place of the fetched ones")
    parser.add_argument("--out", type=Path, help="a JSON file for all figures")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = _pdfs(chosen.files) if chosen.files else fetched(Path(folder))
        distinct = {path.read_bytes(): path for path in files}.values()
        found = [one for path in distinct if (one := compare(path))]
    for one in found:
        if one.words < _WORDS or one.order < _ORDER:
            print(
                f"{one.name}: words {one.words:.3f}, order {one.order:.3f} of {one.count}; {'; '.join(one.notes)}"
            )
    if found:
        words, order = median(one.words for one in found), median(one.order for one in found)
        whole = sum(one.words >= _WORDS for one in found)
        print(
            f"{len(found)} files: median words {words:.3f}, order {order:.3f}; {whole} give {_WORDS:.0%} of the words"
        )
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return 0 if len(found) >= 40 else 1


if __name__ == "__main__":
    sys.exit(main())
