"""What the golden files record, made by the commands that users type, at toy size, in fp32.

`python -m tests.golden` compares and says what moved; with `--write` it records anew. Write anew only what was meant to
move, and say why in the commit.
"""

import contextlib
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel
from typer.main import get_command

from precis.cli import main
from precis.cli.application import app
from precis.data.synthetic.corpus import make_pair
from precis.extract.extractor_opening import open_extractor
from precis.generation.decoder_batches import Drafting
from precis.generation.summarizer import Summarizer
from precis.models import (
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    ZCodePPConfig,
    ZCodePPForConditionalGeneration,
)
from precis_text.decoding_settings import GenerationSettings
from tests.tiny_models import documents, our_tokenizer

MADE = 200  # documents for the default model
_STEPS = 20
_NAMES = re.compile(r"^(--?[\w-]+[ ,/;]*)+")
# Without dropout, which every way of attention draws in its own order.
_SHAPE = {
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "hidden_size": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
_ZCODEPP = {**_SHAPE, "num_attention_heads": 2, "intermediate_size": 64}
_PROPHETNET = {
    **_SHAPE,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 160,
}
_TRAINING = {
    "train.learning_rate": 2e-3,
    "train.warmup_steps": 4,
    "train.save_every": _STEPS,
    "train.log_every": 1,
    "train.precision": "fp32",
}
_PAIRS = {
    **_TRAINING,
    "max_source": 96,
    "max_target": 32,
    "generated_rows": 2,
    "train.validate_every": _STEPS,
}
_SETTINGS = {
    "greedy": GenerationSettings(max_tokens=24),
    "beams": GenerationSettings(beams=4, max_tokens=24, length_penalty=0.8),
    "blocked": GenerationSettings(beams=3, max_tokens=24, no_repeat_ngram=3),
}

Numbers = dict[str, list[float]]


def precis(*words: str) -> None:
    """Run a command of precis in this process; it has to end well."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([*words])
    assert not code, f"precis {' '.join(words)} ended with {code}: {said.getvalue()[-500:]}"


def prepare(shelf: Path) -> None:
    """Pairs, a tokenizer, a pack and its text, in `shelf`."""
    precis("data", "synthetic", "--out", str(shelf / "pairs"), "--train", "64", "--dev", "8", "--test", "8")
    precis("tokenizer", "--data", str(shelf / "pairs"), "--out", str(shelf / "words"), "--vocab-size", "500")
    texts = [json.loads(line)["document"] for line in (shelf / "pairs" / "train.jsonl").open()]
    (shelf / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    words = ["--tokenizer", str(shelf / "words"), "--workers", "1"]
    precis("data", "pack", str(shelf / "texts.jsonl"), "--out", str(shelf / "pack"), *words)


def _changed(changes: dict[str, Any]) -> list[str]:
    return [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]


def _train(shelf: Path, name: str, *words: str) -> Numbers:
    """One run of 20 steps: its training losses and gradient norms."""
    precis(*words, "--out", str(shelf / name), "--steps", str(_STEPS), "--seed", "0", "--threads", "1")
    rows = [json.loads(line) for line in (shelf / name / "metrics.jsonl").open()]
    steps = [row for row in rows if row["kind"] == "train"]
    return {key: [row[key] for row in steps] for key in ("loss", "gradient_norm")}


def _finetune(shelf: Path, name: str, recipe: str, shape: dict[str, Any]) -> Numbers:
    data = ["--data", str(shelf / "pairs"), "--tokenizer", str(shelf / "words")]
    changes = {**_PAIRS, **{f"model.{key}": value for key, value in shape.items()}}
    return _train(shelf, name, "finetune", "--recipe", recipe, *data, "--batch-size", "8", *_changed(changes))


def _pretrain(shelf: Path, name: str, recipe: str, shape: dict[str, Any], *words: str) -> Numbers:
    changes = {
        **_TRAINING,
        "train.validate_every": _STEPS,
        "validation_blocks": 8,
        **{f"model.{key}": value for key, value in shape.items()},
    }
    data = ["--corpus", str(shelf / "pack"), "--batch-size", "4", "--block-length", "64"]
    return _train(shelf, name, "pretrain", "--recipe", recipe, *data, *_changed(changes), *words)


def _start(shelf: Path) -> str:
    """A model to go on from; made once."""
    if not (shelf / "zcodepp" / "model").is_dir():
        _finetune(shelf, "zcodepp", "zcodepp-micro", _ZCODEPP)
    return str(shelf / "zcodepp")


def _ground(shelf: Path) -> Numbers:
    tasks = ["--tasks", str(shelf / "pairs"), "--batch-size", "8"]
    return _train(shelf, "ground", "ground", "--model", _start(shelf), *tasks, *_changed(_PAIRS))


def _tune(shelf: Path, method: str) -> Numbers:
    data = f"--data {shelf / 'pairs'} --batch-size 8 --set prefix.length=6 --set prefix.keys.width=16"
    words = ["tune", "--model", _start(shelf), "--method", method, *data.split(), *_changed(_PAIRS)]
    numbers = _train(shelf, f"tune-{method}", *words)
    if method == "truncsa":  # its gradient jumps where a column falls out of the top
        del numbers["gradient_norm"]
    return numbers


LOSSES: dict[str, Callable[[Path], Numbers]] = {
    "finetune zcodepp": lambda shelf: _finetune(shelf, "plain", "zcodepp-micro", _ZCODEPP),
    "finetune zcodepp, chunks": lambda shelf: _finetune(
        shelf, "chunks", "zcodepp-micro", {**_ZCODEPP, "chunk_length": 32}
    ),
    "finetune zcodepp, streams": lambda shelf: _finetune(
        shelf, "streams", "zcodepp-micro", {**_ZCODEPP, "future_tokens": 2}
    ),
    "finetune prophetnet": lambda shelf: _finetune(shelf, "prophetnet", "prophetnet-micro", _PROPHETNET),
    "pretrain zcodepp": lambda shelf: _pretrain(shelf, "pretrained", "zcodepp-micro", _ZCODEPP),
    "pretrain zcodepp, spans alone": lambda shelf: _pretrain(
        shelf, "spans", "zcodepp-micro", _ZCODEPP, "--without-rtd"
    ),
    "pretrain prophetnet": lambda shelf: _pretrain(shelf, "mass", "prophetnet-micro", _PROPHETNET),
    "ground zcodepp": _ground,
    **{
        f"tune {method}": lambda shelf, method=method: _tune(shelf, method)  # type: ignore[misc]
        for method in ("prefix", "hierblock+softsa", "truncsa")
    },
}


def texts(_: Path) -> dict[str, list[str]]:
    """What models with loud random weights write: greedily, with beams, with blocked repeats, by drafts."""
    tokenizer = our_tokenizer()
    found = {}
    for name, make in {"zcodepp": _loud_zcodepp, "prophetnet": _loud_prophetnet}.items():
        model = make(len(tokenizer))
        for kind, settings in _SETTINGS.items():
            summarizer = Summarizer(model, tokenizer, settings=settings)
            found[f"{name}, {kind}"] = [s.text for s in summarizer.stream(documents(4), batch_size=2)]
        drafting = Summarizer(model, tokenizer, settings=_SETTINGS["greedy"], loop=Drafting())
        found[f"{name}, drafts"] = [summary.text for summary in drafting.stream(documents(4))]
    return found


def made_document(number: int) -> str:
    """Return one of the made documents: one to three stories of the project's own corpus."""
    return "\n\n".join(make_pair(7 * number + k, seed=36).document for k in range(1 + number % 3))


def extracts(numbers: Iterable[int] = range(MADE)) -> dict[str, str]:
    """Return what the default model chooses from the made documents, by their numbers."""
    made = [*numbers]
    found = open_extractor("default").summarize([made_document(n) for n in made], words=40)
    return {str(number): summary.text for number, summary in zip(made, found, strict=True)}


def _loud_zcodepp(vocabulary: int) -> PreTrainedModel:
    config = ZCodePPConfig(vocab_size=vocabulary, future_tokens=2, **_ZCODEPP)
    return _loud(ZCodePPForConditionalGeneration(config))


def _loud_prophetnet(vocabulary: int) -> PreTrainedModel:
    config = ProphetNetConfig(
        vocab_size=vocabulary, ngram=2, **{**_PROPHETNET, "max_position_embeddings": 300}
    )
    return _loud(ProphetNetForConditionalGeneration(config))


def _loud(model: PreTrainedModel) -> PreTrainedModel:
    """Weights far from zero, so that no text repeats one token and no two scores are close."""
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.3)
    return model.eval()


