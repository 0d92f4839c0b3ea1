"""Read pairs of document and summary from files, folders and the Hugging Face hub.

A source is one of

    pairs.jsonl | .json | .csv | .tsv (each also .gz, .xz) | .parquet    a file of rows
    folder/  train.jsonl.gz  dev.csv  test.parquet                split files, chosen by `split`
    folder/  train.source  train.target  val.source ...           the same, in parallel files (also .src and .tgt)
    folder/  a.txt  b.txt  [a.summary.txt ...]                    one document per file, optional summaries
    hub:owner/name[:config][@revision]                            a data set of the hub, see `hub.py`
    squad-qg:SOURCE  glue-mnli:SOURCE ...                         rows that are not pairs, see `dataset_adapters`

Files are streamed. A data set of the hub is downloaded as a whole first, unless only its first rows are needed. An
unusable row stops the reading with its file and place. With `skip_bad` it is counted and described in the report
instead. Nothing is repaired by guessing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path

from precis.data.pairs.dataset_adapters import ADAPTERS, DatasetAdapter, prefix_of, split_scheme, splits_cut
from precis.data.pairs.pair import BadRowError, Columns, EmptyDocumentError, MissingColumnError, Pair, pair_of
from precis.data.pairs.question_generation import TITLES, question_rows
from precis.data.rows.hub import PREFIX, hub_splits, read_hub
from precis.data.rows.row_files import known_endings, read_rows, target_of
from precis_text.bounded_io import is_folder, stat_or_none
from precis_text.errors import UserError
from precis_text.row import Row, SkippedRows
from precis_text.text_files import (
    NotTextError,
    document_files,
    orphaned_summaries,
    read_text,
    summary_file,
    unread_names,
)

_SPLITS = {"train": ("train",), "dev": ("dev", "validation", "valid", "val"), "test": ("test",)}
_OF_LAYOUTS = {
    "webnlg_test": ("challenge2017_test", "test"),
    "matched": ("validation_matched", "dev_matched", *_SPLITS["dev"]),
    "mismatched": ("validation_mismatched", "dev_mismatched"),
}


@dataclass
class ReadReport(SkippedRows):
    """Counts of one reading; at the end of the source rows = kept + skipped_count.

    `skipped` holds the messages of the first 20 skipped rows. `empty_documents` counts the skipped rows without a
    document.
    """

    rows: int = 0
    kept: int = 0
    empty_documents: int = 0


def read_pairs(
    source: str | Path,
    *,
    columns: Columns | None = None,
    split: str | None = None,
    skip_bad: bool = False,
    empty_documents: int = 0,
    need_summary: bool = True,
    limit: int | None = None,
    stream: bool = False,
    report: ReadReport | None = None,
) -> Iterator[Pair]:
    """Stream the pairs of a source.

    Args:
        source: a file, a folder or `hub:owner/name`, see the module.
        columns: the columns of document and summary; the default names are those of `Columns`.
        split: "train", "dev" or "test" of a folder or hub data set ("dev" also finds "validation"), or the exact name
            of another split; None for a single file or a folder of texts.
        skip_bad: skip unusable rows instead of stopping at the first.
        empty_documents: number of rows without a document to skip even without `skip_bad`.
        need_summary: refuse rows without a summary; if False, a missing summary is an empty string.
        limit: stop after this many pairs, 1 or more.
        stream: download rows of the hub on demand, as under a limit; otherwise all are downloaded first.
        report: filled in while reading.

    Raises:
        UserError: the source cannot be read, lacks usable rows, or contains a bad row and `skip_bad` is False.
            The message names the file and the line (or row, for Parquet and the hub), counted from 1.

    Examples:
        >>> next(read_pairs("pairs", split="test")).summary
        'Ann sings.'
    """
    columns = columns or Columns()
    report = report if report is not None else ReadReport()
    where, rows = _open_source(source, split, stream=stream or limit is not None)
    report.leave_unread(_unread(source, where))
    if limit is not None and limit < 1:
        raise UserError(f"limit={limit} must be 1 or more")
    for row in rows:
        report.rows += 1
        try:
            pair = pair_of(row, columns, need_summary=need_summary)
        except BadRowError as error:
            message, is_empty = f"{where}: {row.place}: {error}", isinstance(error, EmptyDocumentError)
            if not skip_bad and not (is_empty and report.empty_documents < empty_documents):
                wrong_columns = isinstance(error, MissingColumnError) and not report.kept
                remedy = "" if wrong_columns else "; fix the row, or skip such rows with --skip-bad"
                raise UserError(message + remedy) from None
            report.empty_documents += is_empty
            report.skip(message)
            continue
        report.kept += 1
        yield pair
        if report.kept == limit:
            return
    if not report.rows:
        raise UserError(f"{where}: is empty, it contains no rows")
    if not report.kept:
        which = "the only row cannot" if report.rows == 1 else f"none of the {report.rows:,} rows can"
        raise UserError(f"{report.skipped[0]}; {which} be used")


def columns_of(source: str | Path, split: str | None, layouts: Sequence[Columns]) -> Columns:
    """Return the first of several layouts that the first readable row of a source fits, or else the first of all.

    Args:
        source, split: as `read_pairs` takes them.
        layouts: at least one.

    Raises:
        UserError: the source cannot be read.
    """
    if len(layouts) == 1:
        return layouts[0]
    _, rows = _open_source(source, split, stream=True)
    row = next((row for row in rows if not row.problem), None)
    return next((layout for layout in layouts if row is not None and layout.fit(row)), layouts[0])


def merge_repeated(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Merge each run of pairs with the same document into one pair, with all their summaries as references."""
    for _, run in groupby(pairs, key=lambda pair: pair.document):
        first, *others = run
        references = tuple(text for pair in (first, *others) for text in pair.all_references)
        yield replace(first, references=references) if others else first


