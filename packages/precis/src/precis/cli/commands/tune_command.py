"""`precis tune`: train a prefix on a frozen model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import CheckedCommand, described, words_of
from precis.cli.framework.next_steps import NamedPairs, next_commands
from precis.cli.framework.options import (
    ColumnOptions,
    Data,
    Dev,
    InstructionToTrain,
    PrefixTrainingSettings,
    SamplingSeed,
    TaskToTrain,
    UnitsColumn,
    begin,
    run_changes,
)
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.phases.data.run_pairs import PairSources

_FORMER: Mapping[str, str] = {
    "--prefix-length": "prefix.length",
    "--encoder-segments": "attention.encoder_segments",
    "--decoder-segments": "attention.decoder_segments",
    "--units": "units",
    "--lower-share": "attention.lower_share",
    "--target-length": "target_length",
    "--top-p": "attention.mass",
    "--temperature": "attention.temperature",
    "--sites": "prefix.sites",
    "--layers": "prefix.layers",
    "--inner-width": "prefix.keys.width",
    "--initial-text": "initial_text",
    "--prefix-dropout": "prefix.dropout",
    "--reparametrize": "prefix.keys=network",
    "--direct": "prefix.keys=direct",
    "--whole-model": "prefix=none",
}
"""Former option -> the setting that replaces it; for flags, with the value."""
_NOTES = "precis.former"


class _TuneCommand(CheckedCommand):
    """A command that also accepts former options, as the settings that replaced them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and store the notes about former options in the context."""
        notes: list[str] = []
        ctx.meta[_NOTES] = notes
        return super().parse_args(ctx, list(_renamed(args, notes)))


def _renamed(words: list[str], notes: list[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        setting = _FORMER.get(name)
        if setting is None:
            yield word
            continue
        if "=" not in setting:
            value = value if equals else next(rest, "")
            if not value and name != "--initial-text":
                raise UserError(f"{name} is empty; write --set {setting}=VALUE")
            setting = f"{setting}={value}"
        notes.append(
            f"{name} is now --set {setting!r}" if " " in setting else f"{name} is now --set {setting}"
        )
        yield from ("--set", setting)


@described(
    "tune",
    cls=_TuneCommand,
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
        "Examples:\n\n"
        "precis tune --model facebook/bart-large --task e2e --data DIR --out runs/e2e\n\n"
        "precis tune --model runs/ground --method prefix --set prefix.length=20 --data pairs --out runs/mine\n\n"
        "precis tune --model facebook/bart-large --task xsum --share 0.05 --sampling-seed 1 --out runs/few\n\n"
        "precis summarize FILE --model runs/e2e\n\n"
        "To resume an interrupted run, repeat the command."
    ),
)
def tune(
    context: typer.Context,
    *,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help=(
                "The base model, which does not change: a run folder, a Hugging Face folder, a hub name, or default, "
                "the model included with precis."
            ),
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
                "How tokens attend to the prefix, and whether encoder attention is sparse: prefix, uniblock, "
                "hierblock, truncsa, softsa, htruncsa, hsoftsa or hierblock+softsa (docs/guide/prefixes.md)."
            ),
        ),
    ] = "hierblock+softsa",
    task: TaskToTrain = None,
    data: Data = None,
    dev: Dev = None,
    training: PrefixTrainingSettings,
    patience: Annotated[
        int | None, typer.Option("--patience", help="Stop after this many validations without improvement.")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option("--select", help="Metric that selects the best checkpoint: rougeL, loss, ..."),
    ] = None,
    examples: Annotated[
        int | None, typer.Option("--examples", help="Number of training pairs, drawn at random.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", help="Share of the pairs to train on, drawn at random: 0.05, ..."),
    ] = None,
    sampling_seed: SamplingSeed = None,
    instruction: InstructionToTrain = None,
    columns: ColumnOptions,
    units_column: UnitsColumn = None,
) -> None:
    """Train a prefix on a frozen model for one task, with a few thousandths of the model's parameters.

    Writes checkpoints (only of the prefix), metrics and curves to the run folder, the best adapter to its adapter/.
    Give the run folder as --model to use base and adapter together. For a copy of the base, use --adapter.
    """
    from precis.cli.framework.console import finish, note

    begin(training.threads)
    from precis.phases.data.run_pairs import ColumnNames, find_sources
    from precis.phases.train.prefix_tuning import tune as run_tune
    from precis.recipes.prefix_recipes import resolve_prefix, resolve_tuning, split_assignments, wants_a_rate

    of_prefix, of_run = split_assignments(training.assignments)
    plan = resolve_prefix(task, method, of_prefix)
    run = resolve_tuning(task, changes=run_changes(context), assignments=of_run, select=select)
    set_rate = training.learning_rate is not None or any("train.learning_rate" in each for each in of_run)
    if wants_a_rate(plan) and not set_rate:
        raise UserError(
            "prefix.keys=direct and initial_text train keys and values directly, for which the default rate of 5e-5 is "
            "far too small; add --lr (0.1 to 0.3 for a base of a few million parameters)"
        )
    if units_column is not None and "units=marked" not in [each.replace(" ", "") for each in of_prefix]:
        raise UserError(f"--units-column {units_column} is for --set units=marked; add that, or omit it")
    for line in context.meta[_NOTES]:
        note(line)
    names = ColumnNames(document=columns.document_column, summary=columns.summary_column, units=units_column)
    sources = find_sources(task_name=task, data=data, dev=dev, columns=names, skip_bad=columns.skip_bad)
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
        restart=training.restart,
        command=words_of(context),
        notify=note,
    )
    commands = next_commands(out, test_pairs=test_pairs, units_column=units_column)
    finish(done, restart=training.restart, commands=commands)


def _examples(
    sources: PairSources, examples: int | None, share: float | None, sampling_seed: int | None, *, seed: int
) -> int | None:
    """Return the number of pairs to draw; None for all."""
    from precis.phases.data.run_pairs import examples_in_share

    if examples is not None and share is not None:
        raise UserError(f"--examples {examples} and --share {share:g} exclude each other; give one of them")
    if share is not None:
        return examples_in_share(sources, share, seed=seed)
    if examples is None and sampling_seed is not None:
        raise UserError("--sampling-seed selects the pairs for --examples or --share; add one of them")
    return examples
