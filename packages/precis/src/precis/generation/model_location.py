"""Finds a model once: a name becomes a `ModelLocation`, which everything that loads or describes the model takes.

RUN/model/      the folder of a model; a Hugging Face folder holds the same files at its top
RUN/adapter/    an adapter of `precis tune`, which names its base (`precis.generation.adapters`)
RUN/seeds.json  runs with several seeds, each in its folder (`precis.phases.train.seed_runs`)
hub:owner/name  a model on the Hugging Face hub
default         the model that comes with precis
writer          the language model of the package precis-model-writer, whose adapter/ is for short summaries
FILE.gguf       a causal language model with its tokenizer (`precis.generation.gguf_file`)
http://HOST/v1  an endpoint, without files (`precis.generation.writers.endpoint`)
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from precis.data.rows.hub import PREFIX as HUB
from precis.data.rows.hub import hub_name, refuse_absent
from precis.generation.model_metadata import DEFAULT, NO_ADAPTER, PACKAGES, USE_FILE, ModelUse, load_use
from precis.generation.model_names import is_endpoint, is_gguf, model_in, refuse_missing
from precis.storage.model_files import (
    ADAPTER_FOLDER,
    CONFIG,
    SEEDS_FILE,
    adapter_in,
    check_sizes,
    find_adapter,
    plain_settings,
)
from precis.storage.seal import has_seal, sealed_digests
from precis_text.bounded_io import check_inside, read_json
from precis_text.errors import UserError, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from precis.generation.model_folder import CheckedSettings

_logger = logging.getLogger("precis.generation")
IN_A_RUN = ("model", ADAPTER_FOLDER)  # a run folder contains one of them
_DECIDE = (".safetensors", ".json", ".txt", ".model", ".jinja")  # files of a model folder that loading reads


@dataclass(frozen=True)
class ModelLocation:
    """A model that was found: where it is, what it was trained for, and, when asked for, what it consists of.

    Attributes:
        source: what the caller named: the adapter if one was named, else the model.
        base: the name of the model without an adapter.
        place: the folder of the base model's files, which do not link outside it; a GGUF file; its name on the hub,
            or the address of an endpoint.
        adapter: the folder of the adapter, if any.
        use: the modes it was trained for; models from elsewhere have the defaults.
        short: the folder of an adapter that comes with the model, for short summaries (`Prompt.is_short`).
    """

    source: str
    base: str
    place: Path | str
    adapter: Path | None
    use: ModelUse
    short: Path | None = None

    @cached_property
    def folder(self) -> Path | None:
        """The folder of the base model's files; None for a model on the hub, or in a GGUF file."""
        return self.place if isinstance(self.place, Path) and self.gguf is None else None

    @cached_property
    def gguf(self) -> Path | None:
        """The GGUF file of the base model, if it is one."""
        return self.place if isinstance(self.place, Path) and is_gguf(str(self.place)) else None

    @property
    def is_endpoint(self) -> bool:
        """True if the model runs on a server; precis has none of its files."""
        return isinstance(self.place, str) and is_endpoint(self.place)

    @property
    def is_writer(self) -> bool:
        """True for an endpoint and a causal language model, which a `Writer` asks.

        Raises:
            UserError: see `configuration`.
        """
        if self.is_endpoint:
            return True
        if self.gguf is not None:
            from precis.generation.gguf_file import check_gguf

            return bool(check_gguf(self.gguf))
        from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING

        kind = type(self.configuration)
        return kind in MODEL_FOR_CAUSAL_LM_MAPPING and kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING

    def without_adapter(self) -> ModelLocation:
        """Return the location of the base model without the adapter."""
        return self if self.adapter is None else locate(self.base)

    @cached_property
    def settings(self) -> CheckedSettings:
        """The base model's settings, without entries that name code.

        Raises:
            UserError: if its configuration is missing or invalid, or names code, kernels or another model.
        """
        from precis.generation.model_folder import CheckedSettings, look_through

        name = self.base if self.folder is None else self.folder / CONFIG
        if self.is_endpoint:
            raise UserError(f"{self.base}: is an endpoint, whose weights precis cannot open; name a folder")
        if self.gguf is not None:
            return CheckedSettings(_settings_in(self.gguf))
        try:
            found = (
                CheckedSettings(_settings_on_hub(str(self.place)))
                if self.folder is None
                else look_through(self.folder)
            )
            check_sizes(found.model, name, elements=None, tensors=None)
        except Exception as error:
            raise self._invalid(error) from error
        return found

    @cached_property
    def configuration(self) -> PreTrainedConfig:
        """The base model's configuration; copy it before changing it.

        Raises:
            UserError: if it is missing or invalid.
        """
        from precis.generation.model_folder import config_from
        from precis.models import CONVERTED

        values = self.settings.model
        try:
            return CONVERTED.get(str(values.get("model_type")), config_from)(values)
        except Exception as error:
            raise self._invalid(error) from error

    def _invalid(self, error: Exception) -> UserError:
        name = self.base if self.folder is None else self.folder / CONFIG
        if not isinstance(error, UserError):
            return UserError(f"{name}: invalid configuration: {first_line(error)}")
        return (
            error
            if str(error).startswith(str(self.place))
            else UserError(f"{name}: invalid configuration: {error}")
        )

    @property
    def is_classifier(self) -> bool:
        """True if the base model labels texts and does not write.

        Raises:
            UserError: see `configuration`.
        """
        return not self.is_endpoint and self.gguf is None and is_classifier(self.configuration)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """The location and digests of the files that determine the summaries, JSON-ready.

        Resumed work compares fingerprints, so that no file mixes summaries of two models.
        """
        if isinstance(self.place, Path):
            made = {"model": str(self.place.resolve()), "weights": _digest(self.place)}
        else:
            made = {"model": self.place, "weights": ""}
        if self.adapter is not None:
            made |= {"adapter": str(self.adapter.resolve()), "adapter_weights": _digest(self.adapter)}
        return made if self.short is None else made | {"short_adapter": _digest(self.short)}


