"""Keeps how a model was trained to be used: `precis.json` beside its weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from precis.config import Settings
from precis.data.tasks.tasks import task
from precis.errors import UserError
from precis.untrusted import read_json

USE_FILE = "precis.json"
Mode = Literal["abstract", "extract"]
MAX_TOKENS = 10_000_000  # more than any model reads


@dataclass(frozen=True, kw_only=True)
class ModelUse(Settings):
    """How a model was trained to be used; kept beside its weights in `precis.json`.

    Attributes:
        max_source: the longest input in tokens, control tokens included, that it was trained on, if known.
        instruction: what stood before every document in training. A grounded model has it put before documents of
            which no more is known.
        task: name of the task that it was fine-tuned on, or "".
        grounded_on: names of the sets that its grounded pre-training read, so that nobody takes a score on one of
            them for a zero-shot score.
        modes: what the model was trained to do, what it does unless it is told first: to write summaries
            ("abstract"), to choose sentences of the document ("extract").
    """

    max_source: int | None = None
    instruction: str = ""
    task: str = ""
    grounded_on: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = ("abstract",)

    def __post_init__(self) -> None:
        longest, texts = self.max_source, (self.instruction, self.task)
        if longest is not None and not (type(longest) is int and 0 < longest <= MAX_TOKENS):
            raise UserError(
                f"max_source={longest!r} must be a number of tokens, 1 to {MAX_TOKENS:,}, or null"
            )
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"instruction={self.instruction!r} and task={self.task!r} must be texts")
        if not (
            isinstance(self.grounded_on, tuple) and all(isinstance(name, str) for name in self.grounded_on)
        ):
            raise UserError(f"grounded_on={self.grounded_on!r} must be a list of names")
        known = get_args(Mode)
        if not (isinstance(self.modes, tuple) and self.modes and all(mode in known for mode in self.modes)):
            raise UserError(f"modes={self.modes!r} must be a list of {' and '.join(known)}, at least one")

    def save(self, folder: Path) -> None:
        """Write `precis.json`."""
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        (folder / USE_FILE).write_text(text, encoding="utf-8")

    def mode_for(self, wanted: Mode | None) -> Mode:
        """Return the mode that is wanted; if None, the model's first.

        Raises:
            UserError: if the model was not trained for it.
        """
        if wanted is None:
            return self.modes[0]
        if wanted not in self.modes:
            does, advice = {
                "abstract": ("write", "leave --mode out, or give --model one that writes"),
                "extract": ("choose sentences", "leave --mode out, or teach it to: precis extractor"),
            }[wanted]
            raise UserError(f"--mode {wanted}: this model was not trained to {does}; {advice}")
        return wanted

    def instruction_for(self, task_name: str | None) -> str:
        """Return what to put before the documents of a task: what the model was trained with. A grounded model, which
        was trained to do what it is asked for, gets the task's own instruction.

        Raises:
            UserError: if there is no such task.
        """
        if task_name and self.grounded_on and task_name != self.task:
            return task(task_name).instruction
        return self.instruction


def load_use(place: Path | str) -> ModelUse:
    """Read how a model or an adapter is used; nothing is known of a hub name or a folder without the file.

    Raises:
        UserError: if the file is there and cannot be used.
    """
    file = place / USE_FILE if isinstance(place, Path) else None
    if file is None or not file.is_file():
        return ModelUse()
    try:
        values = read_json(file)
        if values.pop("units", None) is not None:  # files once had it, mostly as null
            raise UserError("units of segments are kept in adapter.json now; tune the adapter again")
        return ModelUse.from_dict(values)
    except UserError as error:
        raise UserError(f"{file}: cannot be used: {str(error).removeprefix(f'{file}: ')}") from error
