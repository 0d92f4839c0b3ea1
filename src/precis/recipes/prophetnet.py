"""ProphetNet in four sizes, each a function that returns a `RunPlan`, and what its paper uses for each task.

Large is the released model and its fine-tuning on CNN/DailyMail (section 3.2: Adam, 1e-4, batches of 512, 1,000 steps
of warm-up, 10 epochs; clipping at 0.1 and weight decay 0.01 are the released scripts'; the rate falls linearly to 0 as
in all our runs, where those scripts let it fall with the inverse square root of the step). Base is the model of section
3.6. Micro and mini are meant to be trained from nothing on the pairs themselves; their weights begin otherwise than the
released N(0, 0.02) (docs/adr/0007).

With `--task`, base and large are trained and decoded as the paper (arXiv:2001.04063, sections 3.2 and 3.3) and its
released scripts do:

| task | rate | batch | beams | length penalty | tokens | blocked | decoding from |
|---|---|---|---|---|---|---|---|
| cnndm | 1e-4 | 512 | 5 | 1.2 | 45 to 110 | trigrams | paper |
| gigaword, and Reuters headlines in its place | 1e-4 | 128 | 4 | 1.0 | at most the task's | nothing | paper |
| squad-qg, squad-qg-zhao | 1e-5 | 28 | 5 | 1.5 | at most the task's | trigrams | scripts |

All train for 10 epochs with 1,000 steps of warm-up, which the paper does not give for questions. A step's batch is made
of micro-batches of at most 32 pairs. The decoding in the task table is Z-Code++'s; only that of question generation is
the same here and there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from precis.data.tasks.tasks import task
from precis.decoding import GenerationSettings
from precis.errors import UserError
from precis.recipes.runs import ProphetNetShape, RunPlan, from_nothing
from precis.training.settings import Highest, TrainSettings


def prophetnet_micro() -> RunPlan:
    """2.1 M parameters: for small, regular tasks on a CPU."""
    shape = _narrow(_shape(width=128, heads=2, layers=3, vocab_size=4000))
    return from_nothing("prophetnet-micro", shape, learning_rate=1e-3, batch_tokens=8192)


def prophetnet_mini() -> RunPlan:
    """14 M parameters: for tens of thousands of pairs."""
    shape = _narrow(_shape(width=256, heads=4, layers=6, vocab_size=8000))
    return from_nothing("prophetnet-mini", shape, learning_rate=7e-4, batch_tokens=12_288)


def prophetnet_base() -> RunPlan:
    """125 M parameters: 6+6 layers of 768, the model whose n is compared in the paper's Table 7."""
    return _to_fine_tune("prophetnet-base", _shape(width=768, heads=12, layers=6, vocab_size=30_522))


def prophetnet_large() -> RunPlan:
    """391 M parameters, the released model."""
    return _to_fine_tune("prophetnet-large", _shape(width=1024, heads=16, layers=12, vocab_size=30_522))


def _shape(*, width: int, heads: int, layers: int, vocab_size: int) -> ProphetNetShape:
    return ProphetNetShape(
        vocab_size=vocab_size,
        hidden_size=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )


def _narrow(shape: ProphetNetShape) -> ProphetNetShape:
    """Scale initial weights so that sums are as large as in the released model, 1,024 wide; positions get a fifth."""
    std = 0.02 * (1024 / shape.hidden_size) ** 0.5
    return replace(shape, init_std=std, position_std=std / 5)


def _to_fine_tune(name: str, shape: ProphetNetShape) -> RunPlan:
    train = TrainSettings(
        epochs=10,
        gradient_accumulation=16,
        learning_rate=1e-4,
        warmup_steps=1000,
        weight_decay=0.01,
        clip_norm=0.1,
        select=Highest(metric="rougeL"),
    )
    return RunPlan(
        name=name,
        model=shape,
        train=train,
        batch_size=32,
        max_source=512,
        max_target=127,
        generation=GenerationSettings(beams=5, length_penalty=1.2, no_repeat_ngram=3),
    )


_DECODE_CNNDM = GenerationSettings(
    beams=5, length_penalty=1.2, no_repeat_ngram=3, min_tokens=45, max_tokens=110
)
_DECODE_HEADLINE = GenerationSettings(beams=4, length_penalty=1.0)
_DECODE_QUESTION = GenerationSettings(beams=5, length_penalty=1.5, no_repeat_ngram=3)


def _within(settings: GenerationSettings, name: str) -> GenerationSettings:
    return replace(settings, max_tokens=task(name).generation.max_tokens)


PROPHETNET_DECODING: Mapping[str, GenerationSettings] = MappingProxyType(
    {
        "cnndm": _DECODE_CNNDM,
        **{name: _within(_DECODE_HEADLINE, name) for name in ("gigaword", "reuters21578")},
        **{name: _within(_DECODE_QUESTION, name) for name in ("squad-qg", "squad-qg-zhao")},
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


FINE_TUNED = ("prophetnet-base", "prophetnet-large")
"""Recipes that begin with pre-trained weights, as the paper does."""


@dataclass(frozen=True)
class TaskTraining:
    """Pairs in a step are `batch_size` times `passes`."""

    learning_rate: float
    batch_size: int
    passes: int
    warmup_steps: int = 1000
    epochs: float = 10


_CNNDM = TaskTraining(learning_rate=1e-4, batch_size=32, passes=16)
_HEADLINE = TaskTraining(learning_rate=1e-4, batch_size=32, passes=4)
_QUESTION = TaskTraining(learning_rate=1e-5, batch_size=28, passes=1)

PROPHETNET_TRAINING: Mapping[str, TaskTraining] = MappingProxyType(
    {
        "cnndm": _CNNDM,
        "gigaword": _HEADLINE,
        "reuters21578": _HEADLINE,
        "squad-qg": _QUESTION,
        "squad-qg-zhao": _QUESTION,
    }
)


def on_task(run: RunPlan, task_name: str) -> RunPlan:
    """`run` with the paper's settings for a task, where it is one that begins with ProphetNet's weights and the paper
    reports on the task; else as it is.
    """
    settings = PROPHETNET_TRAINING.get(task_name)
    if settings is None or run.name not in FINE_TUNED:
        return run
    train = replace(
        run.train,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_steps,
        epochs=settings.epochs,
        steps=None,
        gradient_accumulation=settings.passes,
    )
    return replace(
        run,
        train=train,
        batch_size=settings.batch_size,
        batch_tokens=None,
        generation=PROPHETNET_DECODING[task_name],
    )
