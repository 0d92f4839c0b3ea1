"""ProphetNet's comparisons at a small scale: n-grams (Table 7), no pre-training (Table 6), questions (Table 3).

    text -> packed -> pre-trained with n = 1, 2, 3 -> pairs of one task, three seeds each   (Table 7)
                      nothing, and a plain Transformer -> the same pairs, three seeds each  (Table 6)
                      pre-trained with n = 2 -> questions on both splits of SQuAD, once    (Table 3)

The plain Transformer is transformers' BART of the same width and depth with new weights: post-norm, absolute
positions, GELU, teacher forcing; what it lacks are the streams and the relative scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration

from precis.data.tasks.tasks import task
from precis.data.text.tokenizer import load_tokenizer, without_start
from precis.evaluation.bleu import bleu
from precis.evaluation.meteor import synonyms_at_hand
from precis.evaluation.metrics import Meteor
from precis.evaluation.report import Corpus
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import bootstrap_corpus, bootstrap_interval
from precis.generation.loading import load_model
from precis.generation.summarizer import Summarizer
from precis.phases.finetune import finetune
from precis.phases.pretrain import pretrain
from precis.phases.run_folder import write_folder
from precis.phases.sources import PairSources, find_sources
from precis.recipes.overrides import with_changes
from precis.recipes.plans import resolve_run
from precis.recipes.pretraining_runs import pretraining_run
from precis.recipes.prophetnet import PROPHETNET_DECODING
from precis.recipes.runs import ProphetNetShape, native_precision
from precis.studies.prophet_scales import GAMMAS, NGRAMS, PLAIN, QUESTIONS, ProphetScale
from precis.studies.prophet_tables import tables
from precis.studies.study import Interrupted, Result, Step, Study
from precis.studies.study_parts import (
    ROUGE_TYPES,
    drop_checkpoints,
    drop_model,
    keep_texts,
    pack_text,
    some_dev_rows,
    some_test_pairs,
    work_and_show,
)
from precis.telling import Tell
from precis.training.callbacks import read_metrics

NAME = "prophetnet"


def prophetnet(scale: ProphetScale, *, data: Path, out: Path, tell: Tell) -> str:
    """Do what is left of the experiment in `out`; its tables.

    Raises:
        UserError: the data are not there, or `out` holds something else.
        Interrupted: it was asked to stop; the same call goes on.
    """
    study = Study(out, scale, name=NAME, data=data)
    steps = list(_steps(study, _Experiment(scale, data, tell)))
    return work_and_show(study, steps, lambda results: tables(scale, results), tell)


def _steps(study: Study, experiment: _Experiment) -> Iterator[Step]:
    scale = experiment.scale
    pack = study.place("pack") / "pack"
    words = pack / "tokenizer"

    def pretrained(ngram: int) -> Step:
        return Step(
            f"pretrained-{ngram}gram",
            lambda place: experiment.pretrain(place, ngram, pack=pack),
            drop_checkpoints,
            needs=("pack",),
        )

    def tuned(ngram: int, seed: int) -> Step:
        start = study.place(f"pretrained-{ngram}gram") / "run"
        return Step(
            f"tuned-{ngram}gram-{seed}",
            lambda place: experiment.tuned(place, start=start, seed=seed),
            drop_model,
            needs=(f"pretrained-{ngram}gram",),
        )

    def plain(system: str, seed: int) -> Step:
        return Step(
            f"plain-{system}-{seed}",
            lambda place: experiment.plain(place, system, words=words, seed=seed),
            drop_model,
            needs=("pack",),
        )

    yield Step(
        "pack",
        lambda place: pack_text(
            experiment.data, scale.corpora, place, vocab_size=scale.vocab_size, tell=experiment.tell
        ),
    )
    yield from (pretrained(ngram) for ngram in NGRAMS)
    yield from (tuned(ngram, seed) for seed in scale.seeds for ngram in NGRAMS)
    yield from (plain(system, seed) for seed in scale.seeds for system in PLAIN)
    start = study.place("pretrained-2gram") / "run"
    yield Step(
        "questions",
        lambda place: experiment.questions(place, start=start),
        drop_model,
        needs=("pretrained-2gram",),
    )


@dataclass(frozen=True)
class _Experiment:
    """A scale, the folder that holds the data sets, and who is told what happens."""

    scale: ProphetScale
    data: Path
    tell: Tell

    def pretrain(self, place: Path, ngram: int, *, pack: Path) -> Result:
        steps = self.scale.pretraining_steps
        run = pretraining_run(self.scale.recipe)
        changes = {
            "model.ngram": ngram,
            "model.attenuation": GAMMAS[ngram],
            "train.steps": steps,
            "train.epochs": None,
            "train.warmup_steps": max(1, min(run.train.warmup_steps, steps // 10)),
        }
        done = pretrain(
            with_changes(run, changes), corpora={str(pack): 1.0}, out=place / "run", tell=self.tell
        )
        if done.model is None:
            raise Interrupted
        last = [r for r in read_metrics(place / "run" / "metrics.jsonl") if r["kind"] == "validation"][-1]
        return {"tokens": done.result.tokens, "validation": last}

    def tuned(self, place: Path, *, start: Path, seed: int) -> Result:
        return self._tuned(place, seed=seed, start=start)

    def plain(self, place: Path, system: str, *, words: Path, seed: int) -> Result:
        if system.startswith("Transformer"):
            released = system == "Transformer-released-start"
            start = plain_transformer(
                self.scale.recipe, words, place / "start", seed=seed, released_start=released
            )
            return self._tuned(place, seed=seed, start=start)
        return self._tuned(place, seed=seed, words=words)

    def questions(self, place: Path, *, start: Path) -> Result:
        scale = self.scale
        self._tune(
            place, QUESTIONS[0], steps=scale.question_steps, tokens=scale.question_tokens, seed=0, start=start
        )
        return {name: self._score_questions(place / "run", name) for name in QUESTIONS}

    def _tuned(self, place: Path, **options: Any) -> Result:
        scale = self.scale
        self._tune(place, scale.task, steps=scale.task_steps, tokens=scale.task_tokens, **options)
        texts, references = self._write(place / "run", scale.task)
        scores = Rouge(types=ROUGE_TYPES).score(texts, references)
        return {"examples": {kind: [round(float(v), 3) for v in values] for kind, values in scores.items()}}

    def _tune(
        self,
        place: Path,
        name: str,
        *,
        steps: int,
        tokens: int,
        seed: int,
        start: Path | None = None,
        words: Path | None = None,
    ) -> None:
        changes = {
            "train.steps": steps,
            "train.epochs": None,
            "train.warmup_steps": max(1, min(300, steps // 10)),
            "train.learning_rate": self.scale.learning_rate,
            "train.precision": native_precision(),
            "train.seed": seed,
            "batch_tokens": tokens,
            "generated_rows": self.scale.dev_rows,
        }
        done = finetune(
            resolve_run(self.scale.recipe, task_name=name, changes=changes),
            sources=self._sources(place, name),
            out=place / "run",
            start=None if start is None else str(start),
            tokenizer=None if words is None else str(words),
            tell=self.tell,
        )
        if done.model is None:
            raise Interrupted

    def _sources(self, place: Path, name: str) -> PairSources:
        """The task's training pairs and some of its dev pairs."""
        few = some_dev_rows(self.data, name, self.scale.dev_rows, place)
        whole = find_sources(task_name=name, data=str(self.data), skip_bad=True)
        return replace(whole, dev=find_sources(data=str(few)).train)

    def _write(self, model: Path, name: str) -> tuple[list[str], list[tuple[str, ...]]]:
        """Texts for the test documents, decoded as the paper does where it has the task, and their references."""
        pairs = some_test_pairs(self.data, name, self.scale.test_rows, self.tell)
        loaded = load_model(model)
        summarizer = Summarizer(
            loaded.model,
            loaded.tokenizer,
            settings=PROPHETNET_DECODING.get(name, task(name).generation),
            max_source=task(name).max_source,
        )
        written = summarizer.summarize([pair.document for pair in pairs], long="truncate", short="write")
        texts = [summary.text for summary in written]
        keep_texts(model.parent / f"texts-{name}.jsonl", pairs, texts)
        return texts, [tuple(pair.all_references) for pair in pairs]

    def _score_questions(self, model: Path, name: str) -> Result:
        texts, references = self._write(model, name)
        meteor = Meteor(synonyms=synonyms_at_hand())(texts, references)
        corpus: dict[str, Corpus] = {"BLEU-4": bleu(texts, references, lowercase=True), "METEOR": meteor}
        found = {kind: str(bootstrap_corpus(score.resampled, len(texts))) for kind, score in corpus.items()}
        rouge = Rouge(types=("rougeL",)).score(texts, references)["rougeL"]
        return {
            "scores": {**found, "ROUGE-L": str(bootstrap_interval(rouge))},
            "meteor": meteor.signature,
            "questions": len(texts),
        }


