"""Loads judges of summaries other than marks: an encoder-decoder for likelihoods, a local checker or encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.evaluation.bert_score import BertScore
from precis.evaluation.likelihood import Likelihood
from precis.evaluation.support_checker import Checker
from precis.evaluation.support_scores import Judge
from precis.generation.classifier import load_classifier, load_encoder
from precis.generation.input_plan import assumed_limit, input_limit, output_limit, position_limit
from precis.generation.model_folder import look_through
from precis.generation.model_loader import load_model
from precis.messages import Notify, silent
from precis_text.bounded_io import check_inside, is_folder, read_bounded
from precis_text.errors import UserError
from precis_text.row import pluralize

_LICENCE = re.compile(r"(?m)^license:\s*(.+?)\s*$")
_LONGEST = 1024  # tokens that a model without a limit reads
_CARD = 1 << 20  # bytes that are read of a model card


def load_judges(
    likelihood: str | None, checker: Path | None, *, batch_size: int = 8, notify: Notify = silent
) -> list[Judge]:
    """Load the requested judges; raise `UserError` if one cannot be loaded."""
    judges: list[Judge] = []
    if likelihood is not None:
        judges.append(_load_likelihood(likelihood, batch_size=batch_size))
        notify(f"likelihoods by {likelihood}")
    if checker is not None:
        found = _load_checker(checker, batch_size=batch_size)
        judges.append(found)
        notify(f"checker: {checker}, licence: {found.licence}")
    return judges


def load_bert_score(folder: Path, *, layer: int | None = None, notify: Notify = silent) -> BertScore:
    """Load the encoder that computes BERTScore.

    Args:
        layer: the layer to compare; if None, the last.

    Raises:
        UserError: it cannot be loaded, or lacks that layer.
    """
    what = f"--bertscore {folder}"
    _refuse_other(folder, what)
    model, tokenizer = load_encoder(folder, what, look_through(folder)), load_tokenizer(folder)
    limit = _limit(model, tokenizer)
    notify(f"BERTScore: {folder}, licence: {_licence_of(folder)}")
    return BertScore(model, tokenizer, name=folder.resolve().name, limit=limit, layer=layer)


def told_cut(judges: Sequence[Judge | BertScore], notify: Notify) -> None:
    """Report how many texts were truncated."""
    for judge in judges:
        if isinstance(judge, Likelihood | BertScore) and judge.cut:
            what = "likelihoods" if isinstance(judge, Likelihood) else "BERTScore"
            notify(f"{what}: {pluralize(judge.cut, 'text')} truncated to the model's limit")


def _load_likelihood(source: str, *, batch_size: int) -> Likelihood:
    loaded = load_model(source)
    config = loaded.model.config
    limit = input_limit(config, loaded.tokenizer, trained=loaded.use.max_source) or assumed_limit(config)
    longest = output_limit(config) or _LONGEST
    return Likelihood(
        loaded.model, loaded.tokenizer, max_source=limit, max_target=longest, batch_size=batch_size
    )


def _load_checker(folder: Path, *, batch_size: int) -> Checker:
    what = f"--checker {folder}"
    _refuse_other(folder, what)
    model, tokenizer = load_classifier(folder, what, look_through(folder)), load_tokenizer(folder)
    limit = _limit(model, tokenizer)
    return Checker(model, tokenizer, limit=limit, licence=_licence_of(folder), batch_size=batch_size)


def _refuse_other(folder: Path, what: str) -> None:
    if not is_folder(folder) or not (folder / "config.json").is_file():
        raise UserError(f"{what}: contains no model; give a folder with config.json and model.safetensors")
    check_inside(folder)


def _limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the most tokens that an encoder reads."""
    limits = (position_limit(model.config), cast(Any, tokenizer).model_max_length, _LONGEST)
    limit = min(int(limit) for limit in limits if limit is not None)
    before = model.config.model_type in ("roberta", "xlm-roberta", "camembert")
    return limit - 2 if before else limit  # rows before the first position


def _licence_of(folder: Path) -> str:
    """Return the licence that a model's card or licence file states."""
    card, file = folder / "README.md", folder / "LICENSE"
    if card.is_file() and (
        said := _LICENCE.search(read_bounded(card, limit=_CARD).decode("utf-8", "replace"))
    ):
        return said[1]
    if file.is_file():
        lines = read_bounded(file, limit=_CARD).decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in lines if line.strip()), "not stated")
    return "not stated"
