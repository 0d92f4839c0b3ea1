"""`precis tune`: train a prefix on a frozen model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.commands import words_of
from precis.cli.config_file import Config
from precis.cli.named_pairs import NamedPairs, print_made
from precis.cli.options import (
    Data,
    Dev,
    DocumentColumn,
    Epochs,
    InstructionToTrain,
    MaxSource,
    MaxTarget,
    PairsInBatch,
    Restart,
    SamplingSeed,
    Seed,
    SettingsList,
    SkipBad,
    Steps,
    SummaryColumn,
    TaskToTrain,
    Threads,
    TokensInBatch,
    TuningPrecision,
    UnitsColumn,
    ValidateEvery,
    given,
    run_changes,
    use_threads,
)
from precis.errors import UserError

if TYPE_CHECKING:
    from precis.phases.sources import PairSources
    from precis.phases.tuning_runs import TunePlan
    from precis.tuning.prefix import Direct, Reparametrized


class Units(StrEnum):
    """What the segments of a source are made of: equal parts, or one of `precis.data.text.segments.UNIT_KINDS`."""

    equal = "equal"
    sentences = "sentences"
    paragraphs = "paragraphs"
    turns = "turns"
    marked = "marked"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "tune",
        rich_help_panel="Train a model",
        epilog=(
            "Examples:\n\n"
            "precis tune --model facebook/bart-large --task e2e --data DIR --out runs/e2e\n\n"
            "precis tune --model runs/ground --method prefix --lr 2e-3 --data pairs --out runs/mine\n\n"
            "precis tune --model facebook/bart-large --task xsum --share 0.05 --sampling-seed 1 --out runs/few\n\n"
            "precis summarize FILE --model runs/e2e\n\n"
            "A run that was stopped or killed goes on when the same command is started again."
        ),
    )(tune)


def tune(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="The base, which stays as it is: a run folder, a Hugging Face folder, or a hub name.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Run folder; the finished adapter is in its adapter/.", show_default=False
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help=(
                "prefix, uniblock, hierblock, truncsa, softsa, htruncsa, hsoftsa or hierblock+softsa: plain, in "
                "blocks (everywhere, or in lower layers), sparse, or blocks and sparse below."
            ),
        ),
    ] = "hierblock+softsa",
    task: TaskToTrain = None,
    data: Data = None,
    dev: Dev = None,
    prefix_length: Annotated[
        int | None,
        typer.Option(
            "--prefix-length", min=1, help="Columns at each site; default: the paper's for the task, or 50."
        ),
    ] = None,
    encoder_segments: Annotated[
        int, typer.Option("--encoder-segments", help="Blocks of the source: 1, 2 or 3 in the paper.")
    ] = 2,
    decoder_segments: Annotated[
        int, typer.Option("--decoder-segments", help="Blocks of the target: 1 or 2 in the paper.")
    ] = 1,
    units: Annotated[
        Units,
        typer.Option(
            "--units",
            help="What blocks of the source are made of; equal: parts of equal length; marked: annotated units.",
        ),
    ] = Units.equal,
    lower_share: Annotated[
        float | None, typer.Option("--lower-share", help="Part of a stack that is lower; default: 7/12.")
    ] = None,
    target_length: Annotated[
        int | None,
        typer.Option(
            "--target-length",
            help="Tokens that a summary is expected to have, for its blocks; default: the training mean.",
        ),
    ] = None,
    top_p: Annotated[
        float, typer.Option("--top-p", help="TruncSA: share of the attention that stays.")
    ] = 0.95,
    temperature: Annotated[
        float, typer.Option("--temperature", help="SoftSA: 1, 0.1 or 0.01 in the paper; TruncSA: 1 or 0.1.")
    ] = 1.0,
    sites: Annotated[
        str, typer.Option("--sites", help="Which attention has a prefix, of encoder, cross and decoder.")
    ] = "encoder,cross,decoder",
    layers: Annotated[
        str,
        typer.Option(
            "--layers",
            help="Layers with a prefix: all, top:4, low:7 or single:0 (the lowest; counted from 0).",
        ),
    ] = "all",
    reparametrize: Annotated[
        bool | None,
        typer.Option(
            "--reparametrize/--direct",
            help=(
                "Make keys and values by a network, which is folded away (default), or train them themselves, which "
                "wants a --lr of its own."
            ),
            show_default=False,
        ),
    ] = None,
    inner_width: Annotated[
        int | None, typer.Option("--inner-width", help="Of that network; default: 800.")
    ] = None,
    initial_text: Annotated[
        str,
        typer.Option(
            "--initial-text", help="Begin as what the base makes of these words; as --direct otherwise."
        ),
    ] = "",
    prefix_dropout: Annotated[
        float, typer.Option("--prefix-dropout", help="Of keys and values, in training.")
    ] = 0.0,
    whole_model: Annotated[
        bool,
        typer.Option("--whole-model", help="No prefix: fine-tune the whole model under sparse attention."),
    ] = False,
    config: Config = None,
    settings: SettingsList = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch_size: PairsInBatch = None,
    batch_tokens: TokensInBatch = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--lr",
            help=(
                "Peak learning rate; default: 5e-5, for BART-large and the network. A base of a few million wants "
                "0.001 to 0.003, with --direct 0.1 to 0.3."
            ),
        ),
    ] = None,
    max_source: MaxSource = None,
    max_target: MaxTarget = None,
    seed: Seed = None,
    precision: TuningPrecision = None,
    validate_every: ValidateEvery = None,
    patience: Annotated[
        int | None, typer.Option("--patience", help="Stop after this many validations without improvement.")
    ] = None,
    select: Annotated[
        str | None, typer.Option("--select", help="Metric that names the best checkpoint: rougeL, loss, ...")
    ] = None,
    examples: Annotated[
        int | None, typer.Option("--examples", help="Train on this many pairs, drawn at random.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="Train on this share of the pairs, drawn at random: 0.05, ..."),
    ] = None,
    sampling_seed: SamplingSeed = None,
    instruction: InstructionToTrain = None,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    units_column: UnitsColumn = None,
    skip_bad: SkipBad = False,
    restart: Restart = False,
    threads: Threads = None,
) -> None:
    """Train a prefix on a frozen model: what is kept has a few thousandths of its parameters, for one task.

    Writes checkpoints (of the prefix alone), metrics and curves to the run folder, the best adapter to its adapter/.
    The run folder, given as --model, is the base with its adapter; on a copy of the base elsewhere use --adapter.
    """
    from precis.cli.console import leave_unfinished, note
    from precis.cli.quiet import quieten_transformers

    quieten_transformers()
    use_threads(threads)
    from precis.data.text.segments import UNIT_KINDS
    from precis.phases.sources import ColumnNames, find_sources
    from precis.phases.tune import tune as run_tune
    from precis.phases.tuning_runs import parse_keys
    from precis.recipes.tuning_tasks import resolve_tuning, settings_for
    from precis.tuning.prefix import Direct

    keys = parse_keys(reparametrize=reparametrize, inner_width=inner_width, initial_text=initial_text)
    set_rate = learning_rate is not None or any("train.learning_rate" in one for one in settings or [])
    if isinstance(keys, Direct) and not set_rate and not whole_model:
        raise UserError(
            "--direct and --initial-text train keys and values themselves, for which the usual rate of 5e-5 is far too "
            "small; give --lr (0.1 to 0.3 for a base of a few million parameters)"
        )
    run = resolve_tuning(task, changes=run_changes(context), assignments=settings or [], select=select)
    blocks = {"encoder_segments": encoder_segments, "decoder_segments": decoder_segments}
    plan = _plan(
        method,
        settings_for(task).prefix_length if prefix_length is None else prefix_length,
        sites=sites,
        layers=layers,
        keys=keys,
        dropout=prefix_dropout,
        whole_model=whole_model,
        chosen=given({**blocks, "mass": top_p, "temperature": temperature, "lower_share": lower_share}),
        initial_text=initial_text,
        target_length=target_length,
        units=UNIT_KINDS.get(units.value),
    )
    _refuse_unread(_typed(context), method, whole_model=whole_model)
    if units_column is not None and units is not Units.marked:
        raise UserError(
            f"--units-column {units_column} is for --units marked; give that too, or leave it out"
        )
    columns = ColumnNames(document=document_column, summary=summary_column, units=units_column)
    sources = find_sources(task_name=task, data=data, dev=dev, columns=columns, skip_bad=skip_bad)
    test_pairs = NamedPairs.of(context).to_test(sources.train.source)
    done = run_tune(
        plan,
        run,
        base=model,
        sources=sources,
        out=out,
        instruction=instruction,
        examples=_examples(sources, examples, share, sampling_seed, seed=run.train.seed),
        sampling_seed=sampling_seed,
        restart=restart,
        command=words_of(context),
        tell=note,
    )
    if done.adapter is None:
        leave_unfinished(is_main=done.is_main, restart=restart)
    if not done.is_main:
        return
    print_made("adapter", done.adapter, run=out, test_pairs=test_pairs, units_column=units_column)


def _plan(
    method: str,
    length: int,
    *,
    sites: str,
    layers: str,
    keys: Direct | Reparametrized,
    dropout: float,
    whole_model: bool,
    chosen: dict[str, Any],
    **options: Any,
) -> TunePlan:
    """What the options attach; `chosen` are settings of the method by name."""
    from precis.phases.tuning_runs import TunePlan, parse_layers
    from precis.tuning import MethodSettings, NoPrefix, Prefix

    prefix = Prefix(
        length=length,
        sites=tuple(name.strip() for name in sites.split(",")),
        layers=parse_layers(layers),
        keys=keys,
        dropout=dropout,
    )
    return TunePlan(
        method=method,
        prefix=NoPrefix() if whole_model else prefix,
        settings=MethodSettings(**chosen),
        **options,
    )


_METHOD_OPTIONS = {
    "encoder_segments": "encoder_segments",
    "decoder_segments": "decoder_segments",
    "lower_share": "lower_share",
    "target_length": "target_length",
    "top_p": "mass",
    "temperature": "temperature",
}
"""Option -> the setting of the method that it is."""
_PREFIX_OPTIONS = ("prefix_length", "sites", "layers", "reparametrize", "inner_width", "prefix_dropout")


def _typed(context: typer.Context) -> list[str]:
    """Names of the options that the user gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _refuse_unread(typed: list[str], method: str, *, whole_model: bool) -> None:
    """Refuse options that would change nothing."""
    from precis.tuning.methods import READERS

    for name in typed:
        option = f"--{name.replace('_', '-')}"
        readers = READERS.get(_METHOD_OPTIONS.get(name, ""))
        if readers is not None and method not in readers:
            raise UserError(f"{option} is nothing to the method {method!r}; {', '.join(readers)} read it")
        if whole_model and name in _PREFIX_OPTIONS:
            raise UserError(f"{option} is about a prefix, and --whole-model tunes without one; leave one out")


def _examples(
    sources: PairSources, examples: int | None, share: float | None, sampling_seed: int | None, *, seed: int
) -> int | None:
    """How many pairs are drawn; None: all are used."""
    from precis.phases.sources import examples_in_share

    if examples is not None and share is not None:
        raise UserError(
            f"--examples {examples} and --share {share:g} both say how many pairs are drawn; give one"
        )
    if share is not None:
        return examples_in_share(sources, share, seed=seed)
    if examples is None and sampling_seed is not None:
        raise UserError("--sampling-seed says which pairs are drawn; give --examples or --share too")
    return examples
