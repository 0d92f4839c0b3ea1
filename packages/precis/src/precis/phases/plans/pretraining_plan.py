"""Plan a pre-training: the recipe with the user's settings, its corpora and their weights, and the memory it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from precis.data.mixing_shares import BySize
from precis.messages import Notify
from precis.objectives.pretraining_objectives import SpansAlone
from precis.phases.train.memory_plan import memory_plan
from precis.phases.train.pretraining import pretrain as run_pretraining
from precis.phases.train.pretraining import resolve_pretraining
from precis.recipes.overrides import FUSION, asks_for_fusion, refuse_shape, with_changes, with_overrides
from precis.recipes.pretraining_runs import PreTrainRun
from precis.recipes.run_options import BlockTrainingOptions, option_changes
from precis.recipes.run_plan import Fusion
from precis.training import Callback, Trained
from precis_text.errors import UserError

DEFAULT_RECIPE = "zcodepp-mini"


class PretrainingOptions(BlockTrainingOptions, total=False):
    """The options of `precis pretrain` besides its corpora and its run folder, as keyword arguments.

    Attributes:
        recipe: shape and training settings, such as "zcodepp-mini" (the default) or "prophetnet-base".
        model: a run folder or a model folder to start from; if None, a new model.
        without_rtd: train only span recovery, without a generator.
        temperature: weight the corpora by their size to the power 1/T, instead of by their weights.
        restart, command, notify, callbacks: see `precis.phases.train.training_session.RunRequest`.
    """

    recipe: str
    model: str | Path | None
    without_rtd: bool
    temperature: float | None
    restart: bool
    command: Sequence[str]
    notify: Notify
    callbacks: Sequence[Callback] | None


@dataclass(frozen=True, kw_only=True)
class PreTraining:
    """A planned pre-training: everything is chosen and checked, and nothing is trained or written yet.

    Attributes:
        plan: shape, objective, training settings and block length.
        corpora: folders of `precis data pack`, each with its weight.
        mixture: weights the corpora by their size instead.
        request: run folder, starting model and the other arguments of `precis.phases.train.pretraining.pretrain`.
        keeps_precision: whether the user named the precision.
    """

    plan: PreTrainRun
    corpora: Mapping[str, float]
    mixture: BySize | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    keeps_precision: bool = False

    def memory(self) -> str:
        """Return the memory that the run needs on 1, 8 and 128 GPUs, as a table of text.

        GPUs of that size compute in bf16, whatever this machine supports, unless the precision is named.
        """
        return memory_plan(
            with_changes(self.plan, {} if self.keeps_precision else {"train.precision": "bf16"})
        )

    def run(self) -> Trained:
        """Pre-train in the run folder, or resume that run, and export the last model.

        Raises:
            UserError: a corpus or the run folder is not named, corpora, model and settings do not fit together, or
                the folder holds another run.
            RunError: training failed.
        """
        if not self.corpora:
            raise UserError("name a corpus: --corpus with a folder created by `precis data pack`")
        if self.request.get("out") is None:
            raise UserError("name a folder for the run with --out")
        return run_pretraining(self.plan, corpora=self.corpora, mixture=self.mixture, **self.request)


Corpora = str | Path | Sequence[str | Path] | Mapping[str, float]


def plan_pretraining(
    corpora: Corpora = (), *, out: str | Path | None = None, **options: Unpack[PretrainingOptions]
) -> PreTraining:
    """Apply the options to the recipe, and check all before training.

    Args:
        corpora: folders of `precis data pack`; with weights as a mapping, or as texts, `FOLDER=WEIGHT`. `memory`
            needs none.
        out: the run folder; `memory` needs none.
        options: see `PretrainingOptions`.

    Raises:
        UserError: a recipe or setting is unknown, or a weight is invalid.

    Examples:
        >>> plan_pretraining(recipe="zcodepp-micro", steps=50).plan.train.steps
        50
        >>> print(plan_pretraining(recipe="zcodepp-micro").memory().partition(":")[0])
        zcodepp-micro
    """
    model, settings = options.get("model"), [*(options.get("settings") or ())]
    fusion = None
    if model is not None:
        refuse_shape(settings, but=FUSION)
        reading = [text for text in settings if asks_for_fusion([text])]
        settings = [text for text in settings if text not in reading]
        if reading:
            fusion = with_overrides(Fusion(), (text.removeprefix("model.") for text in reading))
    changes = option_changes(options)
    if options.get("without_rtd"):
        changes["objective"] = SpansAlone()
    plan = resolve_pretraining(options.get("recipe", DEFAULT_RECIPE), changes=changes, assignments=settings)
    temperature = options.get("temperature")
    names = ("restart", "command", "notify", "callbacks")
    request = {name: value for name, value in options.items() if name in names}
    return PreTraining(
        plan=plan,
        corpora=_weights(corpora),
        mixture=None if temperature is None else BySize(temperature=temperature),
        request={**request, "out": out, "start": None if model is None else str(model), "fusion": fusion},
        keeps_precision=options.get("precision") is not None,
    )


def pretrain(corpora: Corpora, *, out: str | Path, **options: Unpack[PretrainingOptions]) -> Trained:
    """Pre-train on packed text, as `precis pretrain` does; a repeated call resumes the run.

    Args:
        corpora: folders of `precis data pack`; with weights as a mapping, or as texts, `FOLDER=WEIGHT`.
        out: the run folder. An existing run with the same settings resumes.
        options: see `PretrainingOptions`.

    Raises:
        UserError: corpora, model and settings do not fit together, or `out` holds another run.
        RunError: training failed.

    Examples:
        >>> small = ["model.hidden_size=16", "model.encoder_layers=1", "model.decoder_layers=1"]
        >>> brief = {"steps": 1, "batch_size": 2, "block_length": 64, "settings": [*small, "validation_blocks=1"]}
        >>> done = pretrain("packs/books", out="runs/pretrain", recipe="zcodepp-micro", **brief)
        >>> (done.folder / "model" / "model.safetensors").is_file()
        True
    """
    return plan_pretraining(corpora, out=out, **options).run()


def _weights(corpora: Corpora) -> dict[str, float]:
    """Return each corpus with its weight; a text is FOLDER or FOLDER=WEIGHT, and the default weight is 1."""
    if isinstance(corpora, Mapping):
        given: Iterable[tuple[str, Any, str]] = (
            (str(name), each, f"{name}={each}") for name, each in corpora.items()
        )
    else:
        texts = [corpora] if isinstance(corpora, str | Path) else corpora
        given = (_parsed(str(text)) for text in texts)
    weights: dict[str, float] = {}
    for folder, weight, text in given:
        try:
            value = float(weight)
        except ValueError:
            value = 0.0
        if not (value > 0 and folder) or not math.isfinite(value):
            raise UserError(f"--corpus {text}: write FOLDER or FOLDER=WEIGHT with a weight above 0")
        if folder in weights:
            raise UserError(f"--corpus {folder}: named twice; give it one weight")
        weights[folder] = value
    return weights


def _parsed(text: str) -> tuple[str, str, str]:
    folder, equals, weight = text.rpartition("=")
    return (folder, weight, text) if equals else (text, "1", text)
