"""An experiment as a list of named steps, which any number of processes can share and resume.

Each step has its own folder and writes `result.json` when it is done. A step with a result is never run again, and an
interrupted step resumes as its own training does. These files are the whole state.

A process that works on a step holds a lock on its folder; the system releases the lock when the process ends, however
it ends. So the same command can run in a second terminal, or on another machine that shares the folder. Its file system
must have POSIX locks, as NFS version 4 does.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from precis.messages import Notify
from precis.phases.output_folders import claim_folder
from precis.phases.run_folder import versions
from precis.recipes.run_plan import native_precision
from precis.storage.atomic import write_file
from precis.storage.locks import HeldError, locked
from precis.storage.settings_change import refuse_change
from precis_text.bounded_io import read_json
from precis_text.config import Settings
from precis_text.errors import RunError, UserError

RESULT_FILE = "result.json"
STUDY_FILE = "study.json"
_SPENT_FILE = "spent.json"
_NAMED = 12  # unfinished steps that a table names
#: An entry of a study's record -> the option that decides it; the name of the study is an argument.
_OPTIONS = {
    "study": "",
    "settings.name": "--scale",
    "data": "--data",
    "precision": "--precision",
    "settings.start": "--model",
    "settings.weights": "--model of the weights",
    "settings.beside": "--beside",
}
_OF_MODELS = ("start", "weights", "beside")
#: The options of the command that a step's work follows; whatever else a message names, the study decides.
_OF_STEPS = ("--data", "--precision", "--threads")
_ADVICE = re.compile(r"(?<![\w-])--[a-z][\w-]*|`precis ")

Result = dict[str, Any]


class Interrupted(Exception):  # noqa: N818 - not an error
    """A step received a signal to stop; start the study again."""


@final
@dataclass(frozen=True)
class Step:
    """One piece of work.

    Attributes:
        needs: earlier steps that must have results before this one can start.
        run: takes the step's folder and returns JSON values, or raises `Interrupted`.
        tidy: removes files from the folder that are no longer needed after the result is written; before that, an
            interrupted step resumes from them.
        updates: the updates of the weights that it makes, roughly, for a plan; 0 if it trains nothing.
    """

    name: str
    run: Callable[[Path], Result]
    tidy: Callable[[Path], None] = lambda _: None
    needs: tuple[str, ...] = ()
    updates: int = 0


@final
class Study:
    """The folder of an experiment."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        name: str,
        data: Path | None = None,
        only_look: bool = False,
    ) -> None:
        """Use the folder for this experiment on the data sets in `data`.

        More or fewer seeds are the same experiment: each has its own steps.

        Args:
            only_look: create nothing.

        Raises:
            UserError: it contains another experiment, or this one with other settings or precision.
        """
        self.folder = claim_folder(folder, is_ours=lambda place: (place / STUDY_FILE).is_file())
        place = None if data is None else str(data.resolve())
        record = json.loads(json.dumps({"study": name, "settings": settings.to_dict(), "data": place}))
        record["precision"] = native_precision()
        path = folder / STUDY_FILE
        if path.exists():
            before = _read_study(path)
            before = {key: before.get(key) for key in record}
            _refuse_change(folder, _compared(before), _compared(record))
        elif not only_look:
            folder.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps({**record, "versions": versions()}, indent=2) + "\n")

    def place(self, step: str) -> Path:
        """Return the folder of a step."""
        return self.folder / "steps" / step

    def result(self, step: str) -> Result | None:
        """Return the result of a step, or None if it is not done."""
        path = self.place(step) / RESULT_FILE
        if not path.exists():
            return None
        found: Result = read_json(path)
        return found

    def work(
        self,
        steps: Iterable[Step],
        notify: Notify,
        *,
        show: Callable[[Mapping[str, Result]], None] = lambda _: None,
        poll_seconds: float = 5.0,
    ) -> Mapping[str, Result]:
        """Do the remaining steps in order, concurrently with other processes; return all results by name.

        A process takes the first step that is not done, that no other process works on, and whose needs are met. If
        there is none, it waits for the others.

        Args:
            show: called with the results so far after every step that this process finishes, and at the end.
            poll_seconds: seconds between two checks of the folder while waiting.

        Raises:
            Interrupted: a step received a signal to stop.
            UserError: this is one of several processes of one run.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise UserError(
                "a study does not run under torchrun; start the same command several times instead"
            )
        listed = list(steps)
        _check_needs(listed)
        self._tidy(listed)
        waiting: tuple[str, ...] = ()
        while True:
            results = self.results(listed)
            left = [(number, step) for number, step in enumerate(listed, start=1) if step.name not in results]
            if not left:
                show(results)
                return results
            if self._take_one(left, results, notify, total=len(listed)):
                show(self.results(listed))
                waiting = ()
                continue
            names = tuple(step.name for _, step in left)
            if names != waiting:
                notify(f"waiting for other processes: {len(left)} of {len(listed)} steps are left")
                waiting = names
            time.sleep(poll_seconds)

    def results(self, steps: Iterable[Step]) -> dict[str, Result]:
        """Return the results of those steps that are done, by name."""
        found = {step.name: self.result(step.name) for step in steps}
        return {name: result for name, result in found.items() if result is not None}

    def _take_one(
        self, left: Iterable[tuple[int, Step]], results: Mapping[str, Result], notify: Notify, *, total: int
    ) -> bool:
        """Do the first step that can be done now; return whether there was one."""
        for number, step in left:
            if not results.keys() >= set(step.needs):
                continue
            with self._held(step) as is_ours:
                # Another process may have finished it after we read the results and before we got the lock.
                if is_ours and self.result(step.name) is None:
                    notify(f"[{number}/{total}] {step.name}")
                    self._do(step)
                    step.tidy(self.place(step.name))
                    return True
        return False

    def _tidy(self, steps: Iterable[Step]) -> None:
        """Remove files that a killed process left behind."""
        for step in steps:
            if self.result(step.name) is not None:
                with self._held(step) as is_ours:
                    if is_ours:
                        step.tidy(self.place(step.name))

    @contextmanager
    def _held(self, step: Step) -> Iterator[bool]:
        """Hold the step's folder for this process only; yield False if another process holds it."""
        place = self.place(step.name)
        place.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(place))
            except HeldError:
                yield False
                return
            yield True

    def _do(self, step: Step) -> None:
        place = self.place(step.name)
        spent = _read_spent(place)
        began, cpu = time.perf_counter(), _cpu_seconds()
        try:
            found = step.run(place)
        except (UserError, RunError) as problem:
            remedy = (
                f"; the study decides this: delete {place} and repeat the command, or use another --scale"
            )
            raise type(problem)(f"step {step.name}: {in_a_study(str(problem), remedy=remedy)}") from problem
        finally:  # an interrupted try counts too; a killed one leaves no record
            spent = {
                "seconds": spent["seconds"] + time.perf_counter() - began,
                "cpu_seconds": spent["cpu_seconds"] + _cpu_seconds() - cpu,
            }
            write_file(place / _SPENT_FILE, json.dumps(spent) + "\n")
        found = {**found, **spent}
        write_file(place / RESULT_FILE, json.dumps(found, indent=2) + "\n")


