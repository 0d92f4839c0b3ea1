"""`precis probe`: inspect a model's attention, and scores over layers and amounts of data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precis.cli.framework.command_class import Commands, examples
from precis.cli.framework.console import ProgressLine, note, show
from precis.cli.framework.options import (
    Adapter,
    CheckerFolder,
    Data,
    DocumentColumn,
    LikelihoodModel,
    Model,
    SkipBad,
    SummaryColumn,
    TaskName,
    Threads,
    UnitsColumn,
    begin,
)
from precis.cli.framework.panels import OptionGroup
from precis.phases.output_folders import claim_folder
from precis.process import use_threads
from precis_text.errors import UserError
from precis_text.row import pluralize

if TYPE_CHECKING:
    from precis.phases.measure.attention_probe import ProbedModel

app = Commands(
    help=(
        "Inspect a model: attention maps, spectra of prefixes, scores by layer or share of the data. Compare "
        "metrics with human scores."
    ),
    no_args_is_help=True,
)


Rows = Annotated[int, typer.Option("--rows", min=1, help="Number of pairs to read, from the start.")]


def _own(out: Path) -> Path:
    return claim_folder(out)


Out = Annotated[Path, typer.Option("--out", help="Folder for plots and numbers.", callback=_own)]
Split = Annotated[
    str | None, typer.Option("--split", help="Split to read. Default: test, if there are splits.")
]
SourceTokens = Annotated[int | None, typer.Option("--max-source", min=2, help=(
    "Maximum tokens per document; longer ones are truncated and counted. Default: 512."
))]  # fmt: skip
TargetTokens = Annotated[int | None, typer.Option("--max-target", min=2, help=(
    "Maximum tokens per summary; longer ones are truncated and counted. Default: 128."
))]  # fmt: skip
Instruction = Annotated[
    str | None,
    typer.Option("--instruction", help="Text before each document. Default: the one used in training."),
]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Documents per batch.")]


class SiteName(StrEnum):
    """`Site` as a choice on the command line."""

    encoder = "encoder"
    cross = "cross"
    decoder = "decoder"


class AxisName(StrEnum):
    """The x-axis that distinguishes runs, as a choice on the command line."""

    layer = "layer"
    share = "share"


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(OptionGroup):
    """The reading options that `attention` and `spectrum` share."""

    model: Model
    task: TaskName = None
    data: Data = None
    split: Split = None
    rows: Rows = 100
    max_source: SourceTokens = None
    max_target: TargetTokens = None
    instruction: Instruction = None
    batch_size: BatchSize = 4
    document_column: DocumentColumn = None
    summary_column: SummaryColumn = None
    units_column: UnitsColumn = None
    skip_bad: SkipBad = False
    threads: Threads = None

    def read(self, adapters: list[str], *, progress: ProgressLine) -> ProbedModel:
        """Load the model and read its documents."""
        use_threads(self.threads)
        from precis.phases.data.run_pairs import NamedPairs
        from precis.phases.measure.attention_probe import read_for_probing
        from precis.phases.measure.evaluation_inputs import read_test_pairs

        named = NamedPairs(
            task=self.task, data=self.data, document_column=self.document_column,
            summary_column=self.summary_column, units_column=self.units_column,
        )  # fmt: skip
        part = named.part(self.split)
        pairs = read_test_pairs(part, limit=self.rows, skip_bad=self.skip_bad, notify=progress.note)
        return read_for_probing(
            self.model, pairs, adapters=adapters, task=self.task, max_source=self.max_source,
            max_target=self.max_target, instruction=self.instruction, batch_size=self.batch_size,
            notify=progress.note,
        )  # fmt: skip


@app.command(
    "attention",
    epilog=(
        "Example:\n\n"
        "precis probe attention --model runs/base --adapter runs/hierblock --data pairs --rows 50 --out probe\n\n"
        "Without --adapter: the model's own attention, over the input only."
    ),
)
def attention(*, documents: ProbeOptions, out: Out, adapter: Adapter = None) -> None:
    """Plot every layer's attention over prefix and input, averaged over heads and documents.

    The decoder reads the reference summaries.
    """
    begin()
    from precis.phases.measure.attention_probe import SITE_NAMES, mean_attention
    from precis.phases.measure.probe_files import write_attention

    with ProgressLine() as progress:
        reading = documents.read([] if adapter is None else [adapter], progress=progress)
        maps = mean_attention(reading, progress=progress)
    write_attention(maps, reading, out)
    for site, layers in maps.items():
        shares = [f"{found.prefix_share:.1%}" for found in layers.values() if found.prefix]
        if shares:
            print(f"attention on the prefix, {SITE_NAMES[site]}, from the lowest layer: {' '.join(shares)}")
    print(f"written: {out}/attention.json, {out}/attention-*.png, {out}/*/layer-*.csv")


AdapterOption = Annotated[list[str] | None, typer.Option("--adapter", help=(
    "An adapter for --model: a run folder of precis tune, or its adapter/. Repeatable."
))]  # fmt: skip
SiteOption = Annotated[SiteName, typer.Option("--site", help="Attention to inspect.")]
LowerShare = Annotated[
    float, typer.Option("--lower-share", help="Share of layers that count as lower; 7/12 in the paper.")
]


@app.command(
    "spectrum",
    epilog=(
        "Example:\n\n"
        "precis probe spectrum --model runs/base --adapter runs/prefix --adapter runs/truncsa --data pairs "
        "--rows 100 --out spectrum"
    ),
)
def spectrum(
    *,
    documents: ProbeOptions,
    out: Out,
    adapter: AdapterOption = None,
    site: SiteOption = SiteName.encoder,
    lower_share: LowerShare = 7 / 12,
) -> None:
    """Plot the cumulative singular values of prefix attention, for lower and upper layers.

    A curve that rises early means that few directions explain most of a layer's attention to the prefix.
    """
    if not 0.0 < lower_share <= 1.0:
        raise UserError(f"--lower-share {lower_share}: must be above 0 and at most 1")
    begin()
    from precis.phases.measure.attention_probe import prefix_spectra
    from precis.phases.measure.probe_files import write_spectra
    from precis.tuning.prefix import Site

    place = Site(site.value)
    with ProgressLine() as progress:
        reading = documents.read(adapter or [], progress=progress)
        spectra = prefix_spectra(reading, site=place, progress=progress)
    pools = write_spectra(spectra, reading, out, site=place, lower_share=lower_share)
    for group, found in pools.items():
        for name, pool in found.items():
            size = len(pool.values)
            what = (
                "no weight on the prefix" if pool.rank is None else f"90% in {pool.rank} of {size} components"
            )
            print(f"{group} layers, {name}: {what}, {pool.matrices:,} matrices")
    print(f"written: {out}/spectrum.png, {out}/spectrum.csv, {out}/spectrum.json")


@app.command(
    "curves",
    epilog=examples(
        "precis probe curves runs/layer-* runs/all --by layer --metric rougeL --out figure3",
        "precis probe curves low-resource.csv --by share --out figure8",
        (
            "A list has the columns line, x, task and scores (a scores.json or its folder), or the scores themselves: "
            "rougeL, rougeL_low, rougeL_high. Runs of one line and x are averaged; "
            "an empty x draws a horizontal baseline."
        ),
    ),
)
def curves(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help=(
        "Folders of evaluated runs, and lists of runs (.csv, .json)."
    ))],
    out: Out,
    by: Annotated[AxisName, typer.Option("--by", help=(
        "The x-axis: layer with the prefix, or share of the data in percent."
    ))],
    metric: Annotated[list[str] | None, typer.Option("--metric", help=(
        "Metric to plot, such as rougeL. Default: ROUGE-1, -2 and -L. Repeatable."
    ))] = None,
) -> None:  # fmt: skip
    """Plot scores of several runs against the layer with the prefix, or the share of the training data."""
    begin()
    from precis.phases.measure.probe_curves import BY_LAYER, BY_SHARE, draw_runs, read_runs

    axis = {AxisName.layer: BY_LAYER, AxisName.share: BY_SHARE}[by]
    measured = read_runs(runs, axis)
    panels = draw_runs(measured, axis, out, metrics=metric or [])
    metrics = ", ".join(panel[0].metric for panel in panels)
    print(f"{pluralize(len(measured), 'run')}, {pluralize(len(panels[0]), 'line')}, {metrics}")
    print(f"written: {out}/curves.png, {out}/curves.csv, {out}/curves.json")


@app.command(
    "metrics",
    epilog=examples(
        "precis probe metrics scored.jsonl",
        "precis probe metrics human_judgment.jsonl --reference-system N --likelihood facebook/bart-large-cnn",
        "precis probe metrics frank/data --out frank-metrics",
        (
            "Rows have id (of the document), system, output, document, reference or references, and score or "
            "several numeric columns. The public files of SummEval, FRANK and DialSummEval work unchanged."
        ),
    ),
)
def metrics(
    scored: Annotated[Path, typer.Argument(metavar="SCORED", help=(
        "Summaries with human scores: .jsonl, .csv or .parquet, or FRANK's data folder."
    ))],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for metrics.json and metrics.md.")] = None,
    reference_system: Annotated[str | None, typer.Option("--reference-system", help=(
        "System whose outputs are the references of the others."
    ))] = None,
    likelihood: LikelihoodModel = None,
    checker: CheckerFolder = None,
    samples: Annotated[int, typer.Option("--samples", min=10, help="Bootstrap samples.")] = 1000,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Evaluate metrics: measure how well each agrees with human scores of the same summaries."""
    if out is not None:
        claim_folder(out)
    begin(threads)
    from precis.evaluation.significance import Bootstrap
    from precis.phases.measure.human_scores import read_scored
    from precis.phases.measure.metric_probe import judge_metrics
    from precis.phases.measure.support_models import load_judges, told_cut

    rows = read_scored(scored, reference_system=reference_system)
    judges = load_judges(likelihood, checker, notify=note)
    table = judge_metrics(rows, judges=judges, bootstrap=Bootstrap(samples=samples))
    told_cut(judges, note)
    for one in table.tables():
        show(one)
        print()
    print(table.about)
    if out is not None:
        table.write(out)
        print(f"written: {out}/metrics.json, {out}/metrics.md")
