"""Train a prefix on a frozen base, or sparse attention with the whole model, and keep the best as an adapter.

    pairs -> the base's own tokenizer -> token ids -> base with a prefix -> train, validated by loss and by ROUGE
    -> the best to OUT/adapter, which names its base

It is `precis.phases.train.finetuning` with fewer parameters: the same loop, checkpoints and resuming. A checkpoint
holds only the trained parameters; the run's identity has the base's digest, so that it never resumes on another base.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.text.segments import UnitSegmenter
from precis.generation.adapters import place_of_base, write_base
from precis.generation.generation_settings import generation_config
from precis.generation.input_plan import position_limit
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify
from precis.phases.run_folder import export_folder, export_model
from precis.phases.train.pair_training import PairRequest, pair_objective, prepare_pairs, train_on_pairs
from precis.phases.train.trainable_model import TrainableModel, load_trainable
from precis.phases.train.training_session import MODEL_FOLDER, Session
from precis.recipes.adapter_recipes import TaskSettings, TunePlan
from precis.recipes.run_plan import RunPlan
from precis.storage.model_files import ADAPTER_FOLDER
from precis.training import Trained
from precis.training.processes import main_process_first, sharding_is_asked_for
from precis.tuning import Attachment, NoPrefix, attach
from precis.tuning.base_model import find_base
from precis.tuning.prefix import Reparametrized
from precis.tuning.stack_prefixes import Prefixes
from precis_text.errors import UserError

_LARGE = 200e6  # parameters from which the paper's rate is not too small


def tune(plan: TunePlan, run: RunPlan, request: PairRequest) -> Trained:
    """Train the attachment of `plan` on a request's pairs in its run folder, or resume that run; export the best.

    Args:
        run: the training settings; its model shape is ignored. `run.train.seed` also seeds the prefix's first values.
        request: `start` is the model to attach to.

    Raises:
        UserError: data, base and settings do not fit together, the folder holds another run, or another process
            is training in it.
        RunError: training failed.
    """
    base = str(request.start)
    if sharding_is_asked_for():
        raise UserError(
            "a prefix needs its whole base, but FSDP shards it; launch without FSDP. Every process then holds "
            "the base, and processes exchange only the prefix's gradients"
        )
    session = Session(request, pair_objective(run), exports=(ADAPTER_FOLDER, MODEL_FOLDER))
    pairs = request.read_pairs(seed=run.train.seed)
    with session.lock_folder():
        with main_process_first(session.accelerator):
            trainable = load_trainable(base)
        base_model = find_base(trainable.model)
        # refuse a base that does not support the prefix before tokenizing all pairs
        with torch.device("meta"):
            Prefixes(plan.expected(), base_model.shapes, width=base_model.width)

        def segmenter(instruction: str) -> UnitSegmenter | None:
            if plan.units is None:
                return None
            return UnitSegmenter(plan.units, plan.segments, trainable.tokenizer, instruction)

        if not isinstance(plan.prefix, NoPrefix):
            run = _within_base(run, trainable, session.notify)
        ready = prepare_pairs(run, trainable, pairs, request, session.notify, segmenter=segmenter)
        check_segments(plan, ready.train, session.notify)
        attachment = _attached(plan, ready.plan, trainable, ready.train, session.notify)
        attached = {"base": attachment.base().digest, "tuning": attachment.tuning.to_dict()}
        return train_on_pairs(
            replace(
                ready,
                record={"plan": plan.to_dict(), **ready.record},
                identity={**ready.identity, **attached},
            ),
            trainable,
            session,
            export=lambda card: export_adapter(
                attachment, trainable, run, ready.use, session.folder, card=card
            ),
            makes="adapter",
        )


def _within_base(run: RunPlan, trainable: TrainableModel, notify: Notify) -> RunPlan:
    """Lower a length beyond the base's position table to what the base has read, since its table is not trained."""
    rows, trained = position_limit(trainable.model.config), trainable.use.max_source
    if rows is None or trained is None or not trained < rows < run.max_source:
        return run
    notify(
        f"the base was trained on up to {trained} tokens, and its positions stay as they are: max_source is {trained}"
    )
    return replace(run, max_source=trained)


def _attached(
    plan: TunePlan, run: RunPlan, trainable: TrainableModel, train: TokenizedPairs, notify: Notify
) -> Attachment:
    tuning = plan.tuning(train, trainable.tokenizer)
    parameters = trainable.parameters
    torch.manual_seed(run.train.seed)
    attachment = attach(trainable.model, tuning)
    count = attachment.count()
    if isinstance(plan.prefix, NoPrefix):
        notify(f"{plan.method} on the whole model: all {count.trainable:,} parameters are trained")
        return attachment
    notify(
        f"{plan.method}: {count.trainable:,} parameters are trained, {count.stored:,} are kept "
        f"({count.stored_share:.2%} of the base's)"
    )
    rate = TaskSettings.learning_rate
    if run.train.learning_rate <= rate and parameters < _LARGE:
        usual = "0.001 to 0.003" if isinstance(plan.prefix.keys, Reparametrized) else "0.1 to 0.3"
        notify(
            f"a learning rate of {rate:g} suits BART-large; this base has {parameters / 1e6:.0f} M "
            f"parameters and needs a larger one (--lr {usual} for a few million)"
        )
    return attachment


def check_segments(plan: TunePlan, rows: TokenizedPairs, notify: Notify) -> None:
    """Report how many documents have fewer tokens, or units, than segments: they do not train some of the prefix.

    Raises:
        UserError: all of them do.
    """
    segments = plan.segments
    if segments < 2:
        return
    parts, counts = "tokens", rows.sources.lengths
    if rows.segments is not None:
        parts = "units"
        counts = np.array([len(np.unique(rows.segments[index])) for index in range(len(rows))])
    short = int((counts < segments).sum())
    if short == len(counts):
        raise UserError(
            f"{segments} segments, but no training document has more than {counts.max()} {parts}; use fewer with "
            "--set attention.encoder_segments=2, or other units"
        )
    if short:
        notify(
            f"{short:,} of {len(counts):,} training documents have fewer than {segments} {parts}: they do not train "
            "the prefix columns of missing segments"
        )


def export_adapter(
    attachment: Attachment,
    trainable: TrainableModel,
    run: RunPlan,
    use: ModelUse,
    folder: Path,
    *,
    card: str = "",
) -> None:
    """Write FOLDER/adapter, and FOLDER/model if the whole model was tuned; detach the adapter from the base."""
    place = folder / ADAPTER_FOLDER
    adapter, base = attachment.adapter(), str(trainable.start)
    attachment.detach()
    if isinstance(adapter.tuning.prefix, NoPrefix):
        export_model(
            trainable.model, trainable.tokenizer, run.generation, use, folder / MODEL_FOLDER, card=card
        )
        base = str(folder / MODEL_FOLDER)
    decoding = generation_config(run.generation, trainable.model, trainable.tokenizer)

    def write(into: Path) -> None:
        adapter.write_files(into)
        decoding.save_pretrained(into)
        write_base(place_of_base(base, place), into)
        use.save(into)

    export_folder(place, write, card=card)
