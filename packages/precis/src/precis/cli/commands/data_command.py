"""`precis data`: inspect pairs before training on them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import Commands, examples
from precis.cli.framework.console import note, show
from precis.cli.framework.next_steps import named_pairs_of
from precis.cli.framework.options import (
    DocumentColumn,
    SkipBad,
    SummaryColumn,
    TaskName,
    UnitsColumn,
    begin,
    checked_seed,
)
from precis_text.errors import UserError
from precis_text.row import pluralize

if TYPE_CHECKING:
    from precis.phases.data.pair_checks import DataCheck, Lengths, SplitCheck

app = Commands(
    help="List, check, show and generate document-summary pairs; pack text for pre-training.",
    no_args_is_help=True,
)

Source = Annotated[str | None, typer.Argument(help="A file, a folder with split files, or hub:owner/name.")]

Sources = Annotated[list[str], typer.Argument(help=(
    "Text files, .jsonl, .csv (.gz, .xz too), .parquet, folders of these, or patterns; hub:owner/name "
    "streams the training rows of a data set."
))]  # fmt: skip
Out = Annotated[Path, typer.Option("--out", help="Folder for the pack.")]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Tokenizer to use. Default: train one on a sample of the texts."),
]
VocabSize = Annotated[
    int | None,
    typer.Option("--vocab-size", min=400, help="Vocabulary size of a new tokenizer. Default: 8000."),
]
TextColumn = Annotated[str, typer.Option("--document-column", help=(
    "Column with the text. de+en: two columns that translate each other, packed as one document."
))]  # fmt: skip
Rows = Annotated[
    int | None, typer.Option("--rows", min=1, help="Maximum rows of each hub:owner/name. Default: all.")
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help=(
    "Number of processes. Default: one per core, fewer for little text."
))]  # fmt: skip
DevShare = Annotated[
    float, typer.Option("--dev-share", min=0, max=0.5, help="Share of the documents held out for validation.")
]
Restart = Annotated[bool, typer.Option("--restart", help="Replace an existing pack.")]


@app.command(
    "pack",
    epilog=examples(
        "precis data pack books/ --out packs/books",
        "precis data pack news.jsonl --document-column body --tokenizer packs/books/tokenizer --out packs/news",
        "precis data pack hub:allenai/c4:en --rows 1000000 --out packs/c4",
        "precis data pack captions.jsonl --document-column de+en --tokenizer tokenizers/both --out packs/de-en",
    ),
)
def pack(
    context: typer.Context,
    sources: Sources,
    out: Out,
    tokenizer: Tokenizer = None,
    vocab_size: VocabSize = None,
    document_column: TextColumn = "text",
    rows: Rows = None,
    workers: Workers = None,
    dev_share: DevShare = 0.01,
    skip_bad: SkipBad = False,
    restart: Restart = False,
) -> None:
    """Tokenize unlabelled text for precis pretrain. Each file or row is a document; duplicates are dropped."""
    if tokenizer is not None and vocab_size is not None:
        raise UserError(
            f"--vocab-size {vocab_size} is for a new tokenizer, but --tokenizer names one; omit one of them"
        )
    from precis.data.packs.text_sources import text_sources

    text_sources(sources, rows=rows)
    begin()
    from precis.phases.data.corpus_packing import make_pack

    made = make_pack(
        sources, out, tokenizer=tokenizer, vocab_size=vocab_size or 8000, column=document_column, rows=rows,
        workers=workers, dev_share=dev_share, skip_bad=skip_bad, restart=restart, notify=note,
    )  # fmt: skip
    counts = made.counts
    if made.skipped:
        note(f"{pluralize(made.skipped_count, 'row')} skipped (first: {made.skipped[0]})")
    if not made.is_new:
        note(f"{out}: already contains these files, packed with these settings; nothing to do")
    print(f"documents: {counts.documents:,}, {counts.tokens:,} tokens")
    print(f"held out:  {counts.held_out:,}, {counts.held_out_tokens:,} tokens")
    print(
        f"dropped:   {pluralize(counts.duplicates, 'duplicate')}, {made.empty:,} empty, {made.skipped_count:,} bad"
    )
    print(f"speed:     {made.tokens_per_second:,.0f} tokens per second, {pluralize(made.workers, 'process')}")
    print(f"tokenizer: {made.folder / 'tokenizer'}, {made.entries:,} entries")
    if made.dev_blocks:
        print(f"next: precis pretrain --corpus {shlex.quote(str(made.folder))} --out runs/pretrain")
    elif made.share_to_validate is not None:
        print(f"next: {_again(context.params, made.share_to_validate)}")


def _again(options: Mapping[str, Any], share: float) -> str:
    """Return the command that packs the same texts again with another share held out."""
    values = {**options, "dev_share": f"{share:g}", "restart": True}
    words = ["precis", "data", "pack", *map(str, values.pop("sources"))]
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value not in (None, False):
            words += [option, str(value)]
    return shlex.join(words)


@app.command("list")
def list_tasks() -> None:
    """List the tasks for --task: name, limits in tokens, and data set on the hub."""
    from precis.data.tasks.tasks import TASKS
    from precis.table import Table

    rows = [
        (name, str(task.max_source), str(task.max_target), task.language, task.hub, task.description)
        for name, task in TASKS.items()
    ]
    header = ("task", "source", "target", "language", "hub", "what it is")
    show(Table(header=header, rows=rows, texts={*header} - {"source", "target"}))
    print("source, target: maximum tokens of document and summary. Local files: --task NAME --data FOLDER.")
    print("Instructions, for --instruction with a model for several tasks:")
    for name, task in TASKS.items():
        print(f"  {name:<{max(map(len, TASKS))}}  {task.instruction}")


@app.command(
    "check",
    epilog="Example:  precis data check pairs       (exit code 2 if a row cannot be used, or splits share documents)",
)
def check(
    context: typer.Context,
    source: Source = None,
    task: TaskName = None,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    units_column: UnitsColumn = None,
) -> None:
    """Check every row: report bad rows, lengths, empty texts, duplicates, and leaks between splits.

    For a document (PDF, Word, e-mail ...), print how much of it is read and what is left out. For a model, adapter,
    pack or run, verify the checksums of all files.
    """
    from precis.phases.folder_check import check_seals, damaged
    from precis_text.documents.file_kinds import ENDINGS

    if source is not None and source.lower().endswith(ENDINGS) and not Path(source).is_dir():
        _print_documents(source)
        return
    if (folders := check_seals(source)) is not None:
        for folder in folders:
            print(f"{folder.folder}: {folder.state if folder.damage is None else folder.damage}")
        if damage := damaged(folders):
            raise UserError(damage)
        return
    from precis.phases.data.pair_checks import check_data

    checked = check_data(named_pairs_of(context, data=source).part())
    for split in checked.splits:
        _print_split(split)
    _print_shared(checked)
    for split in checked.splits:
        for message in split.report.skipped:
            note(f"bad row: {message}")
        if split.report.skipped_count > len(split.report.skipped):
            note(f"... and {split.report.skipped_count - len(split.report.skipped):,} more in {split.name}")
    if wrong := _wrong(checked):
        note(f"error: {'; '.join(wrong)}")
        raise typer.Exit(2)


def _print_documents(source: str) -> None:
    """Print what is read of a document file, and what is left out."""
    from precis.phases.use.input_documents import read_documents
    from precis_text.words import length_in_words

    for document in read_documents([source]):
        passages = document.passages
        print(document.name)
        print(f"  text        {length_in_words(passages.text):,} words")
        if passages.share is not None:
            print(f"  file        {passages.share}")
        for what in passages.notes:
            print(f"  note        {what}")


def _wrong(checked: DataCheck) -> list[str]:
    """Return what to fix: rows that cannot be used, and documents that two splits share."""
    wrong = []
    if checked.bad_rows:
        rows = pluralize(checked.bad_rows, "row")
        them = "it" if checked.bad_rows == 1 else "them"
        wrong.append(f"{rows} cannot be used; fix {them}, or train and evaluate with --skip-bad")
    if checked.shared:
        wrong.append("splits share documents (LEAK above); keep each in only one split")
    return wrong


def _print_split(split: SplitCheck) -> None:
    report = split.report
    print(split.name)
    empty = f", {report.empty_documents:,} of them without a document" if report.empty_documents else ""
    print(f"  rows        {report.rows:,}: {report.kept:,} usable, {report.skipped_count:,} not{empty}")
    print(f"  documents   {_lengths(split.documents)}")
    print(f"  summaries   {_lengths(split.summaries)}; {split.references:.2g} per document")
    print(
        f"  duplicates  {pluralize(split.repeated_documents, 'document')} seen before, "
        f"{split.repeated_pairs:,} with the same summary"
    )
    if split.longer_summaries:
        are = "summary is" if split.longer_summaries == 1 else "summaries are"
        print(f"  odd         {split.longer_summaries:,} {are} longer than the document")
    if split.missing_marks:
        print(
            f'  odd         {pluralize(split.missing_marks, "pair")} with "nan", "NULL" or the like as a text'
        )
    if unread := report.told_unread():
        print(f"  unread      {unread}")


def _lengths(lengths: Lengths) -> str:
    words = "word" if round(lengths.mean) == 1 else "words"
    return (
        f"{lengths.mean:,.0f} {words} on average, median {lengths.median:,.0f}, "
        f"95% up to {lengths.percentile_95:,.0f}, longest {lengths.longest:,}"
    )


def _print_shared(checked: DataCheck) -> None:
    if len(checked.splits) < 2:
        return
    for (first, second), count in checked.shared.items():
        are = "document is" if count == 1 else "documents are"
        print(f"LEAK: {count:,} {are} in {first} and in {second}")
    if not checked.shared:
        print("the splits do not share documents")


@app.command("show", epilog="Example:  precis data show pairs --split dev --rows 2")
def show_rows(
    context: typer.Context,
    source: Source = None,
    task: TaskName = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Split to show. Default: test, if there are splits.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", help="Number of pairs.")] = 3,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    units_column: UnitsColumn = None,
) -> None:
    """Print a few pairs, as precis reads them."""
    from precis.phases.data.pair_checks import first_pairs
    from precis_text.control_characters import readable

    shown = first_pairs(named_pairs_of(context, data=source).part(split), rows, notify=note)
    for number, pair in enumerate(shown, start=1):
        title = f"--- {number}" + (f", id {pair.id}" if pair.id else "")
        print(f"{title}, document of {pluralize(len(pair.document.split()), 'word')}")
        print(readable(pair.document.strip()))
        for reference in pair.all_references:
            print(f"--> summary of {pluralize(len(reference.split()), 'word')}")
            print(reference.strip())
        print()


@app.command(
    "synthetic", epilog="Example:  precis data synthetic --out pairs --train 4000 --dev 200 --test 200"
)
def synthetic(
    out: Annotated[Path, typer.Option("--out", help="Folder for train.jsonl, dev.jsonl, test.jsonl.")],
    train: Annotated[int, typer.Option("--train", help="Training pairs.")] = 10_000,
    dev: Annotated[int, typer.Option("--dev", help="Validation pairs.")] = 500,
    test: Annotated[int, typer.Option("--test", help="Test pairs.")] = 500,
    seed: Annotated[
        int, typer.Option("--seed", callback=checked_seed, help="The same seed gives the same pairs.")
    ] = 0,
) -> None:
    """Write invented short reports and dialogues with summaries, to try out precis."""
    from precis.phases.data.pair_checks import write_synthetic

    for file in write_synthetic(out, {"train": train, "dev": dev, "test": test}, seed=seed):
        print(file)
