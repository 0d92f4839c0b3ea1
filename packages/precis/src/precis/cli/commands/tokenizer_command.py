"""`precis tokenizer`: train a tokenizer, or copy another model's."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import note
from precis.cli.framework.options import Data, DocumentColumn, SkipBad, SummaryColumn, TaskName, Temperature
from precis_text.errors import UserError

_ENTRIES = 8000


@describe_command(
    "tokenizer",
    rich_help_panel="Train a model",
    epilog=examples(
        "precis tokenizer --data pairs --vocab-size 8000 --out tokenizers/mine",
        (
            "precis tokenizer --corpus texts/es --corpus texts/ru --temperature 3.33 --vocab-size 250000 --out "
            "tokenizers/many"
        ),
        "precis tokenizer --from google/mt5-base --out tokenizers/mt5",
    ),
)
def tokenizer(
    out: Annotated[Path, typer.Option("--out", help="Folder to write the tokenizer to.")],
    task: TaskName = None,
    data: Data = None,
    corpus: Annotated[list[str] | None, typer.Option("--corpus", help=(
        "Instead of pairs: text files or a folder, for example one per language. Repeatable."
    ))] = None,
    from_model: Annotated[str | None, typer.Option("--from", help=(
        "Instead of training: copy this model's tokenizer, from a folder or the hub, and add the control "
        "tokens for pre-training."
    ))] = None,
    temperature: Temperature = None,
    vocab_size: Annotated[int | None, typer.Option("--vocab-size", min=400, help=(
        "Vocabulary size, including control tokens and sentinels. Default: 8000."
    ))] = None,
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
) -> None:  # fmt: skip
    """Train a tokenizer on the texts of pairs or on corpora in several languages, or copy another model's tokenizer.

    `precis finetune` trains one itself; train a separate one to share it between runs. It encodes any text: characters
    outside the vocabulary become bytes.
    """
    from precis.data.mixing_shares import BySize
    from precis.phases.data.run_pairs import NamedPairs

    if from_model is not None:
        given = (task, data, corpus, temperature, vocab_size, document_column, summary_column)
        if skip_bad or any(value not in (None, []) for value in given):
            raise UserError("--from copies a tokenizer; omit all options except --out")
        _take(out, from_model)
        return
    size = _ENTRIES if vocab_size is None else vocab_size
    if corpus:
        if task or data or summary_column:
            raise UserError("--corpus reads text without summaries; omit --task, --data and --summary-column")
        from precis.phases.train.tokenizer_training import make_shared_tokenizer

        made = make_shared_tokenizer(
            out,
            corpus,
            mixture=BySize(temperature=1.0 if temperature is None else temperature),
            vocab_size=size,
            column=document_column or "text",
            skip_bad=skip_bad,
            notify=note,
        )
    elif temperature is not None:
        raise UserError("--temperature weights several --corpus; omit it")
    else:
        columns = {"document_column": document_column, "summary_column": summary_column}
        pairs = NamedPairs(task=task, data=data, skip_bad=skip_bad, **columns)
        pairs.check()
        from precis.phases.train.tokenizer_training import make_tokenizer

        made = make_tokenizer(out, pairs.sources(), vocab_size=size, notify=note)
    print(f"tokenizer with {made.entries:,} entries: {out}")
    print(f"{made.tokens_per_word:.2f} tokens per word on average in the training texts")
    if corpus:
        print(*(f"  {name}: {length:.2f}" for name, length in made.by_corpus.items()), sep="\n")
    name = shlex.quote(str(out))
    print(
        f"next: precis {f'data pack TEXTS --tokenizer {name}' if corpus else f'finetune --tokenizer {name}'} ..."
    )


def _take(out: Path, model: str) -> None:
    from precis.cli.framework.library_logging import quieten_transformers
    from precis.phases.train.tokenizer_training import take_tokenizer

    quieten_transformers()
    print(f"tokenizer with {take_tokenizer(out, model):,} entries, from {model}: {out}")
    print(f"next: precis data pack TEXTS --tokenizer {shlex.quote(str(out))} ...")
