"""The model in the box before its trees: from a pre-trained model and openly licensed pairs to a folder to release.

    data sets with a suitable licence -> pairs, each with its source and licence
    -> if the model also writes: grounded on them, on principal sentences of open text and on the synthetic corpus
    -> an extractor on the model's encoder -> the released folder

It reads no rows under a licence that forbids commercial use or changes, and no press text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from precis.data.synthetic.corpus import make_pairs
from precis.generation.compressed_weights import COMPACT, SCALE
from precis.generation.model_loader import load_model
from precis.messages import Notify, silent
from precis.models.unit_scorer import load_scorer, save_scorer
from precis.phases.data.corpus_packing import make_pack
from precis.phases.output_folders import writing_to
from precis.phases.train.extractor_training import train_extractor
from precis.phases.train.grounding import ground
from precis.phases.train.pretraining import pretrain
from precis.recipes.catalogue import recipe
from precis.recipes.overrides import with_changes
from precis.recipes.planning import grounding
from precis.recipes.pretraining_runs import PreTrainRun
from precis.recipes.run_plan import ExtractPlan, RunPlan
from precis.storage.seal import write_folder
from precis.training import Trained
from precis.training.schedule import StableThenDecay
from precis_experiments.experiment import pretraining_of
from precis_experiments.gap_sentence_pairs import gap_sentence_pairs
from precis_experiments.open_sets import SETS, TEXTS, OpenSet, Row, check_rows, pairs_of, texts_of
from precis_experiments.resumable_steps import Step
from precis_experiments.study_plan import Reads, StudyPlan
from precis_text.errors import UserError

_LARGEST = 127  # of an 8-bit weight

RELEASE = ExtractPlan(max_source=1536, train=replace(ExtractPlan().train, epochs=14, patience=5))
"""The training settings of the former model in the box."""
RELEASE_FOLDER = "release"


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The training that teaches the model to write.

    Attributes:
        pretrain: more training of the first phase, on all open text; if None, none.
        ground: the second phase. It may end at any step: set its steps to that step plus `decay_steps`.
    """

    pretrain: PreTrainRun | None = None
    ground: RunPlan


