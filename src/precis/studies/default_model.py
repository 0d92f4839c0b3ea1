"""The model in the box: from a pre-trained model and openly licensed pairs to a folder that may be released.

    data sets whose licence allows it -> pairs, each with its source and licence -> an extractor on the model's encoder

No row under a licence that forbids commerce or changes is read, and no press text.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

from precis.errors import UserError
from precis.files import write_folder
from precis.generation.compact import write_compact
from precis.generation.loading import load_model
from precis.generation.model_use import USE_FILE
from precis.generation.unit_scorer import load_scorer, save_scorer
from precis.phases.extract import train_extractor
from precis.phases.places import writing_to
from precis.recipes.extract import ExtractPlan
from precis.telling import Tell, silent
from precis.training import Trained

Row = Mapping[str, Any]

RELEASE = ExtractPlan(max_source=1536, train=replace(ExtractPlan().train, epochs=14, patience=5))
"""How the model in the box was trained."""
RELEASE_FOLDER = "release"

OPEN_LICENCES = ("CC BY", "CC BY-SA", "CC0", "MIT", "Apache-2.0", "public domain")
"""What a released model may be trained on, with attribution."""
_CLOSED = ("NC", "ND")


def _own(row: Row) -> Iterator[dict[str, Any]]:
    """The row itself."""
    yield {"document": row["document"], "summaries": row.get("summaries") or [row["summary"]]}


def _answers(row: Row) -> Iterator[dict[str, Any]]:
    """The answers to a meeting's queries, each with the turns that it is about (Zhong et al. 2021)."""
    turns = str(row["document"]).splitlines()
    for query in row["specific_queries"]:
        spans = query.get("relevant_text_span") or []
        about = [turn for first, last in spans for turn in turns[int(first) : int(last) + 1]]
        if about:
            yield {"document": "\n".join(about), "summaries": [query["answer"]]}


def _openly_licensed(row: Row) -> Iterator[dict[str, Any]]:
    """The row, if its own licence is open."""
    if is_open(str(row["text_license"])):
        yield from _own(row)


@dataclass(frozen=True, kw_only=True)
class OpenSet:
    """A data set that a released model may be trained on.

    Attributes:
        name: its name in runs and tables.
        place: its folder below the folder of all data sets.
        licence: of its rows.
        credit: who is to be named.
        pairs: what becomes of a row.
    """

    name: str
    place: str
    licence: str
    credit: str
    pairs: Callable[[Row], Iterator[dict[str, Any]]] = _own


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


def is_open(licence: str) -> bool:
    """Whether a licence lets a released model be trained on a text."""
    return licence.startswith(OPEN_LICENCES) and not any(
        word in _CLOSED for word in licence.replace("-", " ").split()
    )


def default_model(
    run: ExtractPlan,
    *,
    data: str | Path,
    start: str,
    out: str | Path,
    cap: int = 500,
    tell: Tell = silent,
) -> Trained:
    """Make the pairs in `out/pairs`, train an extractor for `start` in `out/extract`, and write `out/release`.

    What is done is kept, so that the same call goes on after an interruption.

    Args:
        run: settings of the extractor.
        data: the folder that holds the data sets; a set that is not there is passed over, and said.
        start: a pre-trained encoder-decoder.
        cap: pairs that are drawn at most of each set.

    Raises:
        UserError: no set is there, or `out` holds something else.
    """
    with writing_to(out, doing="making a model in") as folder:
        places = _write_all(folder / "pairs", Path(data), tell)
        done = train_extractor(
            run, tasks=places, start=start, cap=cap, can_write=False, out=folder / "extract", tell=tell
        )
        if done.model is not None:
            release(done.model, folder / RELEASE_FOLDER)
    return done


def _write_all(folder: Path, data: Path, tell: Tell) -> list[str]:
    """Write the pairs of all sets that are there, and return their folders."""
    places = []
    for each in SETS:
        source, made = data / each.place, folder / each.name
        if not source.is_dir():
            tell(f"{each.name}: {source} is not there, passed over")
            continue
        if not made.is_dir():
            write_folder(made, partial(write_pairs, each, source))
        places.append(str(made))
    if not places:
        raise UserError(f"{data}: holds none of {', '.join(each.place for each in SETS)}")
    return places


def release(source: Path, out: Path) -> None:
    """Write a model's folder as it is released: weights in eight bits, tokenizer, scorer, how it is used.

    Raises:
        UserError: the model cannot choose sentences, or `out` holds something that precis did not write.
    """
    loaded = load_model(source, device="cpu")
    scorer = load_scorer(source, states=loaded.model.config.hidden_size)

    def write(place: Path) -> None:
        write_compact(loaded.model, place)
        loaded.tokenizer.save_pretrained(place)
        (place / USE_FILE).write_text(json.dumps(loaded.use.to_dict(), indent=2) + "\n", encoding="utf-8")
        save_scorer(scorer, place)

    write_folder(out, write)


def write_pairs(chosen: OpenSet, source: Path, place: Path) -> None:
    """Write the pairs of a set, in an order drawn once, each with its source and licence.

    Raises:
        UserError: a file cannot be read.
    """
    for split in ("train", "dev"):
        rows = [*pairs_of(chosen, source, split)]
        random.Random(0).shuffle(rows)
        with (place / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for pair in rows:
                record = {**pair, "source": chosen.name, "licence": chosen.licence}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def pairs_of(chosen: OpenSet, source: Path, split: str) -> Iterator[dict[str, Any]]:
    """The pairs of a split of a set that lies in the folder `source`: `document` and `summaries`.

    Raises:
        UserError: there is no such split.
    """
    return (pair for row in _rows(source, split) for pair in chosen.pairs(row))


def _rows(source: Path, split: str) -> Iterator[Row]:
    """The rows of a split, as its file has them."""
    for ending, opened in ((".jsonl.gz", gzip.open), (".jsonl.xz", lzma.open)):
        path = source / f"{split}{ending}"
        if path.is_file():
            with cast(TextIO, opened(path, "rt", encoding="utf-8")) as file:
                yield from map(json.loads, file)
            return
    raise UserError(f"{source}: has no {split}.jsonl.gz or {split}.jsonl.xz")
