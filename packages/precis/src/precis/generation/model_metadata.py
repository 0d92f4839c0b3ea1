"""Stores a model's intended use in `precis.json` next to its weights."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from precis.data.tasks.tasks import task
from precis_text.bounded_io import read_json
from precis_text.config import Settings
from precis_text.errors import UserError

DEFAULT = "default"
"""The name of the model that comes with precis; a folder of that name is `./default`."""

PACKAGES = {DEFAULT: "precis_model_small", "writer": "precis_model_writer"}
"""The packages whose models have names; a folder with the same name is `./NAME`."""

NO_ADAPTER = "none"
"""The name of no adapter; a folder with the same name is `./none`."""

USE_FILE = "precis.json"
Mode = Literal["abstract", "extract"]
_LANGUAGE = re.compile(r"[a-z]{2,12}")  # ISO 639-1, or the name of a script
MAX_TOKENS = 10_000_000  # more than any model reads


@dataclass(frozen=True, kw_only=True)
class ModelUse(Settings):
    """The intended use of a model, stored next to its weights in `precis.json`.

    Attributes:
        max_source: the longest input in tokens, control tokens included, that it was trained on, if known.
        instruction: the text before every document in training. For a grounded model, the default for documents of an
            unknown task.
        task: name of the task that it was fine-tuned on, or "".
        grounded_on: names of the sets in its grounded pre-training, on which a score is not a zero-shot score.
        modes: the modes that it was trained for, its default first: "abstract" writes summaries, "extract" chooses
            sentences of the document.
        licence: the hub's id of the licence that the weights carry, such as `cc-by-sa-4.0`; "" if unknown.
        languages: the languages of its training documents (`language_of`), if known. In other languages a model that
            chooses sentences does without its scorer.
    """

    max_source: int | None = None
    instruction: str = ""
    task: str = ""
    grounded_on: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ("abstract",)
    licence: str = ""
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        longest, texts = self.max_source, (self.instruction, self.task)
        if longest is not None and not (type(longest) is int and 0 < longest <= MAX_TOKENS):
            raise UserError(f"max_source={longest!r} must be null or a number of tokens, 1 to {MAX_TOKENS:,}")
        if not (isinstance(self.licence, str) and len(self.licence) <= 100 and self.licence.isprintable()):
            raise UserError(f"licence={self.licence!r} must be the name of a licence, such as cc-by-sa-4.0")
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"instruction={self.instruction!r} and task={self.task!r} must be strings")
        if not (
            isinstance(self.grounded_on, tuple) and all(isinstance(name, str) for name in self.grounded_on)
        ):
            raise UserError(f"grounded_on={self.grounded_on!r} must be a list of names")
        if not (
            isinstance(self.languages, tuple) and all(_LANGUAGE.fullmatch(str(c)) for c in self.languages)
        ):
            raise UserError(f"languages={self.languages!r} must be a list of languages, such as en")
        known = get_args(Mode)
        if not (isinstance(self.modes, tuple) and self.modes and all(mode in known for mode in self.modes)):
            raise UserError(f"modes={self.modes!r} must be a list of at least one of {' and '.join(known)}")

    def save(self, folder: Path) -> None:
        """Write `precis.json`."""
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        (folder / USE_FILE).write_text(text, encoding="utf-8")

    def mode_for(self, wanted: Mode | None) -> Mode:
        """Return the requested mode, or the default for None; raise `UserError` if the model lacks it."""
        if wanted is None:
            return self.modes[0]
        if wanted not in self.modes:
            does, advice = {
                "abstract": ("write", "take a model that writes"),
                "extract": ("choose sentences", "train it with precis extractor"),
            }[wanted]
            raise UserError(
                f"mode {wanted}: this model was not trained to {does}; omit the mode, or {advice}"
            )
        return wanted

    def instruction_for(self, task_name: str | None) -> str:
        """Return the instruction before the documents of a task: the one from training. A grounded model, which was
        trained to follow instructions, gets the task's own instruction.

        Raises:
            UserError: if the task is unknown.
        """
        if task_name and self.grounded_on and task_name != self.task:
            return task(task_name).instruction
        return self.instruction


def load_use(place: Path | str) -> ModelUse:
    """Read the intended use of a model or an adapter; return the defaults for a hub name or without the file.

    Raises:
        UserError: if the file exists and is invalid.
    """
    file = place / USE_FILE if isinstance(place, Path) else None
    if file is None or not file.is_file():
        return ModelUse()
    try:
        return ModelUse.from_dict(read_json(file))
    except UserError as error:
        raise UserError(f"{file}: cannot be used: {str(error).removeprefix(f'{file}: ')}") from error
