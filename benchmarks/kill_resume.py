"""Kill trainings with SIGKILL, damage checkpoints, and see whether the runs still end with the same bits.

    python benchmarks/kill_resume.py [--phase finetune|ground|pretrain] [--runs 20] [--kills 2] [--damaged 50]
    [--seed 0] [--threads 1] [--folder DIR]

A small Z-Code++ (dropout, fusion-in-encoder) is fine-tuned on synthetic pairs, grounded on two sets of them as `precis
ground` does it, or pre-trained on packed synthetic text as `precis pretrain` does it (generator with mask decoder,
discriminator and decoder, in turn), and saved after every step. Each run is killed `--kills` times, in turn at a random
time and just before a random disk operation of a save, and started again with the same call each time; weights,
optimizer state, bookkeeping and metrics are then compared byte for byte with those of a run left alone. Afterwards the
newest checkpoint of a finished run is damaged in `--damaged` random ways (a file deleted, shortened, or one bit of it
flipped), each of which must be noticed. Exit code 1 unless all is well.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import torch
from training.kills import Harness, Kill

from precis.cli.quiet import quieten_transformers
from precis.data.batches.bucketed import BucketedBatches, in_order
from precis.data.batches.tokenized import Ragged, TokenizedPairs
from precis.data.packs.packing import pack
from precis.data.synthetic.corpus import make_pairs
from precis.data.text.tokenizer import train_tokenizer
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration
from precis.objectives import SequenceToSequence
from precis.objectives.replaced_tokens import ReplacedTokens
from precis.phases.check_data import write_synthetic
from precis.phases.ground import ground
from precis.phases.pretrain import pretrain, resolve_pretraining
from precis.phases.trainable import new_config
from precis.recipes.catalogue import model_of, recipe
from precis.recipes.plans import resolve_grounding
from precis.training import JsonLines, TrainSettings, mean_loss
from precis.training.checkpoint import Checkpoints

VOCABULARY = 500
Work = Callable[[Path], object]
_SETS = ("one", "two")
_SHAPE = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "chunk_length": 32,
}
_BRIEF = {
    "train.steps": 16,
    "train.epochs": None,
    "train.learning_rate": 2e-3,
    "train.warmup_steps": 4,
    "train.save_every": 1,
    "train.validate_every": 5,
    "train.log_every": 3,
    "train.precision": "fp32",
}


def small_zcodepp() -> Mapping[str, Any]:
    """What every run trains: 2+2 layers of 32 on 96 synthetic pairs, 16 steps, a validation every 5."""
    torch.manual_seed(0)
    config = ZCodePPConfig(vocab_size=VOCABULARY, dropout=0.1, attention_dropout=0.1, **_SHAPE)
    objective = SequenceToSequence(label_smoothing=0.1)
    training, held_out = _pairs(96, seed=0), _pairs(16, seed=1)

    def validate(model: Any) -> dict[str, float]:
        return mean_loss(model, in_order(held_out, batch_size=16, pad_token_id=0), objective)

    return {
        "model": ZCodePPForConditionalGeneration(config),
        "batches": BucketedBatches(training, batch_size=8, seed=0, pad_token_id=0),
        "objective": objective,
        "validate": validate,
        "settings": TrainSettings(
            steps=16, learning_rate=2e-3, warmup_steps=4, save_every=1, validate_every=5, log_every=3
        ),
    }


def grounding(shelf: Path) -> Work:
    """The second pre-training phase: two sets of pairs with instructions, each measured, 16 steps."""
    quieten_transformers()
    run = resolve_grounding(
        "zcodepp-micro",
        start=str(shelf / "start"),
        changes={**_BRIEF, "batch_size": 8, "batch_tokens": None, "max_source": 96, "generated_rows": 2},
    )
    sets = [str(shelf / name) for name in _SETS]
    return lambda folder: ground(
        run, tasks=sets, start=str(shelf / "start"), out=folder, callbacks=[JsonLines()]
    )


def pretraining(shelf: Path) -> Work:
    """The first pre-training phase: 2+2+2 layers of 32 on packed blocks of 64 tokens, 16 steps."""
    quieten_transformers()
    shape = {f"model.{name}": value for name, value in _SHAPE.items()}
    objective = ReplacedTokens(generator_layers=2, mask_decoder=True)
    changes = {**_BRIEF, **shape, "batch_size": 4, "block_length": 64, "validation_blocks": 8}
    run = resolve_pretraining("zcodepp-micro", changes={**changes, "objective": objective})
    return lambda folder: pretrain(
        run, corpora={str(shelf / "pack"): 1.0}, out=folder, callbacks=[JsonLines()]
    )


PHASES: dict[str, Callable[[Path], Any]] = {
    "finetune": lambda _: small_zcodepp,
    "ground": lambda shelf: partial(grounding, shelf),
    "pretrain": lambda shelf: partial(pretraining, shelf),
}


def build_shelf(folder: Path) -> None:
    """Two sets of pairs, a pack, and a model to begin grounding with."""
    quieten_transformers()
    texts = [pair.document for pair in make_pairs(120, seed=5)]
    words = train_tokenizer(texts, vocab_size=VOCABULARY)
    words.save_pretrained(folder / "words")
    pack(texts, folder / "words", folder / "pack", dev_share=0.1)
    for number, name in enumerate(_SETS):
        write_synthetic(folder / name, {"train": 48, "dev": 8}, seed=number)
    torch.manual_seed(0)
    shape = replace(recipe("zcodepp-micro").model, **_SHAPE)
    model_of(new_config(shape, words)).save_pretrained(folder / "start")
    words.save_pretrained(folder / "start")


def _pairs(count: int, *, seed: int) -> TokenizedPairs:
    """Synthetic pairs with one id per word: no tokenizer is needed to watch bits."""
    pairs = list(make_pairs(count, seed=seed))
    words = sorted({word for pair in pairs for word in f"{pair.document} {pair.summary}".split()})
    ids = {word: 5 + number % (VOCABULARY - 5) for number, word in enumerate(words)}
    return TokenizedPairs(
        sources=Ragged.of([[ids[word] for word in pair.document.split()][:96] for pair in pairs]),
        targets=Ragged.of([[*[ids[word] for word in pair.summary.split()][:32], 2] for pair in pairs]),
    )


def kill_runs(harness: Harness, *, runs: int, kills: int, rng: random.Random) -> bool:
    """Print a line for each killed run; whether all ended bit-identically."""
    table = Table("run", "kills", "end", title="SIGKILL and resume")
    good = unfinished = 0
    for number in range(1, runs + 1):
        report = harness.kill_and_resume(f"run-{number}", kills=kills, rng=rng)
        good += not report.differences
        unfinished += sum(kill.unfinished for kill in report.kills)
        end = f"differs: {', '.join(report.differences)}" if report.differences else "bit-identical"
        table.add_row(str(number), "; ".join(_describe(kill) for kill in report.kills), end)
    Console().print(table)
    total = runs * kills
    print(f"{good} of {runs} runs bit-identical; {unfinished} of {total} kills left an unfinished checkpoint")
    return good == runs


def _describe(kill: Kill) -> str:
    when = "any time" if kill.before is None else f"before {kill.before}"
    return f"step {kill.step}, {when}{', checkpoint unfinished' if kill.unfinished else ''}"


def damage_checkpoints(finished: Path, scratch: Path, *, count: int, rng: random.Random) -> bool:
    """Damage copies of a finished run's newest checkpoint; whether each was noticed and the one before
    used.
    """
    table = Table("damage", "done", "noticed, named, previous used", title="Damaged newest checkpoint")
    done: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    for _ in range(count):
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(finished, scratch)
        checkpoints = Checkpoints(scratch / "checkpoints", keep=2)
        newest, previous = checkpoints.steps()[-1], checkpoints.steps()[-2]
        kind = _damage(checkpoints.path(newest), rng)
        done[kind] += 1
        said: list[str] = []
        saved = checkpoints.newest_valid(said.append)
        named = len(said) == 1 and f"step-{newest:08d}" in said[0]
        noticed[kind] += named and saved is not None and saved.state.step == previous
    for kind in sorted(done):
        table.add_row(kind, str(done[kind]), str(noticed[kind]))
    Console().print(table)
    return done == noticed


def _damage(folder: Path, rng: random.Random) -> str:
    path = rng.choice(sorted(folder.iterdir()))
    content = bytearray(path.read_bytes())
    kind = rng.choice(("file deleted", "file shortened", "one bit flipped"))
    if kind == "file deleted":
        path.unlink()
    elif kind == "file shortened":
        path.write_bytes(content[: rng.randrange(len(content))])
    else:
        place = rng.randrange(8 * len(content))
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
    return kind


def main() -> int:
    """Run it all; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--phase", choices=PHASES, default="finetune")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--damaged", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the run folders here; default: a temporary one")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        build_shelf(Path(temporary) / "shelf")
        preload = ("precis.phases.pretrain", "precis.phases.ground", "precis.data.batches.bucketed")
        harness = Harness(
            PHASES[arguments.phase](Path(temporary) / "shelf"),
            folder,
            threads=arguments.threads,
            preload=preload,
        )
        good = kill_runs(harness, runs=arguments.runs, kills=arguments.kills, rng=rng)
        detected = damage_checkpoints(folder / "alone", folder / "damaged", count=arguments.damaged, rng=rng)
    return 0 if good and detected else 1


if __name__ == "__main__":
    raise SystemExit(main())
