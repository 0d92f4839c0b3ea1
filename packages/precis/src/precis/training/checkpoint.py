"""Checkpoints of one run: saved atomically, verified before use; the newest and the best are kept.

    checkpoints/
      step-00000200/     model.safetensors  optimizer.safetensors  state.json  seal.json
      step-00000400/
      best-00000180/     model.safetensors  seal.json: weights only, since no run resumes from here
      best.json          {"step": 180, "metric": "loss", "value": 2.31, "chosen_by": "loss"}

A validation writes nothing. The best weights so far stay in memory until the next checkpoint, and are written just
before it: no checkpoint names a missing best one. A run killed in between finds the same best weights again, since it
repeats the same steps (docs/adr/0009).

No file is a pickle. Randomness and data order need no saved state, since both are pure functions of the step
(`updates.seed_position`).
"""

import dataclasses
import logging
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn, optim

from precis.messages import Notify
from precis.storage.atomic import sync_directory, to_json, unfinished_names, write_file
from precis.storage.model_files import read_header
from precis.storage.seal import (
    SEAL,
    DamagedError,
    check_seal,
    finish_or_remove,
    remove_folder,
    replace_folder,
)
from precis.training.state_tensors import (
    check_optimizer,
    check_weights,
    load_model_tensors,
    load_optimizer_tensors,
    model_tensors,
    optimizer_tensors,
    record_from,
    size_in_bytes,
)
from precis_text.bounded_io import parse_json
from precis_text.errors import RunError, UserError

_logger = logging.getLogger("precis.training")
MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
STATE_FILE = "state.json"
BEST_FILE = "best.json"
_NAME = re.compile(r"(step|best)-(\d{8,})")
_MARGIN = 16 * 2**20  # bytes that a checkpoint leaves free, for logs and plots


@dataclass
class RunState:
    """The state of a run besides its weights: everything that the next step depends on or adds to.

    Attributes:
        step: optimizer steps done (skipped ones included).
        validated_step: the last validated step.
        best_step, best_value, best_loss: the best validation so far, and its loss, which breaks ties; None if not
            measured.
        best_is_chance: whether its score was no better than chance, so that its loss decided.
        is_finite: whether loss and weights were finite at the last validation.
        stale_validations: validations since the last progress.
        skipped_steps, skipped_in_row: steps skipped because loss or gradient was not finite.
        tokens: processed since the start.
        seconds: training time since the start, over all restarts.
        window: sums for the next metric record, saved so that a resumed run writes the same record as an uninterrupted
            one.
    """

    step: int = 0
    validated_step: int = 0
    best_step: int | None = None
    best_value: float | None = None
    best_loss: float | None = None
    best_is_chance: bool = False
    is_finite: bool = True
    stale_validations: int = 0
    skipped_steps: int = 0
    skipped_in_row: int = 0
    tokens: int = 0
    seconds: float = 0.0
    window: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Saved:
    """A verified checkpoint: its folder, the state of the run, and its training settings."""

    folder: Path
    state: RunState
    settings: Mapping[str, Any]


