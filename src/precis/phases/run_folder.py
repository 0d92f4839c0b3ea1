"""What a run leaves behind, apart from checkpoints and metrics: its settings, its tokenizer, its best model.

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
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis import files
from precis.decoding import GenerationSettings
from precis.errors import RunError, first_line
from precis.files import write_file
from precis.generation.model_use import USE_FILE, ModelUse
from precis.generation.settings import generation_config
from precis.phases.run_file import RUN_FILE, run_file
from precis.training.callbacks import Callback, StartInfo
from precis.untrusted import read_json
from precis.version import __version__

SETTINGS_FILE = "settings.json"
_EXPORTED = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|precis|base|adapter|prefix"
    r"|vocab)\.json|.*\.safetensors(\.index\.json)?|vocab\.txt|merges\.txt|.*\.(model|jinja)"
)
_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy")


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
        model.save_pretrained(place)
        tokenizer.save_pretrained(place)
        (place / USE_FILE).write_text(json.dumps(use.to_dict(), indent=2) + "\n", encoding="utf-8")

    write_folder(folder, write)


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
        files.write_folder(folder, write, declared=_exported_before(folder))
    except PermissionError:
        raise  # no space would mend that
    except Exception as error:
        # the tokenizers library has no narrower kind for what the system said
        if not (isinstance(error, OSError | SafetensorError) or "(os error " in str(error)):
            raise
        raise RunError(
            f"{folder} cannot be written: {first_line(error)}; free some space there and start the same command again"
        ) from error


def refuse_foreign(folder: Path) -> None:
    """Refuse, before any work is done, to replace what precis did not write.

    Raises:
        UserError: `folder` is a file or a link, or holds something else than what was exported there.
    """
    files.refuse_foreign(folder, declared=_exported_before(folder))


def _exported_before(folder: Path) -> set[str]:
    """What a version of precis that did not seal yet exported into a run folder."""
    if not (folder.parent / SETTINGS_FILE).is_file() or not folder.is_dir() or files.has_seal(folder):
        return set()
    return {path.name for path in folder.iterdir() if _EXPORTED.fullmatch(path.name)}


def has_checkpoints(run: Path) -> bool:
    """Whether training has got as far as its first checkpoint."""
    return any((run / "checkpoints").glob("step-*"))


def recorded_recipe(run: Path) -> str | None:
    """The recipe that the run was started with, if it has a checkpoint; None if no record says it."""
    if not has_checkpoints(run):
        return None
    try:
        name = json.loads((run / SETTINGS_FILE).read_text(encoding="utf-8"))["run"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def recorded_vocab_size(run: Path) -> int | None:
    """The vocabulary size that the run was started with; None if no readable record says it."""
    try:
        record = read_json(run / SETTINGS_FILE)
        return int(record["run"]["model"]["vocab_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