def locate(model: str | Path | ModelLocation, adapter: str | Path | None = None) -> ModelLocation:
    """Find the model that `--model` and `--adapter` name together, and check that its files stay in its folder.

    Args:
        model: `default`, a run folder (with a `model/`), a Hugging Face folder, or a hub name; an adapter or a run
            folder of `precis tune`, which name their base; or a location, which is returned as it is.
        adapter: an adapter's folder, or the run folder that holds it. It replaces the adapter in `model`, and the one
            that comes with it. `none` leaves both out.

    Raises:
        UserError: if the model or the adapter is missing, `model` is an adapter that does not name its base, or a
            file links to a place outside the folder.
    """
    if isinstance(model, ModelLocation):
        return model if adapter is None else locate(model.base, adapter)
    own = None if str(model) in PACKAGES else find_adapter(model)
    is_bare = str(adapter) == NO_ADAPTER
    given = own if adapter is None else None if is_bare else adapter_in(adapter)
    base = str(model) if own is None else _base_of(own)
    place = _place_of(base)
    for folder in (place, given):
        if isinstance(folder, Path) and not is_gguf(str(folder)):
            check_inside(folder)
    has_own_use = given is not None and (given / USE_FILE).is_file()
    use = load_use(cast(Path, given) if has_own_use else place)
    source = base if is_bare else model if adapter is None else adapter
    short = None if is_bare or given is not None else _short_adapter(base)
    return ModelLocation(str(source), base, place, given, use, short)


def _base_of(adapter: Path) -> str:
    from precis.generation.adapters import base_of

    return base_of(adapter)


def runs_with_seeds(model: str | Path) -> list[Path]:
    """Return the run folders of a model that was trained with several seeds, so that its folder has a `SEEDS_FILE`.

    Raises:
        UserError: the record is damaged, or a run is missing or not finished.
    """
    file = Path(model) / SEEDS_FILE
    seeds = read_json(file).get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in seeds):
        raise UserError(f"{file}: lists no seeds; repeat the command that trained them")
    runs = [file.parent / f"seed-{seed}" for seed in seeds]
    for run in runs:
        if not any((run / name).is_dir() for name in ("model", ADAPTER_FOLDER)):
            raise UserError(f"{run}: this run is not finished; repeat the command that trains in {model}")
    return runs


def is_classifier(config: PreTrainedConfig) -> bool:
    """Return whether a configuration is a classifier's."""
    return any(name.endswith("ForSequenceClassification") for name in config.architectures or ())


def has_default_model() -> bool:
    """Return whether the model that comes with precis is installed."""
    return _default_folder() is not None


def is_default(folder: Path | None) -> bool:
    """Return whether a model's folder is that of the model that comes with precis."""
    return folder is not None and folder == _default_folder()


def default_model() -> Path:
    """Return the folder of the model that comes with precis; raise `UserError` if its package is not installed."""
    if (found := _default_folder()) is None:
        raise UserError(
            "the default model is not installed; name another one with --model, or run "
            "`pip install ./packages/precis-model-small` in a clone of precis"
        )
    return found


def _default_folder() -> Path | None:
    return _folder_of(DEFAULT)


