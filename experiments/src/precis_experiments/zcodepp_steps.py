"""Steps that the studies of Z-Code++ share: both pre-training phases, fine-tuning on SAMSum, and its test set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from precis.data.batches.length_buckets import in_order
from precis.data.batches.pretraining_batches import Corruption, PreTrainingBatches
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.packs.mixture import PackedRows
from precis.data.packs.packed_text import PackedText
from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task
from precis.evaluation.rouge import Rouge
from precis.evaluation.task_scores import label_measure
from precis.generation.classifier import Classifier
from precis.generation.model_loader import LoadedModel, load_model
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.data.pair_checks import write_synthetic
from precis.phases.train.grounding import ground
from precis.phases.train.pretraining import words_of
from precis.phases.train.training_pairs import read_pairs_of
from precis.recipes.overrides import with_changes
from precis.recipes.planning import few_shot, resolve_grounding, resolve_run
from precis.recipes.pretraining_runs import PreTrainRun
from precis.training import Lowest, mean_loss
from precis_experiments.corpus_scores import score_texts
from precis_experiments.experiment import (
    ROUGE_TYPES,
    Runner,
    drop_checkpoints,
    pretraining_of,
    rounded,
    training_of,
    write_texts,
)
from precis_experiments.resumable_steps import Interrupted, Result, Step
from precis_experiments.scales import Scale
from precis_experiments.span_head import Question, answers, read_question, train_reader

TASK = "samsum"
SPANS = "squad-qa"
_VALIDATIONS = 4
_INVENTED_SEED = 3
_LOSS_BATCH = 32


def phase1(runner: Runner, name: str, run: PreTrainRun) -> Step:
    """Pre-train, and measure the loss of held-out spans, in each block and on average."""

    def measure(model: Path) -> Result:
        losses = held_out_span_losses(model, runner.packed, run)
        return {"span_loss": fmean(losses), "span_losses": [round(loss, 4) for loss in losses]}

    return runner.pretraining(name, run, measure)


def phase1_run(scale: Scale, steps: int, changes: Mapping[str, Any] = MappingProxyType({})) -> PreTrainRun:
    """Return the scale's pre-training run with `steps` steps, and other changes by dotted name."""
    return pretraining_of(scale.recipe, steps, {**scale.model_changes, **changes})


def phase2(scale: Scale, runner: Runner, name: str) -> Step:
    """Ground the model of phase 1, or the given one, on invented pairs and on real sets, except the tested ones."""
    start = scale.start or str(runner.model_of("phase1"))

    def work(place: Path) -> Result:
        changes = {
            "train.steps": scale.grounding_steps,
            "train.learning_rate": scale.learning_rate,
            "batch_tokens": scale.grounding_batch_tokens,
        }
        done = ground(
            resolve_grounding(scale.recipe, start=start, changes=changes),
            tasks=[*scale.grounding_tasks, str(_invented(scale, place))],
            start=start,
            out=place / "run",
            data=str(runner.data),
            cap=scale.grounding_cap,
            leave_out=tuple(dict.fromkeys((TASK, *scale.tasks))),
            skip_bad=True,
            notify=runner.notify,
        )
        if done.model is None:
            raise Interrupted
        return {"metrics": dict(done.result.metrics)}

    needs = () if scale.start else ("phase1",)
    return Step(name, work, drop_checkpoints, needs=needs, updates=scale.grounding_steps)