def available_splits(folder: Path, scheme: str = "") -> dict[str, Path]:
    """Find the files of "train", "dev" and "test" in a folder; "validation", "valid" and "val" count as "dev".

    Args:
        scheme: the source's scheme, which may have a prefix of split names in a folder of several tasks.
    """
    prefix = prefix_of(scheme)
    found = {split: _split_files(folder, names, prefix) for split, names in _SPLITS.items()}
    return {split: files[0] for split, files in found.items() if files}


def split_files(folder: Path) -> list[Path]:
    """List every file of a folder that is named like a split, including several for one split."""
    return [file for names in _SPLITS.values() for file in _split_files(folder, names)]


def splits_on_hub(source: str) -> list[str]:
    """List the splits of a `hub:` data set as `read_pairs` takes them.

    These are "train", "dev" and "test" if it has them, and other splits by their own names.

    Raises:
        UserError: the hub cannot be reached, or lacks this data set.
    """
    plain = {name: split for split, names in _SPLITS.items() for name in names}
    return list(dict.fromkeys(plain.get(name, name) for name in hub_splits(source)))


def _split_files(folder: Path, names: Iterable[str], prefix: str = "") -> list[Path]:
    called = [f"{before}{name}" for name in names for before in dict.fromkeys(("", prefix))]
    candidates = (folder / f"{name}{ending}" for name in called for ending in known_endings())
    return [path for path in candidates if stat_or_none(path) is not None and not is_folder(path)]


def _names(split: str) -> tuple[str, ...]:
    """Return the names that a split may have."""
    return _OF_LAYOUTS.get(split) or next((names for names in _SPLITS.values() if split in names), (split,))


def _open_source(source: str | Path, split: str | None, *, stream: bool) -> tuple[str, Iterator[Row]]:
    """Return the name of the source in messages, and its rows."""
    scheme, place = split_scheme(str(source))
    if scheme in ADAPTERS:
        return _open_dataset(ADAPTERS[scheme], scheme, place, split, stream=stream)
    if scheme:
        return _open_questions(scheme, place, split, stream=stream)
    if isinstance(source, str) and source.startswith(PREFIX):
        return source, read_hub(source, _names(split) if split else (), stream=stream)
    path = Path(source)
    if is_folder(path):
        return _open_folder(path, split)
    if split is not None and stat_or_none(path) is not None:
        raise UserError(f"{path}: is one file, without a split {split!r}; use a folder with a file per split")
    return str(path), read_rows(path)


