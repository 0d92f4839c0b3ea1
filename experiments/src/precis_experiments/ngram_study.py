"""ProphetNet's comparisons at a small scale: n-grams (Table 7), no pre-training (Table 6), questions (Table 3), and
scores along pre-training (Figure 4).

    text -> packed -> pre-trained with n = 1, 2, 3 -> pairs of one task, three seeds each   (Table 7)
                      with n = 2 for a part of the steps -> the same pairs and seeds        (Figure 4)
                      nothing, and a plain Transformer -> the same pairs, three seeds each  (Table 6)
                      pre-trained with n = 2 -> questions on both splits of SQuAD, once     (Table 3)

The plain Transformer is transformers' BART of the same width and depth with new weights: post-norm, absolute
positions, GELU, teacher forcing. It lacks the streams and the relative scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration

from precis.data.tasks.tasks import task
from precis.data.text.unigram_tokenizer import load_tokenizer, without_start
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.probe_plots import Measured, ScoreInterval, curves, draw_curves
from precis.evaluation.rouge import Rouge
from precis.evaluation.sacrebleu_scores import bleu
from precis.evaluation.score_report import Corpus
from precis.evaluation.significance import Bootstrap
from precis.generation.model_loader import load_model
from precis.phases.run_folder import export_folder, save_model
from precis.recipes.planning import resolve_run
from precis.recipes.pretraining_runs import pretraining_run
from precis.recipes.prophetnet_recipes import PROPHETNET_TASKS
from precis.recipes.run_plan import ProphetNetShape
from precis_experiments.claim_verdicts import Claim, between
from precis_experiments.experiment import (
    ROUGE_TYPES,
    Experiment,
    Results,
    Runner,
    drop_model,
    each_run,
    gain,
    gain_interval,
    markdown,
    pretraining_of,
    rouge_cells,
    rounded,
    runs_of,
    training_of,
    write_texts,
)
from precis_experiments.resumable_steps import Result, Step
from precis_experiments.scales import PROPHET_SCALES, ProphetScale
from precis_experiments.study_plan import Reads

QUESTIONS = ("squad-qg", "squad-qg-zhao")
#: gamma of each n (section 3.6): 1.0 for 2 streams and 0.5 for 3.
GAMMAS = {1: 1.0, 2: 1.0, 3: 0.5}
#: Systems without pre-training, each compared with the row above it.
PLAIN = ("Transformer-released-start", "Transformer", "ProphetNet-2gram")
_NOT_OF_BART = ("vocab_size", "hidden_size", "ngram", "attenuation", "position_std")
PAPER = """The paper, CNN/DailyMail, ROUGE-1/2/L: Table 7 (base, pre-trained) MASS 42.12/19.50/39.01, 1-gram
42.21/19.54/39.06, 2-gram 42.52/19.78/39.59, 3-gram 42.61/19.83/39.67; Table 6 (no pre-training, dev) Transformer
39.19/17.60/36.69, ProphetNet 40.66/18.05/37.79. Table 3 (SQuAD, BLEU-4/METEOR/ROUGE-L): 23.91/26.60/52.26, and on Zhao
et al.'s split 25.80/27.54/53.65. Figure 4 has curves without numbers that rise with pre-training.
"""
NOTE = """BLEU-4, METEOR and ROUGE-L are not computed with the paper's scripts. nltk's METEOR in particular is far
higher than the paper's METEOR 1.5 (docs/guide/questions.md), so compare only systems scored in the same way.

Intervals: 95%, test documents resampled, Student's t over seeds (two: their range); differences are of ROUGE-L, paired
by seed and document. Every seed has a pre-training of its own for each n; questions use that of the first seed. The
checkpoint for questions is chosen on dev rows of Du et al.'s split, which are test rows of Zhao et al.'s. Larger test
sets are evenly sampled; intervals of questions treat them as independent, though many share a passage. The initial
spreads of ProphetNet and "Transformer" were chosen for ProphetNet, on E2E (docs/adr/0007);
"Transformer-released-start" starts with BART's N(0, 0.02). Every share of the pre-training is a run of its own, with a
schedule of its own, where the paper takes checkpoints of one run. The 1-gram model is trained as MASS is.
"""


def _steps(scale: ProphetScale, runner: Runner) -> Iterator[Step]:
    """Yield the steps: each seed's pre-training and fine-tuning, the systems without pre-training, and questions."""
    yield runner.pack(scale.corpora, scale.vocab_size)
    wholes = [(f"{ngram}gram", ngram, 1.0) for ngram in GAMMAS]
    parts = [(f"2gram-{share:g}", 2, share) for share in scale.along]
    for seed in scale.seeds:
        for name, ngram, share in (*wholes, *parts):
            origin = f"pretrained-{name}-{seed}"
            changes = {"model.ngram": ngram, "model.attenuation": GAMMAS[ngram], "train.seed": seed}
            steps = max(1, round(share * scale.pretraining_steps))
            yield runner.pretraining(origin, pretraining_of(scale.recipe, steps, changes))
            tune = partial(_tuned, scale, runner, seed=seed, start=runner.model_of(origin))
            cell = f"tuned-{name}-{seed}"
            yield Step(cell, tune, drop_model, needs=(origin,), updates=scale.task_steps)
    for seed in scale.seeds:
        for system in PLAIN:
            plain = partial(_plain, scale, runner, system, seed=seed)
            cell = f"plain-{system}-{seed}"
            yield Step(cell, plain, drop_model, needs=("pack",), updates=scale.task_steps)
    ask, needs = partial(_questions, scale, runner), (_of_questions(scale),)
    yield Step("questions", ask, drop_model, needs=needs, updates=scale.question_steps)


