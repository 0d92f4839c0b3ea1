"""What a run leaves behind, apart from checkpoints and metrics, and whether what precis wrote is as it was written.

    OUT/settings.json    what was asked for, resolved, with versions and the command
    OUT/run.toml         the same as options, which `--config` reads
    OUT/tokenizer/       the tokenizer, when the run trained one
    OUT/model/           the best model as a Hugging Face folder; precis.json says how it wants to be used

Folders are written and sealed by `precis.files`: a kill never leaves half a model, and nothing of anybody else is
replaced.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis import files
from precis.data.packs.packed_text import PACK_FILE, PackedText
from precis.decoding import GenerationSettings
from precis.errors import RunError, UserError, first_line
from precis.files import DamagedError, write_file
from precis.generation.model_use import ModelUse
from precis.generation.settings import generation_config
from precis.training import sealed as checkpoints
from precis.training.callbacks import Callback, StartInfo
from precis.untrusted import read_json
from precis.version import __version__

SETTINGS_FILE = "settings.json"
RUN_FILE = "run.toml"
_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
_CHECKPOINTS = "checkpoints"
_LOADED = ("config.json", "adapter.json", "adapter_config.json", "tokenizer.json", "tokenizer_config.json")
_WITH_RECIPE = ("finetune", "ground", "pretrain")
"""Commands whose settings begin as a recipe's."""
_LEFT_OUT = {
    "out", "restart", "config", "debug",  # of one run
    "search", "trials", "space",  # of many runs
    "set", "recipe", "epochs", "steps", "batch-size", "batch-tokens", "block-length", "lr",  # in [set]
    "max-source", "max-target", "seed", "precision", "validate-every", "patience", "select",
}  # fmt: skip
"""Options that `run.toml` does not repeat."""