def _open_questions(scheme: str, place: str, split: str | None, *, stream: bool) -> tuple[str, Iterator[Row]]:
    own = splits_on_hub(place) if place.startswith(PREFIX) else list(available_splits(Path(place)))
    if split is None or not own:
        where, rows = _open_source(place, split, stream=stream)
        return where, question_rows(rows)
    cuts = splits_cut(scheme, place, own)
    name = next((name for name in _names(split) if name in cuts), None)
    if name is None:
        raise UserError(f"{place}: no split {split!r}; it has {', '.join(cuts)}")
    where, rows = _open_source(place, cuts[name].split, stream=stream)
    return where, question_rows(rows, titles=cuts[name].titles, merge=name != "train", where=where)


def _open_dataset(
    adapter: DatasetAdapter, scheme: str, place: str, split: str | None, *, stream: bool
) -> tuple[str, Iterator[Row]]:
    path = Path(place)
    if not place.startswith(PREFIX) and not is_folder(path):
        return place, adapter.part("test", adapter.rows(adapter.read(path)))
    cuts = splits_cut(scheme, place, ["train"])
    if split not in cuts:
        asked = f"no split {split!r}; it" if split else "name the split to read; it"
        told = "" if "test" in adapter.held else " (test is the published dev set)"
        raise UserError(f"{place}: {asked} has {', '.join(cuts)}{told}")
    names = _names(cuts[split].split)
    if place.startswith(PREFIX):
        return place, adapter.part(split, adapter.rows(read_hub(place, names, stream=stream)))
    files = _split_files(path, names, adapter.prefix)
    if not files:
        raise UserError(f"{path}: no {' or '.join(names)} file (extensions: {', '.join(known_endings())})")
    return str(files[0]), adapter.part(split, adapter.rows(adapter.read(files[0])))


def _open_folder(folder: Path, split: str | None) -> tuple[str, Iterator[Row]]:
    splits = available_splits(folder)
    if split is not None:
        files = _split_files(folder, _names(split))
        if not files:
            have = f"it has {', '.join(splits)}" if splits else f"no {' or '.join(_names(split))} file"
            raise UserError(
                f"{folder}: no split {split!r}; {have} (extensions: {', '.join(known_endings())})"
                f"{_meant(split, splits)}"
            )
        return str(files[0]), read_rows(files[0])
    if document_files(folder) or orphaned_summaries(folder):
        return str(folder), _read_texts(folder)
    if splits:
        raise UserError(f"{folder}: name the split to read: {', '.join(splits)}")
    raise UserError(
        f"{folder}: contains nothing to read; looked for *.txt and for train, dev and test files ending in "
        f"{', '.join(known_endings())}"
    )


def _meant(split: str, splits: Iterable[str]) -> str:
    """Return `; did you mean ...?` if one of the splits is close, else ""."""
    close = get_close_matches(split, list(splits), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _read_texts(folder: Path) -> Iterator[Row]:
    """Yield a row for each document; NAME.summary.txt holds the summary of NAME.txt."""
    for orphan, missing in orphaned_summaries(folder):
        raise UserError(f"{orphan}: a summary without its document; add {missing}")
    for path in document_files(folder):
        values: dict[str, str] = {"id": path.stem}
        problem = ""
        for column, file in (("document", path), ("summary", summary_file(path))):
            try:
                if column == "document" or stat_or_none(file) is not None:
                    values[column] = read_text(file)
            except (NotTextError, UserError) as error:
                told = str(error).removeprefix(f"{file}: ")
                problem = problem or (told if file == path else f"its summary ({file.name}): {told}")
        values.update({"summary": values["summary"].strip()} if "summary" in values else {})
        yield Row(path.name, problem=problem) if problem else Row(path.name, values)


def _unread(source: str | Path, where: str) -> list[str]:
    """List names in a folder that are read neither from `where` nor as another of its splits."""
    scheme, place = split_scheme(str(source))
    folder = Path(place)
    if scheme in ADAPTERS or place.startswith(PREFIX) or not is_folder(folder):
        return []
    documents = document_files(folder)
    if documents:
        return unread_names(folder, [*documents, *map(summary_file, documents)])
    read = [*available_splits(folder).values(), Path(where)]
    return unread_names(folder, [*read, *filter(None, map(target_of, read)), folder / TITLES])
