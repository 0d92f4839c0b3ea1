"""Several languages (Z-Code++ 3.1, Table 6): one vocabulary and one pre-training for all, or only for English.

    text of each language, and parallel text -> a shared tokenizer -> a pack each
      -> phase 1 on all packs, small ones read more often; phase 1 on only the English packs, for the same steps
      -> each task from both and from nothing, with every seed -> the scores of its test set, in its language

A given model and one of its shape from nothing take the place of these starts. Texts and tasks without data are skipped
with a message. The study does not have a second phase: the paper names none for this model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from precis.data.mixing_shares import BySize
from precis.data.packs.packed_text import PackedText
from precis.data.packs.text_sources import read_texts, text_files
from precis.data.tasks.tasks import task
from precis.evaluation.score_report import title_of
from precis.generation.model_loader import load_model
from precis.phases.data.corpus_packing import make_pack
from precis.phases.train.pretraining import pretrain
from precis.phases.train.tokenizer_training import make_shared_tokenizer
from precis.recipes.planning import resolve_run
from precis.recipes.pretraining_runs import PreTrainRun
from precis.storage.atomic import write_file
from precis_experiments.claim_verdicts import Claim, between
from precis_experiments.corpus_scores import corpus_cells, corpus_gain, score_texts
from precis_experiments.experiment import (
    ROUGE_TYPES,
    Experiment,
    Results,
    Runner,
    Runs,
    best_metric_of,
    drop_checkpoints,
    drop_model,
    in_a_name,
    markdown,
    pretraining_of,
    runs_of,
    training_of,
    write_texts,
)
from precis_experiments.initial_model import GIVEN, NOTHING, starting_model
from precis_experiments.resumable_steps import Interrupted, Result, Step
from precis_experiments.scales import LANGUAGES_SCALES, LanguagesScale
from precis_experiments.study_plan import Reads
from precis_experiments.zcodepp_steps import held_out_span_losses
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

SCRATCH, ENGLISH, ALL = "scratch", "english", "languages"
_VALIDATIONS = 4
_DEV_SHARE = 0.02  # of the documents of a pack: novels have few
#: Table 6, ROUGE-2: PaLM 540B, mT5 XL, mT5 large, Z-Code++ large.
TABLE_6 = {
    "wikilingua_ru_en": ("18.6", "14.6", "11.2", "15.9"),
    "wikilingua_vi_en": ("19.1", "14.9", "10.9", "16.7"),
    "wikilingua_es_en": ("20.9", "17.2", "12.6", "17.7"),
    "wikilingua_tr_en": ("23.1", "18.3", "14.5", "22.9"),
    "mlsum_de": ("33.1", "36.2", "35.4", "36.8"),
    "mlsum_es": ("12.0", "13.8", "12.3", "14.8"),
}
SYSTEMS_6 = ("PaLM 540B", "mT5 XL", "mT5 large", "Z-Code++ large")
NOTE = """\
Intervals: 95%, test rows resampled, Student's t over seeds of fine-tuning (two: their range); differences are paired by
seed and test row. Each start was pre-trained once, and no interval covers that. Words are those of the summaries'
language. All runs of a task have the same steps and tokens, and the checkpoint with the lowest dev loss counts. A set
without test rows is scored on its dev rows, and training rows held out choose the checkpoint.
"""


def starts_of(scale: LanguagesScale) -> tuple[str, ...]:
    """Return the starting points of fine-tuning, each to be compared with the one before; then other models."""
    ours = (NOTHING, GIVEN) if scale.start else (SCRATCH, ENGLISH, ALL)
    return (*ours, *scale.beside)


def _steps(scale: LanguagesScale, runner: Runner) -> Iterator[Step]:
    """Yield the pack, both pre-training runs, and every task from each start; a given model needs no text."""
    runner = replace(runner, dev_as_test=True)  # some sets come without test rows
    tasks = runner.tasks(scale.tasks)
    if not tasks:
        raise UserError(f"{runner.data} lacks a folder {' or '.join(scale.tasks)}; add one of them")
    if not scale.start:
        yield Step("pack", partial(_packs, scale, runner))
        for start in (ALL, ENGLISH):
            work = partial(_pretrained, scale, runner, start)
            yield Step(start, work, drop_checkpoints, needs=("pack",), updates=scale.phase1_steps)
    needed = {SCRATCH: ("pack",), ENGLISH: (ENGLISH,), ALL: (ALL,)}
    for seed in scale.seeds:
        for name in tasks:
            for start in starts_of(scale):
                work = partial(_cell, scale, runner, start, name, seed=seed)
                needs = needed.get(start, ())
                yield Step(cell(name, start, seed), work, drop_model, needs=needs, updates=scale.steps)


def cell(name: str, start: str, seed: int) -> str:
    """Return the name of a step that trains on a task."""
    return f"{name}-{in_a_name(start)}-{seed}"


def _packs(scale: LanguagesScale, runner: Runner, place: Path) -> Result:
    """Train the shared tokenizer, and pack the text of each language with it."""
    found = dict(_sources(scale, runner, place / "texts"))
    if not found:
        raise UserError(f"{runner.data} contains no text of {', '.join(scale.files)}; add one")
    mixture, folder = BySize(temperature=scale.temperature), place / "pack" / "tokenizer"
    lengths = place / "lengths.json"
    sources = [str(source) for source in found.values()]
    if not lengths.exists():
        made = make_shared_tokenizer(
            folder, sources, mixture=mixture, vocab_size=scale.vocab_size, notify=runner.notify
        )
        by_name = {name: made.by_corpus[source] for name, source in zip(found, sources, strict=True)}
        write_file(lengths, json.dumps(by_name) + "\n")
    tokens = {
        name: make_pack(
            [source],
            place / "pack" / name,
            tokenizer=str(folder),
            dev_share=_DEV_SHARE,
            restart=True,
            notify=runner.notify,
        ).counts.tokens
        for name, source in found.items()
    }
    return {"tokens": tokens, "tokens_per_word": read_json(lengths)}


def _sources(scale: LanguagesScale, runner: Runner, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the place of the text of each language; write what is a column of pairs to a file of text."""
    for name in scale.corpora:
        if (runner.data / name).is_dir():
            yield f"en-{name}", runner.data / name
        else:
            runner.notify(f"{runner.data} lacks {name}: continuing without, as the result records")
    for language, pattern, column in scale.texts:
        files = sorted(runner.data.glob(pattern))
        if not files:
            runner.notify(f"{runner.data} lacks {pattern}: continuing without, as the result records")
            continue
        texts = read_texts(text_files(map(str, files)), column=column)
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{language}.jsonl"
        write_file(place, "".join(json.dumps({"text": text}) + "\n" for text in texts))
        yield language, place