def _reads(scale: ProphetScale) -> Reads:
    tasks = (scale.task, *QUESTIONS)
    return Reads(texts=scale.corpora, tasks=tasks, needed=tasks)


def _of_questions(scale: ProphetScale) -> str:
    """Return the name of the pre-training that questions start from."""
    return f"pretrained-2gram-{scale.seeds[0]}"


def _plain(scale: ProphetScale, runner: Runner, system: str, place: Path, *, seed: int) -> Result:
    """Train a system without pre-training."""
    if not system.startswith("Transformer"):
        return _tuned(scale, runner, place, seed=seed, tokenizer=str(runner.tokenizer))
    released = system == "Transformer-released-start"
    start = plain_transformer(
        scale.recipe, runner.tokenizer, place / "start", seed=seed, released_start=released
    )
    return _tuned(scale, runner, place, seed=seed, start=start)


def _tuned(
    scale: ProphetScale,
    runner: Runner,
    place: Path,
    *,
    seed: int,
    start: Path | None = None,
    tokenizer: str | None = None,
) -> Result:
    """Train on the task's pairs, from a model or a tokenizer, and score the test texts."""
    changes = training_of(
        steps=scale.task_steps, rate=scale.learning_rate, tokens=scale.task_tokens, seed=seed
    )
    _train(scale, runner, scale.task, place, changes, start=start, tokenizer=tokenizer)
    texts, references = _write(scale, runner, place, scale.task)
    return {"examples": rounded(Rouge(types=ROUGE_TYPES).score(texts, references))}


def _questions(scale: ProphetScale, runner: Runner, place: Path) -> Result:
    """Train on questions once, and score both splits."""
    changes = training_of(
        steps=scale.question_steps, rate=scale.learning_rate, tokens=scale.question_tokens, seed=0
    )
    _train(scale, runner, QUESTIONS[0], place, changes, start=runner.model_of(_of_questions(scale)))
    return {name: _score_questions(*_write(scale, runner, place, name)) for name in QUESTIONS}


def _train(
    scale: ProphetScale,
    runner: Runner,
    name: str,
    place: Path,
    changes: Mapping[str, Any],
    *,
    start: Path | None,
    tokenizer: str | None = None,
) -> None:
    run = resolve_run(scale.recipe, task_name=name, changes={**changes, "generated_rows": scale.dev_rows})
    runner.train(run, name, place, dev_rows=scale.dev_rows, start=start, tokenizer=tokenizer)


