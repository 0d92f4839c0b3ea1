"""Train a model to choose sentences: a unit scorer on the hidden states of its frozen encoder.

sets -> units of each document -> encoder, once -> hidden states, features and target units, cached in OUT/units/
-> train the scorer -> the unchanged model, with the scorer, in OUT/model/
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from precis.data.batches.unit_batches import UnitBatches, UnitDocuments
from precis.data.pairs.pair import Pair
from precis.data.text.encoding import portions
from precis.evaluation.baselines import best_units
from precis.evaluation.rouge import Rouge
from precis.extract.extractor import AHEAD
from precis.extract.extractor_opening import open_extractor
from precis.extract.unit_encoder import UnitReader
from precis.generation.model_loader import LoadedModel, load_model
from precis.generation.model_metadata import Mode
from precis.messages import Notify
from precis.models.unit_scorer import UnitScorer, UnitScorerShape, save_scorer
from precis.objectives.encoder_heads import UnitChoice
from precis.phases.data.run_pairs import USUAL_COLUMNS, NamedPairs
from precis.phases.data.training_sets import GroundingSet, find_sets
from precis.phases.run_folder import export_folder, save_model
from precis.phases.train.grounding import DEFAULT_CAP, DEV_ROWS, read_set
from precis.phases.train.pair_training import FEW_DEV_PAIRS
from precis.phases.train.training_session import (
    MODEL_FOLDER,
    RunOptions,
    RunRequest,
    Session,
    with_validation_interval,
)
from precis.recipes.run_plan import ExtractPlan
from precis.storage.seal import DamagedError, check_seal
from precis.training import Trained, TrainSettings, mean_loss
from precis.training.callbacks import Callback
from precis_text.control_characters import main_part, remove_marks
from precis_text.errors import UserError
from precis_text.language import language_of
from precis_text.row import pluralize
from precis_text.unit_features import unit_features

UNITS_FOLDER = "units"
LEAST_STEPS = 300
"""The least optimizer steps, unless the user sets the length: few pairs are a batch or two."""
_VALIDATIONS = 10
_OFTEN = 30  # validations where few pairs are passed over often
_COMPARED = 50  # validation pairs of a set on which the untouched model chooses too
_TOLD_EVERY = 500  # documents
_RARE = 20  # a language of fewer than one in twenty documents is not one of the scorer's


def train_extractor(
    run: ExtractPlan,
    *,
    tasks: Sequence[str],
    start: str,
    data: str | None = None,
    cap: int = DEFAULT_CAP,
    leave_out: Sequence[str] = (),
    skip_bad: bool = False,
    can_write: bool = True,
    columns: NamedPairs = USUAL_COLUMNS,
    fixed: Collection[str] = (),
    callbacks: Sequence[Callback] | None = None,
    **asked: Unpack[RunOptions],
) -> Trained:
    """Train a scorer for the model `start` in the run folder `out`, or resume that run, and export both.

    Args:
        run: the settings; `run.train.seed` also seeds the sampling of pairs and the weights.
        tasks: names of tasks, `TASK=PLACE`, files or folders of pairs, or "all"; see `training_sets.find_sets`.
        start: any encoder-decoder (run folder, Hugging Face folder or hub name).
        data: the folder that contains a folder for each task; if None, $PRECIS_DATA or the hub.
        cap: the largest number of pairs to draw from a set.
        leave_out: sets that are not trained on.
        skip_bad: skip unusable rows.
        can_write: whether a model with the mode `abstract` keeps it; if not, it was not trained to write summaries.
        columns: the columns of files and folders of pairs; those that it does not name are found by their names.
        fixed: dotted names of the settings that the user gave, which few pairs do not change.
        callbacks, asked: see `precis.phases.train.training_session.RunRequest`.

    Raises:
        UserError: sets, model and settings do not fit together, `out` holds another run, or another process is
            training in it.
        RunError: training failed.
    """
    objective = UnitChoice(length_weight=run.length_weight)
    session = Session(RunRequest(start=start, callbacks=callbacks, **asked), objective)
    sets = find_sets(tasks, data=data, leave_out=leave_out, skip_bad=skip_bad, columns=columns)
    with session.lock_folder():
        loaded = load_model(start)
        found = [_documents(run, chosen, loaded, session, cap=cap) for chosen in sets]
        train = _joined([each.train for each in found])
        torch.manual_seed(run.train.seed)
        scorer = UnitScorer(UnitScorerShape(states=loaded.model.config.hidden_size, **run.scorer.to_dict()))
        batches = UnitBatches(train, units=run.batch_units, seed=run.train.seed)
        session.notify(
            f"{pluralize(len(train), 'document')}, {pluralize(len(train.vectors), 'unit')} to train on"
        )
        run = replace(run, train=_long_enough(run.train, batches.batches_per_epoch, fixed, session.notify))
        done = session.run(
            scorer,
            objective=objective,
            batches=batches,
            validate=_Validation({each.name: each.dev for each in found}, objective, run.batch_units),
            settings=run.train,
            record={
                "run": run.to_dict(),
                "sets": [each.to_dict() for each in sets],
                "identity": {"sets": {each.name: each.identity for each in found}},
            },
            export=lambda card: _export(
                loaded,
                scorer,
                session.folder / MODEL_FOLDER,
                can_write=can_write,
                languages=sorted({code for each in found for code in each.languages}),
                card=card,
            ),
        )
        if done.model is not None and session.is_main and "extract" in loaded.use.modes:
            _tell_if_worse(start, done.model, [pair for each in found for pair in each.shown], session.notify)
        return done


def _tell_if_worse(start: str, made: Path, pairs: Sequence[Pair], notify: Notify) -> None:
    """Warn if the untouched model chooses better sentences of the validation documents."""
    rouge = Rouge.choose((text for pair in pairs for text in pair.all_references), types=("rougeL",))
    references = [pair.all_references for pair in pairs]
    scores = []
    for model in (start, made):
        found = open_extractor(model).stream(
            [pair.document for pair in pairs], short="write", skip_empty=True
        )
        scores.append(rouge.score([summary.text for summary in found], references)["rougeL"].mean())
    before, after = scores
    if before > after:
        notify(
            f"warning: the untouched model chooses better: ROUGE-L {before:.1f} on "
            f"{pluralize(len(pairs), 'validation pair')}, this one {after:.1f}; use --model {start}, or give more pairs"
        )
    elif len(pairs) < FEW_DEV_PAIRS:
        notify(
            f"{pluralize(len(pairs), 'validation pair')} cannot show whether the untouched model chooses better; "
            f"score both on other pairs: precis evaluate --model {start} --model {made} --data FILE --out DIR"
        )


def _long_enough(
    train: TrainSettings, batches_per_epoch: int, fixed: Collection[str], notify: Notify
) -> TrainSettings:
    """Return the loop's settings with enough steps for few pairs, a short warm-up and a validation interval."""
    few = train.epochs is not None and "train.epochs" not in fixed
    few = few and train.total_steps(batches_per_epoch) < LEAST_STEPS
    if few:
        train = replace(train, steps=LEAST_STEPS, epochs=None)
        passes = round(LEAST_STEPS * train.gradient_accumulation / batches_per_epoch)
        notify(f"few pairs: {LEAST_STEPS} steps, {passes:,} passes over them; --epochs sets another number")
    if "train.warmup_steps" not in fixed:
        most = max(1, train.total_steps(batches_per_epoch) // 10)
        train = replace(train, warmup_steps=min(train.warmup_steps, most))
    times = _OFTEN if few else _VALIDATIONS
    return with_validation_interval(train, batches_per_epoch, times=times, each_epoch=not few)


@dataclass(frozen=True)
class _Set:
    """The documents of a set, as input of the scorer."""

    name: str
    train: UnitDocuments
    dev: UnitDocuments
    identity: Mapping[str, Any]
    languages: Sequence[str]
    shown: Sequence[Pair]


def _documents(
    run: ExtractPlan, chosen: GroundingSet, loaded: LoadedModel, session: Session, *, cap: int
) -> _Set:
    """Encode a set, or load what an earlier start of this run cached."""
    pairs = read_set(chosen, cap=cap, dev_rows=DEV_ROWS, seed=run.train.seed, instructed=False)
    identity = {
        "pairs": [reader.digest for reader in pairs.readers], "cap": cap, "max_source": run.max_source,
        "precision": run.train.precision, "model": loaded.source,
    }  # fmt: skip
    kept = []
    for split, found in (("train", pairs.train), ("dev", pairs.dev)):
        folder = session.folder / UNITS_FOLDER / f"{chosen.name}-{split}"
        if not _is_kept(folder, identity):
            session.notify(
                f"{chosen.name}: reading {pluralize(len(found), f'{split} document')} through the encoder, once"
            )
            documents = _read(found, loaded, run, session.notify)
            export_folder(folder, lambda place, made=documents: _save(made, identity, place))  # type: ignore[misc]
        kept.append(UnitDocuments.load(folder))
    train, dev = kept
    return _Set(chosen.name, train, dev, identity, _languages(pairs.train), pairs.dev[:_COMPARED])


def _languages(pairs: Sequence[Pair]) -> list[str]:
    """Return the languages of at least a twentieth of the documents, as far as the texts show them."""
    counts = Counter(language_of(pair.document) for pair in pairs)
    return [code for code, count in counts.items() if code and _RARE * count >= len(pairs)]


def _is_kept(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether the folder holds the units of the same inputs."""
    try:
        check_seal(folder)
        return bool(json.loads((folder / "made_of.json").read_text()) == json.loads(json.dumps(identity)))
    except (OSError, ValueError, DamagedError):
        return False


def _save(documents: UnitDocuments, identity: Mapping[str, Any], place: Path) -> None:
    documents.save(place)
    (place / "made_of.json").write_text(json.dumps(identity, indent=2) + "\n")


def _read(pairs: Sequence[Pair], loaded: LoadedModel, run: ExtractPlan, notify: Notify) -> UnitDocuments:
    """Encode the pairs that have units, and mark the target units that the references select."""
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=run.max_source, most=run.max_source)
    rouge = Rouge.choose(pair.summary for pair in pairs)
    rows: list[tuple[Any, ...]] = []
    cut = 0
    done = 0
    for some in portions(pairs, lambda pair: len(pair.document), most=AHEAD):
        with torch.autocast(loaded.model.device.type, torch.bfloat16, enabled=run.train.precision == "bf16"):
            found = reader.tokenize([remove_marks(main_part(pair.document)) for pair in some])
            known = [pair for pair, tokens in zip(some, found, strict=True) if tokens]
            documents = reader.read([tokens for tokens in found if tokens])
        for pair, read in zip(known, documents, strict=True):
            texts = [unit.text for unit in read.units]
            wanted = np.zeros(len(texts), dtype=np.uint8)
            wanted[best_units(texts, pair.all_references, rouge=rouge)] = 1
            words = np.mean([len(reference.split()) for reference in pair.all_references])
            rows.append((read.vectors.half().numpy(), unit_features(texts, read.tokens), wanted, words))
            cut += read.read < read.document_tokens
        done += len(some)
        if done // _TOLD_EVERY > (done - len(some)) // _TOLD_EVERY:
            notify(f"{done:,} of {len(pairs):,} documents read")
    if not rows:
        raise UserError("no document has a sentence that the model can read")
    if cut:
        notify(f"{pluralize(cut, 'document')} truncated to {run.max_source:,} tokens")
    vectors, features, wanted_units, lengths = zip(*rows, strict=True)
    return UnitDocuments(
        vectors=np.concatenate(vectors),
        facts=np.concatenate(features),
        wanted=np.concatenate(wanted_units),
        bounds=np.cumsum([0, *map(len, wanted_units)], dtype=np.int64),
        words=np.array(lengths, dtype=np.float32),
    )


def _joined(parts: Sequence[UnitDocuments]) -> UnitDocuments:
    """Concatenate the documents of all sets."""
    starts = np.cumsum([0, *(len(part.vectors) for part in parts)])
    bounds = [part.bounds[:-1] + start for part, start in zip(parts, starts, strict=False)]
    return UnitDocuments(
        vectors=np.concatenate([part.vectors for part in parts]),
        facts=np.concatenate([part.facts for part in parts]),
        wanted=np.concatenate([part.wanted for part in parts]),
        bounds=np.concatenate([*bounds, starts[-1:]]),
        words=np.concatenate([part.words for part in parts]),
    )


class _Validation:
    """The validation metrics: `loss` and its parts, each the mean over the sets, and `loss/NAME` of each set."""

    def __init__(self, dev: Mapping[str, UnitDocuments], objective: UnitChoice, units: int) -> None:
        self._batches = {
            name: UnitBatches(found, units=units, seed=0).in_order() for name, found in dev.items()
        }
        self._objective = objective

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        found = {name: mean_loss(model, batches, self._objective) for name, batches in self._batches.items()}
        first = next(iter(found.values()))
        means = {metric: sum(each[metric] for each in found.values()) / len(found) for metric in first}
        return means | {f"loss/{name}": metrics["loss"] for name, metrics in found.items()}


def _export(
    loaded: LoadedModel,
    scorer: UnitScorer,
    folder: Path,
    *,
    can_write: bool,
    languages: Sequence[str],
    card: str,
) -> None:
    """Write the loaded model with the scorer; its default mode is to choose sentences."""
    writes = can_write and "abstract" in loaded.use.modes
    modes: tuple[Mode, ...] = ("extract", "abstract") if writes else ("extract",)
    use = replace(loaded.use, modes=modes, languages=(*languages,))

    def write(place: Path) -> None:
        save_model(loaded.model, loaded.tokenizer, place, use)
        save_scorer(scorer, place)

    export_folder(folder, write, card=card)
