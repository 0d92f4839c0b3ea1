"""How ProphetNet decodes in its paper (arXiv:2001.04063, sections 3.2 and 3.3) and in its released scripts.

| task | beams | length penalty | tokens | blocked | from |
|---|---|---|---|---|---|
| cnndm | 5 | 1.2 | 45 to 110 | trigrams | paper |
| gigaword, and Reuters headlines in its place | 4 | 1.0 | at most the task's | nothing | paper |
| squad-qg, squad-qg-zhao | 5 | 1.5 | at most the task's | trigrams | scripts |

The settings in the task table are Z-Code++'s; only those of question generation are the same here and there.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from precis.data.tasks.tasks import task
from precis.decoding import GenerationSettings
from precis.errors import UserError

_CNNDM = GenerationSettings(beams=5, length_penalty=1.2, no_repeat_ngram=3, min_tokens=45, max_tokens=110)
_HEADLINE = GenerationSettings(beams=4, length_penalty=1.0)
_QUESTION = GenerationSettings(beams=5, length_penalty=1.5, no_repeat_ngram=3)


def _within(settings: GenerationSettings, name: str) -> GenerationSettings:
    return replace(settings, max_tokens=task(name).generation.max_tokens)


PROPHETNET_DECODING: Mapping[str, GenerationSettings] = MappingProxyType(
    {
        "cnndm": _CNNDM,
        **{name: _within(_HEADLINE, name) for name in ("gigaword", "reuters21578")},
        **{name: _within(_QUESTION, name) for name in ("squad-qg", "squad-qg-zhao")},
    }
)
"""Task -> settings, for the tasks that the paper reports on."""


def prophetnet_decoding(task_name: str | None) -> GenerationSettings:
    """The settings for a task.

    Raises:
        UserError: the paper does not report on it, or no task is named.
    """
    if task_name is None or task_name not in PROPHETNET_DECODING:
        known = ", ".join(PROPHETNET_DECODING)
        raise UserError(f"ProphetNet's decoding settings need --task with one of its tasks: {known}")
    return PROPHETNET_DECODING[task_name]