def _write(
    scale: ProphetScale, runner: Runner, place: Path, name: str
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return texts for the test documents, decoded as in the paper if it has the task, and their references."""
    pairs = runner.spaced_test_pairs(name, scale.test_rows)
    settings = PROPHETNET_TASKS[name].decoding if name in PROPHETNET_TASKS else task(name).generation
    texts = write_texts(
        load_model(place / "run"), name, pairs, settings=settings, keep=place / f"texts-{name}.jsonl"
    )
    return texts, [tuple(pair.all_references) for pair in pairs]


def _score_questions(texts: list[str], references: list[tuple[str, ...]]) -> Result:
    meteor = Meteor(synonyms=synonyms_at_hand())(texts, references)
    corpus: dict[str, Corpus] = {"BLEU-4": bleu(texts, references, lowercase=True), "METEOR": meteor}
    found = {
        kind: str(Bootstrap().corpus_interval(score.resampled, len(texts))) for kind, score in corpus.items()
    }
    rouge = Rouge(types=("rougeL",)).score(texts, references)["rougeL"]
    return {
        "scores": {**found, "ROUGE-L": str(Bootstrap().interval(rouge))},
        "meteor": meteor.signature,
        "questions": len(texts),
    }


def plain_transformer(
    recipe: str, words: Path, folder: Path, *, seed: int, released_start: bool = False
) -> Path:
    """Write an untrained Transformer of the recipe's width, depth and spreads, or with BART's spreads, to `folder`.

    Its summaries start with their first word, like ProphetNet's.
    """
    shape = pretraining_run(recipe).model
    assert isinstance(shape, ProphetNetShape)
    if released_start:
        shape = replace(shape, init_std=0.02, position_std=None)
    tokenizer = without_start(load_tokenizer(words))
    own = {name: value for name, value in shape.to_dict().items() if name not in _NOT_OF_BART}
    config = BartConfig(
        **own,
        vocab_size=len(tokenizer),
        d_model=shape.hidden_size,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(seed)
    model = BartForConditionalGeneration(config)
    if shape.position_std is not None:
        for stack in (model.get_encoder(), model.get_decoder()):
            nn.init.normal_(stack.embed_positions.weight, std=shape.position_std)

    export_folder(folder, lambda place: save_model(model, tokenizer, place))
    return folder


def _table(scale: ProphetScale, results: Results) -> str:
    """Return three tables of the available results, followed by the paper's figures."""
    pretrained = results.get(_of_questions(scale))
    read = f", {pretrained['tokens']:,} tokens read in each pre-training" if pretrained else ""
    lines = [f"Task {scale.task}, {scale.test_rows:,} test documents at most, scale {scale.name}{read}.", ""]
    by_ngram = {f"pre-trained, {n}-gram": f"tuned-{n}gram" for n in GAMMAS}
    by_system = {f"no pre-training, {name}": f"plain-{name}" for name in PLAIN}
    for stems in (by_ngram, by_system):
        rows, above = [], dict[int, Result]()
        for name, stem in stems.items():
            runs = runs_of(results, {seed: f"{stem}-{seed}" for seed in scale.seeds})
            if runs:
                rows.append([name, *rouge_cells(runs), each_run(runs), gain(runs, above)])
                above = runs
        header = "system | ROUGE-1 | ROUGE-2 | ROUGE-L | of each seed | against the row above"
        lines += markdown(header, rows)
    rows = [
        [f"{share:.0%}", *rouge_cells(runs), each_run(runs)] for share, runs in _along(scale, results).items()
    ]
    if rows:
        header = "2-gram, share of the pre-training | ROUGE-1 | ROUGE-2 | ROUGE-L | of each seed"
        lines += markdown(header, rows)
    found = results.get("questions")
    if found is not None:
        rows = [
            [name, *found[name]["scores"].values(), f"{found[name]['questions']:,}"] for name in QUESTIONS
        ]
        lines += markdown("questions | BLEU-4 | METEOR | ROUGE-L | test questions", rows)
        lines += [f"METEOR: {found[QUESTIONS[0]]['meteor']}", ""]
    return "\n".join([*lines, NOTE, PAPER])


def _along(scale: ProphetScale, results: Results) -> dict[float, dict[int, Result]]:
    """Return the available runs of the 2-gram model by the share of its pre-training; 0 is without any."""
    stems = {0.0: "plain-ProphetNet-2gram", **{share: f"tuned-2gram-{share:g}" for share in scale.along}}
    found = {
        share: runs_of(results, {seed: f"{stem}-{seed}" for seed in scale.seeds})
        for share, stem in {**stems, 1.0: "tuned-2gram"}.items()
    }
    return {share: runs for share, runs in found.items() if runs}


def _draw(scale: ProphetScale, results: Results, folder: Path) -> None:
    """Draw ROUGE over the share of the pre-training, as in the paper's Figure 4; nothing before the first point."""
    measured = [
        Measured(
            line="2-gram",
            x=100 * share,
            task=scale.task,
            metrics={name: ScoreInterval(float(np.mean(run["examples"][name]))) for name in ROUGE_TYPES},
        )
        for share, runs in _along(scale, results).items()
        for run in runs.values()
    ]
    if measured:
        lines = [curves(measured, name) for name in ROUGE_TYPES]
        draw_curves(lines, folder / "along.png", xlabel="% of the pre-training", logarithmic=False)


#: Better step, worse step, words, table, the paper's ROUGE-L of both on CNN/DailyMail.
CLAIMS = (
    ("tuned-3gram", "tuned-2gram", "3 streams beat 2", "Table 7", "39.67", "39.59"),
    ("tuned-2gram", "tuned-1gram", "2 streams beat 1", "Table 7", "39.59", "39.06"),
    ("tuned-2gram", "plain-ProphetNet-2gram", "pre-training helps", "section 3", "", ""),
    (
        "plain-ProphetNet-2gram",
        "plain-Transformer",
        "ProphetNet beats a Transformer",
        "Table 6",
        "37.79",
        "36.69",
    ),
)


def _claims(scale: ProphetScale, results: Results) -> list[Claim]:
    """Return the claims of Tables 6 and 7, and that pre-training helps."""
    claims = []
    for better, worse, words, table, *printed in CLAIMS:
        above, below = (
            runs_of(results, {seed: f"{stem}-{seed}" for seed in scale.seeds}) for stem in (better, worse)
        )
        ours, runs = gain_interval(above, below)
        claims.append(
            Claim(
                words=f"{words}, {scale.task}, ROUGE-L",
                source=f"ProphetNet {table}",
                theirs=between(*printed) if all(printed) else "",
                ours=ours,
                runs=runs,
            )
        )
    return claims


prophetnet = Experiment(
    name="prophetnet",
    scales=PROPHET_SCALES,
    steps=_steps,
    reads=_reads,
    update_seconds=0.5,
    table=_table,
    claims=_claims,
    draw=_draw,
)
