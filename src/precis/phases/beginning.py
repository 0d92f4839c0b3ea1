"""What fine-tuning begins with where neither a recipe nor a model is named: how many pairs there are and their language
decide.

    many pairs                              a new model of zcodepp-mini
    few pairs in English                    the model that comes with precis, if it is installed
    few pairs otherwise                     a new model of zcodepp-few
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from precis.generation.default_model import default_model, has_default_model
from precis.phases.english import are_english
from precis.phases.run_folder import recorded_recipe
from precis.phases.sources import PairSources
from precis.recipes.catalogue import FEW, FROM_DEFAULT, recipe_for_pairs

_LOOKED_AT = 100  # pairs that tell the language of all


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a run begins with.

    Attributes:
        recipe: the recipe.
        model: the folder of the model; if None, a new one.
        why: a line that says both, and how to choose otherwise; "" for a run that goes on.
    """

    recipe: str
    model: str | None = None
    why: str = ""


def begin_as_recipe_says(recipe: str) -> Beginning:
    """What a recipe that is named begins with.

    Raises:
        UserError: it begins with the model that comes with precis, which is not installed.
    """
    return Beginning(recipe=recipe, model=str(default_model()) if recipe == FROM_DEFAULT else None)


def choose_beginning(
    sources: PairSources, *, examples: int | None, begun: Path | None, asks_for_new: bool
) -> Beginning:
    """What suits the pairs; a run that is taken up again keeps what it began with.

    Args:
        examples: how many pairs are drawn; if None, all are trained on.
        begun: the run's folder, unless it starts anew.
        asks_for_new: whether something is asked for that new models alone have, such as a size.

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
        why = (
            f"no --recipe and no --model: {pairs:,} English pairs are few, so training starts from the model that "
            f"comes with precis (--recipe {FROM_DEFAULT}, weights under CC BY-SA 4.0); from scratch: "
            "--recipe zcodepp-few"
        )
        return Beginning(recipe=FROM_DEFAULT, model=str(default_model()), why=why)
    chosen = recipe_for_pairs(pairs)
    few = f"{pairs:,}" if pairs < FEW else f"{FEW:,} or more"
    return Beginning(
        recipe=chosen, why=f"no --recipe and no --model: a new model by --recipe {chosen}, for {few} pairs"
    )
