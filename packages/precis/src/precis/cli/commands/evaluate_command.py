"""`precis evaluate`: compare models with baselines, with intervals for all scores."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from precis.cli.commands.summarize_command import LongOption
from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import ProgressLine, show
from precis.cli.framework.next_steps import named_pairs_of
from precis.cli.framework.options import (
    Adapter,
    CheckerFolder,
    Data,
    DocumentColumn,
    LikelihoodModel,
    ModeOption,
    SkipBad,
    SummaryColumn,
    Threads,
    UnitsColumn,
    begin,
    options_of,
)
from precis.phases.output_folders import claim_folder, existing_file, existing_folder, folder_to_be


class DecodingPreset(StrEnum):
    """Decoding settings that replace the model's own, as a choice on the command line."""

    task = "task"
    prophetnet = "prophetnet"


Out = Annotated[
    Path, typer.Option("--out", help="Folder for predictions, scores and tables.", callback=folder_to_be)
]
Model = Annotated[list[str] | None, typer.Option("--model", help=(
    "A run folder, a Hugging Face folder, a .gguf file, a hub name, or default, the model included with "
    "precis. Repeatable: each one is compared with the first."
))]  # fmt: skip
Predictions = Annotated[list[Path] | None, typer.Option("--predictions", help=(
    "Score this file: precis's .jsonl, .jsonl rows with id and summary, or one summary per line. Repeatable."
))]  # fmt: skip
Task = Annotated[str | None, typer.Option("--task", help=(
    "A named task (see: precis data list). It sets the columns and, for a grounded model, the instruction. "
    "Lengths and decoding are the model's own; see --decoding."
))]  # fmt: skip
Split = Annotated[
    str | None, typer.Option("--split", help="Split to score on. Default: test, if there are splits.")
]
Beams = Annotated[list[int] | None, typer.Option("--beams", min=1, help=(
    "Beam width; 1 is greedy. Repeatable: one row of the table per width."
))]  # fmt: skip
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", help="Above 1 favours longer summaries (only with beams).")
]
NoRepeatNgram = Annotated[
    int | None,
    typer.Option("--no-repeat-ngram", help="Allow each n-gram of this length only once; 0 turns this off."),
]
DecodingOption = Annotated[DecodingPreset | None, typer.Option("--decoding", help=(
    "Decoding settings that replace the model's own. task: those of --task. prophetnet: those of the "
    "ProphetNet paper. --beams, --length-penalty and --no-repeat-ngram override them."
))]  # fmt: skip
Baselines = Annotated[bool | None, typer.Option("--baselines/--no-baselines", help=(
    "Add LEAD-k, LONGEST-k, LEXRANK-k, TEXTRANK-k and an oracle; for labels, the most frequent one. Default: "
    "depends on the task."
))]  # fmt: skip
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Number of pairs to score, from the start. Default: all.")
]
Bleu = Annotated[bool, typer.Option("--bleu", help="Add BLEU, computed by sacrebleu.")]
Meteor = Annotated[
    bool, typer.Option("--meteor", help="Add METEOR, computed by nltk; with synonyms if nltk finds WordNet.")
]
MeteorJar = Annotated[Path | None, typer.Option("--meteor-jar", help=(
    "Add METEOR, computed by this meteor-1.5.jar, as papers report it. Needs Java."
))]  # fmt: skip
BertScoreFolder = Annotated[
    Path | None, typer.Option("--bertscore", help="Add BERTScore, computed by the encoder in this folder.")
]
BertScoreLayer = Annotated[
    int | None,
    typer.Option("--bertscore-layer", help="Layer of the encoder for --bertscore. Default: the last."),
]
RougeTokenizerOption = Annotated[
    Literal["rouge-score", "unicode", "unicode-tr"] | None,
    typer.Option(
        "--rouge-tokenizer",
        help="Word tokenizer for ROUGE. Default: rouge-score for English, unicode for other languages.",
    ),
]
Stemmer = Annotated[bool | None, typer.Option("--stemmer/--no-stemmer", help=(
    "Compare English word stems, as papers do. Default: for English only."
))]  # fmt: skip
Faithful = Annotated[bool, typer.Option("--faithful", help=(
    "Mark names, numbers and negations of each summary that its document seems to lack. Marks are hints."
))]  # fmt: skip
Instruction = Annotated[str | None, typer.Option("--instruction", help=(
    "Text before each document. Default: the task's for a grounded model, else the one used in training."
))]  # fmt: skip
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Documents per batch.")]


@describe_command(
    "evaluate",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis evaluate --model runs/first --data pairs --out runs/first/evaluation",
        "precis evaluate --model runs/first --model runs/second --data pairs --out scores",
        "precis evaluate --model runs/e2e --task e2e --data DIR --beams 1 --beams 5 --out scores",
        "precis evaluate --predictions old.txt --predictions new.txt --data test.jsonl --out scores",
        "precis evaluate --model runs/qg --task squad-qg --data DIR --meteor-jar meteor-1.5.jar --out scores",
        "To resume an interrupted evaluation, repeat the command.",
    ),
)
def evaluate(
    context: typer.Context,
    out: Out,
    model: Model = None,
    adapter: Adapter = None,
    mode: ModeOption = None,
    predictions: Predictions = None,
    task: Task = None,
    data: Data = None,
    split: Split = None,
    beams: Beams = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram: NoRepeatNgram = None,
    decoding: DecodingOption = None,
    baselines: Baselines = None,
    limit: Limit = None,
    bleu: Bleu = False,
    meteor: Meteor = False,
    meteor_jar: MeteorJar = None,
    bertscore: BertScoreFolder = None,
    bertscore_layer: BertScoreLayer = None,
    rouge_tokenizer: RougeTokenizerOption = None,
    stemmer: Stemmer = None,
    faithful: Faithful = False,
    likelihood: LikelihoodModel = None,
    checker: CheckerFolder = None,
    long: LongOption = None,
    instruction: Instruction = None,
    batch_size: BatchSize = 16,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    units_column: UnitsColumn = None,
    skip_bad: SkipBad = False,
    threads: Threads = None,
) -> None:
    """Score models, or prediction files, and compare them with simple baselines.

    Prints ROUGE, or the task's metrics, with 95% bootstrap intervals, and names the exact scorer of every result. If
    there are several rows (models, files, decoding settings), it compares each with the first on the same examples,
    with an interval and a p-value.
    """
    from precis.generation.model_names import refuse_missing

    for name in model or ():
        refuse_missing(name)
    if (model or predictions) and (task or data):
        named_pairs_of(context).check_part(split)
    for file in predictions or ():
        existing_file(file, "give a file of predictions")
    if bertscore is not None:
        existing_folder(bertscore)
    claim_folder(
        out, is_ours=lambda place: (place / "scores.json").exists() or (place / "predictions").exists()
    )
    begin(threads)
    from precis.phases.measure.evaluation_inputs import EvaluationOptions
    from precis.phases.measure.model_scores import evaluate as evaluate_all

    options = options_of(context, EvaluationOptions)
    with ProgressLine() as progress:
        report = evaluate_all(model or (), data, out=out, **options, notify=progress.note, progress=progress)
    show(report.table())
    print("", *report.remarks, "", sep="\n")  # not in the table, which would wrap a signature
    if report.faithful:
        show(report.faithful_table())
    if report.differences:
        show(report.differences_table())
    print(f"written: {out}/scores.json, {out}/table.md, {out}/examples.jsonl")