def _invented(scale: Scale, place: Path) -> Path:
    """Write pairs of the project's synthetic corpus, so regular that a model learns to copy from the source."""
    folder, count = place / "synthetic", scale.invented_pairs
    if not folder.exists():
        write_synthetic(folder, {"train": count, "dev": max(1, count // 50)}, seed=_INVENTED_SEED)
    return folder


def tune_on(
    scale: Scale,
    runner: Runner,
    task_name: str,
    place: Path,
    *,
    start: Path | str | None,
    examples: int | None,
    sampling_seed: int = 0,
) -> Result:
    """Fine-tune on some pairs of a task, or on all if `examples` is None, and score on its test sets.

    If `start` is None, the model is new. A model of `scale.beside` has the recipe and the rate for pre-trained models.
    """
    is_ours = start not in scale.beside
    changes: dict[str, Any] = {
        **({"train.learning_rate": scale.learning_rate} if is_ours else {}),
        "batch_tokens": scale.batch_tokens,
        "train.epochs": scale.full_epochs,
        "generated_rows": scale.dev_rows,
        **(scale.model_changes if start is None else {}),
    }
    recipe = scale.recipe if is_ours else None
    run = resolve_run(recipe, pretrained=not is_ours, task_name=task_name, changes=changes)
    if examples is not None:
        limits = {"train.steps": scale.few_shot_steps, "train.validate_every": scale.validate_every}
        run = with_changes(few_shot(run, examples), limits)
    result = runner.train(
        run,
        task_name,
        place,
        dev_rows=scale.dev_rows,
        start=start,
        tokenizer=str(runner.tokenizer) if start is None else None,
        examples=examples,
        sampling_seed=sampling_seed,
    )
    own, *further = runner.test_sets(task_name)
    scores = score_on(scale, runner, own, place / "run")
    others = {name: score_on(scale, runner, name, place / "run") for name in further}
    return {"steps": result.step, **scores, **({"further": others} if others else {})}


def is_by_head(task_name: str) -> bool:
    """Return whether the ablation judges a task by a head on the encoder, as A.4 asks what that understands."""
    return task_name == SPANS or label_measure(task(task_name).metrics) is not None


def head_on(
    scale: Scale, runner: Runner, task_name: str, place: Path, *, start: Path, seed: int = 0
) -> Result:
    """Train a head on the encoder of `start`, on all pairs of a task, and score the answers on its test sets."""
    loop = training_of(steps=scale.head_steps, rate=scale.head_rate, tokens=scale.batch_tokens, seed=seed)
    if task_name == SPANS:
        return _spans_on(scale, runner, place, start=start, loop=loop)
    changes = {**loop, "train.validate_every": max(1, scale.head_steps // _VALIDATIONS)}
    run = resolve_run(scale.recipe, pretrained=True, task_name=task_name, changes=changes, answer="head")
    result = runner.train(run, task_name, place, dev_rows=scale.dev_rows, start=start, answer="head")
    classifier = Classifier.from_pretrained(str(place / "run"))
    found = {}
    for test in runner.test_sets(task_name):
        pairs = runner.spaced_test_pairs(test, scale.test_rows)
        written = classifier.stream([pair.document for pair in pairs], batch_size=_LOSS_BATCH)
        texts, references = [answer.text for answer in written], [pair.all_references for pair in pairs]
        found[test] = score_texts(task(test).metrics, texts, references)
    own = found.pop(task_name)
    return {"steps": result.step, **own, **({"further": found} if found else {})}


def _spans_on(scale: Scale, runner: Runner, place: Path, *, start: Path, loop: Mapping[str, Any]) -> Result:
    """Train a span head on SQuAD, and score the spans that it chooses."""
    run = resolve_run(scale.recipe, pretrained=True, task_name=SPANS, changes=loop, answer="head")
    settings = replace(run.train, select=Lowest())
    loaded = load_model(start, device="cpu")
    pad = loaded.tokenizer.pad_token_id

    def read(pairs: Iterable[Pair]) -> list[Question]:
        return [read_question(pair, loaded.tokenizer, most=run.max_source) for pair in pairs]

    pairs = read_pairs_of(runner.sources(SPANS, scale.dev_rows, place), seed=settings.seed)
    learnt = read(pairs.train)
    pairs.tell_about(runner.notify)
    reader, result = train_reader(
        loaded.model.get_encoder(),
        loaded.model.config.hidden_size,
        learnt,
        pad=pad,
        settings=settings,
        folder=place / "run",
        identity={"start": str(start)},
        notify=runner.notify,
    )
    if result.interrupted:
        raise Interrupted
    tested = runner.spaced_test_pairs(SPANS, scale.test_rows)
    texts = answers(reader, read(tested), pad=pad)
    return {
        "steps": result.step,
        **score_texts(task(SPANS).metrics, texts, [pair.all_references for pair in tested]),
    }


def score_on(scale: Scale, runner: Runner, task_name: str, model: Path | str) -> Result:
    """Return the loss of the references, ROUGE of each example, its means, and a task's metrics on its test set."""
    known = task(task_name)
    pairs = runner.first_test_pairs(task_name, scale.test_rows)
    loaded = load_model(model)
    texts = write_texts(loaded, task_name, pairs, settings=replace(known.generation, beams=scale.beams))
    references = [pair.all_references for pair in pairs]
    scores = Rouge(types=ROUGE_TYPES).score(texts, references)
    return {
        "loss": _reference_loss(loaded, task_name, pairs),
        "rouge": {name: float(values.mean()) for name, values in scores.items()},
        "examples": rounded(scores),
        **(score_texts(known.metrics, texts, references) if known.metrics else {}),
    }


def _reference_loss(loaded: LoadedModel, task_name: str, pairs: Sequence[Pair]) -> float:
    """Return the nats per token of the references."""
    known = task(task_name)
    ids = TokenizedPairs.from_pairs(
        pairs,
        loaded.tokenizer,
        max_source=known.max_source,
        max_target=known.generation.max_tokens,
        decoder_start_token_id=loaded.model.config.decoder_start_token_id,
        instruction=loaded.use.instruction_for(task_name),
    )
    batches = in_order(ids, batch_size=_LOSS_BATCH, pad_token_id=loaded.tokenizer.pad_token_id)
    return mean_loss(loaded.model, batches, SequenceToSequence(label_smoothing=0.0))["nll"]


def held_out_span_losses(model: Path, pack: Path, run: PreTrainRun) -> list[float]:
    """Return the nats per token of recovering spans of each held-out block.

    The spans are the same for every model and objective.
    """
    held_out = PackedText.open(pack).dev
    assert held_out is not None  # `pack` holds documents out
    loaded = load_model(model)
    rows = PackedRows([(held_out.blocks(run.block_length), 1.0)], seed=0)
    batches = PreTrainingBatches(rows, words_of(loaded.tokenizer), corruption=Corruption(), batch_size=1)
    objective = SequenceToSequence(label_smoothing=0.0)
    return [
        mean_loss(loaded.model, [batches.span_batch(place)], objective)["nll"]
        for place in range(min(run.validation_blocks, rows.num_blocks))
    ]
