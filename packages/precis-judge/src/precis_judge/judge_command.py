"""`precis judge`: blind comparison of systems' summaries by people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import Commands, examples
from precis.cli.framework.console import note, show
from precis.cli.framework.options import Data, DocumentColumn, SkipBad, SummaryColumn, TaskName
from precis.phases.output_folders import folder_to_be
from precis_text.errors import UserError
from precis_text.row import pluralize

app = Commands(
    help="Run a blind human evaluation of summaries: plan a study, create it, serve it to judges, report the results.",
    no_args_is_help=True,
    rich_help_panel="Use a model",
)

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder created by precis judge new.")]


@app.command(
    "plan",
    epilog=examples(
        "precis judge plan --preference 0.6", "precis judge plan --preference 0.6 --judges 3 --documents 100"
    ),
)
def plan(
    preference: Annotated[
        float, typer.Option("--preference", help="Share of verdicts, ties excluded, for the better system.")
    ] = 0.6,
    power: Annotated[float, typer.Option("--power", help="Probability of detecting the preference.")] = 0.8,
    ties: Annotated[float, typer.Option("--ties", help="Share of ties.")] = 0.2,
    significance: Annotated[
        float, typer.Option("--significance", help="Largest p-value that counts as significant.")
    ] = 0.05,
    judges: Annotated[list[int] | None, typer.Option("--judges", min=1, max=50, help=(
        "Judges per document. Repeatable. Default: 1, 2, 3, 5."
    ))] = None,
    documents: Annotated[int | None, typer.Option("--documents", min=1, max=10_000, help=(
        "Print the power with this many documents instead."
    ))] = None,
    document_spread: Annotated[float, typer.Option("--document-spread", help=(
        "Standard deviation of the log-odds of a win across documents."
    ))] = 1.0,
    judge_spread: Annotated[float, typer.Option("--judge-spread", help="The same across judges.")] = 0.3,
) -> None:  # fmt: skip
    """Compute the number of documents and judges needed to detect a preference.

    Assumes the test of the report: exact and binomial, over documents. Verdicts on one document are correlated, and so
    are those of one judge; the two spreads set how strongly. All judges see all documents.
    """
    from precis_judge.sample_size import Preference, plan_table

    wanted = Preference(
        share=preference, ties=ties, document_spread=document_spread, judge_spread=judge_spread,
        significance=significance, power=power,
    )  # fmt: skip
    show(plan_table(wanted, judges or [1, 2, 3, 5], documents))


@app.command(
    "new",
    epilog=examples(
        "precis judge new --predictions scores --data pairs --judge Ann --judge Ben --out study",
        "precis judge new --predictions ours.jsonl --predictions theirs.jsonl --out study",
        "precis judge new --predictions compared --out study",
        "precis judge new --predictions ours.jsonl --data test.jsonl --reference --protocol zcodepp --out study",
    ),
)
def new(
    predictions: Annotated[list[Path], typer.Option("--predictions", help=(
        "Summaries of one system, named after its file: precis's .jsonl, JSON lines with id, document and "
        "summary, or text with one summary per line; or a folder that precis evaluate or compare wrote. Repeatable."
    ))],
    out: Annotated[Path, typer.Option("--out", help="Folder for the study.", callback=folder_to_be)],
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Name of a judge. Repeatable. Default: judge-1.")
    ] = None,
    protocol: Annotated[str, typer.Option("--protocol", help=(
        "Questions for the judges: discourse (five criteria), zcodepp (its Table 5, against the reference), "
        "or a .toml file."
    ))] = "discourse",
    reference: Annotated[
        bool, typer.Option("--reference", help="Judge the human summaries of --data as a system too.")
    ] = False,
    show_reference: Annotated[bool, typer.Option("--show-reference", help=(
        "Show judges the human summary of --data too, next to both summaries (A.10)."
    ))] = False,
    documents: Annotated[int | None, typer.Option("--documents", min=1, help=(
        "Number of documents, drawn at random. Default: all."
    ))] = None,
    each: Annotated[
        int | None, typer.Option("--each", min=1, help="Judges per comparison. Default: all.")
    ] = None,
    repeats: Annotated[float, typer.Option("--repeats", min=0, max=0.5, help=(
        "Share of pages that a judge gets twice, with sides swapped."
    ))] = 0.1,
    gold: Annotated[float, typer.Option("--gold", min=0, max=0.5, help=(
        "Share of control pages, where one summary belongs to another document."
    ))] = 0.1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for documents, order and sides.")] = 0,
    task: TaskName = None,
    data: Data = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Split that was summarized. Default: test.")
    ] = None,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
) -> None:  # fmt: skip
    """Create a study: documents, pairs of summaries, and the sequence of pages that each judge sees.

    Judges never see the names of systems. Each system appears on each side half of the time. Files without source
    documents need them in --data, in the same order. A folder that precis compare wrote contains the documents.
    """
    from precis.phases.data.run_pairs import NamedPairs
    from precis.phases.measure.evaluation_inputs import read_test_pairs
    from precis_judge.judging_study import new_study
    from precis_judge.protocols import protocol as find_protocol
    from precis_judge.study_design import Design
    from precis_judge.system_summaries import compared_pairs, judged_documents, prediction_files, sample

    asked = find_protocol(protocol)
    design = Design(judges=tuple(judge or ["judge-1"]), each=each or 0, repeats=repeats, gold=gold, seed=seed)
    files = prediction_files(predictions)
    pairs = compared_pairs(predictions)
    if task is not None or data is not None:
        named = NamedPairs(
            task=task, data=data, document_column=document_column, summary_column=summary_column
        )
        pairs = read_test_pairs(named.part(split), skip_bad=skip_bad, notify=note)
    elif any(one is not None for one in (split, document_column, summary_column)):
        raise UserError("--split and the column options apply to --data; add --data")
    found = judged_documents(files, pairs, with_reference=reference, show_truth=show_reference)
    study = new_study(out, sample(found, documents, seed=seed), design, asked)
    pages = [len(mine) for mine in study.layout.pages.values()]
    print(f"systems: {', '.join(study.systems)}")
    judges = "1 judge" if len(pages) == 1 else f"each of {len(pages)} judges"
    print(f"pages:   {max(pages):,} for {judges}, on {pluralize(len(study.documents), 'document')}")
    if study.layout.equal:
        note(f"{len(study.layout.equal):,} comparisons are left out: the two summaries are identical")
    print(f"next:    precis judge serve {out}")


@app.command(
    "serve",
    epilog="Example:\n\nprecis judge serve study\n\nFrom another machine: ssh -L 8477:127.0.0.1:8477 HOST",
)
def serve(
    study: StudyFolder,
    host: Annotated[str, typer.Option("--host", help=(
        "Address to listen on. Any address except the default is open to the network."
    ))] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 chooses any free one.")
    ] = 8477,
) -> None:  # fmt: skip
    """Serve the pages to the judges, and print a link for each judge.

    The links are permanent. The page confirms a verdict once it is on disk. After a restart, judges continue where
    they stopped.
    """
    from precis_judge.judge_server import serve as run

    def show_links(links: dict[str, str]) -> None:
        for judge, link in links.items():
            print(f"{judge}: {link}", flush=True)

    run(study, host=host, port=port, notify=note, show_links=show_links)


@app.command("report", epilog="Example:\n\nprecis judge report study")
def report(
    study: StudyFolder,
    leave_out: Annotated[
        list[str] | None, typer.Option("--leave-out", help="Name of a judge to exclude. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for the bootstrap intervals.")] = 0,
) -> None:
    """Report the verdicts: win rates, strengths, tests, agreement, and the reliability of each judge.

    Writes report.html, one file with plots, and report.json to the study's folder. Judges may still be working.
    """
    from precis_judge.report_page import publish

    found, tables = publish(study, leave_out=leave_out or (), seed=seed)
    for table in tables:
        show(table)
    for remark in found.remarks:
        note(remark)
    print(f"written: {study}/report.html, {study}/report.json")