def _run(scale: LanguagesScale) -> PreTrainRun:
    return pretraining_of(scale.recipe, scale.phase1_steps, scale.model_changes)


def _pretrained(scale: LanguagesScale, runner: Runner, start: str, place: Path) -> Result:
    """Pre-train on all packs or on the English ones, and measure the loss of held-out spans of every pack."""
    packed = runner.study.result("pack")
    assert packed is not None  # `needs` names it
    packs = {name: runner.packed / name for name in packed["tokens"]}
    read = [str(pack) for name, pack in packs.items() if start == ALL or name.startswith("en-")]
    if not read:
        raise UserError(
            f"{runner.data} contains none of the English corpora {', '.join(scale.corpora)}; add one"
        )
    run, mixture = _run(scale), BySize(temperature=scale.temperature)
    done = pretrain(run, corpora=read, mixture=mixture, out=place / "run", notify=runner.notify)
    if done.model is None:
        raise Interrupted
    losses = {
        name: round(fmean(held_out_span_losses(place / "run", pack, run)), 4)
        for name, pack in packs.items()
        if (held_out := PackedText.open(pack).dev) is not None and len(held_out.blocks(run.block_length))
    }
    return {"tokens": done.result.tokens, "span_losses": losses}


def _cell(scale: LanguagesScale, runner: Runner, start: str, name: str, place: Path, *, seed: int) -> Result:
    """Train on a task from a start, and score the texts for its test documents."""
    begin = _begin(scale, runner, start, place, seed=seed)
    is_ours, known = start not in scale.beside, task(name)
    loop = training_of(steps=scale.steps, rate=scale.learning_rate, tokens=scale.batch_tokens, seed=seed)
    if not is_ours:
        loop.pop("train.learning_rate")  # the rate for pre-trained models
    source = min(known.max_source, scale.max_source)
    target = min(known.generation.max_tokens, scale.max_target)
    changes = {
        **loop,
        **(scale.model_changes if begin is None else {}),
        "train.validate_every": max(1, scale.steps // _VALIDATIONS),
        "train.patience": None,
        "generated_rows": 0,
        "max_source": source,
        "max_target": target,
    }
    recipe = scale.recipe if is_ours else None
    run = resolve_run(recipe, pretrained=begin is not None, task_name=name, changes=changes, select="loss")
    result = runner.train(
        run,
        name,
        place,
        dev_rows=scale.dev_rows,
        start=begin,
        tokenizer=str(runner.tokenizer) if begin is None else None,
    )
    loss = best_metric_of(result, place)
    pairs = runner.spaced_test_pairs(name, scale.test_rows)
    settings = replace(known.generation, beams=scale.beams, max_tokens=target)
    loaded, keep = load_model(place / "run"), place / "texts.jsonl"
    texts = write_texts(loaded, name, pairs, settings=settings, keep=keep, max_source=source, batch_size=32)
    references = [pair.all_references for pair in pairs]
    scores = score_texts(measures(name), texts, references, language=known.language)
    return {"loss": loss, "rows": len(pairs), **scores}


def _begin(scale: LanguagesScale, runner: Runner, start: str, place: Path, *, seed: int) -> Path | str | None:
    """Return the model that a training starts from; None for a new one with the shared tokenizer."""
    if start in (GIVEN, NOTHING):
        return starting_model(scale, start, place / "start", seed=seed)
    if start in scale.beside:
        return start
    return None if start == SCRATCH else runner.model_of(start)


def measures(name: str) -> tuple[str, ...]:
    """Return the measures of a task: its own, or ROUGE."""
    return task(name).metrics or ROUGE_TYPES


def decisive(name: str) -> str:
    """Return the measure of a task's claims: ROUGE-2 as in Table 6, or BLEU."""
    return measures(name)[0] if task(name).metrics else "rouge2"


def _runs(scale: LanguagesScale, results: Results, name: str, start: str) -> Runs[int]:
    return runs_of(results, {seed: cell(name, start, seed) for seed in scale.seeds})


def _table(scale: LanguagesScale, results: Results) -> str:
    """Return what was pre-trained, and a table for each task: every start, then the paper's systems."""
    lines = [
        f"Scale {scale.name}: {scale.steps:,} steps of {scale.batch_tokens:,} tokens on each task, documents up to "
        f"{scale.max_source:,} tokens, summaries up to {scale.max_target:,}, at most {scale.test_rows:,} test rows, "
        f"{'greedy' if scale.beams == 1 else f'beam {scale.beams}'}{scale.told_start}.",
        "",
        *_texts_table(scale, results),
    ]
    for name in scale.tasks:
        lines += _task_table(scale, results, name)
    return "\n".join([*lines, NOTE])


def _texts_table(scale: LanguagesScale, results: Results) -> list[str]:
    """Return a row for each text: its tokens, and the loss of its held-out spans after each pre-training."""
    if "pack" not in results:
        return []
    packed = results["pack"]
    losses = {start: results.get(start, {}).get("span_losses", {}) for start in (ENGLISH, ALL)}
    rows = [
        [
            name,
            f"{tokens:,}",
            f"{packed['tokens_per_word'][name]:.2f}",
            *(f"{found[name]:.3f}" if name in found else "-" for found in losses.values()),
        ]
        for name, tokens in packed["tokens"].items()
    ]
    header = "text | tokens | tokens per word | span loss after only English | after all languages"
    first = f"Phase 1 has {scale.phase1_steps:,} steps; shares of the texts have the temperature {scale.temperature:g}."
    return [first, "", *markdown(header, rows)]


def _task_table(scale: LanguagesScale, results: Results, name: str) -> list[str]:
    rows: list[list[str]] = []
    above: Runs[int] = {}
    for start in starts_of(scale):
        runs = _runs(scale, results, name, start)
        if not runs:
            continue
        gain, _ = corpus_gain(runs, above, decisive(name))
        losses = ", ".join(f"{run['loss']:.3f}" for run in runs.values())
        rows.append([start, *corpus_cells(runs, measures(name)), "" if gain is None else str(gain), losses])
        above = runs
    if not rows:
        return []
    printed = zip(SYSTEMS_6, TABLE_6.get(name, ()), strict=False)
    cells = dict.fromkeys(measures(name), "")
    rows += [
        [f"{system}, the paper", *{**cells, "rouge2": score}.values(), "", ""] for system, score in printed
    ]
    titles = " | ".join(map(title_of, measures(name)))
    return markdown(f"{name} | {titles} | against the row above: {title_of(decisive(name))} | dev loss", rows)


def _claims(scale: LanguagesScale, results: Results) -> list[Claim]:
    """Return the claims: pre-training helps, in all languages more than in English; Z-Code++ beats mT5 (Table 6)."""
    best = GIVEN if scale.start else ALL
    mt5 = next((each for each in scale.beside if "mt5" in each.lower()), "mt5")
    compared = [(SCRATCH, "phase 1 in several languages helps"), (ENGLISH, "several languages beat English")]
    claims = []
    for name in scale.tasks:
        rows = [
            (below, words, "Z-Code++ 3.1", "")
            for below, words in ([(NOTHING, "pre-training helps")] if scale.start else compared)
        ]
        if name in TABLE_6:
            *_, theirs, ours = TABLE_6[name]
            rows.append((mt5, "Z-Code++ beats mT5 of its size", "Z-Code++ Table 6", between(ours, theirs)))
        for below, words, source, printed in rows:
            above, others = (_runs(scale, results, name, start) for start in (best, below))
            gain, runs = corpus_gain(above, others, decisive(name))
            words = f"{words} on {name}, {title_of(decisive(name))}"
            claims.append(Claim(words=words, source=source, theirs=printed, ours=gain, runs=runs))
    return claims


def _reads(scale: LanguagesScale) -> Reads:
    folders = dict.fromkeys(file.partition("/")[0] for file in scale.files)
    return Reads(texts=() if scale.start else tuple(folders), tasks=scale.tasks)


multilingual = Experiment(
    name="multilingual", scales=LANGUAGES_SCALES, steps=_steps, reads=_reads, table=_table, claims=_claims
)
