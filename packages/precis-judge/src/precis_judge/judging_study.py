"""A study on disk: a folder with checksums for protocol, documents and layout, which also collects verdicts.

study.json         format, protocol, design, systems
documents.jsonl    one source per line, with every system's summary
items.jsonl        one comparison per line
pages.jsonl        one page of a judge per line, in order
seal.json          sizes and checksums of these four
links.json         each judge's token; only the owner may read it
verdicts.jsonl     a journal (`precis.storage.journal`) with one verdict per line
report.json/.html  written by `precis judge report`
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from precis.storage.atomic import replacing
from precis.storage.seal import DamagedError, check_seal, has_seal, sealed_digests, write_folder
from precis_judge.protocols import Protocol, protocol_of
from precis_judge.study_design import Comparison, Design, Showing, StudyLayout, lay_out
from precis_judge.system_summaries import JudgedDocument
from precis_text.bounded_io import open_regular, read_json, stat_or_none
from precis_text.errors import UserError

_FORMAT = "precis-judging-1"
VERDICTS = "verdicts.jsonl"
_LINKS = "links.json"
_REMADE = (_LINKS, "report.json", "report.html")  # a study without verdicts may be created again


@dataclass(frozen=True, kw_only=True)
class JudgingStudy:
    """A study: its questions, documents and judges. `systems` are in the order in which they were named."""

    folder: Path
    protocol: Protocol
    design: Design
    systems: tuple[str, ...]
    documents: Mapping[str, JudgedDocument]
    layout: StudyLayout

    @cached_property
    def digest(self) -> str:
        """A digest of the protocol, documents and layout, by which verdicts belong to the study."""
        sums = json.dumps(sealed_digests(self.folder), sort_keys=True)
        return hashlib.sha256(sums.encode()).hexdigest()[:16]

    def shown(self, page: Showing) -> tuple[str, str, str]:
        """Return the source, the left summary and the right summary of a page."""
        item = self.layout.items[page.item]
        here = self.documents[item.document]
        other = self.documents[item.planted] if item.planted else here
        texts = here.summaries[item.first], other.summaries[item.second]
        left, right = texts if page.first_left else texts[::-1]
        return here.document, left, right

    def truth(self, page: Showing) -> str:
        """Return the human summary that the page shows next to both summaries; "" if the study shows none."""
        return self.documents[self.layout.items[page.item].document].truth

    @cached_property
    def links(self) -> dict[str, str]:
        """Judge -> token, created at the first use and kept.

        Raises:
            UserError: the file was edited by hand.
        """
        file = self.folder / _LINKS
        if stat_or_none(file) is None:
            made = {judge: secrets.token_urlsafe(24) for judge in self.design.judges}
            with replacing(file) as out:
                Path(out.name).chmod(0o600)  # before it has any content
                out.write((json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode())
            return made
        found = read_json(file)
        tokens = list(found.values())
        valid = all(isinstance(one, str) and len(one) >= 16 for one in tokens)
        if found.keys() != set(self.design.judges) or not valid or len(set(tokens)) < len(tokens):
            raise UserError(f"{file} does not have a token for each judge; delete it to create new links")
        return found


def new_study(
    folder: Path, documents: Sequence[JudgedDocument], design: Design, protocol: Protocol
) -> JudgingStudy:
    """Draw a study and write it to `folder`, which is empty or contains a study without verdicts.

    Raises:
        UserError: `lay_out` fails, or the folder contains verdicts or files that precis did not write.
    """
    layout = lay_out(documents, design, against=protocol.against)
    study = JudgingStudy(
        folder=folder, protocol=protocol, design=design, systems=tuple(documents[0].summaries),
        documents={one.id: one for one in documents}, layout=layout,
    )  # fmt: skip
    if stat_or_none(folder / VERDICTS) is not None:
        raise UserError(f"{folder} already has verdicts; name another folder with --out")
    write_folder(folder, lambda place: _write(study, place), declared=_REMADE if has_seal(folder) else ())
    return study


def _write(study: JudgingStudy, folder: Path) -> None:
    head = {
        "format": _FORMAT, "protocol": study.protocol.to_dict(), "design": study.design.to_dict(),
        "systems": study.systems, "equal": study.layout.equal,
    }  # fmt: skip
    (folder / "study.json").write_text(json.dumps(head, indent=1, ensure_ascii=False) + "\n", "utf-8")
    _write_lines(folder / "documents.jsonl", map(asdict, study.documents.values()))
    _write_lines(folder / "items.jsonl", map(asdict, study.layout.items))
    pages = ({"judge": judge, **asdict(one)} for judge, mine in study.layout.pages.items() for one in mine)
    _write_lines(folder / "pages.jsonl", pages)


def _write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


def open_study(folder: Path) -> JudgingStudy:
    """Open the study in a folder.

    Raises:
        UserError: the folder is not a study, or has changed since it was created.
    """
    if stat_or_none(folder / "study.json") is None:
        raise UserError(f"{folder} is not a study; make one with precis judge new")
    try:
        check_seal(folder, thorough=True)
    except DamagedError as error:
        raise UserError(f"{folder} has changed since the study was created: {error}") from None
    head = read_json(folder / "study.json")
    if head.get("format") != _FORMAT:
        raise UserError(f"{folder}/study.json is not in format {_FORMAT}, which this version reads")
    design = Design.from_dict({**head["design"], "judges": tuple(head["design"]["judges"])})
    pages: dict[str, list[Showing]] = {judge: [] for judge in design.judges}
    for record in _lines(folder / "pages.jsonl"):
        pages[record.pop("judge")].append(Showing(**record))
    return JudgingStudy(
        folder=folder, protocol=protocol_of(head["protocol"], f"{folder}/study.json"),
        design=design, systems=tuple(head["systems"]),
        documents={record["id"]: JudgedDocument(**record) for record in _lines(folder / "documents.jsonl")},
        layout=StudyLayout(
            items=tuple(Comparison(**record) for record in _lines(folder / "items.jsonl")),
            pages={judge: tuple(mine) for judge, mine in pages.items()},
            equal=tuple(map(tuple, head["equal"])),
        ),
    )  # fmt: skip


def _lines(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file whose checksum has been checked."""
    with open_regular(file) as lines:
        return [json.loads(line) for line in lines]
