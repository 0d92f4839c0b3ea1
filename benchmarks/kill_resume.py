"""Kill trainings with SIGKILL, damage checkpoints, and see whether the runs still end with the same bits.

    python benchmarks/kill_resume.py [--phase finetune|ground|pretrain] [--runs 20] [--kills 2] [--damaged 50]
    [--seed 0] [--threads 1] [--folder DIR]

A small Z-Code++ (dropout, fusion-in-encoder) is fine-tuned on synthetic pairs, grounded on two sets of them with
instructions, or pre-trained (generator, discriminator and decoder, in turn) on random blocks, and saved after every
step. Each run is killed `--kills` times, in turn at a random time and just before a random disk operation of a save,
and started again with the same call each time; weights, optimizer state, bookkeeping and metrics are then compared byte
for byte with those of a run left alone. Afterwards the newest checkpoint of a finished run is damaged in `--damaged`
random ways (a file deleted, shortened, or one bit of it flipped), each of which must be noticed. Exit code 1 unless all
is well.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from training.kills import Harness, Kill

from precis.data.batches import BucketedBatches, TokenizedPairs, in_order
from precis.data.instructions import wording_for
from precis.data.synthetic import make_pairs
from precis.models.replaced_tokens import ZCodePPForPreTraining
from precis.models.replaced_tokens_config import ZCodePPPreTrainingConfig
from precis.models.zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp_config import ZCodePPConfig
from precis.objectives import SequenceToSequence
from precis.recipes.pretraining_runs import ReplacedTokens, pretraining_run
from precis.recipes.pretraining_steps import measure_of, objective_of, random_batches
from precis.training import TrainSettings, mean_loss
from precis.training.checkpoint import Checkpoints

VOCABULARY = 500


def small_zcodepp() -> Mapping[str, Any]:
    """What every run trains: 2+2 layers of 32 on 96 synthetic pairs, 16 steps, a validation every 5."""
    import torch

    torch.manual_seed(0)
    config = ZCodePPConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        encoder_layers=2,
        decoder_layers=2,
        chunk_length=32,
        dropout=0.1,
        attention_dropout=0.1,
    )
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


def small_grounding() -> Mapping[str, Any]:
    """The second pre-training phase: the same on two sets of pairs with instructions in front, each measured."""
    sets = {"dialogue": _pairs(64, seed=2, kind="dialogue"), "news": _pairs(32, seed=3, kind="news")}
    held_out = {kind: _pairs(16, seed=4, kind=kind) for kind in sets}
    whole = TokenizedPairs(
        sources=[pairs.source(row).tolist() for pairs in sets.values() for row in range(len(pairs))],
        targets=[pairs.target(row).tolist() for pairs in sets.values() for row in range(len(pairs))],
    )
    base = dict(small_zcodepp())

    def validate(model: Any) -> dict[str, float]:
        losses = {
            f"loss/{kind}": mean_loss(
                model, in_order(pairs, batch_size=16, pad_token_id=0), base["objective"]
            )["loss"]
            for kind, pairs in held_out.items()
        }
        return {"loss": sum(losses.values()) / len(losses), **losses}

    batches = BucketedBatches(whole, batch_size=8, seed=0, pad_token_id=0)
    return {**base, "batches": batches, "validate": validate}


def small_pretraining() -> Mapping[str, Any]:
    """The first pre-training phase: 1+2+2 layers of 32 on blocks of 64 random tokens, 16 steps."""
    import torch

    run = replace(
        pretraining_run("zcodepp-micro"),
        batch_size=4,
        block_length=64,
        objective=ReplacedTokens(generator_layers=1, mask_decoder=True),
    )
    torch.manual_seed(0)
    config = ZCodePPPreTrainingConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        encoder_layers=2,
        decoder_layers=2,
        generator_layers=2,
        generator_mask_decoder=True,
        dropout=0.1,
        attention_dropout=0.1,
    )
    batches = random_batches(run, VOCABULARY, rows=4)

    def validate(model: Any) -> dict[str, float]:
        return mean_loss(model, [batches.batch(1000)], measure_of(run))

    return {
        "model": ZCodePPForPreTraining(config),
        "batches": batches,
        "objective": objective_of(run),
        "validate": validate,
        "settings": TrainSettings(
            steps=16, learning_rate=2e-3, warmup_steps=4, save_every=1, validate_every=5, log_every=3
        ),
    }


PHASES = {"finetune": small_zcodepp, "ground": small_grounding, "pretrain": small_pretraining}


def _pairs(count: int, *, seed: int, kind: str = "") -> TokenizedPairs:
    """Synthetic pairs with one id per word: no tokenizer is needed to watch bits; `kind` puts instructions in front."""
    pairs = list(make_pairs(count, seed=seed))
    if kind:
        drawn = random.Random(seed)
        pairs = [
            replace(pair, document=f"{wording_for(kind, pair, drawn.random())} {pair.document}")
            for pair in pairs
        ]
    words = sorted({word for pair in pairs for word in f"{pair.document} {pair.summary}".split()})
    ids = {word: 5 + number % (VOCABULARY - 5) for number, word in enumerate(words)}
    return TokenizedPairs(
        sources=[[ids[word] for word in pair.document.split()][:96] for pair in pairs],
        targets=[[*[ids[word] for word in pair.summary.split()][:32], 2] for pair in pairs],
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
        preload = ("precis.recipes.pretraining_steps", "precis.models.replaced_tokens", "precis.data.batches")
        harness = Harness(PHASES[arguments.phase], folder, threads=arguments.threads, preload=preload)
        good = kill_runs(harness, runs=arguments.runs, kills=arguments.kills, rng=rng)
        detected = damage_checkpoints(folder / "alone", folder / "damaged", count=arguments.damaged, rng=rng)
    return 0 if good and detected else 1


if __name__ == "__main__":
    raise SystemExit(main())
