"""What the reproductions of Z-Code++'s tables have in common: scales, and steps that pack, train and score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from precis.config import Settings
from precis.data.batches.bucketed import in_order
from precis.data.batches.pretraining_batches import Corruption, PreTrainingBatches
from precis.data.batches.tokenized import TokenizedPairs
from precis.data.packs.mixture import PackedRows
from precis.data.packs.packed_text import PackedText
from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task
from precis.evaluation.rouge import Rouge
from precis.generation.loading import LoadedModel, load_model
from precis.generation.summarizer import Summarizer
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.check_data import write_synthetic
from precis.phases.evaluate import read_test_pairs
from precis.phases.finetune import finetune
from precis.phases.ground import ground
from precis.phases.pretrain import pretrain, words_of
from precis.phases.sources import find_part, find_sources
from precis.recipes.overrides import with_changes
from precis.recipes.plans import few_shot, resolve_grounding, resolve_run
from precis.recipes.pretraining_runs import PreTrainRun, pretraining_run
from precis.studies.study import Interrupted, Result
from precis.studies.study_parts import ROUGE_TYPES, pack_text, some_dev_rows
from precis.telling import Tell
from precis.training import mean_loss
from precis.training.callbacks import read_metrics

CORPORA = ("pretrain_gutenberg", "pretrain_scotus_oral", "pretrain_wikitext2", "pretrain_wikinews")
TASK = "samsum"
_INVENTED_SEED = 3
_LOSS_BATCH = 32


@dataclass(frozen=True, kw_only=True)
class Scale(Settings):
    """How large a reproduction is.

    Attributes:
        recipe: size of the model, by the name of its pre-training and fine-tuning recipes.
        vocab_size: of the tokenizer, trained on the corpora.
        shape: what else of the recipe's model is changed, by name: a CPU is spared random numbers and position keys.
        corpora: folders of unlabelled English text under the data folder; those that are there are packed.
        phase1_steps: of the model that is tuned; `ablation_steps` of each one that is compared.
        grounding_tasks, grounding_cap, grounding_steps, grounding_batch_tokens: phase 2; SAMSum is always left out.
        invented_pairs: of the project's own synthetic corpus, one more set of phase 2.
        examples: sizes of the few-shot sets; each is drawn with every one of `sampling_seeds`.
        few_shot_steps, validate_every, dev_rows: few-shot fine-tuning ends after that many steps at the latest, and is
            validated that often, by loss and by ROUGE on that many dev rows.
        learning_rate: of fine-tuning, the same for every start.
        full_epochs: passes over all of SAMSum.
        test_rows: how many test dialogues are summarized.
    """

    name: str
    recipe: str
    vocab_size: int
    shape: tuple[tuple[str, int | float], ...] = ()
    corpora: tuple[str, ...] = CORPORA
    phase1_steps: int
    ablation_steps: int
    grounding_tasks: tuple[str, ...] = ("dialogsum", "cnndm", "aeslc", "scitldr", "reuters21578")
    grounding_cap: int = 4000
    grounding_steps: int
    grounding_batch_tokens: int = 4096
    invented_pairs: int
    examples: tuple[int, ...] = (10, 100, 1000)
    sampling_seeds: tuple[int, ...] = (0, 1, 2)
    ablation_seeds: tuple[int, ...] = (0, 1)
    few_shot_steps: int = 2000
    validate_every: int = 100
    dev_rows: int = 100
    learning_rate: float
    full_epochs: float
    batch_tokens: int = 4096
    test_rows: int = 819
    beams: int = 1

    @property
    def model_changes(self) -> dict[str, int | float]:
        """`shape` by dotted name."""
        return {f"model.{name}": value for name, value in self.shape}


SCALES: Mapping[str, Scale] = {
    scale.name: scale
    for scale in (
        Scale(
            name="smoke",
            recipe="zcodepp-micro",
            vocab_size=1000,
            corpora=("pretrain_wikinews",),
            phase1_steps=4,
            ablation_steps=2,
            grounding_tasks=("dialogsum", "aeslc"),
            grounding_cap=40,
            grounding_steps=4,
            invented_pairs=40,
            examples=(10,),
            sampling_seeds=(0,),
            ablation_seeds=(0,),
            few_shot_steps=2,
            validate_every=2,
            dev_rows=4,
            learning_rate=1e-3,
            full_epochs=0.005,
            test_rows=8,
        ),
        Scale(
            name="micro",
            recipe="zcodepp-micro",
            vocab_size=4000,
            shape=(("attention_dropout", 0.0), ("position_buckets", 32), ("max_relative_positions", 256)),
            phase1_steps=1600,
            ablation_steps=800,
            grounding_tasks=("dialogsum", "scitldr"),
            grounding_cap=40_000,
            grounding_steps=3500,
            grounding_batch_tokens=3000,
            invented_pairs=40_000,
            few_shot_steps=250,
            validate_every=50,
            dev_rows=64,
            learning_rate=1e-3,
            full_epochs=1,
        ),
        Scale(
            name="mini",
            recipe="zcodepp-mini",
            vocab_size=16_000,
            phase1_steps=50_000,
            ablation_steps=15_000,
            grounding_cap=10_000,
            grounding_steps=10_000,
            grounding_batch_tokens=12_288,
            invented_pairs=20_000,
            learning_rate=5e-4,
            full_epochs=12,
            batch_tokens=12_288,
            beams=4,
        ),
    )
}


@dataclass(frozen=True)
class Experiment:
    """A scale, the folder that holds the data sets, and who is told what happens."""

    scale: Scale
    data: Path
    tell: Tell

    def pack(self, place: Path) -> Result:
        """The English text, packed."""
        return pack_text(
            self.data, self.scale.corpora, place, vocab_size=self.scale.vocab_size, tell=self.tell
        )

    def phase1(self, place: Path, run: PreTrainRun, *, pack: Path) -> Result:
        """Pre-train, and keep what it ended with."""
        done = pretrain(run, corpora={str(pack): 1.0}, out=place / "run", tell=self.tell)
        if done.model is None:
            raise Interrupted
        records = read_metrics(place / "run" / "metrics.jsonl")
        last = [record for record in records if record["kind"] == "validation"][-1]
        spans = held_out_span_loss(place / "run", pack, run)
        return {"tokens": done.result.tokens, "validation": last, "span_loss": spans}

    def phase2(self, place: Path, *, start: Path) -> Result:
        """Ground a pre-trained model on invented pairs and on real sets, not on the one that is tested."""
        scale = self.scale
        run = resolve_grounding(
            scale.recipe,
            start=str(start),
            changes={
                "train.steps": scale.grounding_steps,
                "train.learning_rate": scale.learning_rate,
                "batch_tokens": scale.grounding_batch_tokens,
            },
        )
        done = ground(
            run,
            tasks=[*scale.grounding_tasks, str(self._invented(place))],
            start=str(start),
            out=place / "run",
            data=str(self.data),
            cap=scale.grounding_cap,
            leave_out=(TASK,),
            skip_bad=True,
            tell=self.tell,
        )
        if done.model is None:
            raise Interrupted
        return {"metrics": dict(done.result.metrics)}

    def _invented(self, place: Path) -> Path:
        """Pairs of the project's own synthetic corpus: so regular that a model learns to copy from the source."""
        folder, count = place / "synthetic", self.scale.invented_pairs
        if not folder.exists():
            write_synthetic(folder, {"train": count, "dev": max(1, count // 50)}, seed=_INVENTED_SEED)
        return folder

    def tune(
        self,
        place: Path,
        *,
        start: Path | None,
        tokenizer: Path,
        examples: int | None,
        sampling_seed: int = 0,
    ) -> Result:
        """Fine-tune on SAMSum (None: on all of it) and score on its test set."""
        scale = self.scale
        changes: dict[str, Any] = {
            "train.learning_rate": scale.learning_rate,
            "batch_tokens": scale.batch_tokens,
            "train.epochs": scale.full_epochs,
            "generated_rows": scale.dev_rows,
        }
        if start is None:
            changes |= scale.model_changes
        run = resolve_run(scale.recipe, task_name=TASK, changes=changes)
        if examples is not None:
            limits = {"train.steps": scale.few_shot_steps, "train.validate_every": scale.validate_every}
            run = with_changes(few_shot(run, examples), limits)
        done = finetune(
            run,
            sources=find_sources(
                task_name=TASK,
                data=str(self.data),
                dev=str(some_dev_rows(self.data, TASK, scale.dev_rows, place)),
                skip_bad=True,
            ),
            out=place / "run",
            start=None if start is None else str(start),
            tokenizer=None if start is not None else str(tokenizer),
            examples=examples,
            sampling_seed=sampling_seed,
            tell=self.tell,
        )
        if done.model is None:
            raise Interrupted
        return {"steps": done.result.step, **self.score(place / "run")}

    def score(self, model: Path) -> Result:
        """On the test set: the loss of the references, and ROUGE, each example's and the means. Every model reads and
        writes under the task's limits.
        """
        scale, known = self.scale, task(TASK)
        pairs = read_test_pairs(
            find_part(task_name=TASK, data=str(self.data)),
            limit=scale.test_rows,
            skip_bad=True,
            tell=self.tell,
        )
        loaded = load_model(model)
        summarizer = Summarizer(
            loaded.model,
            loaded.tokenizer,
            settings=replace(known.generation, beams=scale.beams),
            max_source=known.max_source,
            instruction=loaded.use.instruction_for(TASK),
        )
        texts = [
            s.text
            for s in summarizer.summarize([pair.document for pair in pairs], long="truncate", short="write")
        ]
        scores = Rouge(types=ROUGE_TYPES).score(texts, [pair.all_references for pair in pairs])
        return {
            "loss": self._loss(loaded, pairs),
            "rouge": {name: float(values.mean()) for name, values in scores.items()},
            "examples": {name: [round(float(v), 3) for v in values] for name, values in scores.items()},
        }

    def _loss(self, loaded: LoadedModel, pairs: Sequence[Pair]) -> float:
        """Per token of the references, in nats."""
        known = task(TASK)
        ids = TokenizedPairs.from_pairs(
            pairs,
            loaded.tokenizer,
            max_source=known.max_source,
            max_target=known.generation.max_tokens,
            decoder_start_token_id=loaded.model.config.decoder_start_token_id,
            instruction=loaded.use.instruction_for(TASK),
        )
        batches = in_order(ids, batch_size=_LOSS_BATCH, pad_token_id=loaded.tokenizer.pad_token_id)
        return mean_loss(loaded.model, batches, SequenceToSequence(label_smoothing=0.0))["nll"]


def phase1_run(scale: Scale, *, steps: int, **changes: Any) -> PreTrainRun:
    """The scale's pre-training run with that many steps; a tenth of them warm up."""
    run = with_changes(pretraining_run(scale.recipe), scale.model_changes)
    train = replace(
        run.train, steps=steps, epochs=None, warmup_steps=max(1, min(run.train.warmup_steps, steps // 10))
    )
    return replace(run, train=train, **changes)


def held_out_span_loss(model: Path, pack: Path, run: PreTrainRun) -> float:
    """Loss a token of recovering held-out spans, the same ones for every model, whatever it was trained to recover."""
    held_out = PackedText.open(pack).dev
    assert held_out is not None  # `pack` holds documents out
    loaded = load_model(model)
    rows = PackedRows([(held_out.blocks(run.block_length), 1.0)], seed=0)
    batches = PreTrainingBatches(
        rows, words_of(loaded.tokenizer), corruption=Corruption(), batch_size=run.batch_size
    )
    count = max(1, min(run.validation_blocks, rows.num_blocks) // run.batch_size)
    objective = SequenceToSequence(label_smoothing=0.0)
    return mean_loss(loaded.model, (batches.span_batch(step) for step in range(count)), objective)["nll"]
