"""Data sets that a released model may be trained on, with their licences, pairs and texts."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from precis_text.errors import UserError

Row = Mapping[str, Any]

OPEN_LICENCES = ("CC BY", "CC BY-SA", "CC0", "MIT", "BSD-3-Clause", "Apache-2.0", "public domain")
"""Licences that allow training a released model, with attribution."""
_CLOSED = ("NC", "ND")


def _own(row: Row) -> Iterator[dict[str, Any]]:
    """Yield the row itself as a pair."""
    yield {"document": row["document"], "summaries": row.get("summaries") or [row["summary"]]}


def _answers(row: Row) -> Iterator[dict[str, Any]]:
    """Yield the answers to a meeting's queries, each with its relevant turns (Zhong et al. 2021)."""
    turns = str(row["document"]).splitlines()
    for query in row["specific_queries"]:
        spans = query.get("relevant_text_span") or []
        about = [turn for first, last in spans for turn in turns[int(first) : int(last) + 1]]
        if about:
            yield {"document": "\n".join(about), "summaries": [query["answer"]]}


def _openly_licensed(row: Row) -> Iterator[dict[str, Any]]:
    """Yield the row if its own licence is open."""
    if is_open(str(row["text_license"])):
        yield from _own(row)


def _translated(row: Row) -> Iterator[dict[str, Any]]:
    """Yield the row as a pair with its language; without one, it is German."""
    summary, document = row["summary"], row["document"]
    yield {
        "document": document if isinstance(document, str) else "\n".join(document),
        "summaries": [summary if isinstance(summary, str) else " ".join(summary)],
        "language": row.get("lang", "de"),
    }


@dataclass(frozen=True, kw_only=True)
class OpenSet:
    """A data set that a released model may be trained on.

    Attributes:
        name: its name in runs and tables.
        place: its folder below the folder of all data sets.
        licence: the licence of its rows.
        credit: the names for attribution.
        pairs: converts a row to pairs.
        languages: the languages of its rows; in a set of several, each pair has its own as `language`.
    """

    name: str
    place: str
    licence: str
    credit: str
    pairs: Callable[[Row], Iterator[dict[str, Any]]] = _own
    languages: tuple[str, ...] = ("en",)


SETS = (
    OpenSet(name="openstax", place="open_pairs/openstax", licence="CC BY 4.0", credit="OpenStax textbooks"),
    OpenSet(
        name="usgov_posts",
        place="open_pairs/usgov_posts_cc0",
        licence="CC0",
        credit="posts of US government sites",
    ),
    OpenSet(
        name="ccby_docs",
        place="open_pairs/ccby_docs",
        licence="CC BY 4.0, MIT",
        credit="technical documentation of Microsoft and others",
    ),
    OpenSet(
        name="proposals",
        place="open_pairs/proposals",
        licence="CC0, public domain, MIT, Apache-2.0, CC BY 3.0",
        credit="design proposals of Ethereum, Python, Bitcoin and others",
    ),
    OpenSet(
        name="govulndb",
        place="open_pairs/govulndb_ccby",
        licence="CC BY 4.0",
        credit="Go Vulnerability Database",
    ),
    OpenSet(name="scitldr", place="scitldr", licence="Apache-2.0", credit="SciTLDR (Cachola et al. 2020)"),
    OpenSet(
        name="qmsum",
        place="qmsum",
        licence="MIT, CC BY 4.0",
        credit="QMSum (Zhong et al. 2021), AMI, ICSI",
        pairs=_answers,
    ),
    OpenSet(
        name="mts_dialog",
        place="mts_dialog",
        licence="CC BY 4.0",
        credit="MTS-Dialog (Ben Abacha et al. 2023)",
    ),
    OpenSet(
        name="convosumm_email",
        place="convosumm_email",
        licence="CC BY-SA 4.0",
        credit="ConvoSumm (Fabbri et al. 2021), W3C mailing lists",
    ),
    OpenSet(
        name="gum",
        place="gum_discourse",
        licence="CC BY, CC BY-SA",
        credit="GUM (Zeldes 2017)",
        pairs=_openly_licensed,
    ),
)


