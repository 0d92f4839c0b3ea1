"""Answers of a task that a model chooses or measures instead of writing: classes or numbers.

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
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of a task: words of the classes in order (`labels`), none if an answer is a number."""

    labels: tuple[str, ...]
    texts: GlueTask

    @property
    def settings(self) -> Mapping[str, Any]:
        """The entries of a classifier's configuration, under the names of transformers."""
        names = self.labels or ("number",)
        return {
            "id2label": dict(enumerate(names)),
            "label2id": {name: number for number, name in enumerate(names)},
            "problem_type": "single_label_classification" if self.labels else "regression",
        }

    def read(self, document: str) -> str:
        """Return a document in the form that a classifier reads."""
        return as_parts(document, self.texts)

    def value(self, pair: Pair) -> float:
        """Return the class of an example, or its number as in the data; raise `UserError` if the label is unknown."""
        answer = pair.all_references[0].strip()
        if not self.labels:
            return float(answer)
        if answer not in self.labels:
            raise UserError(f"unknown label {answer!r}; the labels of the task are {', '.join(self.labels)}")
        return self.labels.index(answer)

    def text(self, value: float) -> str:
        """Return a class or a number as it appears in the data."""
        return self.labels[int(value)] if self.labels else repr(value)

    def tensor(self, values: list[float]) -> Tensor:
        """Return values (n) as training labels: long for classes, float32 for numbers."""
        return torch.tensor(values, dtype=torch.long if self.labels else torch.float32)


def answers_of(name: str | None) -> Answers:
    """Return the answers of a task; raise `UserError` if the name is missing, or the task's answers are texts."""
    found = glue_task(task(name).scheme) if name else None
    if found is None:
        fitting = ", ".join(each for each, known in TASKS.items() if glue_task(known.scheme))
        problem = f"the answers of {name} are texts, not labels" if name else "name the --task"
        raise UserError(f"--answer head: {problem}; tasks with labels are {fitting}")
    return Answers(labels=found.words, texts=found)
