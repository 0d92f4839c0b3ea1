"""`precis batch`: summaries of many documents, on one machine or many."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.commands.summarize_command import Device, MakingOptions, Recursive, WholeTables
from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import ProgressLine, leave_unfinished, note
from precis.cli.framework.options import DocumentColumn, UnitsColumn, begin
from precis_text.errors import RunError, missing_extra
from precis_text.row import pluralize


class Format(StrEnum):
    """The file format of the summaries."""

    jsonl = "jsonl"
    parquet = "parquet"


Files = Annotated[list[str], typer.Argument(help=(
    "Files that precis summarize reads, or folders of them. On a cluster, all machines must have them under "
    "the same path."
))]  # fmt: skip
Out = Annotated[Path, typer.Option("--out", help=(
    "Folder for the summaries. To resume an interrupted run, repeat the command."
))]  # fmt: skip
Formats = Annotated[Format, typer.Option("--format", help="Output: summaries.jsonl or summaries.parquet.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, max=10_000, help=(
    "Number of models that run in parallel, each on one core or, with --device cuda, one GPU. Default: one for "
    "each core that CPU affinity and the container's quota allow, or one for each GPU."
))]  # fmt: skip
Address = Annotated[str | None, typer.Option("--address", help=(
    "Address of a Ray cluster, such as auto or ray://HOST:10001. Default: this machine."
))]  # fmt: skip
Verify = Annotated[bool, typer.Option("--verify", help=(
    "Read the documents again at the end: each must have exactly one summary. Reports duplicate documents."
))]  # fmt: skip


@describe_command(
    "batch",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis batch notes.jsonl --out summaries --words 60",
        "precis batch reports -r --out summaries --workers 2 --verify",
        "precis batch /shared/notes --out /shared/summaries --address auto --format parquet",
        "A document that cannot be summarized gets the status error; the others continue.",
    ),
)
def batch(
    *,
    files: Files,
    out: Out,
    asked: MakingOptions,
    format: Formats = Format.jsonl,  # noqa: A002  the name of the option
    workers: Workers = None,
    address: Address = None,
    verify: Verify = False,
    recursive: Recursive = False,
    device: Device = None,
    document_column: DocumentColumn = None,
    units_column: UnitsColumn = None,
    whole_tables: WholeTables = False,
) -> None:
    """Summarize many documents, each exactly once, with Ray on one machine or a cluster."""
    if find_spec("ray") is None:
        raise missing_extra("batch", wanted_by="precis batch")
    asked.check(device)
    from precis.batch.document_source import files_of
    from precis.phases.use.input_documents import Reading, read_documents, with_first

    how = Reading(
        column=document_column, units=units_column, keep_going=True, whole_tables=whole_tables,
        about=asked.about is not None,
    )  # fmt: skip
    found = files_of(files, recursive=recursive, notify=note)
    present = (file for file in found if Path(file).is_file())
    with_first(read_documents([*islice(present, 1)], how, notify=note))  # fails early on a missing column
    begin()  # after the checks: importing the libraries takes seconds
    from precis.batch.batch_run import BatchRun

    job = asked.summary_job(device).on_every_machine()
    work = BatchRun(
        files=found, out=out, job=job, how=how, summaries=f"summaries.{format.value}", workers=workers,
        address=address,
    )  # fmt: skip
    was_finished = (out / work.summaries).exists()
    try:
        with ProgressLine() as progress:
            done = work.run(lambda count: progress(f"{pluralize(count, 'document')} done", count, 0), note)
    except KeyboardInterrupt:
        leave_unfinished(is_main=True, restart=False)
    added = "was finished before; documents added since then are not in it (--verify names them)"
    note(f"{done}: {added if was_finished else 'every document has a row'}")
    if verify:
        from precis.batch.summaries_check import verify as compare

        verdict = compare(done, found, how)
        if verdict.same:
            note(verdict.duplicates())
        if problem := verdict.problem():
            raise RunError(f"{done}: {problem}")
        documents = pluralize(verdict.documents, "document")
        note(f"verified: {documents}, each with exactly one row; with the status error: {verdict.failed:,}")