def in_a_study(text: str, *, remedy: str = "") -> str:
    """Return a message of a step without advice on options and commands that its study decides.

    Args:
        remedy: takes the place of that advice.
    """
    foreign = next((each for each in _ADVICE.finditer(text) if each[0] not in _OF_STEPS), None)
    before = "" if foreign is None else text[: foreign.start()]
    ends = (before.rfind(mark) for mark in ("; ", " (", ": "))  # advice mostly comes after a semicolon
    end = next((place for place in ends if place > 0), None)
    return text if end is None else text[:end] + remedy


def _refuse_change(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume a study with other options, in the words of the command line.

    Raises:
        UserError: an option has changed, or the settings of the scale did with the version of precis.
    """
    for name, option in _OPTIONS.items():
        was, is_now = (_words(record, name, option) for record in (before, now))
        if was != is_now:
            raise UserError(
                f"{folder} was started with {was}, now {is_now}; resume with {was}, or name another folder with --out"
            )
    remedy = "another version of precis started it: name another folder with --out"
    refuse_change(folder, before, now, remedy=remedy)


def _words(record: Mapping[str, Any], name: str, option: str) -> str:
    """Return the words of the command line for an entry of a record by its dotted name."""
    found: Any = record
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    values = found if isinstance(found, list) else [found] if found else []
    return " ".join(f"{option} {value}".strip() for value in values) or f"no {option}"


def _compared(record: Any) -> Any:
    """Return a record without its seeds, and without models where none is given: older records name none."""
    if not isinstance(record, dict):
        return record
    kept = {key: value for key, value in record.items() if value or key not in _OF_MODELS}
    return {key: _compared(value) for key, value in kept.items() if not key.endswith("seeds")}


def _read_study(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except UserError:
        found = None
    if not isinstance(found, dict) or "study" not in found:
        raise UserError(f"{path} was not written by precis; name another folder with --out")
    return found


def missing_steps(steps: Iterable[Step], results: Mapping[str, Result]) -> str:
    """Return a line that names the first steps without a result, followed by an empty one; "" if all are done."""
    names = [step.name for step in steps]
    left = [name for name in names if name not in results]
    if not left:
        return ""
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    done = f"{len(names) - len(left)} of {len(names)} steps are done"
    return f"Unfinished: {done}. Missing: {', '.join(left[:_NAMED])}{more}.\n\n"


def chosen_steps(steps: Iterable[Step], only: Sequence[str]) -> list[Step]:
    """Return the steps that match one of the patterns, and those that they need, in their order.

    Args:
        only: patterns of names as in a shell, such as "tuned-2gram-*"; all steps if empty.

    Raises:
        UserError: a pattern matches no step.
    """
    listed = list(steps)
    named = {step.name: step for step in listed}
    chosen: set[str] = set() if only else set(named)
    for pattern in only:
        found = fnmatch.filter(named, pattern)
        if not found:
            kinds = dict.fromkeys(re.sub(r"-\d+$", "-*", name) for name in named)
            raise UserError(f"--only {pattern}: no step matches it; the names are {', '.join(kinds)}")
        chosen.update(found)
    for step in reversed(listed):
        if step.name in chosen:
            chosen.update(step.needs)
    return [step for step in listed if step.name in chosen]


def _check_needs(steps: Iterable[Step]) -> None:
    """Check that steps need earlier steps only, so that one can always be done."""
    earlier: set[str] = set()
    for step in steps:
        unknown = set(step.needs) - earlier
        if unknown:
            raise ValueError(f"step {step.name!r} needs {sorted(unknown)}, but no earlier step has this name")
        if step.name in earlier:
            raise ValueError(f"two steps have the name {step.name!r}")
        earlier.add(step.name)


def _read_spent(place: Path) -> dict[str, float]:
    path = place / _SPENT_FILE
    if not path.exists():
        return {"seconds": 0.0, "cpu_seconds": 0.0}
    spent: dict[str, float] = read_json(path)
    return spent


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
