"""Writes the files of a run, apart from checkpoints and metrics, and verifies the checksums of files precis wrote.

    OUT/settings.json    the resolved settings, with versions and the command
    OUT/run.toml         the same as options, which `--config` reads
    OUT/tokenizer/       the tokenizer, if the run trained one
    OUT/model/           the best model as a Hugging Face folder; precis.json records how to use it

`precis.storage.seal` writes and seals folders: a kill never leaves half a model, and files that precis did
not write are never replaced.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.generation.generation_settings import generation_config
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify, silent
from precis.phases.folder_check import SETTINGS_FILE
from precis.storage.atomic import write_file, write_json
from precis.storage.seal import write_folder
from precis.training.callbacks import Callback, StartInfo, StepInfo
from precis.version import __version__
from precis_text.bounded_io import read_json
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import RunError, first_line

RUN_FILE = "run.toml"
CARD_FILE = "README.md"
_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy")
_WITH_RECIPE = ("finetune", "ground", "pretrain")
"""Commands whose settings come from a recipe."""
_LEFT_OUT = {
    "out", "restart", "config", "debug",  # of one run
    "search", "trials", "space", "seeds",  # of many runs
    "set", "recipe", "epochs", "steps", "batch-size", "batch-tokens", "block-length", "lr",  # in [set]
    "max-source", "max-target", "seed", "precision", "validate-every", "patience", "select",
}  # fmt: skip
"""Options that `run.toml` does not repeat."""


class SettingsFile(Callback):
    """Callback that writes `settings.json` and `run.toml` for a run that trains; others keep the old files.

    `notify` receives the settings that a resumed run changes.
    """

    def __init__(self, record: Mapping[str, Any], notify: Notify = silent) -> None:
        self._record, self._notify, self._folder = record, notify, Path()

    def on_start(self, info: StartInfo) -> None:
        """Write both files for a new run; for a resumed one report what has changed."""
        self._folder = info.folder
        before = _recorded(info.folder) if info.resumed_from else None
        if before is None:
            return self.on_step()
        old, new = dict(assignments(before)), dict(assignments(self._record["run"]))
        changed = [
            f"{name}={new[name]}, not {old[name]}" for name in new if old.get(name) not in (None, new[name])
        ]
        if changed:
            self._notify(f"{info.folder}: from step {info.first_step + 1:,} on: {'; '.join(changed)}")

    def on_step(self, info: StepInfo | None = None) -> None:
        """Write both files, unless that is done."""
        folder, self._folder = self._folder, Path()
        if folder != Path():
            write_json(folder / SETTINGS_FILE, {**self._record, "versions": versions()})
            repeated = run_file(self._record.get("command", ()), self._record["run"])
            if repeated is not None:
                write_file(folder / RUN_FILE, repeated)


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the packages that affect the numbers."""
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
    *,
    card: str = "",
) -> None:
    """Write a Hugging Face folder: weights, tokenizer, generation settings, card; replace an earlier export."""

    def write(place: Path) -> None:
        model.generation_config = generation_config(generation, model, tokenizer)
        save_model(model, tokenizer, place, use)

    export_folder(folder, write, card=card)


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, place: Path, use: ModelUse | None = None
) -> None:
    """Save weights, tokenizer and, if given, the model's use, in a folder that `export_folder` made."""
    model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    if use is not None:
        use.save(place)


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a tokenizer folder, or replace precis's own; raise `UserError` if `folder` has files of others."""
    export_folder(folder, lambda place: tokenizer.save_pretrained(place))


def export_folder(folder: Path, write: Callable[[Path], object], *, card: str = "") -> None:
    """Let `write` fill a new folder, seal it, and replace `folder` with it.

    Args:
        card: text of its README.md; none if empty.

    Raises:
        UserError: `folder` contains something that precis did not write.
        RunError: it cannot be written, for example because the disk is full; the old folder is kept.
    """

    def write_all(place: Path) -> None:
        write(place)
        if card:
            (place / CARD_FILE).write_text(card, encoding="utf-8")

    try:
        write_folder(folder, write_all)
    except PermissionError:
        raise  # free space would not help
    except Exception as error:
        # the tokenizers library raises no narrower type for errors of the system
        if not (isinstance(error, OSError | SafetensorError) or "(os error " in str(error)):
            raise
        raise RunError(
            f"{folder} cannot be written: {first_line(error)}; free some space there and repeat the command"
        ) from error


def has_checkpoints(run: Path) -> bool:
    """Return whether the run has a checkpoint."""
    return any((run / "checkpoints").glob("step-*"))


def recorded_recipe(run: Path) -> str | None:
    """Return the recipe that the run was started with, if it has a checkpoint; None if it is not recorded."""
    name = _recorded(run, "name") if has_checkpoints(run) else None
    return name if isinstance(name, str) else None


def recorded_vocab_size(run: Path) -> int | None:
    """Return the vocabulary size that the run was started with; None if it is not recorded."""
    size = _recorded(run, "model", "vocab_size")
    return size if isinstance(size, int) else None


def _recorded(run: Path, *names: str) -> Any:
    """Return a setting of the run's plan; None if it is not recorded or unreadable."""
    try:
        found = read_json(run / SETTINGS_FILE)["run"]
        for name in names:
            found = found[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def run_file(command: Sequence[str], run: Mapping[str, Any]) -> str | None:
    """Return the text of `run.toml`, or None if the command's words are not known.

    Args:
        command: the words of the command, one per option: `precis`, `finetune`, `--data=pairs`, `--skip-bad`.
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
        f"# precis {command[1]} --config {RUN_FILE} --out NEW repeats this run; command-line options win.",
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
    """Yield each setting that `--set` accepts, as its dotted name and its text."""
    for name, value in settings.items():
        if name in ("type", "name") or (name == "model" and value is None):
            continue
        if not isinstance(value, Mapping):
            yield f"{prefix}{name}", _text(value)
        elif "metric" in value:  # `select`: the metric determines whether low or high is better
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
    """Return option names without dashes, with their values; a flag has an empty list."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if name not in _LEFT_OUT:
            found.setdefault(name, []).extend([value] if equals else [])
    return found


def _toml(values: Sequence[str]) -> str:
    """Format a TOML value; strings as JSON, which TOML reads."""
    if not values:
        return "true"
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)
