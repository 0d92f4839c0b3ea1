"""A study on disk: a sealed folder with protocol, documents and layout, beside which verdicts are collected.

study.json         format, protocol, design, systems
documents.jsonl    a source with every system's summary a line
items.jsonl        a comparison a line
pages.jsonl        a page of a judge a line, in order
seal.json          sizes and digests of these four
links.json         each judge's token; only the owner may read it
verdicts.jsonl     what judges said, a line each
report.json/.html  written by `precis judge report`
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from precis.errors import UserError
from precis.files import DamagedError, check_seal, has_seal, refuse_link, replacing, write_folder
from precis.judging.design import Comparison, Design, Showing, StudyLayout, lay_out
from precis.judging.protocols import Protocol, protocol_of
from precis.judging.sources import JudgedDocument
from precis.untrusted import JsonError, look_at, open_regular, parse_json, read_json

_FORMAT = "precis-judging-1"
VERDICTS = "verdicts.jsonl"
_LINKS = "links.json"
_REMADE = (_LINKS, "report.json", "report.html")  # a study without verdicts may be made anew


@dataclass(frozen=True, kw_only=True)
class JudgingStudy:
    """What was asked of whom. `systems` are in the order in which they were named."""

    folder: Path
    protocol: Protocol
    design: Design
    systems: tuple[str, ...]
    documents: Mapping[str, JudgedDocument]
    layout: StudyLayout

    def shown(self, page: Showing) -> tuple[str, str, str]:
        """The source, the left summary and the right one of a page."""
        item = self.layout.items[page.item]
        here = self.documents[item.document]
        other = self.documents[item.planted] if item.planted else here
        texts = here.summaries[item.first], other.summaries[item.second]
        left, right = texts if page.first_left else texts[::-1]
        return here.document, left, right

    @cached_property
    def links(self) -> dict[str, str]:
        """Judge -> token, made at the first use and kept.

        Raises:
            UserError: the file with them was changed by hand.
        """
        file = self.folder / _LINKS
        if look_at(file) is None:
            made = {judge: secrets.token_urlsafe(24) for judge in self.design.judges}
            with replacing(file) as out:
                Path(out.name).chmod(0o600)  # before there is anything to read
                out.write((json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode())
            return made
        found = read_json(file)
        tokens = list(found.values())
        valid = all(isinstance(one, str) and len(one) >= 16 for one in tokens)
        if found.keys() != set(self.design.judges) or not valid or len(set(tokens)) < len(tokens):
            raise UserError(
                f"{file}: does not have a token for each judge; delete it, and new links are made"
            )
        return found


def new_study(
    folder: Path, documents: Sequence[JudgedDocument], design: Design, protocol: Protocol
) -> JudgingStudy:
    """Lay a study out and write it to `folder`, which is empty or a study without verdicts.

    Raises:
        UserError: it cannot be laid out (`lay_out`), or the folder holds verdicts or what precis did not write.
    """
    layout = lay_out(documents, design, against=protocol.against)
    study = JudgingStudy(
        folder=folder,
        protocol=protocol,
        design=design,
        systems=tuple(documents[0].summaries),
        documents={one.id: one for one in documents},
        layout=layout,
    )
    if look_at(folder / VERDICTS) is not None:
        raise UserError(f"{folder}: has verdicts already; name another folder with --out")
    write_folder(folder, lambda place: _write(study, place), declared=_REMADE if has_seal(folder) else ())
    return study


def _write(study: JudgingStudy, folder: Path) -> None:
    head = {
        "format": _FORMAT,
        "protocol": study.protocol.to_dict(),
        "design": study.design.to_dict(),
        "systems": study.systems,
        "equal": study.layout.equal,
    }
    (folder / "study.json").write_text(json.dumps(head, indent=1, ensure_ascii=False) + "\n", "utf-8")
    _write_lines(folder / "documents.jsonl", map(asdict, study.documents.values()))
    _write_lines(folder / "items.jsonl", map(asdict, study.layout.items))
    pages = ({"judge": judge, **asdict(one)} for judge, mine in study.layout.pages.items() for one in mine)
    _write_lines(folder / "pages.jsonl", pages)


def _write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


def open_study(folder: Path) -> JudgingStudy:
    """The study in a folder.

    Raises:
        UserError: there is none, or it has changed since it was made.
    """
    if look_at(folder / "study.json") is None:
        raise UserError(f"{folder}: is no study; make one with precis judge new")
    try:
        check_seal(folder, thorough=True)
    except DamagedError as error:
        raise UserError(f"{folder}: has changed since the study was made: {error}") from None
    head = read_json(folder / "study.json")
    if head.get("format") != _FORMAT:
        raise UserError(f"{folder}/study.json: is not of the format {_FORMAT}, which this version reads")
    design = Design.from_dict({**head["design"], "judges": tuple(head["design"]["judges"])})
    pages: dict[str, list[Showing]] = {judge: [] for judge in design.judges}
    for record in _lines(folder / "pages.jsonl"):
        pages[record.pop("judge")].append(Showing(**record))
    return JudgingStudy(
        folder=folder,
        protocol=protocol_of(head["protocol"], f"{folder}/study.json"),
        design=design,
        systems=tuple(head["systems"]),
        documents={record["id"]: JudgedDocument(**record) for record in _lines(folder / "documents.jsonl")},
        layout=StudyLayout(
            items=tuple(Comparison(**record) for record in _lines(folder / "items.jsonl")),
            pages={judge: tuple(mine) for judge, mine in pages.items()},
            equal=tuple(map(tuple, head["equal"])),
        ),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    """The records of a file whose seal was checked."""
    with open_regular(file) as lines:
        return [json.loads(line) for line in lines]


def whole_lines(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Numbered records of a file that is appended to; what follows the last line break is torn and left out.

    Raises:
        UserError: it is no ordinary file, or a line holds no JSON object.
    """
    refuse_link(file)
    if look_at(file) is None:
        return []
    found = []
    with open_regular(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                record = parse_json(line)
            except JsonError as error:
                raise UserError(f"{file}, line {number}: {error}") from None
            if not isinstance(record, dict):
                raise UserError(f"{file}, line {number}: is no JSON object")
            found.append((number, record))
    return found