def _grounding(*, steps: int, rate: float, tokens: int, validate_every: int) -> RunPlan:
    decay = max(1, min(200, steps // 5))
    changes = {
        "name": "default-model",
        "max_source": 768,
        "max_target": 160,
        "batch_tokens": tokens,
        "generation.beams": 4,
        "generation.no_repeat_ngram": 3,
        "generation.max_tokens": 160,
        "train.steps": steps,
        "train.learning_rate": rate,
        "train.warmup_steps": max(1, min(200, steps // 10)),
        "train.schedule": StableThenDecay(decay_steps=decay),
        "train.validate_every": validate_every,
        "train.save_every": 100,
    }
    return with_changes(replace(grounding(recipe("zcodepp-mini")), model=None), changes)


def _pretraining(*, steps: int, rows: int) -> PreTrainRun:
    decay = max(1, min(300, steps // 5))
    changes = {
        "batch_size": rows,
        "train.learning_rate": 7e-4,
        "train.schedule": StableThenDecay(decay_steps=decay),
        "train.save_every": 250,
    }
    return pretraining_of("zcodepp-mini", steps, changes)


WRITING = {
    "smoke": Writing(
        pretrain=_pretraining(steps=2, rows=2),
        ground=_grounding(steps=2, rate=3e-4, tokens=1024, validate_every=2),
    ),
    "micro": Writing(ground=_grounding(steps=20_000, rate=3e-4, tokens=4096, validate_every=2000)),
    "mini": Writing(
        pretrain=_pretraining(steps=3000, rows=128),
        ground=_grounding(steps=2000, rate=9e-4, tokens=32_768, validate_every=250),
    ),
}
"""By scale: smoke checks that everything runs, micro takes hours on a CPU, mini half an hour on a GPU."""
OURS = {"source": "synthetic", "licence": "Apache-2.0"}
MADE_PAIRS = 2000
"""Pairs of the synthetic corpus, and of principal sentences of each text, in the mixture."""


def default_model(
    run: ExtractPlan,
    *,
    data: str | Path,
    start: str,
    out: str | Path,
    cap: int = 500,
    writing: Writing | None = None,
    notify: Notify = silent,
) -> Trained:
    """Make the pairs in `out/pairs`, train an extractor for `start` in `out/extract`, and write `out/release`.

    With `writing`, first train `start` further in `out/pretrain` and `out/write`; the extractor is for that model.

    Finished work is kept, so the same call resumes after an interruption.

    Args:
        run: settings of the extractor.
        data: the folder with the data sets; missing sets are skipped with a message.
        start: a pre-trained encoder-decoder.
        cap: maximum number of pairs drawn from each set for the extractor.
        writing: the training that teaches the model to write; if None, there is none.

    Raises:
        UserError: all sets are missing, a row's licence is not open, or `out` contains something else.
    """
    with writing_to(out, doing="making a model in") as folder:
        places = _write_all(folder / "pairs", Path(data), notify)
        _check(places, notify)
        if writing is not None:
            taught = _taught(writing, folder, Path(data), places, start=start, notify=notify)
            if taught.model is None:
                return taught
            start = str(taught.model)
        can_write = writing is not None
        done = train_extractor(
            run,
            tasks=places,
            start=start,
            cap=cap,
            can_write=can_write,
            out=folder / "extract",
            notify=notify,
        )
        if done.model is not None:
            release(done.model, folder / RELEASE_FOLDER)
    return done


def default_model_plan(scale: str, *, data: Path, out: Path, writing: Writing | None) -> StudyPlan:
    """Return what `default_model` would do; it writes nothing."""
    sets = [each for each in SETS if (data / each.place).is_dir()]
    done = {
        "pairs": bool(sets) and all((out / "pairs" / each.name).is_dir() for each in sets),
        RELEASE_FOLDER: (out / RELEASE_FOLDER).is_dir(),
        **{name: (out / name / "model").is_dir() for name in ("pretrain", "write", "extract")},
    }
    updates = {"pairs": 0, "extract": 0, RELEASE_FOLDER: 0}
    if writing is not None:
        first = {} if writing.pretrain is None else {"pretrain": writing.pretrain.train.steps or 0}
        updates = {"pairs": 0, **first, "write": writing.ground.train.steps or 0, **updates}
    return StudyPlan(
        name="default-model",
        scale=scale,
        out=out,
        steps=[Step(name, lambda _: {}, updates=count) for name, count in updates.items()],
        results={name: {} for name in updates if done[name]},
        reads=Reads(
            pairs=[each.place for each in SETS],
            texts=[each.place for each in TEXTS] if writing is not None else (),
        ),
    )


def _write_all(folder: Path, data: Path, notify: Notify) -> list[str]:
    """Write the pairs of all available sets, and return their folders."""
    places = []
    for each in SETS:
        source, made = data / each.place, folder / each.name
        if not source.is_dir():
            notify(f"{each.name}: {source} is missing, skipped")
            continue
        if not made.is_dir():
            write_folder(made, partial(write_pairs, each, source))
        places.append(str(made))
    if not places:
        raise UserError(
            f"{data} contains none of {', '.join(each.place for each in SETS)}; name the data folder"
        )
    return places


def _check(folders: Sequence[str | Path], notify: Notify) -> None:
    """Refuse rows that a released model may not be trained on, whatever their origin."""
    count = check_rows(map(Path, folders))
    notify(f"checked the licences of {count:,} rows: all are open")


def _taught(
    writing: Writing, folder: Path, data: Path, places: list[str], *, start: str, notify: Notify
) -> Trained:
    """Teach `start` to write; an interrupted result does not have a model."""
    if writing.pretrain is not None:
        if not (folder / "texts").is_dir():
            write_folder(folder / "texts", partial(_write_texts, data))
        _check([folder / "texts"], notify)
        make_pack([folder / "texts"], folder / "pack", tokenizer=start, workers=None, notify=notify)
        corpora = {str(folder / "pack"): 1.0}
        done = pretrain(
            writing.pretrain, corpora=corpora, start=start, out=folder / "pretrain", notify=notify
        )
        if done.model is None:
            return done
        start = str(done.model)
    made = _write_made(folder / "pairs", data)
    _check(made, notify)
    return ground(writing.ground, tasks=[*places, *made], start=start, out=folder / "write", notify=notify)


def _write_texts(data: Path, place: Path) -> None:
    """Write all open text, including the documents of the sets."""
    for each in (*SETS, *TEXTS):
        if (data / each.place).is_dir():
            texts = texts_of(each, data / each.place, "train")
            rows = ({"text": text, "source": each.name, "licence": each.licence} for text in texts)
            _write_lines(place / f"{each.name}.jsonl", rows)


def _write_made(folder: Path, data: Path) -> list[str]:
    """Write pairs of principal sentences and of the synthetic corpus, and return their folders."""

    def principal(place: Path) -> None:
        sources = [each for each in (*SETS, *TEXTS) if (data / each.place).is_dir()]
        for split, count in (("train", MADE_PAIRS), ("dev", MADE_PAIRS // 100)):
            made = (
                {**pair, "source": each.name, "licence": each.licence}
                for each in sources
                for pair in islice(gap_sentence_pairs(texts_of(each, data / each.place, split)), count)
            )
            _write_lines(place / f"{split}.jsonl", made)

    def synthetic(place: Path) -> None:
        for split, seed, count in (("train", 1, MADE_PAIRS), ("dev", 2, MADE_PAIRS // 100)):
            pairs = make_pairs(count, seed=seed)
            rows = ({"document": p.document, "summaries": [p.summary], **OURS} for p in pairs)
            _write_lines(place / f"{split}.jsonl", rows)

    made = []
    for name, write in (("principal", principal), ("synthetic", synthetic)):
        if not (folder / name).is_dir():
            write_folder(folder / name, write)
        made.append(str(folder / name))
    return made


def _write_lines(path: Path, rows: Iterable[Row]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def release(source: Path, out: Path) -> None:
    """Write a model's release folder: weights in eight bits, tokenizer, scorer, settings for its use.

    Raises:
        UserError: the model cannot choose sentences, or `out` contains files that precis did not write.
    """
    loaded = load_model(source, device="cpu")
    scorer = load_scorer(source, states=loaded.model.config.hidden_size)

    def write(place: Path) -> None:
        write_compact(loaded.model, place)
        loaded.tokenizer.save_pretrained(place)
        loaded.use.save(place)
        save_scorer(scorer, place)

    write_folder(out, write)


def write_pairs(chosen: OpenSet, source: Path, place: Path) -> None:
    """Write the pairs of a set in a fixed random order, each with its source and licence.

    Raises:
        UserError: a file cannot be read.
    """
    for split in ("train", "dev"):
        rows = [*pairs_of(chosen, source, split)]
        random.Random(0).shuffle(rows)
        named = {"source": chosen.name, "licence": chosen.licence}
        _write_lines(place / f"{split}.jsonl", ({**pair, **named} for pair in rows))


def write_compact(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's configuration and 8-bit weights; tied weights once, like transformers."""
    with TemporaryDirectory() as place:
        model.save_pretrained(place, max_shard_size="1TB")
        weights = load_file(Path(place) / "model.safetensors")
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and len(weight) > 1:
            scale = weight.float().abs().amax(1).clamp(min=torch.finfo(torch.float16).tiny) / _LARGEST
            packed[name] = (weight.float() / scale[:, None]).round().to(torch.int8)
            packed[name + SCALE] = scale
        else:
            packed[name] = weight.half()
    save_file(packed, folder / COMPACT, metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