def _packaged(name: str) -> Path:
    """Return the folder of a package's model; raise `UserError` if it is not installed or not converted yet."""
    if (found := _folder_of(name)) is None or not (found / CONFIG).is_file():
        raise UserError(
            f"{name}: this model is not installed; run `make install {name.upper()}=1` in a clone of precis"
        )
    return found


def _folder_of(name: str) -> Path | None:
    spec = find_spec(PACKAGES[name])
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "weights"


def _short_adapter(name: str) -> Path | None:
    """Return the folder of the adapter that comes with a package's model; None if it has none."""
    weights = _folder_of(name) if name in PACKAGES else None
    found = None if weights is None else weights.with_name("adapter")
    return found if found is not None and found.is_dir() else None


def _place_of(source: str) -> Path | str:
    """Return the model's folder or hub name; raise `UserError` for a missing path, a file, or a folder without one."""
    if source == DEFAULT:
        return default_model()
    if source in PACKAGES:
        return _packaged(source)
    if is_endpoint(source):
        return source
    path = Path(source).expanduser()
    if is_gguf(source):
        return path
    if not source.startswith(HUB) and path.is_dir():
        return model_in(path, source)
    refuse_missing(source)
    name = hub_name(source)
    assert name is not None
    refuse_absent(name, CONFIG)
    return name


def _settings_in(file: Path) -> dict[str, Any]:
    from precis.generation.gguf_file import gguf_settings

    return gguf_settings(file)


def _settings_on_hub(name: str) -> dict[str, Any]:
    from precis.models.family import read_settings

    settings = read_settings(name)
    if settings is None:
        raise ValueError("it does not exist")
    return plain_settings(settings, name)


def _digest(place: Path) -> str:
    """Return a digest of the weights, the tokenizer, the settings and the decoding settings, in a folder or one file.

    The digests of a sealed folder come from its seal, which loading checks.
    """
    if has_seal(place):
        return hashlib.sha256(json.dumps(sealed_digests(place), sort_keys=True).encode()).hexdigest()[:16]
    whole = hashlib.sha256()
    files = [place] if place.is_file() else place.iterdir()
    for file in sorted(file for file in files if file.suffix in (*_DECIDE, place.suffix) and file.is_file()):
        whole.update(f"{file.name} {file.stat().st_size}\n".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()[:16]


def named_models(models: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return name -> model, each by its own name or else by the end of its path; "default" for a single one.

    Raises:
        UserError: there are more or fewer names than models, or two of either are the same.
    """
    if not names:
        return dict(zip(["default"] if len(models) == 1 else names_apart(models), models, strict=True))
    if len(names) != len(models):
        raise UserError(
            f"--name is given {len(names)} times, but there are {len(models)} models; give one name for each, or none"
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"--name {twice} is given twice; give each model its own name")
    return dict(zip(names, models, strict=True))


def names_apart(models: Sequence[str | Path], *, option: str = "--model") -> list[str]:
    """Return a name for each model or adapter: the shortest end of its path that no other has.

    Raises:
        UserError: two paths are the same place.
    """
    seen: dict[Path, str | Path] = {}
    for model in models:
        place = _canonical(model)
        if place in seen:
            raise UserError(f"{option} {model} is given twice, also as {seen[place]}; name each once")
        seen[place] = model
    names, ways, counts = [_steps(model)[-1] for model in models], [*map(_steps, seen)], [1] * len(models)
    while len(set(slugs := [*map(slug, names)])) < len(names):
        longer = [at for at, way in enumerate(ways) if slugs.count(slugs[at]) > 1 and counts[at] < len(way)]
        if not longer:
            return list(map(str, models))
        for at in longer:
            counts[at] += 1
            names[at] = "/".join(ways[at][-counts[at] :])
    return names


def _canonical(model: str | Path) -> Path:
    """Return the canonical path of a model."""
    if str(model) == DEFAULT:
        return default_model()
    path = Path(model).expanduser().resolve()
    inside = next((path / name for name in IN_A_RUN if (path / name).is_dir()), path)
    return path if (path / "config.json").is_file() else inside


def slug(name: str) -> str:
    """Return a name as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")


def _steps(model: str | Path) -> tuple[str, ...]:
    """Return the parts of a model's path; a run folder stands for the model in it, and an endpoint for its model."""
    address, _, name = str(model).partition("#")
    if "://" in address:
        return (address, name) if name else (address,)
    path = Path(model)
    if not path.name and path.is_dir():
        path = path.resolve()  # "." has no name
    inside = path.name in IN_A_RUN and path.is_dir()
    return (path.parent if inside else path).parts or (str(model),)
