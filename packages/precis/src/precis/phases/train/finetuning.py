"""Train on pairs of document and summary, from scratch or from a given model, and keep the best model.

    pairs -> tokenizer -> token ids -> model -> train, validated by loss and by ROUGE -> the best to OUT/model

Everything that the loss curve depends on is part of the run's identity. So a run never resumes with other data,
another tokenizer or other sizes.
"""

from __future__ import annotations

from dataclasses import replace

from transformers import PreTrainedTokenizerBase

from precis.data.tasks.label_schema import answers_of
from precis.data.text.unigram_tokenizer import load_tokenizer, train_tokenizer
from precis.generation.model_location import locate
from precis.phases.run_folder import has_checkpoints, recorded_vocab_size, save_tokenizer
from precis.phases.train.classifier_training import load_encoder, train_classifier, with_head
from precis.phases.train.pair_training import (
    PairRequest,
    classification,
    pair_objective,
    prepare_pairs,
    train_on_pairs,
)
from precis.phases.train.trainable_model import (
    TrainableModel,
    load_trainable,
    new_trainable,
    read_as_planned,
    texts_of,
)
from precis.phases.train.training_pairs import TrainingPairs
from precis.phases.train.training_session import Session
from precis.phases.train.writer_training import train_writer
from precis.recipes.run_plan import Fusion, RunPlan
from precis.storage.settings_change import refuse_change
from precis.training import Trained
from precis.training.processes import main_process_first
from precis_text.errors import UserError

TOKENIZER_FOLDER = "tokenizer"


def finetune(run: RunPlan, request: PairRequest) -> Trained:
    """Train on a request's pairs in its run folder, or resume that run, and export the best model.

    Args:
        run: recipe; `run.train.seed` also seeds weights, data order and sampling. Without `request.start` the model
            is a new one of the recipe's shape.

    Raises:
        UserError: data, model and settings do not fit together, the folder holds another run, or another process
            is training in it.
        RunError: training failed.

    Examples:
        >>> from precis.phases.data.run_pairs import NamedPairs
        >>> from precis.recipes.catalogue import recipe
        >>> from precis.recipes.overrides import with_overrides
        >>> small = ["model.hidden_size=16", "model.encoder_layers=1", "model.decoder_layers=1"]
        >>> run = with_overrides(recipe("zcodepp-micro"), [*small, "train.epochs=1"])
        >>> done = finetune(run, PairRequest(sources=NamedPairs(data="pairs").sources(), out=Path("runs/first")))
        >>> (done.folder / "model" / "model.safetensors").is_file()
        True
    """
    if request.start is not None and request.answer == "text" and locate(request.start).is_writer:
        return train_writer(run, request)
    given = run.model if isinstance(run.model, Fusion) else None
    plan = replace(run, model=run.shape if request.start is None else given)
    by_head = request.answer == "head"
    if by_head:
        answers_of(request.sources.task)  # refuse an unsuitable task before reading anything
    session = Session(request, classification(plan) if by_head else pair_objective(plan))
    pairs = request.read_pairs(seed=plan.train.seed)
    with session.lock_folder():
        with main_process_first(session.accelerator):
            trainable = _trainable(plan, pairs, request, session)
        if request.start is not None:
            plan, trainable = read_as_planned(plan, trainable, session.notify)
        if by_head:
            trainable = with_head(trainable, request.sources.task, seed=plan.train.seed)
            return train_classifier(plan, trainable, pairs, request, session)
        ready = prepare_pairs(plan, trainable, pairs, request, session.notify)
        return train_on_pairs(ready, trainable, session)


def _trainable(plan: RunPlan, pairs: TrainingPairs, request: PairRequest, session: Session) -> TrainableModel:
    """Load the starting model or make a new one, whose tokenizer only the main process trains."""
    if request.start is None:
        return new_trainable(plan, _tokenizer(plan, pairs, request, session))
    if request.tokenizer is not None:
        raise UserError("--tokenizer is for new models; a model given with --model brings its own")
    return load_encoder(request.start) if request.answer == "head" else load_trainable(request.start)


def _tokenizer(
    plan: RunPlan, pairs: TrainingPairs, request: PairRequest, session: Session
) -> PreTrainedTokenizerBase:
    """Return a new model's tokenizer: a given one, the run's own, or one trained on the pairs and kept with the run.

    The run's own is used once the run has a checkpoint; before, nothing depends on it and it is trained again.
    """
    if request.tokenizer is not None:
        given = load_tokenizer(request.tokenizer)
        for name in ("pad_token", "bos_token", "eos_token"):
            if getattr(given, f"{name}_id") is None:
                raise UserError(
                    f"{request.tokenizer}: the tokenizer lacks {name}; "
                    "make one with `precis tokenizer`, which extends another model's with --from"
                )
        return given
    size, folder = plan.shape.vocab_size, session.folder / TOKENIZER_FOLDER
    is_begun = not request.restart and folder.is_dir() and has_checkpoints(session.folder)
    if session.is_main and not is_begun:
        session.notify(f"training a tokenizer of {size:,} entries on the training pairs")
        save_tokenizer(train_tokenizer(texts_of(pairs.train), vocab_size=size), folder)
        return load_tokenizer(folder)
    before = None if request.restart else recorded_vocab_size(session.folder)
    if before is not None:
        remedy = "keep --recipe and --set model.vocab_size, or start again with --restart or another --out"
        place = f"the run in {session.folder}"
        refuse_change(place, {"model.vocab_size": before}, {"model.vocab_size": size}, remedy=remedy)
    return load_tokenizer(folder)