EXTENSIONS = tuple(
    OpenSet(name=name, place=f"open_pairs/{folder}", licence=licence, credit=credit)
    for name, folder, licence, credit in (
        ("science_abstract", "science_abstract", "CC BY, CC0", "articles of Europe PMC, each by its DOI"),
        ("science_lay", "science_lay", "CC BY, CC0", "articles of Europe PMC, each by its DOI"),
        (
            "open_papers",
            "open_papers",
            "CC BY",
            "OA-STM corpus (Elsevier Labs), Journal of Open Source Education",
        ),
        ("crs_reports", "crs_reports", "public domain", "Congressional Research Service"),
        ("optech_talk", "optech_talk", "MIT", "Bitcoin Optech"),
        ("optech_news", "optech_news", "MIT", "Bitcoin Optech"),
        ("ethereum_minutes", "ethereum_minutes", "CC BY-SA 3.0", "calls of Ethereum's developers"),
        ("ami_minutes", "ami_minutes", "CC BY 4.0", "AMI Meeting Corpus (Carletta et al. 2005)"),
        (
            "clinical_talk",
            "clinical_talk",
            "CC BY 4.0",
            "PriMock57 (Papadopoulos Korfiatis et al. 2022), ACI-Bench",
        ),
        ("monero_posts", "monero_posts", "BSD-3-Clause", "the Monero project"),
        ("web_posts", "web_posts", "CC BY 4.0, MIT", "The Carpentries, Go, React, Scientific Python, BSSw"),
        ("opensuse_news", "opensuse_news", "CC BY-SA, CC BY 4.0", "openSUSE"),
        ("carpentries_keypoints", "carpentries_keypoints", "CC BY 4.0", "lessons of The Carpentries"),
        ("gnome_help", "gnome_help", "CC BY 3.0", "GNOME user documentation"),
        ("squality", "squality_ccby", "CC BY 4.0", "SQuALITY (Wang et al. 2022), Project Gutenberg"),
    )
)
"""English data sets that the choice of sentences is trained on, in addition to `SETS`."""


OTHER_LANGUAGES = tuple(
    OpenSet(name=name, place=place, licence=licence, credit=credit, pairs=_translated, languages=languages)
    for name, place, licence, credit, languages in (
        ("klexikon_de", "klexikon_de", "CC BY-SA", "Klexikon (Aumiller and Gertz 2022), Wikipedia", ("de",)),
        ("dewiki_lead", "open_pairs/dewiki_lead", "CC BY-SA 3.0", "Wikipedia", ("de",)),
        (
            "gnome_help_de_es_fr_ru",
            "open_pairs/gnome_help_de_es_fr_ru",
            "CC BY 3.0",
            "GNOME user documentation",
            ("de", "es", "fr", "ru"),
        ),
        (
            "optech_news_de_fr_cs",
            "open_pairs/optech_news_de_fr_cs",
            "MIT",
            "Bitcoin Optech",
            ("de", "fr", "cs"),
        ),
    )
)
"""Data sets in other languages, which the choice of sentences is trained on too."""


TEXTS = (
    OpenSet(
        name="gutenberg", place="pretrain_gutenberg", licence="public domain", credit="Project Gutenberg"
    ),
    OpenSet(
        name="scotus",
        place="pretrain_scotus_oral",
        licence="public domain",
        credit="oral arguments before the Supreme Court of the United States",
    ),
    OpenSet(name="wikinews", place="pretrain_wikinews", licence="CC BY 2.5", credit="Wikinews"),
)
"""Plain text for pre-training and for pairs of principal sentences, in addition to the documents of `SETS`."""


def is_open(licence: str) -> bool:
    """Return whether a licence allows training a released model on a text."""
    return licence.startswith(OPEN_LICENCES) and not any(
        word in _CLOSED for word in licence.replace("-", " ").split()
    )


def check_rows(folders: Iterable[Path]) -> int:
    """Check the source and the licence of every row below some folders, and return the number of rows.

    Raises:
        UserError: a row lacks a source, or its licence does not allow training a released model on it.
    """
    count = 0
    for path in sorted(file for folder in folders for file in folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = json.loads(line)
                licences = str(row.get("licence", "")).split(", ")
                if not row.get("source") or not all(map(is_open, licences)):
                    raise UserError(
                        f"{path}, line {number}: a released model may not be trained on this row with source "
                        f"{row.get('source')!r} and licence {row.get('licence')!r}; remove it"
                    )
                count += 1
    return count


def pairs_of(chosen: OpenSet, source: Path, split: str) -> Iterator[dict[str, Any]]:
    """Return the pairs of a split of the set in the folder `source`: `document` and `summaries`.

    Raises:
        UserError: the split does not exist.
    """
    return (pair for row in _rows(source, split) for pair in chosen.pairs(row))


def _rows(source: Path, split: str) -> Iterator[Row]:
    """Yield the rows of a split as stored in its file."""
    for ending, opened in ((".jsonl.gz", gzip.open), (".jsonl.xz", lzma.open)):
        path = source / f"{split}{ending}"
        if path.is_file():
            with cast(TextIO, opened(path, "rt", encoding="utf-8")) as file:
                yield from map(json.loads, file)
            return
    raise UserError(f"{source} contains neither {split}.jsonl.gz nor {split}.jsonl.xz; add one of them")


def texts_of(chosen: OpenSet, source: Path, split: str) -> Iterator[str]:
    """Yield the documents of a set, or the texts of plain text; every fiftieth text without a split is dev."""
    if chosen in SETS:
        yield from (str(pair["document"]) for pair in pairs_of(chosen, source, split))
        return
    for number, row in enumerate(_rows(source, "train")):
        if (number % 50 == 0) == (split == "dev"):
            yield str(row["text"])
