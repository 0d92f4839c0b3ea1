"""`precis tune`: train a prefix or a low-rank adapter on a frozen model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import describe_command, words_of
from precis.cli.framework.next_steps import named_pairs_of, train_on
from precis.cli.framework.options import (
    ColumnOptions,
    Data,
    Dev,
    InstructionToTrain,
    PrefixTrainingSettings,
    SamplingSeed,
    Seeds,
    TaskToTrain,
    Trials,
    UnitsColumn,
    begin,
    options_of,
)

Model = Annotated[str, typer.Option("--model", help=(
    "The base model, which does not change: a run folder, a Hugging Face folder, a hub name, or default, the "
    "model included with precis."
))]  # fmt: skip
Out = Annotated[Path, typer.Option("--out", help="Run folder; the finished adapter is in OUT/adapter.")]
Method = Annotated[str | None, typer.Option("--method", help=(
    "How tokens attend to the prefix, and whether encoder attention is sparse: prefix, uniblock, hierblock, "
    "truncsa, softsa, htruncsa, hsoftsa or hierblock+softsa (docs/guide/prefixes.md); or lora, low-rank "
    "adapters. Default: lora for a causal language model, else hierblock+softsa."
))]  # fmt: skip
Patience = Annotated[
    int | None,
    typer.Option("--patience", min=1, help="Stop after this many validations without improvement."),
]
Select = Annotated[
    str | None, typer.Option("--select", help="Metric that selects the best checkpoint: rougeL, loss, ...")
]
Examples = Annotated[
    int | None, typer.Option("--examples", min=1, help="Number of training pairs, drawn at random.")
]
Share = Annotated[
    float | None, typer.Option("--share", help="Share of the pairs to train on, drawn at random: 0.05, ...")
]
Search = Annotated[
    bool, typer.Option("--search", help="Search the settings that --method uses (the paper's Table 7).")
]
Space = Annotated[list[str] | None, typer.Option("--space", help=(
    "Values for --search, such as encoder_segments=1,2 or learning_rate=0.001,0.003; temperature=none omits "
    "a setting. Repeatable."
))]  # fmt: skip


@describe_command(
    "tune",
    rich_help_panel="Train a model",
    epilog=(
        "Prefix settings, for --set:\n\n"
        "prefix.length=50, columns per site; prefix.sites=encoder,cross,decoder; prefix.layers=all, top:4, "
        "low:7 or single:0; prefix.keys=network or direct; prefix.keys.width=800; prefix.dropout=0; prefix=none "
        "tunes the whole model under sparse attention\n\n"
        "attention.encoder_segments=2 and attention.decoder_segments=1, blocks of source and target; "
        "attention.lower_share=0.58, share of lower layers; attention.mass=0.95 (TruncSA: share of the "
        "attention to keep); attention.temperature=1 (SoftSA: 1, 0.1 or 0.01 in the paper; TruncSA: 1 or 0.1)"
        "\n\n"
        "units=equal, sentences, paragraphs, turns or marked, the units of source blocks; "
        "target_length, expected tokens per summary (default: the training mean); initial_text, "
        "initial words of the prefix\n\n"
        "lora.rank=8 and lora.alpha=16, for --method lora\n\n"
        "Examples:\n\n"
        "precis tune --model facebook/bart-large --task e2e --data DIR --out runs/e2e\n\n"
        "precis tune --model runs/ground --method prefix --set prefix.length=20 --data pairs --out runs/mine\n\n"
        "precis tune --model facebook/bart-large --task xsum --share 0.05 --sampling-seed 1 --out runs/few\n\n"
        "precis tune --model writers/smollm2 --data pairs --out runs/lora\n\n"
        "precis tune --model runs/ground --method hierblock --data pairs --search --out runs/search\n\n"
        "precis summarize FILE --model runs/e2e\n\n"
        "To resume an interrupted run, repeat the command."
    ),
)
def tune(
    context: typer.Context,
    *,
    model: Model,
    out: Out,
    method: Method = None,
    task: TaskToTrain = None,
    data: Data = None,
    dev: Dev = None,
    training: PrefixTrainingSettings,
    patience: Patience = None,
    select: Select = None,
    examples: Examples = None,
    share: Share = None,
    sampling_seed: SamplingSeed = None,
    seeds: Seeds = None,
    search: Search = False,
    trials: Trials = None,
    space: Space = None,
    instruction: InstructionToTrain = None,
    columns: ColumnOptions,
    units_column: UnitsColumn = None,
) -> None:
    """Train an adapter for one task on a frozen model: a prefix with a few thousandths of the model's parameters, or a
    low-rank adapter (LoRA) for a causal language model.

    Writes checkpoints (only of the adapter), metrics and curves to the run folder, and the best adapter to OUT/adapter.
    Pass the run folder as --model to use base and adapter together. For a copy of the base, use --adapter.
    """
    from precis.generation.model_names import refuse_missing

    refuse_missing(model)
    pairs = named_pairs_of(context)
    pairs.check()
    begin(training.threads, out=out)
    from precis.phases.plans.tuning_plan import TuningOptions, plan_tuning

    options = {**options_of(context, TuningOptions), "command": words_of(context)}
    train_on(
        partial(plan_tuning, model, pairs, search=search, **options),
        to_test=lambda: pairs.to_test(pairs.sources().train.source),
        out=out,
        training=training,
        seeds=seeds,
        search=search,
        units_column=units_column,
    )
