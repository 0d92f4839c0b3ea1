"""Pre-train on packed text, Z-Code++'s first phase or ProphetNet's: from corpora to a model for fine-tuning.

    packs -> blocks in a keyed order -> corrupted twice -> generator, discriminator, decoder -> OUT/model

OUT/model is the plain encoder-decoder, with E_delta added to E_G; OUT/pretraining keeps the generator and the
detection head too, so that pre-training can continue on another corpus.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.corruption import CorruptionIds
from precis.data.mixing_shares import BySize
from precis.data.packs.mixture import PackedRows
from precis.data.packs.packed_text import Blocks, PackedText
from precis.data.text.unigram_tokenizer import SENTINELS, digest_of, load_tokenizer, sentinel
from precis.generation.model_loader import load_model
from precis.generation.model_metadata import DEFAULT, ModelUse
from precis.messages import Notify
from precis.models.family import enable_gradient_checkpointing
from precis.objectives.losses import BatchSource
from precis.phases.run_folder import export_folder, export_model, save_model
from precis.phases.train.model_card import licence_of
from precis.phases.train.trainable_model import as_it_writes, fused, new_config
from precis.phases.train.training_session import (
    MODEL_FOLDER,
    RunOptions,
    RunRequest,
    Session,
    with_validation_interval,
)
from precis.recipes.overrides import with_changes, with_overrides
from precis.recipes.pretraining_runs import PreTrainRun, in_passes, pretraining_run
from precis.recipes.run_plan import Fusion
from precis.training import Trained, mean_loss
from precis.training.callbacks import Callback
from precis.training.training_run import Validate
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.row import pluralize

PRETRAINING_FOLDER = "pretraining"
_VALIDATIONS = 10
_EXTENDED = "make one with `precis tokenizer`, which extends another model's with --from, and pack again"


def resolve_pretraining(
    name: str, *, changes: Mapping[str, Any] | None = None, assignments: Iterable[str] = ()
) -> PreTrainRun:
    """Return the run that options describe; `assignments` are texts, `train.learning_rate=3e-4`, and win.

    Raises:
        UserError: an unknown recipe or setting, or a value of another type.
    """
    return with_overrides(with_changes(pretraining_run(name), dict(changes or {})), assignments)


def pretrain(
    run: PreTrainRun,
    *,
    corpora: Mapping[str, float] | Sequence[str],
    mixture: BySize | None = None,
    start: str | None = None,
    fusion: Fusion | None = None,
    callbacks: Sequence[Callback] | None = None,
    **asked: Unpack[RunOptions],
) -> Trained:
    """Pre-train in the run folder `out`, or resume that run, and export the last model.

    Args:
        corpora: folders of `precis data pack`, each with its weight in the mixture; 1 if only names are given.
        mixture: weights the corpora by their tokens instead.
        start: a model to start from; an earlier pre-training also provides its generator. If None, a new model.
        fusion: how a given Z-Code++ is to read; if None, as before.
        callbacks, asked: see `precis.phases.train.training_session.RunRequest`.

    The last weights are exported, not the best: the loss of RTD rises as the generator learns to deceive, so the sum
    of the losses cannot rank the models of a run.

    Raises:
        UserError: corpora, model and settings do not fit together, or `out` holds another run or a running one.
        DivergedError: the last model's loss or weights are not finite.
        RunError: training failed otherwise.
    """
    request = RunRequest(start=start, callbacks=callbacks, **asked)
    objective = run.objective.loss()
    session = Session(request, objective, exports=(MODEL_FOLDER, PRETRAINING_FOLDER))
    processes, rank = session.accelerator.num_processes, session.accelerator.process_index
    run = in_passes(run, processes)
    opened = _open(corpora)
    weights = _weights(corpora, opened, mixture)
    tokenizer = load_tokenizer(opened[0].folder / "tokenizer")
    with session.lock_folder():
        model, tokenizer = _model(run, tokenizer, start)
        if fusion is not None:
            model = fused(model, fusion, name=start)
        if run.gradient_checkpointing:
            enable_gradient_checkpointing(model)
        words = words_of(tokenizer, sentinels=run.objective.needs_sentinels)
        blocks = [corpus.blocks(run.block_length) for corpus in opened]
        rows = PackedRows(list(zip(blocks, weights, strict=True)), seed=run.train.seed)
        batches = run.objective.batches(
            rows, words, run.corruption, batch_size=run.batch_size, rank=rank, world_size=processes
        )
        settings = with_validation_interval(
            run.train, batches.batches_per_epoch, times=_VALIDATIONS, each_epoch=False
        )
        run = replace(run, train=settings)
        _tell_corpora(opened, weights, session.notify)
        _tell_plan(run, model, batches, start, session.notify)
        return session.run(
            model,
            objective=objective,
            batches=batches,
            validate=_validation(run, opened, words, processes=processes),
            settings=settings,
            record={
                "run": run.to_dict(),
                "corpora": [str(corpus.folder) for corpus in opened],
                "identity": {
                    **_identity(run, opened, weights, tokenizer, start),
                    **({} if fusion is None else {"fusion": fusion.to_dict()}),
                },
            },
            export=lambda card: _export(model, tokenizer, run, session.folder, start=start, card=card),
            keep="last",
        )


def _open(corpora: Iterable[str]) -> list[PackedText]:
    """Open the packs, which must use the same ids."""
    if not corpora:
        raise UserError("name a corpus: --corpus with a folder that `precis data pack` made")
    opened = [PackedText.open(folder, verify=True) for folder in corpora]
    for corpus in opened[1:]:
        if corpus.tokenizer_digest != opened[0].tokenizer_digest:
            raise UserError(
                f"{corpus.folder} and {opened[0].folder} were packed with different tokenizers; pack one of them "
                f"again with --tokenizer {opened[0].folder}/tokenizer"
            )
    return opened


def _model(
    run: PreTrainRun, tokenizer: PreTrainedTokenizerBase, start: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a new model, a given one, or a given one with a new generator; and its tokenizer.

    A given model keeps its tokenizer, which may know more than the corpus's of the same vocabulary: where texts end.
    """
    torch.manual_seed(run.train.seed)
    objective, length = run.objective, run.block_length
    if start is None:
        return objective.model(new_config(run.model, tokenizer), block_length=length), tokenizer
    kept = Path(start) / PRETRAINING_FOLDER
    is_kept = start != DEFAULT and kept.is_dir()
    model = objective.resumed(kept, block_length=length) if is_kept else None
    if model is not None:
        theirs = load_tokenizer(kept)
    else:
        loaded = load_model(start, device="cpu")
        given, theirs, wanted = loaded.model, loaded.tokenizer, objective.trains
        if not isinstance(given, wanted):
            raise UserError(
                f"{start}: is a {given.config.model_type}; this pre-training needs a {wanted.config_class.model_type}"
            )
        model = objective.around(given, block_length=length)
    if digest_of(theirs) != digest_of(tokenizer):
        raise UserError(
            f"{start} and the corpus use different tokenizers; pack the corpus again with the model's tokenizer"
        )
    return model, theirs


