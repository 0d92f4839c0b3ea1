"""Fine-tuning on a handful of pairs, as Z-Code++ section 3.3 and its Table 11 do with 0, 10, 100 and 1000.

The paper draws the training pairs at random and fine-tunes "until no significant improvement on the validation set
is observed", after PEGASUS (Zhang et al., 2020), whose low-resource runs end after 2000 steps at the latest. It
prints neither batch size nor patience; ours are below. Steps count here and not epochs, of which ten pairs would
make thousands.

Zero examples are zero-shot: nothing is trained, and the model is scored as it is. A model that few examples make
worse is not noticed by a run, which keeps the best of what it has trained: the paper marks such cells with a star,
and `precis evaluate` on the starting model shows them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from precis.errors import UserError
from precis.phases.finetune import resolve_run
from precis.recipes.overrides import metric_to_select, refuse_shape, with_changes, with_overrides
from precis.recipes.runs import RunPlan

MOST_STEPS = 2000  # PEGASUS's limit
VALIDATE_EVERY = 50
PATIENCE = 5
LONGEST_WARMUP = 100  # well before patience can run out: it takes 250 steps at least
LARGEST_BATCH = 16  # the smallest of Z-Code++ Table 8


def few_shot(run: RunPlan, examples: int) -> RunPlan:
    """`run` for training on `examples` pairs: steps are capped and validation decides when it is enough.

    At most 2000 steps, validated every 50, until 5 validations in a row bring nothing better; a warm-up of 100
    steps at most; at most 16 pairs in a batch and never more than there are. Learning rate, lengths, decoding and
    the metric that names the best checkpoint stay the recipe's.

    Raises:
        UserError: there are no examples.
    """
    if examples < 1:
        raise UserError(f"--examples {examples}: there is nothing to train on; use 1 or more")
    train = replace(
        run.train,
        steps=MOST_STEPS,
        epochs=None,
        warmup_steps=min(run.train.warmup_steps, LONGEST_WARMUP),
        gradient_accumulation=1,
        validate_every=VALIDATE_EVERY,
        patience=PATIENCE,
    )
    batch = min(examples, LARGEST_BATCH, run.batch_size or LARGEST_BATCH)
    return replace(run, train=train, batch_size=batch, batch_tokens=None)


def resolve_few_shot(
    name: str | None,
    examples: int,
    *,
    pretrained: bool = False,
    task_name: str | None = None,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> RunPlan:
    """The run that options describe, as `resolve_run` finds it, but under the few-shot settings.

    What was asked for wins over them.

    Raises:
        UserError: as of `resolve_run` and `few_shot`.
    """
    assignments = list(assignments)
    if pretrained:
        refuse_shape(assignments)
    run = few_shot(resolve_run(name, pretrained=pretrained, task_name=task_name), examples)
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(run, wanted), assignments)


def zero_shot(*, model: str | None, data: str, instruction: str, out: str) -> UserError:
    """What to say where 0 examples are asked for: nothing is trained, and a command scores the model as it is.

    Args:
        model: the one to begin with; None: there is none.
        data: the options that name the pairs, as they were typed.
        instruction: text put before every document, or "".
        out: the run folder that was asked for.
    """
    if model is None:
        return UserError(
            "--examples 0: zero-shot needs a model that was trained before; name it with --model"
        )
    asked = f" --instruction {shlex.quote(instruction)}" if instruction else ""
    name, scores = shlex.quote(model), shlex.quote(out)
    return UserError(
        "--examples 0: zero-shot, so there is nothing to train; score the model as it is with "
        f"`precis evaluate --model {name} {data}{asked} --out {scores}`"
    )


def in_words(run: RunPlan) -> str:
    """When a few-shot run ends, for the terminal."""
    train = run.train
    length = f"{train.steps} steps" if train.steps is not None else f"{train.epochs:g} epochs"
    batch = f"{run.batch_size} pairs" if run.batch_size is not None else f"{run.batch_tokens} tokens"
    patience = train.patience
    until = f", or until {patience} validations in a row bring nothing better" if patience is not None else ""
    return f"few-shot: {length} at most in batches of {batch}{until}"