class SettingsFile(Callback):
    """Writes `settings.json` and `run.toml` once the run is accepted: a refused one leaves the old file alone."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record

    def on_start(self, info: StartInfo) -> None:
        """Write."""
        record = {**self._record, "versions": versions()}
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_file(info.folder / SETTINGS_FILE, text)
        repeated = run_file(self._record.get("command", ()), self._record["run"])
        if repeated is not None:
            write_file(info.folder / RUN_FILE, repeated)


def versions() -> dict[str, str]:
    """The versions of Python, of this package, and of the packages that numbers depend on."""
    return {
        "python": platform.python_version(),
        "precis": __version__,
        **{name: version(name) for name in _PACKAGES},
    }


def export_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    generation: GenerationSettings,
    use: ModelUse,
    folder: Path,
) -> None:
    """Write a Hugging Face folder: weights, tokenizer, generation settings; what was exported there is replaced."""

    def write(place: Path) -> None:
        model.generation_config = generation_config(generation, model, tokenizer)
        save_model(model, tokenizer, place, use)

    write_folder(folder, write)


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, place: Path, use: ModelUse | None = None
) -> None:
    """Save weights, tokenizer and, if there is one, how the model is used, in a folder that `write_folder` made."""
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    if use is not None:
        use.save(place)


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a tokenizer folder in the place of one that precis wrote.

    Raises:
        UserError: `folder` holds something that precis did not write.
    """
    write_folder(folder, lambda place: tokenizer.save_pretrained(place))


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a new folder, seal it, and put it in the place of `folder`.

    Raises:
        UserError: `folder` holds something that precis did not write.
        RunError: it cannot be written, since the disk is full for one; what was in the place is still there.
    """
    try:
        files.write_folder(folder, write)
    except PermissionError:
        raise  # no space would mend that
    except Exception as error:
        # the tokenizers library has no narrower kind for what the system said
        if not (isinstance(error, OSError | SafetensorError) or "(os error " in str(error)):
            raise
        raise RunError(
            f"{folder} cannot be written: {first_line(error)}; free some space there and start the same command again"
        ) from error


def has_checkpoints(run: Path) -> bool:
    """Whether training has got as far as its first checkpoint."""
    return any((run / "checkpoints").glob("step-*"))


def recorded_recipe(run: Path) -> str | None:
    """The recipe that the run was started with, if it has a checkpoint; None if no record says it."""
    name = _recorded(run, "name") if has_checkpoints(run) else None
    return name if isinstance(name, str) else None


def recorded_vocab_size(run: Path) -> int | None:
    """The vocabulary size that the run was started with; None if no readable record says it."""
    size = _recorded(run, "model", "vocab_size")
    return size if isinstance(size, int) else None


def _recorded(run: Path, *names: str) -> Any:
    """A setting of the run's plan; None if no readable record says it."""
    try:
        found = read_json(run / SETTINGS_FILE)["run"]
        for name in names:
            found = found[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def run_file(command: Sequence[str], run: Mapping[str, Any]) -> str | None:
    """The text of `run.toml`, or None if the command is not known word by word.

    Args:
        command: the words of the command, an option each: `precis`, `finetune`, `--data=pairs`, `--skip-bad`.
        run: the resolved settings (`Settings.to_dict`).
    """
    if len(command) < 2 or not all(word.startswith("--") for word in command[2:]):
        return None
    options = _options(command[2:])
    if command[1] in _WITH_RECIPE:
        options["recipe"] = [str(run["name"])]
    typed = (word.removeprefix("--set=").partition("=")[::2] for word in command if word.startswith("--set="))
    besides = [
        (path.strip(), text.strip()) for path, text in typed if path.strip().partition(".")[0] not in run
    ]
    lines = [
        f"# precis {command[1]} --config {RUN_FILE} --out NEW repeats this run; an option of the command line wins.",
        f"command = {json.dumps(command[1])}",
        "",
        "[options]",
        *(f"{name} = {_toml(values)}" for name, values in options.items()),
        "",
        "[set]",
        *(
            f"{json.dumps(path)} = {json.dumps(text, ensure_ascii=False)}"
            for path, text in (*besides, *assignments(run))
        ),
    ]
    return "\n".join(lines) + "\n"


def assignments(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each setting that `--set` takes, as its dotted name and its text."""
    for name, value in settings.items():
        if name in ("type", "name") or (name == "model" and value is None):
            continue
        if not isinstance(value, Mapping):
            yield f"{prefix}{name}", _text(value)
        elif "metric" in value:  # `select`: whether low or high is good follows from the metric
            yield f"{prefix}{name}", str(value["metric"])
        else:
            yield from assignments(value, f"{prefix}{name}.")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)


def _options(words: Sequence[str]) -> dict[str, list[str]]:
    """Names of options without dashes, with their values; a flag has none."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if name not in _LEFT_OUT:
            found.setdefault(name, []).extend([value] if equals else [])
    return found


def _toml(values: Sequence[str]) -> str:
    """A TOML value; strings are written as JSON writes them, which TOML reads."""
    if not values:
        return "true"
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)


@dataclass(frozen=True)
class CheckedFolder:
    """One folder of what was checked; where it is damaged, `damage` names the file and says how."""

    folder: Path
    state: Literal["sealed and whole", "no seal"]
    damage: str | None = None


def check_seals(source: str | None) -> list[CheckedFolder] | None:
    """Hold every file against the seal of its folder, by SHA-256.

    Returns:
        The folders that were looked at, in order; None if `source` is nothing that precis seals, such as pairs.

    Raises:
        OSError: a file cannot be read, so nobody knows.
    """
    if source is None or not Path(source).is_dir():
        return None
    return [_check(folder) for folder in _folders(Path(source)) if folder.is_dir()] or None


def damaged(checked: list[CheckedFolder]) -> str:
    """One line about all damages; empty if there are none."""
    told = "; ".join(f"{each.folder}: {each.damage}" for each in checked if each.damage)
    return f"{told}; put a good copy there, or write it anew" if told else ""


def _folders(place: Path) -> list[Path]:
    """The folders with a seal of their own, or that could have one."""
    written = (place / PACK_FILE, place / checkpoints.MANIFEST)
    if files.has_seal(place) or _is_loaded(place) or any(file.is_file() for file in written):
        return [place]
    if not (place / SETTINGS_FILE).is_file():
        return []
    inside = [path for path in sorted(place.iterdir()) if path.name != _CHECKPOINTS and path.is_dir()]
    steps = (place / _CHECKPOINTS).glob("*/") if (place / _CHECKPOINTS).is_dir() else ()
    return [path for path in inside if files.has_seal(path) or _is_loaded(path)] + sorted(steps)


def _is_loaded(folder: Path) -> bool:
    """Whether it looks like a folder that transformers or we load."""
    return any((folder / name).is_file() for name in _LOADED)


def _check(folder: Path) -> CheckedFolder:
    has_seal = files.has_seal(folder)
    is_checkpoint = not has_seal and (
        (folder / checkpoints.MANIFEST).is_file() or folder.parent.name == _CHECKPOINTS
    )
    try:
        if has_seal:
            files.check_seal(folder, thorough=True)
        elif is_checkpoint:
            checkpoints.check_seal(folder)
        if (folder / PACK_FILE).is_file():  # its own digests, which packs had before they had seals
            PackedText.open(folder, verify=True)
    except (DamagedError, UserError) as damage:
        return CheckedFolder(folder, "sealed and whole" if has_seal else "no seal", str(damage))
    return CheckedFolder(folder, "sealed and whole" if has_seal or is_checkpoint else "no seal")