def words_of(tokenizer: PreTrainedTokenizerBase, *, sentinels: bool = True) -> CorruptionIds:
    """Return the ids that corruption writes.

    Args:
        sentinels: whether to include the sentinels, which stand for hidden spans.

    Raises:
        UserError: the tokenizer lacks a mask, an end mark, padding or sentinels.
    """
    for name in ("mask_token", "eos_token", "pad_token"):
        if getattr(tokenizer, name) is None:
            raise UserError(f"the corpus's tokenizer lacks {name}; {_EXTENDED}")
    control = set(tokenizer.all_special_ids)
    words = CorruptionIds(
        pad=tokenizer.pad_token_id,
        cls=tokenizer.bos_token_id,
        sep=tokenizer.eos_token_id,
        mask=tokenizer.mask_token_id,
        pieces=[index for index in range(len(tokenizer)) if index not in control],
    )
    if not sentinels:
        return words
    first, last = (tokenizer.convert_tokens_to_ids(sentinel(index)) for index in (0, SENTINELS - 1))
    if {first, last} & {tokenizer.unk_token_id, None}:
        raise UserError(f"the corpus's tokenizer lacks sentinels; {_EXTENDED}")
    return replace(words, first_sentinel=cast(int, first), sentinels=SENTINELS)


def _validation(
    run: PreTrainRun, corpora: Sequence[PackedText], words: CorruptionIds, *, processes: int
) -> Validate:
    """Measure the objective's parts on held-out blocks, corrupted the same way at every validation."""
    held_out = Blocks([corpus.dev for corpus in corpora if corpus.dev is not None], run.block_length)
    if not len(held_out):
        raise UserError(
            f"{corpora[0].folder}: no held-out block of {run.block_length} tokens to validate on; pack again with "
            f"a larger --dev-share, or use shorter blocks"
        )
    rows = PackedRows([(held_out, 1.0)], seed=0)
    wanted = min(run.validation_blocks, rows.num_blocks)
    # Every process measures all of them; a divisor, so that none is skipped for any number of processes.
    size = math.gcd(wanted, max(1, run.batch_size // processes))
    source = run.objective.batches(rows, words, run.corruption, batch_size=size)
    objective = run.objective.measure()
    return lambda model: mean_loss(model, map(source.batch, range(wanted // size)), objective)


def _identity(
    run: PreTrainRun,
    corpora: Sequence[PackedText],
    weights: Sequence[float],
    tokenizer: PreTrainedTokenizerBase,
    start: str | None,
) -> dict[str, Any]:
    """Return everything that the loss curve depends on besides the loop's settings, as JSON values."""
    settings = run.to_dict()
    return {
        **{name: settings[name] for name in ("block_length", "corruption", "objective")},
        # the number of passes per step depends on the machine, as the number of processes does
        "batch_size": run.batch_size * run.train.gradient_accumulation,
        "gradient_accumulation": None,
        "recipe": run.name,
        "validation_blocks": run.validation_blocks,
        "model": start if start is not None else settings["model"],
        "tokenizer": digest_of(tokenizer),
        "corpora": [corpus.digest for corpus in corpora],
        "weights": [*weights],
    }


def _weights(
    corpora: Mapping[str, float] | Sequence[str], opened: Sequence[PackedText], mixture: BySize | None
) -> list[float]:
    """Return each corpus's weight in the mixture; raise `UserError` if both weights and a mixture are given."""
    given = [*corpora.values()] if isinstance(corpora, Mapping) else [1.0 for _ in corpora]
    if mixture is None:
        return given
    if set(given) != {1.0}:
        raise UserError("--temperature weights corpora by their size; use either it or FOLDER=WEIGHT")
    return [*mixture.shares([corpus.num_tokens for corpus in opened])]


def _tell_corpora(corpora: Sequence[PackedText], weights: Sequence[float], notify: Notify) -> None:
    for corpus, weight in zip(corpora, weights, strict=True):
        share = f", {weight / sum(weights):.1%} of the blocks" if len(corpora) > 1 else ""
        documents = pluralize(corpus.num_documents, "document")
        notify(f"corpus: {corpus.folder}, {corpus.num_tokens:,} tokens of {documents}{share}")


def _tell_plan(
    run: PreTrainRun, model: PreTrainedModel, batches: BatchSource, start: str | None, notify: Notify
) -> None:
    size = sum(p.numel() for p in model.parameters())
    notify(f"model: {size / 1e6:.1f} M parameters, {f'from {start}' if start else f'new, recipe {run.name}'}")
    passes, steps = run.train.gradient_accumulation, run.train.total_steps(batches.batches_per_epoch)
    blocks = run.batch_size * passes
    read = steps * blocks * run.block_length
    parts = f", {run.batch_size} at a time" if passes > 1 else ""
    notify(f"{pluralize(steps, 'step')} of {pluralize(blocks, 'block')}{parts}: {read:,} tokens")


def _export(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    run: PreTrainRun,
    folder: Path,
    *,
    start: str | None,
    card: str,
) -> None:
    plain = run.objective.plain(model)
    if plain is not model:
        export_folder(
            folder / PRETRAINING_FOLDER, lambda place: save_model(model, tokenizer, place), card=card
        )
    use = ModelUse(max_source=run.block_length, licence=licence_of(start))
    writes = as_it_writes(plain, tokenizer)
    export_model(plain, writes, GenerationSettings(), use, folder / MODEL_FOLDER, card=card)
