"""Plan a training on sets of pairs: grounding a model in many tasks, or a sentence scorer on its encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from precis.phases.data.run_pairs import NamedPairs
from precis.phases.data.training_sets import split_names
from precis.phases.train.extractor_training import train_extractor as run_extractor
from precis.phases.train.grounding import DEFAULT_CAP
from precis.phases.train.grounding import ground as run_grounding
from precis.phases.train.training_session import RunOptions
from precis.recipes.overrides import as_asked, check_on_pairs, names_asked
from precis.recipes.planning import resolve_grounding
from precis.recipes.run_options import PairTrainingOptions, ScorerTrainingOptions, option_changes
from precis.recipes.run_plan import ExtractPlan
from precis.training import Callback, Trained
from precis_text.errors import UserError


class MixtureOptions(RunOptions, total=False):
    """The options of a training on sets of pairs.

    Attributes:
        data: the folder that contains a folder for each task; if None, $PRECIS_DATA or the hub.
        cap: the largest number of pairs to draw from a set.
        leave_out: sets that are not trained on.
        skip_bad: skip and count rows that cannot be used.
        callbacks: callbacks of the loop; if None, the standard ones.
    """

    data: str | Path | None
    cap: int
    leave_out: str | Sequence[str]
    skip_bad: bool
    callbacks: Sequence[Callback] | None


class GroundingOptions(MixtureOptions, PairTrainingOptions, total=False):
    """The options of `precis ground` besides its model and its sets, as keyword arguments.

    Attributes:
        recipe: training settings; if None, chosen by the model's type and size.
        temperature: flattens the sets' shares; 1 keeps them, above 1 small sets count more.
    """

    recipe: str | None
    temperature: float | None


class ExtractorOptions(MixtureOptions, ScorerTrainingOptions, total=False):
    """The options of `precis extractor` besides its model and its sets, as keyword arguments.

    Attributes:
        document_column, summary_column: columns of files and folders of pairs; if None, found by their names.
    """

    document_column: str | None
    summary_column: str | None


def ground(model: str | Path, tasks: str | Sequence[str], **options: Unpack[GroundingOptions]) -> Trained:
    """Train a model further on pairs of many tasks, as `precis ground` does; a repeated call resumes the run.

    Args:
        model: the pre-trained model to start from: a run folder, a model folder or a hub name.
        tasks: training sets, also comma-separated: names of tasks, `TASK=PLACE`, files or folders of pairs; or "all",
            every task with training files in `data`.
        options: `out`, the run folder, and the others of `GroundingOptions`.

    Raises:
        UserError: sets, model and settings do not fit together, or `out` holds another run.
        RunError: training failed.

    Examples:
        >>> done = ground("runs/news", "pairs", out="runs/grounded", steps=1, batch_size=2)
        >>> (done.folder / "model" / "model.safetensors").is_file()
        True
    """
    plan = resolve_grounding(
        options.get("recipe"),
        start=str(model),
        changes=option_changes(options),
        assignments=options.get("settings") or (),
    )
    plan = as_asked(plan, select=options.get("select"))
    check_on_pairs(plan, several_sets=True)
    temperature = options.get("temperature")
    mixture = _mixture(model, tasks, options)
    return run_grounding(plan, **mixture, temperature=1.0 if temperature is None else temperature)


def train_extractor(
    model: str | Path, tasks: str | Sequence[str], **options: Unpack[ExtractorOptions]
) -> Trained:
    """Train a model to select sentences, as `precis extractor` does; a repeated call resumes the run.

    Args:
        model: any encoder-decoder, whose weights do not change: a run folder, a model folder or a hub name.
        tasks: training sets, also comma-separated: names of tasks, `TASK=PLACE`, files or folders of pairs.
        options: `out`, the run folder, and the others of `ExtractorOptions`.

    Raises:
        UserError: sets, model and settings do not fit together, or `out` holds another run.
        RunError: training failed.

    Examples:
        >>> small = ["scorer.width=16", "scorer.heads=2"]
        >>> done = train_extractor("runs/news", "pairs", out="runs/chooses", epochs=1, settings=small)
        >>> (done.folder / "model" / "precis.json").is_file()
        True
    """
    changes = option_changes(options)
    assignments = options.get("settings") or ()
    plan = as_asked(ExtractPlan(), changes=changes, assignments=assignments)
    columns = NamedPairs(
        document_column=options.get("document_column"), summary_column=options.get("summary_column")
    )
    fixed = names_asked(changes, assignments)
    return run_extractor(plan, **_mixture(model, tasks, options), columns=columns, fixed=fixed)


def _mixture(
    model: str | Path, tasks: str | Sequence[str], options: GroundingOptions | ExtractorOptions
) -> dict[str, Any]:
    """Return the arguments of a training on sets besides its plan."""
    names = RunOptions.__annotations__.keys() | {"skip_bad", "callbacks"}
    asked = {name: value for name, value in options.items() if name in names}
    data = options.get("data")
    wanted = split_names(tasks)
    if not wanted:
        raise UserError("no set to train on; name tasks with --tasks (see: precis data list)")
    return {
        **asked, "start": str(model), "tasks": wanted,
        "leave_out": split_names(options.get("leave_out") or ()), "data": None if data is None else str(data),
        "cap": options.get("cap", DEFAULT_CAP),
    }  # fmt: skip
