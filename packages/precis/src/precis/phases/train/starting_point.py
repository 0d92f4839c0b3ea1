"""Choose a recipe and a model by the number of pairs and their language, where the user names neither.

many pairs                              a new model of zcodepp-mini
few pairs in English                    the model that comes with precis, if it is installed
few pairs otherwise                     a new model of zcodepp-few
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from precis.data.pairs.dataset_adapters import split_scheme
from precis.data.pairs.pair import Columns
from precis.data.rows.hub import PREFIX
from precis.generation.model_location import default_model, has_default_model
from precis.phases.data.run_pairs import PairSources
from precis.phases.run_folder import recorded_recipe
from precis.phases.use.language_check import are_english
from precis.recipes.catalogue import FEW, FROM_DEFAULT, recipe_for_pairs
from precis_text.row import pluralize

_LOOKED_AT = 100  # pairs that determine the language


MEASURED = (10.7, 13.9, 24.3)
"""ROUGE-L on SAMSum of the default after 100 and 1,000 pairs, and of LEAD-3: docs/experiments/few-pairs.md."""


def choose_advice(sources: PairSources) -> str:
    """Return a line that advises to choose sentences after few pairs, with the figures and the command."""
    few, more, lead = MEASURED
    return (
        f"advice: with few pairs choose, do not write: models that learnt to write from 100 and 1,000 chats reached "
        f"ROUGE-L {few} and {more}, their first three turns {lead} (docs/guide/finetune.md); to choose: "
        f"{extractor_command(sources)}; to measure it on your pairs, add --curve 30,100,300"
    )


def extractor_command(sources: PairSources) -> str:
    """Return the command that trains a model to choose on the same pairs."""
    part = sources.train
    words = ["precis", "extractor", "--model", "default", "--tasks"]
    if sources.task:
        place = "" if part.source.startswith(PREFIX) else f"={split_scheme(part.source)[1]}"
        return shlex.join([*words, f"{sources.task}{place}", "--out", "runs/chooses"])
    usual, named = Columns(), part.columns
    columns = ["--document-column", named.document] if named.document != usual.document else []
    columns += ["--summary-column", named.summary] if named.summary != usual.summary else []
    skip = ["--skip-bad"] if sources.skip_bad else []
    return shlex.join([*words, part.source, *columns, *skip, "--out", "runs/chooses"])


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """The starting point of a run.

    Attributes:
        recipe: the recipe.
        model: the folder of the model; if None, a new model.
        why: a line that names both and the alternatives; "" for a resumed run.
    """

    recipe: str
    model: str | None = None
    why: str = ""


def begin_as_recipe_says(recipe: str) -> Beginning:
    """Return the starting point of a named recipe; raise `UserError` if it needs a model that is not installed."""
    return Beginning(recipe=recipe, model=str(default_model()) if recipe == FROM_DEFAULT else None)


def choose_beginning(
    sources: PairSources, *, examples: int | None, begun: Path | None, asks_for_new: bool
) -> Beginning:
    """Choose the starting point that suits the pairs; a resumed run keeps its own.

    Args:
        examples: the number of pairs to draw; if None, all.
        begun: the run's folder, unless the run restarts.
        asks_for_new: whether an option needs a new model, such as a size.

    Raises:
        UserError: the pairs cannot be read.
    """
    recorded = None if begun is None else recorded_recipe(begun)
    if recorded is not None:
        return begin_as_recipe_says(recorded)
    read = sources.train.read(skip_bad=sources.skip_bad, limit=FEW)
    first = [*islice(read, _LOOKED_AT)]
    count = len(first) + sum(1 for _ in read)
    pairs = count if examples is None else min(count, examples)
    if pairs < FEW and not asks_for_new and has_default_model() and are_english(first):
        few = f"{pluralize(pairs, 'English pair')} {'is' if pairs == 1 else 'are'} few"
        why = (
            f"no --recipe and no --model: {few}, so training starts from the model that "
            f"comes with precis (--recipe {FROM_DEFAULT}, weights under CC BY-SA 4.0); from scratch: "
            "--recipe zcodepp-few"
        )
        return Beginning(recipe=FROM_DEFAULT, model=str(default_model()), why=why)
    chosen = recipe_for_pairs(pairs)
    few = f"{pairs:,}" if pairs < FEW else f"{FEW:,} or more"
    return Beginning(
        recipe=chosen, why=f"no --recipe and no --model: a new model by --recipe {chosen}, for {few} pairs"
    )
