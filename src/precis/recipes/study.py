"""An experiment as a list of named steps that is taken up wherever it was left.

Each step has a folder of its own and writes `result.json` when it is done; a step with a result is never run again,
and a step that was interrupted goes on as its own training does. The state of the whole is nothing but these files.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from precis.config import Settings
from precis.errors import UserError
from precis.recipes.run_folder import versions
from precis.training.lock import locked
from precis.training.sealed import write_atomically

RESULT_FILE = "result.json"
STUDY_FILE = "study.json"
_SPENT_FILE = "spent.json"

Tell = Callable[[str], None]
Result = dict[str, Any]


class Interrupted(Exception):  # noqa: N818 - not an error
    """A step was asked to stop; the study is to be started again."""


@final
@dataclass(frozen=True)
class Step:
    """One piece of work.

    Attributes:
        run: is given the step's folder and returns JSON values, or raises `Interrupted`.
        tidy: removes from the folder what nobody needs once the result is written; until then it is what an
            interrupted step goes on from.
    """

    name: str
    run: Callable[[Path], Result]
    tidy: Callable[[Path], None] = lambda _: None


@final
class Study:
    """The folder of an experiment."""

    def __init__(self, folder: Path, settings: Settings, *, name: str, data: Path | None = None) -> None:
        """Take the folder for this experiment on the data sets in `data`.

        Raises:
            UserError: it holds another experiment, or this one with other settings.
        """
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder}: is a file; --out names a folder")
        place = None if data is None else str(data.resolve())
        record = json.loads(json.dumps({"study": name, "settings": settings.to_dict(), "data": place}))
        path = folder / STUDY_FILE
        if path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))
            if {key: before.get(key) for key in record} != record:
                raise UserError(
                    f"{folder}: holds {before.get('study')} with other settings or data; name another folder with --out"
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({**record, "versions": versions()}, indent=2) + "\n")

    def place(self, step: str) -> Path:
        """The folder of a step."""
        return self.folder / "steps" / step

    def result(self, step: str) -> Result | None:
        """What a step found, if it is done."""
        path = self.place(step) / RESULT_FILE
        if not path.exists():
            return None
        found: Result = json.loads(path.read_text(encoding="utf-8"))
        return found

    def work(self, steps: Iterable[Step], tell: Tell) -> Mapping[str, Result]:
        """Do what is left to do, in order; all results by name.

        Raises:
            Interrupted: a step was asked to stop.
            UserError: another process works in the folder, or this is one of several processes.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise UserError("a study runs in one process; start it without torchrun")
        listed = list(steps)
        results: dict[str, Result] = {}
        with locked(self.folder):
            for number, step in enumerate(listed, start=1):
                done = self.result(step.name)
                if done is None:
                    tell(f"[{number}/{len(listed)}] {step.name}")
                    done = self._do(step)
                step.tidy(self.place(step.name))  # also what a kill kept from being removed
                results[step.name] = done
        return results

    def _do(self, step: Step) -> Result:
        place = self.place(step.name)
        place.mkdir(parents=True, exist_ok=True)
        spent = _read_spent(place)
        began, cpu = time.perf_counter(), _cpu_seconds()
        try:
            found = step.run(place)
        finally:  # what an interrupted try spent counts too; of one that was killed nothing is known
            spent = {
                "seconds": spent["seconds"] + time.perf_counter() - began,
                "cpu_seconds": spent["cpu_seconds"] + _cpu_seconds() - cpu,
            }
            write_atomically(place / _SPENT_FILE, json.dumps(spent) + "\n")
        found = {**found, **spent}
        write_atomically(place / RESULT_FILE, json.dumps(found, indent=2) + "\n")
        return found


def _read_spent(place: Path) -> dict[str, float]:
    path = place / _SPENT_FILE
    if not path.exists():
        return {"seconds": 0.0, "cpu_seconds": 0.0}
    spent: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
    return spent


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
