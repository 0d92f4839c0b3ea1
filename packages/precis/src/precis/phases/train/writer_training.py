"""Train a causal language model on pairs, whole or by a low-rank adapter, and keep the best.

    pairs -> the prompts that its writer sends, and the summaries -> train, validated by loss and by ROUGE
    -> the best to OUT/model, or OUT/adapter, which names its base

It is `precis.phases.train.finetuning` with prompts for documents: the same loop, checkpoints and resuming. A document
that does not fit is read by its best passages, as at generation. Only the summary counts in the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from transformers import AutoModelForCausalLM

from precis.data.batches.token_arrays import Ragged, TokenizedPairs, pair_name
from precis.data.pairs.pair import Pair
from precis.data.text.prompts import disarmed, prompts_digest
from precis.data.text.segments import UnitSegmenter
from precis.extract.extractor_opening import passage_choice
from precis.generation.adapters import place_of_base, write_base
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.generation.model_metadata import ModelUse
from precis.generation.writers.causal_model import CausalModel
from precis.generation.writers.writer import Writer
from precis.messages import Notify
from precis.objectives.causal import CausalSummary
from precis.phases.data.run_pairs import percent
from precis.phases.run_folder import export_folder, save_model
from precis.phases.train.pair_training import PairRequest, PreparedPairs, draw_identity, train_on_pairs
from precis.phases.train.trainable_model import TrainableModel
from precis.phases.train.training_pairs import TrainingPairs, tokenize_pairs
from precis.phases.train.training_session import MODEL_FOLDER, Session
from precis.phases.train.validation_scores import evenly_spaced
from precis.phases.train.writer_validation import WriterValidation
from precis.recipes.overrides import with_changes
from precis.recipes.run_plan import RunPlan
from precis.storage.model_files import ADAPTER_FOLDER
from precis.training import Trained
from precis.training.processes import main_process_first, sharding_is_asked_for
from precis.tuning.low_rank import LowRank, LowRankAdapter, add_low_rank
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

_REPLY_SHARE = 4  # a reply has at most this part of the context, as in a `Writer`


def train_writer(run: RunPlan, request: PairRequest, *, low_rank: LowRank | None = None) -> Trained:
    """Train on a request's pairs in its run folder, or resume that run, and export the best.

    Args:
        run: the training settings. `max_source` limits prompt and reply together, `max_target` the reply.
        low_rank: the adapter to train on the frozen model; if None, all weights are trained.

    Raises:
        UserError: data, model and settings do not fit together, the folder holds another run, or another process
            is training in it.
        RunError: training failed.
    """
    if request.tokenizer is not None:
        raise UserError("--tokenizer is for new models; a model given with --model brings its own")
    if low_rank is not None and sharding_is_asked_for():
        raise UserError("a low-rank adapter needs its whole base, but FSDP shards it; launch without FSDP")
    objective = CausalSummary(label_smoothing=run.label_smoothing)
    session = Session(request, objective, exports=(MODEL_FOLDER if low_rank is None else ADAPTER_FOLDER,))
    pairs = request.read_pairs(seed=run.train.seed)
    with session.lock_folder():
        with main_process_first(session.accelerator):
            trainable = load_causal(str(request.start))
        ready = replace(_prepared(run, trainable, pairs, request, session.notify), objective=objective)
        if low_rank is None:
            whole = partial(_export_whole, trainable, ready.use, session.folder / MODEL_FOLDER)
            return train_on_pairs(ready, trainable, session, export=whole)
        adapter = add_low_rank(trainable.model, low_rank, seed=run.train.seed)
        session.notify(
            f"lora: {adapter.parameters:,} parameters are trained, "
            f"{adapter.parameters / trainable.parameters:.2%} of the base's"
        )
        identity = {**ready.identity, "base": adapter.base.digest, "low_rank": low_rank.to_dict()}
        ready = replace(ready, identity=identity, record={"plan": low_rank.to_dict(), **ready.record})
        part = partial(_export_adapter, adapter, trainable, ready.use, session.folder / ADAPTER_FOLDER)
        return train_on_pairs(ready, trainable, session, export=part, makes="adapter")


def load_causal(start: str) -> TrainableModel:
    """Load a whole causal language model to train, with a tokenizer that can pad; raise `UserError` if that fails."""
    location = locate(start)
    if location.adapter is not None:
        raise UserError(f"{start}: is an adapter; start from a whole model, such as its base")
    loaded = load_model(location, device="cpu", kind=AutoModelForCausalLM)
    if loaded.tokenizer.pad_token_id is None:  # padding is masked, so any token serves
        loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
    return TrainableModel(loaded.model, loaded.tokenizer, loaded.source, loaded.use)


@dataclass(frozen=True)
class Prompts:
    """Turns pairs into prompts and summaries as token ids, with a writer's own prompts; see `TrainableModel.ids_of`.

    Attributes:
        end: the token that ends a summary.
    """

    writer: Writer
    chat: CausalModel
    end: int

    def ids_of(
        self,
        pairs: Iterable[Pair],
        plan: RunPlan,
        *,
        instruction: str = "",
        segmenter: UnitSegmenter | None = None,
        skip: Callable[[int, str], None] | None = None,
    ) -> TokenizedPairs:
        """Tokenize pairs. `truncated_sources` counts the documents that the model reads in part.

        Raises:
            UserError: a text gives no ids, and `skip` is None.
        """
        del instruction, segmenter  # the writer has its own instruction
        prompts: list[list[int]] = []
        summaries: list[list[int]] = []
        kept: list[int] = []
        count, parts, cut = 0, 0, 0
        for index, pair in enumerate(pairs):
            count += 1
            prompt = self.writer.prompt_for(pair.document)
            text = disarmed(pair.summary.strip(), self.chat.control)
            summary = self.chat.tokenizer(text, add_special_tokens=False)["input_ids"]
            if not (prompt.has_words and summary):
                problem = f"the {'summary' if prompt.has_words else 'document'} gives no tokens"
                if skip is None:
                    raise UserError(
                        f"{pair_name(index, pair)}: {problem}; remove the pair, or skip such pairs with --skip-bad"
                    )
                skip(index, f"{pair_name(index, pair)}: {problem}")
                continue
            kept.append(index)
            parts += not prompt.is_whole
            cut += len(summary) >= plan.max_target  # its end mark needs a place
            prompts.append(self.chat.ids(prompt.messages, prompt.answer))
            summaries.append([*summary[: plan.max_target - 1], self.end])
        if not kept:
            raise UserError("zero pairs to tokenize; give at least one")
        return TokenizedPairs(
            sources=Ragged.of(prompts),
            targets=Ragged.of(summaries),
            truncated_sources=parts,
            truncated_targets=cut,
            kept=None if len(kept) == count else np.array(kept, dtype=np.int64),
        )


def _prepared(
    run: RunPlan, trainable: TrainableModel, pairs: TrainingPairs, request: PairRequest, notify: Notify
) -> PreparedPairs:
    """Tokenize the pairs as prompts and summaries, and log what was read."""
    instruction = trainable.use.instruction if request.instruction is None else request.instruction
    chat = CausalModel(trainable.model, trainable.tokenizer)
    plan = _fitted(run, chat.context, notify)
    chat.context = plan.max_source
    choose = passage_choice()
    writer = Writer(chat, choose=choose, instruction=instruction)
    writer.settings = GenerationSettings(max_tokens=plan.max_target)
    prompts = Prompts(writer, chat, chat.closing())
    train, dev, shared = tokenize_pairs(plan, pairs, prompts, instruction)
    pairs.tell_about(notify)
    for role, rows in (("", train), ("dev ", dev)):
        _tell_parts(rows, plan, role, notify)
    shown = evenly_spaced(pairs.dev, plan.generated_rows)
    return PreparedPairs(
        plan=plan,
        train=train,
        validate=WriterValidation(
            CausalSummary(label_smoothing=plan.label_smoothing),
            dev,
            shown,
            writer,
            choose=choose,
            pad_token_id=trainable.tokenizer.pad_token_id,
        ),
        use=replace(
            trainable.use, max_source=plan.max_source, instruction=instruction, task=request.sources.task
        ),
        record={"sources": request.sources.to_dict()},
        identity={
            "data": [reader.digest for reader in pairs.readers],
            "prompts": [prompts_digest(), train.sources.digest],  # the passages depend on the chooser
            "instruction": instruction,
            **draw_identity(request.examples, request.sampling_seed, seed=plan.train.seed),
        },
        shared=shared,
    )


def _fitted(run: RunPlan, limit: int, notify: Notify) -> RunPlan:
    """Return the plan with lengths that the model reads and writes, and log the changes."""
    changes: dict[str, int] = {}
    if run.max_source > limit:
        changes["max_source"] = limit
    most = changes.get("max_source", run.max_source) // _REPLY_SHARE
    if run.max_target > most:
        changes["max_target"] = most
    for name, value in changes.items():
        does = "reads and writes" if name == "max_source" else "writes"
        notify(
            f"this model {does} at most {value} tokens here: {name} is {value} instead of {getattr(run, name)}"
        )
    return with_changes(run, changes)


def _tell_parts(rows: TokenizedPairs, plan: RunPlan, role: str, notify: Notify) -> None:
    """Report how many documents the model reads in part, and how many summaries are cut, if any."""
    if rows.truncated_sources:
        share = percent(rows.truncated_sources, len(rows))
        notify(
            f"{share} of the {role}documents ({rows.truncated_sources:,}) do not fit prompts and summaries of "
            f"{plan.max_source} tokens: the model reads their best passages (raise --max-source)"
        )
    if rows.truncated_targets:
        share = percent(rows.truncated_targets, len(rows))
        notify(
            f"{share} of the {role}summaries ({rows.truncated_targets:,}) are longer than {plan.max_target} tokens "
            "and are truncated: raise --max-target"
        )


def _export_whole(trainable: TrainableModel, use: ModelUse, folder: Path, card: str) -> None:
    """Write FOLDER with the model; its decoding settings stay as they were."""
    export_folder(
        folder, lambda place: save_model(trainable.model, trainable.tokenizer, place, use), card=card
    )


def _export_adapter(
    adapter: LowRankAdapter, trainable: TrainableModel, use: ModelUse, folder: Path, card: str
) -> None:
    """Write FOLDER with the adapter, which names its base."""

    def write(into: Path) -> None:
        adapter.write_files(into)
        write_base(place_of_base(str(trainable.start), folder), into)
        use.save(into)

    export_folder(folder, write, card=card)
