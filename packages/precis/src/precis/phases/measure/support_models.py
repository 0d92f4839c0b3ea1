"""Loads judges of summaries other than marks: an encoder-decoder for likelihoods, a local checker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.evaluation.likelihood import Likelihood
from precis.evaluation.support_checker import Checker
from precis.evaluation.support_scores import Judge
from precis.generation.classifier import load_classifier
from precis.generation.input_plan import assumed_limit, input_limit, output_limit, position_limit
from precis.generation.model_folder import look_through
from precis.generation.model_loader import load_model
from precis.messages import Notify, silent
from precis_text.bounded_io import check_inside, is_folder, read_bounded
from precis_text.errors import UserError

_LICENCE = re.compile(r"(?m)^license:\s*(.+?)\s*$")
_LONGEST = 1024  # tokens that a model without a limit reads
_CARD = 1 << 20  # bytes that are read of a model card


def load_judges(
    likelihood: str | None, checker: Path | None, *, batch_size: int = 8, notify: Notify = silent
) -> list[Judge]:
    """Load the requested judges.

    Raises:
        UserError: one cannot be loaded.
    """
    judges: list[Judge] = []
    if likelihood is not None:
        judges.append(_load_likelihood(likelihood, batch_size=batch_size))
        notify(f"likelihoods by {likelihood}")
    if checker is not None:
        found = _load_checker(checker, batch_size=batch_size)
        judges.append(found)
        notify(f"checker: {checker}, licence: {found.licence}")
    return judges


def told_cut(judges: Sequence[Judge], notify: Notify) -> None:
    """Report how many texts were truncated."""
    for judge in judges:
        if isinstance(judge, Likelihood) and judge.cut:
            notify(f"likelihoods: {judge.cut:,} texts were truncated to the model's limit")


def _load_likelihood(source: str, *, batch_size: int) -> Likelihood:
    loaded = load_model(source)
    config = loaded.model.config
    limit = input_limit(config, loaded.tokenizer, trained=loaded.use.max_source) or assumed_limit(config)
    longest = output_limit(config) or _LONGEST
    return Likelihood(
        loaded.model, loaded.tokenizer, max_source=limit, max_target=longest, batch_size=batch_size
    )


def _load_checker(folder: Path, *, batch_size: int) -> Checker:
    if not is_folder(folder) or not (folder / "config.json").is_file():
        raise UserError(
            f"--checker {folder}: contains no model; give a folder with config.json and model.safetensors"
        )
    check_inside(folder)
    model = load_classifier(folder, f"--checker {folder}", look_through(folder))
    config = model.config
    tokenizer = load_tokenizer(folder)
    limits = (position_limit(config), cast(Any, tokenizer).model_max_length, _LONGEST)
    limit = min(int(limit) for limit in limits if limit is not None)
    special = (
        2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
    )  # rows before the first position
    return Checker(
        model, tokenizer, limit=limit - special, licence=_licence_of(folder), batch_size=batch_size
    )


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