def digests(shelf: Path) -> dict[str, str]:
    """SHA-256 of what is drawn or counted without a model."""
    named = {f"synthetic {name}": shelf / "pairs" / f"{name}.jsonl" for name in ("train", "dev", "test")}
    named["tokenizer"] = shelf / "words" / "tokenizer.json"
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in named.items()}


def helps() -> dict[str, dict[str, Any]]:
    """Return the help of every command: its paragraphs, and the type and help of its arguments and options."""
    return {
        " ".join(words): _help(context) for words, context in _commands(get_command(app), ("precis",), None)
    }


def _commands(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words and the context of a command and of all commands in it."""
    context = command.context_class(command, info_name=words[-1], parent=parent)
    yield words, context
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name), context)


def _help(context: Any) -> dict[str, Any]:
    command = context.command
    paragraphs = [text for part in (command.help, command.epilog) if part for text in part.split("\n\n")]
    return {
        "paragraphs": [" ".join(text.split()) for text in paragraphs],
        "options": dict(_option(parameter, context) for parameter in command.get_params(context)),
    }


def _option(parameter: Any, context: Any) -> tuple[str, dict[str, str]]:
    """Return the names of a parameter; its type, if it takes a value; its help with its default, and its panel."""
    shown, told = parameter.get_help_record(context)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    typed = _NAMES.sub("", shown) if names.startswith("-") else shown.removeprefix(parameter.opts[0])
    panel = getattr(parameter, "rich_help_panel", None)
    return names, {"type": typed.strip(), "help": told, **({"panel": panel} if panel else {})}
