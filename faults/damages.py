"""Two hundred damages of models, adapters, packs and checkpoints: which of them are named, and which pass in silence.

    python -m faults.damages [--quick] [--seed N]

Each takes an intact folder, changes it by a seeded draw, and reads it as the commands do. It is named if the reader
refuses it in one line or reports what is wrong. A checkpoint that is named and skipped counts too, if the older one is
used. Some damages put correct sums next to wrong files ("resealed"): weights in a type that the reader does not
support, NaN among them, an optimizer without a state.
"""

import argparse
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from faults.report import Tally, header, verdict
from faults.small_models import make, save, words
from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import PackedText
from precis.data.synthetic.corpus import make_pairs
from precis.generation.model_loader import load_model
from precis.storage.seal import SEAL, seal, write_folder
from precis.training import TrainSettings
from precis.training.checkpoint import Checkpoints, RunState, restore
from precis.training.optimizer import build_optimizer
from precis.tuning import Prefix, attach, method
from precis_text.errors import RunError, UserError

Damage = Callable[[Path, random.Random], str]
_PER_KIND = 50


@dataclass(frozen=True)
class Kind:
    """A kind of folder to damage: an intact one, its damages, and its reader, which returns the named problem."""

    name: str
    whole: Path
    damages: tuple[Damage, ...]
    read: Callable[[Path], str]


class _Heard(logging.Handler):
    """A handler that keeps our log messages during reading."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        self.lines.append(record.getMessage())


def main() -> int:
    """Try all of them; 1 if one passed in silence or ended in an unexpected error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    header("damaged models, adapters, packs and checkpoints", seed=options.seed)
    tally, tried = Tally(), Counter[str]()
    logging.getLogger("precis").addHandler(heard := _Heard())
    with tempfile.TemporaryDirectory() as scratch:
        for kind in _kinds(Path(scratch)):
            assert not _named(kind, kind.whole, heard), f"the whole {kind.name} is not taken for whole"
            for number in range(5 if options.quick else _PER_KIND):
                what, fault = _try(kind, number, options.seed, Path(scratch) / "damaged" / "it", heard)
                tally.hold(not fault, f"{kind.name}, {what}: {fault}")
                tried[kind.name] += 1
    print(", ".join(f"{count} {name}s" for name, count in tried.items()))
    return verdict(f"{tally.tried} damages: {tally.tried - len(tally.failures)} named", tally)


def _try(kind: Kind, number: int, seed: int, folder: Path, heard: _Heard) -> tuple[str, str]:
    """Return what is damaged, and how its reader fails to name it; "" if it names it."""
    draw = random.Random(f"{seed} {kind.name} {number}")
    shutil.copytree(kind.whole, folder)
    what = kind.damages[number % len(kind.damages)](folder, draw)
    try:
        said = _named(kind, folder, heard)
    except Exception as error:  # any other is what is looked for here
        return what, f"unexpected {type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder.parent)
    return what, "" if said and "\n" not in said else "silent"


def _named(kind: Kind, folder: Path, heard: _Heard) -> str:
    heard.lines.clear()
    try:
        said = kind.read(folder)
    except (UserError, RunError) as error:
        return str(error)
    return said or "; ".join(heard.lines)


def _kinds(scratch: Path) -> list[Kind]:
    model, adapter, base = scratch / "model", scratch / "adapter", scratch / "base"
    write_folder(model, lambda place: save("zcodepp", place))
    save("bart", base)
    attach(make("bart"), method("prefix", Prefix(length=4))).save(adapter)
    words().save_pretrained(scratch / "words")
    texts = [pair.document for pair in make_pairs(60, seed=3)]
    pack(texts, scratch / "words", scratch / "pack", dev_share=0.0)
    seal(scratch / "pack")  # as `precis data pack` does
    run = scratch / "checkpoints"
    _train(run)
    plain = (flip, flip, cut, lose, empty, swap)
    weights = (
        as_type(torch.float16),
        as_type(torch.int64),
        as_type(torch.bool),
        not_a_number,
        reshaped,
        left_out,
        added,
    )
    resealed = tuple(_resealed(change) for change in weights)
    # an adapter may be float16, as the included one is
    of_adapter = (_resealed(as_type(torch.bfloat16)), *resealed[1:])
    signed = tuple(_in_newest(_resealed(change)) for change in (*weights, no_optimizer, no_model))
    return [
        Kind("model", model, (*plain, extra, lose_decoding, older_seal(model), *resealed), _read_model),
        Kind("adapter", adapter, (*plain, extra, *of_adapter), lambda folder: _read_adapter(base, folder)),
        Kind(
            "pack", scratch / "pack", (flip, flip, cut, lose, empty, swap, flip_bit_of("tokens")), _read_pack
        ),
        Kind(
            "checkpoint",
            run,
            (*(_in_newest(damage) for damage in (*plain, extra, infinite, brackets)), name_taken, *signed),
            _read_checkpoints,
        ),
    ]


