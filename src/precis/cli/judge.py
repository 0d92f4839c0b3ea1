"""`precis judge`: people compare the summaries of systems, blind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from precis.cli.commands import Commands
from precis.cli.options import Data, DocumentColumn, SkipBad, SummaryColumn, TaskName
from precis.errors import UserError
from precis.phases.places import folder_to_be

app = Commands(
    help=(
        "Have people compare summaries blind: plan a study, make it, serve it to judges, report what they "
        "said."
    ),
    no_args_is_help=True,
)

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder that precis judge new made.")]


@app.command(
    "plan",
    epilog=(
        "Examples:\n\n"
        "precis judge plan --preference 0.6\n\n"
        "precis judge plan --preference 0.6 --judges 3 --documents 100"
    ),
)
def plan(
    preference: Annotated[
        float,
        typer.Option("--preference", help="Share of verdicts without ties that are for the better system."),
    ] = 0.6,
    power: Annotated[float, typer.Option("--power", help="Chance of seeing the preference.")] = 0.8,
    ties: Annotated[float, typer.Option("--ties", help="Share of ties.")] = 0.2,
    significance: Annotated[
        float, typer.Option("--significance", help="Largest p-value that counts as a difference.")
    ] = 0.05,
    judges: Annotated[
        list[int] | None,
        typer.Option(
            "--judges", min=1, max=50, help="Judges for each document. Repeatable. Default: 1, 2, 3, 5."
        ),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            "--documents", min=1, max=10_000, help="Print the power of this many documents instead."
        ),
    ] = None,
    document_spread: Annotated[
        float,
        typer.Option("--document-spread", help="Standard deviation over documents of the log-odds to win."),
    ] = 1.0,
    judge_spread: Annotated[float, typer.Option("--judge-spread", help="The same over judges.")] = 0.3,
) -> None:
    """Say how many documents and judges it takes to see a preference.

    The test is that of the report: exact and binomial, over documents. Verdicts on one document are alike, and so are
    those of one judge; the two spreads say by how much. All judges see all documents.
    """
    from precis.cli.console import show
    from precis.judging.plan import Preference
    from precis.judging.plan_table import plan_table

    wanted = Preference(
        share=preference,
        ties=ties,
        document_spread=document_spread,
        judge_spread=judge_spread,
        significance=significance,
        power=power,
    )
    show(plan_table(wanted, judges or [1, 2, 3, 5], documents).shown())


@app.command(
    "new",
    epilog=(
        "Examples:\n\n"
        "precis judge new --predictions scores --data pairs --judge Ann --judge Ben --out study\n\n"
        "precis judge new --predictions ours.jsonl --predictions theirs.jsonl --out study\n\n"
        "precis judge new --predictions ours.jsonl --data test.jsonl --reference --protocol zcodepp --out study"
    ),
)
def new(
    predictions: Annotated[
        list[Path],
        typer.Option(
            "--predictions",
            help=(
                "Summaries of one system, named after its file: our .jsonl, JSON lines with id, document and "
                "summary, or text with one summary per line; or a folder of precis evaluate. Repeatable."
            ),
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder for the study.", show_default=False, callback=folder_to_be),
    ],
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Name of a judge. Repeatable. Default: judge-1.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help=(
                "What is asked: discourse (five criteria), zcodepp (its Table 5, against the reference), or a .toml "
                "file."
            ),
        ),
    ] = "discourse",
    reference: Annotated[
        bool, typer.Option("--reference", help="Judge the human summaries of --data as a system too.")
    ] = False,
    documents: Annotated[
        int | None, typer.Option("--documents", min=1, help="Judge this many documents, drawn at random.")
    ] = None,
    each: Annotated[
        int | None, typer.Option("--each", min=1, help="Judges who see a comparison; default: all.")
    ] = None,
    repeats: Annotated[
        float,
        typer.Option(
            "--repeats", min=0, max=1, help="Share of pages that a judge gets twice, sides changed."
        ),
    ] = 0.1,
    gold: Annotated[
        float,
        typer.Option(
            "--gold", min=0, max=1, help="Share of check pages: one summary belongs to another document."
        ),
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for documents, order and sides.")] = 0,
    task: TaskName = None,
    data: Data = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Which split was summarized; default: test.")
    ] = None,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
) -> None:
    """Make a study: documents, pairs of summaries, and who sees what in which order.

    Names of systems never reach a judge. Each system stands on each side half of the time. Files without source
    documents need --data, in the order in which it was summarized.
    """
    from precis.cli.console import note
    from precis.judging.design import Design
    from precis.judging.protocols import protocol as find_protocol
    from precis.judging.sources import judged_documents, prediction_files, sample
    from precis.judging.study import new_study
    from precis.phases.evaluate import read_test_pairs
    from precis.phases.sources import ColumnNames, find_part

    asked = find_protocol(protocol)
    design = Design(judges=tuple(judge or ["judge-1"]), each=each or 0, repeats=repeats, gold=gold, seed=seed)
    files = prediction_files(predictions)
    pairs = None
    if task is not None or data is not None:
        columns = ColumnNames(document=document_column, summary=summary_column)
        part = find_part(task_name=task, data=data, split=split, columns=columns)
        pairs = read_test_pairs(part, skip_bad=skip_bad, tell=note)
    elif any(one is not None for one in (split, document_column, summary_column)):
        raise UserError("--split and the columns say how --data is read; name it too")
    found = judged_documents(files, pairs, with_reference=reference)
    study = new_study(out, sample(found, documents, seed=seed), design, asked)
    pages = [len(mine) for mine in study.layout.pages.values()]
    print(f"systems: {', '.join(study.systems)}")
    print(f"pages:   {max(pages):,} for each of {len(pages)} judges, on {len(study.documents):,} documents")
    if study.layout.equal:
        note(f"{len(study.layout.equal):,} comparisons are left out: both summaries are the same text")
    print(f"next:    precis judge serve {out}")


@app.command(
    "serve",
    epilog="Example:\n\nprecis judge serve study\n\nFrom another machine: ssh -L 8477:127.0.0.1:8477 HOST",
)
def serve(
    study: StudyFolder,
    host: Annotated[
        str, typer.Option("--host", help="Address to answer on; another one is open to the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free port.")] = 8477,
) -> None:
    """Serve the page to the judges, and print a link for each.

    Links stay the same. The page confirms a verdict once it is on disk. After Ctrl-C and a new start, judges
    continue where they stopped.
    """
    from precis.cli.console import note
    from precis.judging.serving import serve as run

    def show_links(links: dict[str, str]) -> None:
        for judge, link in links.items():
            print(f"{judge}: {link}", flush=True)

    run(study, host=host, port=port, tell=note, show_links=show_links)


@app.command("report", epilog="Example:\n\nprecis judge report study")
def report(
    study: StudyFolder,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", help="Name of a judge whose verdicts do not count. Repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for resampling the intervals.")] = 0,
) -> None:
    """Report what judges said: win rates, strengths, tests, agreement, and how far each judge can be trusted.

    Written beside the verdicts: report.html, one file with plots, and report.json. It may be made while judges are at
    work.
    """
    from precis.cli.console import note, show
    from precis.judging.publish import publish

    found, tables = publish(study, leave_out=leave_out or (), seed=seed)
    for table in tables:
        show(table.shown())
    for remark in found.remarks:
        note(remark)
    print(f"written: {study}/report.html, {study}/report.json")
