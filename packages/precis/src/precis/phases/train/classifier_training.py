"""Train a Z-Code++ encoder with a head that predicts a label or a number (Z-Code++ A.5, encoder only).

pairs -> the texts of an example, its class -> token ids -> encoder + head -> train, validated by the task's scores
-> the best to OUT/model, which `precis evaluate` scores and AutoModelForSequenceClassification loads
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from precis.data.batches.labelled_texts import labelled_in_order
from precis.data.batches.token_arrays import Ragged, TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.tasks.label_schema import Answers, answers_of
from precis.data.tasks.tasks import task
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.evaluation.task_scores import task_scorers
from precis.generation.classifier import answer_texts, load_classifier
from precis.generation.model_location import locate
from precis.generation.model_metadata import ModelUse
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification
from precis.phases.run_folder import export_folder, save_model
from precis.phases.train.pair_training import (
    PairRequest,
    PreparedPairs,
    classification,
    fit_to_model,
    train_on_pairs,
)
from precis.phases.train.trainable_model import TrainableModel, load_trainable
from precis.phases.train.training_pairs import TrainingPairs, tell_cut, tokenize_pairs
from precis.phases.train.training_session import MODEL_FOLDER, Session
from precis.phases.train.validation_scores import Sample
from precis.recipes.run_plan import RunPlan
from precis.storage.seal import checking_sealed
from precis.training import Trained, mean_loss
from precis_text.errors import UserError

_BATCH = 64


def train_classifier(
    plan: RunPlan, trainable: TrainableModel, pairs: TrainingPairs, request: PairRequest, session: Session
) -> Trained:
    """Train a model from `with_head` on a task whose answers are labels or numbers, and export the best.

    Raises:
        UserError: data, model and settings do not fit together.
        RunError: training failed.
    """
    name, notify = request.sources.task, session.notify
    instruction = request.instruction or ""
    plan = fit_to_model(plan, trainable, notify)
    train, labels, validate, shared = _prepared(plan, trainable, pairs, request)
    pairs.tell_about(notify)
    tell_cut(train, plan, "", notify)
    notify(f"answers: {', '.join(answers_of(name).labels) or 'a number'}, by a head on the encoder")
    use = ModelUse(
        max_source=plan.max_source, instruction=instruction, task=name, licence=trainable.use.licence
    )
    identity = {
        "answer": "head", "data": [reader.digest for reader in pairs.readers], "instruction": instruction,
        "examples": request.examples, "sampling_seed": request.sampling_seed,
    }  # fmt: skip
    ready = PreparedPairs(
        plan=plan, train=train, validate=validate, use=use, shared=shared, labels=labels,
        record={"sources": request.sources.to_dict()}, identity=identity,
    )  # fmt: skip

    def export(card: str) -> None:
        folder = session.folder / MODEL_FOLDER
        export_folder(
            folder, lambda place: save_model(trainable.model, trainable.tokenizer, place, use), card=card
        )

    return train_on_pairs(ready, trainable, session, export=export)


def with_head(begun: TrainableModel, task_name: str, *, seed: int) -> TrainableModel:
    """Return a model's encoder with a new head for a task's answers; discard the decoder.

    Raises:
        UserError: the model is not a Z-Code++, or the task's answers are texts.
    """
    answers, config = answers_of(task_name), begun.model.config
    if not isinstance(config, ZCodePPConfig):
        raise UserError(
            f"{begun.start}: is a {config.model_type!r} model; --answer head requires Z-Code++ or DeBERTa's weights "
            "(precis convert). Omit --answer: any encoder-decoder can write labels"
        )
    torch.manual_seed(seed)
    settings = {key: value for key, value in config.to_dict().items() if key != "architectures"}
    model = ZCodePPForSequenceClassification(ZCodePPConfig.from_dict({**settings, **answers.settings}))
    model.model.encoder.load_state_dict(begun.model.get_encoder().state_dict())
    return TrainableModel(model, begun.tokenizer, begun.start, begun.use)


def load_encoder(start: str) -> TrainableModel:
    """Load the model whose encoder a classifier starts from: an encoder-decoder, or a classifier of another task.

    Raises:
        UserError: it cannot be loaded.
    """
    location = locate(start)
    if location.folder is None or not location.is_classifier:
        return load_trainable(location)
    with checking_sealed(location.folder):
        model = load_classifier(location.folder, start, location.settings)
        return TrainableModel(model, load_tokenizer(location.folder, checked=True), start, location.use)


def _prepared(
    plan: RunPlan, trainable: TrainableModel, pairs: TrainingPairs, request: PairRequest
) -> tuple[TokenizedPairs, Tensor, LabelValidation, int]:
    """Return training ids and labels, the validation, and the number of validation texts among the training texts."""
    name, instruction = request.sources.task, request.instruction or ""
    answers, values = answers_of(name), list[float]()

    def read(pair: Pair) -> Pair:
        values.append(answers.value(pair))
        return replace(pair, document=answers.read(pair.document))

    held = len(pairs.dev)
    train, dev, shared = tokenize_pairs(plan, pairs, trainable, instruction, read=read)
    border = len(values) - held
    # a classifier writes no targets, so their lengths must not determine the batches
    train = replace(train, targets=Ragged.of([[0]] * len(train)))
    labels = _kept(values[border:], dev, answers)
    return (
        train,
        _kept(values[:border], train, answers),
        LabelValidation(plan, dev, labels, trainable, name),
        shared,
    )


def _kept(values: list[float], rows: TokenizedPairs, answers: Answers) -> Tensor:
    """Return the labels of the rows that gave tokens."""
    return answers.tensor(values if rows.kept is None else [values[row] for row in rows.kept.tolist()])


class LabelValidation:
    """The validation of a classifier: loss and its parts, and the task's own scores (0 to 100)."""

    samples: tuple[Sample, ...] = ()  # a classifier writes no summaries

    def __init__(
        self, plan: RunPlan, dev: TokenizedPairs, labels: Tensor, trainable: TrainableModel, task_name: str
    ) -> None:
        self.pairs = len(dev)
        self._objective = classification(plan)
        self._answers = answers_of(task_name)
        self._scorers = task_scorers(task(task_name).metrics)
        self._batches = [
            *labelled_in_order(dev, labels, batch_size=_BATCH, pad_token_id=trainable.tokenizer.pad_token_id)
        ]
        found = torch.cat([batch.labels for batch in self._batches]).tolist()
        self._references = [[self._answers.text(value)] for value in found]

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        """Measure; the model is in evaluation mode."""
        logits: list[Tensor] = []
        hook = model.register_forward_hook(lambda _, __, output: logits.append(output.logits.float().cpu()))
        try:
            metrics = mean_loss(model, self._batches, self._objective)
        finally:
            hook.remove()
        if not math.isfinite(metrics["loss"]):
            return metrics | dict.fromkeys(self._scorers, math.nan)
        texts = answer_texts(torch.cat(logits), self._answers)
        return metrics | {
            name: scorer(texts, self._references).score for name, scorer in self._scorers.items()
        }