def _read_model(folder: Path) -> str:
    load_model(folder, device="cpu")
    return ""


def _read_adapter(base: Path, folder: Path) -> str:
    load_model(base, adapter=folder, device="cpu")
    return ""


def _read_pack(folder: Path) -> str:
    PackedText.open(folder, verify=True)
    return ""


def _read_checkpoints(folder: Path) -> str:
    said: list[str] = []
    model = _network()
    saved = Checkpoints(folder, keep=2).newest_valid(said.append, model=model)
    assert saved is not None
    restore(model, build_optimizer(model, TrainSettings(steps=9)), saved.folder)
    return "; ".join(said)


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 8), nn.LayerNorm(8))


def _train(folder: Path) -> None:
    model = _network()
    optimizer = build_optimizer(model, TrainSettings(steps=9))
    for step in (4, 8):
        optimizer.zero_grad()
        model(torch.arange(50)).square().sum().backward()
        optimizer.step()
        Checkpoints(folder, keep=3).save(model, optimizer, RunState(step=step), {"seed": 0})


def _file(folder: Path, draw: random.Random) -> Path:
    return draw.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))


def flip(folder: Path, draw: random.Random) -> str:
    """Flip one bit of one file."""
    file = _file(folder, draw)
    return _flip(file, draw)


def _flip(file: Path, draw: random.Random) -> str:
    content = bytearray(file.read_bytes())
    place = draw.randrange(len(content))
    content[place] ^= 1 << draw.randrange(8)
    file.write_bytes(content)
    return f"a bit of {file.name} at {place}"


def flip_bit_of(name: str) -> Damage:
    """Flip one bit of the file whose name starts with `name`."""
    return lambda folder, draw: _flip(next(folder.glob(f"{name}*")), draw)


def cut(folder: Path, draw: random.Random) -> str:
    """Cut off the end of one file."""
    file = _file(folder, draw)
    content = file.read_bytes()
    file.write_bytes(content[: draw.randrange(len(content))])
    return f"{file.name} cut"


def lose(folder: Path, draw: random.Random) -> str:
    """Delete one file."""
    # a model without a seal is a plain one, but every checkpoint has one
    while (file := _file(folder, draw)).name == SEAL and not folder.name.startswith("step-"):
        pass
    file.unlink()
    return f"{file.name} lost"


def empty(folder: Path, draw: random.Random) -> str:
    """Remove the content of one file, or fill it with zeros."""
    file = _file(folder, draw)
    file.write_bytes(bytes(file.stat().st_size) if draw.random() < 0.5 else b"")
    return f"{file.name} emptied"


def swap(folder: Path, draw: random.Random) -> str:
    """Exchange two files."""
    first, second = draw.sample(sorted(path for path in folder.iterdir() if path.is_file()), 2)
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)
    return f"{first.name} and {second.name} exchanged"


def extra(folder: Path, draw: random.Random) -> str:
    """Add a file that does not belong there."""
    name = draw.choice(("special_tokens_map.json", "model-2.safetensors", "chat_template.jinja", "notes.txt"))
    (folder / name).write_text("{}")
    return f"{name} added"


def lose_decoding(folder: Path, _: random.Random) -> str:
    """Delete the decoding settings, without which a model writes differently."""
    (folder / "generation_config.json").unlink()
    return "decoding settings lost"