def plain_transformer(
    recipe: str, words: Path, folder: Path, *, seed: int, released_start: bool = False
) -> Path:
    """An untrained Transformer of the recipe's width, depth and spreads in `folder`, or with BART's own spreads.

    Its summaries begin with their first word, as ProphetNet's do.
    """
    shape = pretraining_run(recipe).model
    assert isinstance(shape, ProphetNetShape)
    if released_start:
        shape = replace(shape, init_std=0.02, position_std=None)
    tokenizer = without_start(load_tokenizer(words))
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=shape.hidden_size,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=shape.encoder_attention_heads,
        decoder_attention_heads=shape.decoder_attention_heads,
        encoder_ffn_dim=shape.encoder_ffn_dim,
        decoder_ffn_dim=shape.decoder_ffn_dim,
        max_position_embeddings=shape.max_position_embeddings,
        dropout=shape.dropout,
        attention_dropout=shape.attention_dropout,
        activation_dropout=shape.activation_dropout,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
        init_std=shape.init_std,
    )
    torch.manual_seed(seed)
    model = BartForConditionalGeneration(config)
    if shape.position_std is not None:
        for stack in (model.get_encoder(), model.get_decoder()):
            nn.init.normal_(stack.embed_positions.weight, std=shape.position_std)

    def write(place: Path) -> None:
        model.save_pretrained(place)
        tokenizer.save_pretrained(place)

    write_folder(folder, write)
    return folder