class Checkpoints:
    """The ``checkpoints`` folder of a run."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        """Use `folder`, created by the first save; keep the newest `keep` checkpoints and the best one."""
        self.folder = folder
        self._keep = keep
        self._held: dict[str, Tensor] = {}  # the best weights so far, on the CPU
        self._held_step: int | None = None

    def path(self, step: int) -> Path:
        """Return the path of the checkpoint of `step`, which need not exist."""
        return self.folder / f"step-{step:08d}"

    def best_path(self, step: int) -> Path:
        """Return the path of the weights of `step`, a best step, which need not exist."""
        alone = self._path_of_best(step)
        return alone if alone.is_dir() else self.path(step)

    def _path_of_best(self, step: int) -> Path:
        return self.folder / f"best-{step:08d}"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, damaged ones included, oldest first."""
        return self._numbers("step")

    def _numbers(self, kind: str) -> list[int]:
        if not self.folder.is_dir():
            return []
        matches = (_NAME.fullmatch(path.name) for path in self.folder.iterdir() if _is_own_folder(path))
        return sorted(int(match[2]) for match in matches if match and match[1] == kind)

    def save(
        self, model: nn.Module, optimizer: optim.Optimizer, state: RunState, settings: Mapping[str, Any]
    ) -> Path:
        """Write the checkpoint of `state.step`, then prune.

        Raises:
            RunError: the disk is full or failed; partial files are removed, and older checkpoints are
                unchanged.
        """
        folder = self.path(state.step)

        def write(temporary: Path) -> None:
            save_file(model_tensors(model), temporary / MODEL_FILE)
            save_file(optimizer_tensors(model, optimizer), temporary / OPTIMIZER_FILE)
            record = {"state": dataclasses.asdict(state), "settings": dict(settings)}
            (temporary / STATE_FILE).write_text(to_json(record), encoding="utf-8")

        with self._writing(state.step):
            self._make_folder()
            if state.best_step != state.step:
                self._write_held(state)
            self._check_space(size_in_bytes(model), what=f"the checkpoint of step {state.step}")
            remove_folder(self._path_of_best(state.step))  # left by a run that stopped before this save
            _move_foreign(folder)
            replace_folder(folder, write)
            self._held, self._held_step = {}, None
            self.mark_best(state, settings)
        self.prune(best=state.best_step)
        return folder

    def _make_folder(self) -> None:
        """Create the folder of checkpoints, and flush its name to the disk: a power loss must not remove it."""
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            for place in (self.folder.parent, self.folder.parent.parent):
                sync_directory(place)

    def save_best(self, state: RunState) -> Path | None:
        """Write the best weights of a run that cannot continue, and return their path; None without a best step.

        Raises:
            RunError: the disk is full or failed.
        """
        if state.best_step is None:
            return None
        with self._writing(state.best_step):
            self._make_folder()
            self._write_held(state)
        return self.best_path(state.best_step)

    def _write_held(self, state: RunState) -> None:
        step = self._held_step
        if step is not None and step == state.best_step:
            needed = sum(tensor.nbytes for tensor in self._held.values())
            self._check_space(needed, what=f"the best checkpoint, of step {step},")
            place = self._path_of_best(step)
            _move_foreign(place)
            replace_folder(place, lambda folder: save_file(self._held, folder / MODEL_FILE))

    def hold(self, model: nn.Module, step: int) -> None:
        """Keep the weights of `step`, the best so far, in memory until the next `save` writes them."""
        self._held_step = None  # until all are copied
        for name, tensor in model_tensors(model).items():
            # On the CPU these are the model's own tensors, so copy them; reuse existing buffers.
            self._held[name] = self._held[name].copy_(tensor) if name in self._held else tensor.clone()
        self._held_step = step

    @contextmanager
    def _writing(self, step: int) -> Iterator[None]:
        try:
            yield
        except (OSError, SafetensorError) as error:
            kept = [other for other in self.steps() if other != step]
            raise RunError(
                f"checkpoint of step {step} could not be written to {self.folder}: {error}; "
                f"{_kept(kept)}; free some space and repeat the command"
            ) from error

    def newest_valid(self, say: Notify, *, model: nn.Module | None = None) -> Saved | None:
        """Return the newest checkpoint that verifies; None for a new run.

        `say` reports each damaged checkpoint, and foreign files under a checkpoint's name or in one.

        Args:
            model: the model of these weights: those of other types, or not finite, are not used.

        Raises:
            RunError: all checkpoints are damaged, or one cannot be read: the cause may be temporary, and
                resuming from an older one would delete it.
        """
        for path in self._foreign():
            say(f"{path}: is a file or a link, not a checkpoint; ignored")
        for step in reversed(self.steps()):
            try:
                return self._read(step, say, model)
            except DamagedError as damage:
                say(f"skipped damaged checkpoint {self.path(step)}: {damage}")
        if self.steps():
            raise RunError(
                f"none of the {len(self.steps())} checkpoints in {self.folder} can be used; put an intact copy "
                f"of one there, or start again with --restart"
            )
        return None

    def _foreign(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted(p for p in self.folder.iterdir() if _NAME.fullmatch(p.name) and not _is_own_folder(p))

    def verify_best(self, step: int, *, model: nn.Module | None = None) -> None:
        """Raise `DamagedError` unless the weights of `step`, the best, are complete and unchanged, and fit `model`.

        Raises:
            RunError: they cannot be read, so their state is unknown.
        """
        with self._reading(step):
            folder = self.best_path(step)
            if MODEL_FILE not in check_seal(folder, thorough=True):
                raise DamagedError(f"{MODEL_FILE} is not in its seal")
            if model is not None:
                check_weights(model, folder / MODEL_FILE)

    def prune(self, *, best: int | None) -> None:
        """Remove all checkpoints except the newest ones and the best."""
        newest = self.steps()[-self._keep :]
        self._remove("step", lambda step: step != best and step not in newest)
        self._remove("best", lambda step: step != best)

    def remove_newer(self, step: int) -> None:
        """Remove checkpoints after `step`: damaged ones, which would otherwise count as the newest, and best
        weights of steps that will be repeated.
        """
        for kind in ("step", "best"):
            self._remove(kind, lambda other: other > step)

    def clear(self) -> None:
        """Remove all checkpoints of the run."""
        self.remove_newer(-1)
        (self.folder / BEST_FILE).unlink(missing_ok=True)

    def _remove(self, kind: str, doomed: Callable[[int], bool]) -> None:
        for step in self._numbers(kind):
            if doomed(step):
                remove_folder(self.folder / f"{kind}-{step:08d}")

    def tidy(self) -> None:
        """Remove what a killed save left, or finish the save if only the rename is missing."""
        if self.folder.is_dir():
            for name in sorted(unfinished_names(self.folder)):
                if _NAME.fullmatch(name) or name == BEST_FILE:  # not a user's file
                    finish_or_remove(self.folder / name)

    def check_space_for_run(self, size: int) -> None:
        """Raise `RunError` unless the disk has room for all checkpoints of a run, `size` bytes each.

        These are the newest ones, the best one, and the one being written.
        """
        copies = max(1, self._keep + 2 - len(self.steps()) - bool(self._numbers("best")))
        self._check_space(copies * size, what=f"room for {copies} checkpoints of {_size(size)} each")

    def _check_space(self, needed: int, *, what: str) -> None:
        existing = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        if free < needed + _MARGIN:
            raise RunError(
                f"{what} needs {_size(needed + _MARGIN)} and {existing} has {_size(free)} free; "
                f"{_kept(self.steps())}; free some space and repeat the command"
            )

    def _read(self, step: int, say: Notify, model: nn.Module | None) -> Saved:
        folder = self.path(step)
        with self._reading(step):
            sealed = check_seal(folder, thorough=True)
            for name in (STATE_FILE, MODEL_FILE, OPTIMIZER_FILE):
                if name not in sealed:
                    raise DamagedError(f"{name} is not in its seal")
            content = (folder / STATE_FILE).read_bytes()
            extra = sorted({path.name for path in folder.iterdir()} - sealed - {SEAL})
        try:
            record = parse_json(content)
            state = record_from(RunState, record["state"])
            settings = dict(record["settings"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{STATE_FILE} cannot be read ({error})") from None
        if state.step != step:
            raise DamagedError(f"it contains step {state.step}")
        if model is not None:
            check_weights(model, folder / MODEL_FILE, finite=state.is_finite)
            stepped = state.step > state.skipped_steps
            check_optimizer(folder / OPTIMIZER_FILE, has_stepped=stepped, finite=state.is_finite)
        if extra:
            say(f"checkpoint {folder} also contains {extra[0]}, which precis did not write; ignored")
        return Saved(folder=folder, state=state, settings=settings)

    @contextmanager
    def _reading(self, step: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"checkpoint {self.path(step)} cannot be read ({error}); nothing was deleted; repeat the command, "
                "or move that folder away to resume without it"
            ) from error

    def mark_best(self, state: RunState, settings: Mapping[str, Any]) -> None:
        """Name the best checkpoint in ``best.json``, for people; precis itself reads `RunState`."""
        if state.best_step is None:
            (self.folder / BEST_FILE).unlink(missing_ok=True)
        else:
            metric = settings.get("select", {}).get("metric")
            chosen_by = "loss" if state.best_is_chance else metric
            record = {
                "step": state.best_step, "value": state.best_value, "metric": metric, "chosen_by": chosen_by,
            }  # fmt: skip
            write_file(self.folder / BEST_FILE, to_json(record))


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _move_foreign(path: Path) -> None:
    """Rename a foreign file or link that has the name of a checkpoint."""
    if path.is_symlink() or path.is_file():
        kept = path.with_name(f"{path.name}.moved-{secrets.token_hex(4)}")
        path.rename(kept)
        _logger.warning(
            "%s was a file or a link that precis did not write; renamed it to %s", path, kept.name
        )


def load_weights(model: nn.Module, folder: str | Path) -> None:
    """Verify a checkpoint (``.../checkpoints/step-N``) and load its weights into `model`.

    Raises:
        UserError: the checkpoint does not exist, is damaged, or belongs to another model.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"checkpoint {folder} does not exist; check the path")
    try:
        if MODEL_FILE not in check_seal(folder, thorough=True):
            raise DamagedError(f"{MODEL_FILE} is not in its seal")
        read_header(folder / MODEL_FILE)
    except (DamagedError, UserError) as damage:
        raise UserError(f"checkpoint {folder} is damaged: {damage}; use another one") from None
    load_model_tensors(model, load_file(folder / MODEL_FILE), origin=f"checkpoint {folder}")


def restore(model: nn.Module, optimizer: optim.Optimizer, folder: Path) -> None:
    """Load a verified checkpoint into `model` and `optimizer`; raise `UserError` if it is another model's."""
    origin = f"checkpoint {folder}"
    # A run marked as diverged may have weights that are not finite; `newest_valid` has checked all others.
    load_model_tensors(model, load_file(folder / MODEL_FILE), origin=origin, finite=False)
    load_optimizer_tensors(model, optimizer, load_file(folder / OPTIMIZER_FILE), origin=origin)


def _kept(steps: list[int]) -> str:
    return f"the checkpoint of step {steps[-1]} is kept" if steps else "no earlier checkpoint exists"


def _size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
