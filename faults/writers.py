"""The commands that write, with inputs so small that each takes a second or two."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from faults import forked

_SHAPE = shlex.split(
    "--set model.hidden_size=32 --set model.intermediate_size=64 --set model.encoder_layers=2 "
    "--set model.decoder_layers=1"
)
_LENGTHS = shlex.split("--max-source 96 --set generation.max_tokens=12 --set generated_rows=4 --threads 1")
_STEPS = shlex.split(
    "--steps 6 --validate-every 3 --set train.save_every=2 --set train.log_every=2 --set train.warmup_steps=2"
)
_SMALL = [*_LENGTHS, "--set", "batch_tokens=2000", *_STEPS]
_PACKED = shlex.split("--document-column document --dev-share 0.2 --workers 1")


def build_shelf(folder: Path) -> None:
    """Make pairs, texts, a tokenizer, a pack, a model, and an adapter's base, each with its command."""
    folder.mkdir(parents=True)
    (folder / "texts").mkdir()
    pairs, words = str(folder / "pairs"), str(folder / "words")
    recipe = ["--recipe", "zcodepp-micro", "--tokenizer", words, *_SHAPE, *_SMALL]
    lines = [
        ["data", "synthetic", "--out", pairs, "--train", "48", "--dev", "8", "--test", "8"],
        ["tokenizer", "--data", pairs, "--vocab-size", "500", "--out", words],
        [
            "data",
            "pack",
            f"{pairs}/train.jsonl",
            *_PACKED,
            "--tokenizer",
            words,
            "--out",
            str(folder / "pack"),
        ],
        ["finetune", "--data", pairs, *recipe, "--out", str(folder / "start")],
    ]
    for line in lines:
        ended = forked.run(line, folder / "log", prepare=lambda: lambda: 0)
        if ended.code:
            raise RuntimeError(f"{' '.join(line)}: {ended.said}")


def command_lines(shelf: Path) -> Mapping[str, Callable[[Path], list[str]]]:
    """Return the command line of each writer as a function of its output."""
    pairs, words, start, pack = (str(shelf / name) for name in ("pairs", "words", "start", "pack"))
    recipe = ["--recipe", "zcodepp-micro", "--tokenizer", words, *_SHAPE, *_SMALL]
    packed = [*_PACKED, "--tokenizer", words]
    steps = [word.replace("--validate-every", "--set") for word in _STEPS]
    steps[steps.index("--set") + 1] = f"train.validate_every={_STEPS[3]}"  # pretrain lacks an option for it
    phase = ["--set", "batch_size=4", "--set", "block_length=64", "--set", "validation_blocks=4", *steps]
    lines: dict[str, list[str]] = {
        "finetune": ["finetune", "--data", pairs, *recipe],
        "ground": ["ground", "--tasks", pairs, "--model", start, *_SMALL],
        "pretrain": [
            "pretrain",
            "--corpus",
            pack,
            "--recipe",
            "zcodepp-micro",
            *_SHAPE,
            *phase,
            "--threads",
            "1",
        ],
        "tune": ["tune", "--model", start, "--data", pairs, "--method", "uniblock", *_SMALL],
        "data pack": ["data", "pack", f"{pairs}/train.jsonl", *packed],
        "tokenizer": ["tokenizer", "--data", pairs, "--vocab-size", "450"],
        "evaluate": ["evaluate", "--model", start, "--data", pairs, "--batch-size", "1", "--threads", "1"],
        "data synthetic": ["data", "synthetic", "--train", "400", "--dev", "40", "--test", "40"],
    }
    summarize = [
        "summarize",
        f"{pairs}/train.jsonl",
        "--model",
        start,
        "--min-words",
        "4",
        "--short",
        "write",
    ]
    return {
        **{name: (lambda out, line=line: [*line, "--out", str(out)]) for name, line in lines.items()},  # type: ignore[misc]
        "summarize": lambda out: [
            *summarize,
            "--batch-size",
            "1",
            "--threads",
            "1",
            "--out",
            str(out / "s.jsonl"),
        ],
    }
