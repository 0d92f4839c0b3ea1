"""Resolves options to a plan: a recipe, overridden by a task's lengths and decoding, overridden by the user.

Few-shot settings follow Z-Code++ section 3.3 and Table 11, with 0, 10, 100 and 1000 pairs. The paper draws them
at random and fine-tunes "until no significant improvement on the validation set is observed". That follows PEGASUS
(Zhang et al., 2020), whose low-resource runs end after at most 2000 steps. The paper prints neither batch size nor
patience; ours are below. Lengths are in steps, since ten pairs would make thousands of epochs.

Zero examples are zero-shot: the model is scored without training. A run keeps its best checkpoint, so it does not
notice if a few examples make a model worse. The paper marks such cells with a star, and `precis evaluate` on the
starting model shows them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from precis.data.tasks.tasks import task
from precis.evaluation.task_scores import label_measure
from precis.recipes.catalogue import TRAINED_FROM_NOTHING, recipe, recipe_to_ground
from precis.recipes.overrides import FUSION, as_asked, asks_for_fusion, names_asked, refuse_shape
from precis.recipes.prophetnet_recipes import on_task
from precis.recipes.run_plan import LONGEST_DENSE, Fusion, RunPlan, ZCodePPShape
from precis.training.training_settings import Highest, Lowest
from precis_text.errors import UserError

Answer = Literal["text", "head"]

MOST_STEPS = 2000  # PEGASUS's limit
VALIDATE_EVERY = 50
PATIENCE = 5
LONGEST_WARMUP = 100  # well before patience can run out, after at least 250 steps
_ACCUMULATION = "train.gradient_accumulation"
LARGEST_BATCH = 16  # the smallest of Z-Code++ Table 8


def few_shot(run: RunPlan, examples: int) -> RunPlan:
    """Return `run` for training on `examples` pairs: with capped steps and early stopping.

    At most 2000 steps, validated every 50, until 5 validations in a row bring no improvement; a warm-up of at most
    100 steps; at most 16 pairs in a batch and never more than `examples`. Learning rate, lengths, decoding and
    the metric for the best checkpoint stay the recipe's.

    Raises:
        UserError: `examples` is below 1.
    """
    if examples < 1:
        raise UserError(f"--examples {examples}: nothing to train on; use 1 or more")
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


def resolve_run(
    name: str | None,
    *,
    pretrained: bool = False,
    task_name: str | None = None,
    examples: int | None = None,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
    answer: Answer = "text",
) -> RunPlan:
    """Return the plan of a fine-tuning run.

    Args:
        name: a recipe; if None, zcodepp-mini, or the settings for pre-trained models if a model is given.
            `precis.recipes.catalogue.recipe_for_pairs` chooses a recipe for few pairs.
        pretrained: whether a model is given.
        task_name: a task, whose lengths and decoding the plan adopts.
        examples: number of pairs to draw; if not None, the few-shot settings apply (`few_shot`).
        changes, assignments, select: the user's options, which win; see `precis.recipes.overrides.as_asked`.
        answer: the decoder's text, or a head on the encoder, without label smoothing and generation.

    Raises:
        UserError: an unknown recipe, task or setting, or a value of another type.
    """
    assignments = list(assignments)
    if pretrained:
        refuse_shape(assignments, but=FUSION)
    plan = recipe(name or ("pretrained" if pretrained else "zcodepp-mini"))
    if pretrained and asks_for_fusion(assignments):
        plan = replace(plan, model=Fusion())
    if task_name is not None:
        known = task(task_name)
        plan = replace(
            plan, max_source=known.max_source, max_target=known.max_target, generation=known.generation
        )
        plan = on_task(plan, known.name)
        if measure := label_measure(known.metrics):
            plan = replace(plan, train=replace(plan.train, select=Highest(metric=measure)))
    if answer == "head":
        plan = replace(plan, label_smoothing=0.0, generated_rows=0)
    if examples is not None:
        plan = few_shot(plan, examples)
    plan = for_long_documents(plan, asked=names_asked(changes, assignments))
    return as_asked(plan, changes=changes, assignments=assignments, select=select)


def for_long_documents(plan: RunPlan, *, asked: Collection[str] = ()) -> RunPlan:
    """Return a plan that reads documents above `LONGEST_DENSE` tokens as Z-Code++ 2.3 does, in batches that fit.

    A new Z-Code++ has chunks of 256 tokens and one global layer. A batch of n pairs becomes n batches of one pair,
    whose gradients are added: the steps stay the same, the memory is that of one pair.

    Args:
        asked: names that the user sets; a batch that is named stays as it is.
    """
    if plan.max_source <= LONGEST_DENSE:
        return plan
    if isinstance(plan.model, ZCodePPShape) and plan.model.chunk_length is None:
        plan = replace(plan, model=replace(plan.model, **Fusion().to_dict()))
    if plan.batch_size is None or not {"batch_size", "batch_tokens", _ACCUMULATION}.isdisjoint(asked):
        return plan
    passes = plan.batch_size * plan.train.gradient_accumulation
    return replace(plan, batch_size=1, train=replace(plan.train, gradient_accumulation=passes))


def grounding(run: RunPlan) -> RunPlan:
    """Turn a fine-tuning recipe into one for grounded pre-training.

    The checkpoint with the lowest loss is kept, and validation generates no summaries: no single set's ROUGE
    represents the mixture. From size small on, the settings are those of Table 9. From its learning rates {2e-6, 5e-6,
    1e-5} and epochs {10, 20} we use the largest rate and fewer epochs. They are without label smoothing, like Eq. 6.
    Micro and mini keep their own, larger rates and their smoothing.
    """
    train = replace(run.train, select=Lowest())
    if run.name in TRAINED_FROM_NOTHING:
        return replace(run, train=train, generated_rows=0)
    train = replace(
        train,
        steps=None,
        epochs=10,
        gradient_accumulation=1,  # ProphetNet's recipes accumulate large batches
        learning_rate=1e-5,
        warmup_steps=1500,
        weight_decay=0.01,
        clip_norm=1.0,
        betas=(0.9, 0.999),
        eps=1e-6,
    )
    return replace(run, train=train, batch_size=64, batch_tokens=None, label_smoothing=0.0, generated_rows=0)


def resolve_grounding(
    name: str | None, *, start: str, changes: Mapping[str, Any] | None = None, assignments: Iterable[str] = ()
) -> RunPlan:
    """Return the plan of a grounding run.

    Args:
        name: a recipe; if None, the one of `start`'s size, or for other models the one for pre-trained models.
        start: the model to ground.
        changes, assignments: the user's options, which win; see `precis.recipes.overrides.as_asked`.

    Raises:
        UserError: an unknown model, recipe or setting, or a value of another type.
    """
    assignments = list(assignments)
    refuse_shape(assignments, but=FUSION)
    plan = grounding(recipe(name or recipe_to_ground(start)))
    if asks_for_fusion(assignments):
        plan = replace(plan, model=Fusion())
    return as_asked(plan, changes=changes, assignments=assignments)


def zero_shot(*, model: str | None, data: str, instruction: str, out: str) -> UserError:
    """Return the error for `--examples 0`, which names the command that scores the model without training.

    Args:
        model: the starting model, if there is one.
        data: the options that name the pairs, as typed.
        instruction: text put before every document, or "".
        out: the run folder.
    """
    if model is None:
        return UserError("--examples 0: zero-shot needs a trained model; name it with --model")
    asked = f" --instruction {shlex.quote(instruction)}" if instruction else ""
    name, scores = shlex.quote(model), shlex.quote(out)
    return UserError(
        "--examples 0: zero-shot needs no training; score the model with "
        f"`precis evaluate --model {name} {data}{asked} --out {scores}`"
    )


def in_words(plan: RunPlan) -> str:
    """Describe when a few-shot run ends, for the terminal."""
    train = plan.train
    length = f"{train.steps} steps" if train.steps is not None else f"{train.epochs:g} epochs"
    batch = f"{plan.batch_size} pairs" if plan.batch_size is not None else f"{plan.batch_tokens} tokens"
    patience = train.patience
    until = f", or until {patience} validations in a row bring no improvement" if patience is not None else ""
    return f"few-shot: at most {length} in batches of {batch}{until}"
