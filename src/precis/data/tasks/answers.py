"""What a task's answers are, where they can be chosen or measured rather than written: classes, or numbers.

A classifier reads the texts of an example without their names: [CLS] text [SEP], or [CLS] first [SEP] second [SEP].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from precis.data.pairs.glue import GlueTask, as_parts, glue_task
from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import TASKS, task
from precis.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of a task.

    Attributes:
        labels: words of its classes in order; empty if an answer is a number.
    """

    labels: tuple[str, ...]
    texts: GlueTask

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a classifier's configuration says of them, by transformers' names."""
        names = self.labels or ("number",)
        return {
            "id2label": dict(enumerate(names)),
            "label2id": {name: number for number, name in enumerate(names)},
            "problem_type": "single_label_classification" if self.labels else "regression",
        }

    def read(self, document: str) -> str:
        """A document as a classifier reads it."""
        return as_parts(document, self.texts)

    def value(self, pair: Pair) -> float:
        """The class of an example, or its number as the data have it.

        Raises:
            UserError: the answer is none of the task's.
        """
        answer = pair.all_references[0].strip()
        if not self.labels:
            return float(answer)
        if answer not in self.labels:
            raise UserError(f"label {answer!r} is none of the task's: {', '.join(self.labels)}")
        return self.labels.index(answer)

    def text(self, value: float) -> str:
        """A class or a number as the data have it."""
        return self.labels[int(value)] if self.labels else repr(value)

    def tensor(self, values: list[float]) -> Tensor:
        """Values (n) as a model is trained on them: long for classes, float32 for numbers."""
        return torch.tensor(values, dtype=torch.long if self.labels else torch.float32)


def answers_of(name: str | None) -> Answers:
    """The answers of a task.

    Raises:
        UserError: no task is named, or its answers are texts.
    """
    found = glue_task(task(name).scheme) if name else None
    if found is None:
        fitting = ", ".join(each for each, known in TASKS.items() if glue_task(known.scheme))
        problem = f"the answers of {name} are texts, not labels" if name else "name the --task"
        raise UserError(f"--answer head: {problem}; tasks with labels are {fitting}")
    return Answers(labels=found.words, texts=found)