def older_seal(whole: Path) -> Damage:
    """Combine the weights of an earlier model with the seal of this one."""

    def damage(folder: Path, draw: random.Random) -> str:
        make("zcodepp", seed=draw.randrange(1, 99)).save_pretrained(folder)
        shutil.copy(whole / SEAL, folder / SEAL)
        return "another model's weights under this seal"

    return damage


def _rewrite(folder: Path, change: Callable[[str, Tensor], Tensor | None], draw: random.Random) -> None:
    file = draw.choice(sorted(folder.glob("*.safetensors")))
    tensors = {name: change(name, tensor) for name, tensor in load_file(file).items()}
    save_file({name: t for name, t in tensors.items() if t is not None}, file, metadata={"format": "pt"})


def as_type(dtype: torch.dtype) -> Damage:
    """Convert all weights to another type."""

    def damage(folder: Path, draw: random.Random) -> str:
        _rewrite(folder, lambda _, tensor: tensor.to(dtype), draw)
        return f"weights as {dtype}"

    return damage


def not_a_number(folder: Path, draw: random.Random) -> str:
    """Set one weight to NaN or infinity."""
    bad = draw.choice((float("nan"), float("inf"), float("-inf")))
    file = draw.choice(sorted(folder.glob("*.safetensors")))
    tensors = load_file(file)
    name = draw.choice(sorted(tensors))
    flat = tensors[name].flatten()
    flat[draw.randrange(len(flat))] = bad
    tensors[name] = flat.view(tensors[name].shape)
    save_file(tensors, file, metadata={"format": "pt"})
    return f"{bad} in {name}"


def reshaped(folder: Path, draw: random.Random) -> str:
    """Flatten the weights to another shape."""
    _rewrite(folder, lambda _, tensor: tensor.flatten(), draw)
    return "weights flattened"


def left_out(folder: Path, draw: random.Random) -> str:
    """Leave out a weight."""
    first = draw.randrange(3)
    seen: list[str] = []

    def change(name: str, tensor: Tensor) -> Tensor | None:
        seen.append(name)
        return None if len(seen) == first + 1 else tensor

    _rewrite(folder, change, draw)
    return f"{seen[first]} left out"


def added(folder: Path, draw: random.Random) -> str:
    """Add a weight."""
    file = draw.choice(sorted(folder.glob("*.safetensors")))
    save_file({**load_file(file), "evil.weight": torch.zeros(2)}, file, metadata={"format": "pt"})
    return "a weight added"


def no_optimizer(folder: Path, _: random.Random) -> str:
    """Empty the moments of the optimizer."""
    save_file({}, folder / "optimizer.safetensors")
    return "optimizer emptied"


def no_model(folder: Path, _: random.Random) -> str:
    """Delete the weights and their entry in the seal."""
    (folder / "model.safetensors").unlink()
    return "weights left out of the seal"


def infinite(folder: Path, _: random.Random) -> str:
    """Write a seal that is not JSON."""
    (folder / SEAL).write_text(
        '{"format": 1, "files": {"model.safetensors": {"bytes": Infinity, "sha256": "a"}}}'
    )
    return "a seal with Infinity"


def brackets(folder: Path, _: random.Random) -> str:
    """Write a seal that is nested more deeply than the reader allows."""
    (folder / SEAL).write_text("[" * 200_000)
    return "a seal of brackets"


def name_taken(folder: Path, draw: random.Random) -> str:
    """Put a file or a link under the name of a checkpoint."""
    place = folder / "step-00000012"
    if draw.random() < 0.5:
        place.write_text("not a checkpoint")
    else:
        place.symlink_to(folder / "step-00000008")
    return "a checkpoint's name taken"


def _resealed(change: Damage) -> Damage:
    def damage(folder: Path, draw: random.Random) -> str:
        what = change(folder, draw)
        (folder / SEAL).unlink(missing_ok=True)
        seal(folder)
        return f"{what}, resealed"

    return damage


def _in_newest(change: Damage) -> Damage:
    return lambda folder, draw: change(folder / "step-00000008", draw)


if __name__ == "__main__":
    sys.exit(main())
