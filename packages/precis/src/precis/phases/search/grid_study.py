"""One grid of values and the result of each point, kept in a database by Optuna so that it survives a kill.

It uses Optuna's `ask` and `tell`, not `Study.optimize`, which counts an interrupted trial as failed. Here the trial
stays open, and the next `take` returns it first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from precis.phases.search.search_space import Grid, points
from precis.storage.settings_change import refuse_change
from precis_text.errors import missing_extra

STUDY_FILE = "search.sqlite3"
_ASKED = "asked"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A point of the grid; `value` is its score, or None while it is open or if it failed."""

    number: int
    values: Mapping[str, int | float]
    value: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The point, for the terminal."""
        named = ", ".join(f"{name} {value:g}" for name, value in self.values.items())
        return named or "the settings unchanged"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"trial": self.number, "value": self.value, "settings": dict(self.values), **self.facts}


class GridStudy:
    """The points of a grid in an order drawn from a seed, each once.

    Args:
        file: the database; created if it does not exist.
        name: name of the study in it.
        grid: names and their values.
        highest: whether the highest score is the best, or the lowest.
        asked: JSON values that must be the same whenever the study resumes.

    Raises:
        UserError: Optuna is not installed, or the study was started with other values of `asked`.
    """

    def __init__(
        self,
        file: Path,
        name: str,
        grid: Grid,
        *,
        seed: int,
        highest: bool,
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        self._optuna = load_optuna()
        self._highest = highest
        self.size = len(points(grid))
        self._distributions = {
            name: self._optuna.distributions.CategoricalDistribution(list(values))
            for name, values in grid.items()
        }
        self._study = self._optuna.create_study(
            storage=self._optuna.storages.RDBStorage(f"sqlite:///{file.resolve()}"),
            sampler=self._optuna.samplers.GridSampler(grid, seed=seed),
            study_name=name,
            direction="maximize" if highest else "minimize",
            load_if_exists=True,
        )
        if asked is not None:
            self._refuse_other(json.loads(json.dumps(asked)), file)

    def take(self) -> tuple[Trial, bool]:
        """Return the next trial, and whether it is new; an interrupted trial goes first."""
        open_trials = self._study.get_trials(states=(self._optuna.trial.TrialState.RUNNING,))
        if open_trials:
            # This also resumes after a kill in the middle of `ask`: the sampler gives the missing values again.
            taken = self._optuna.trial.Trial(self._study, open_trials[0]._trial_id)
            for name, distribution in self._distributions.items():
                taken.suggest_categorical(name, distribution.choices)
        else:
            taken = self._study.ask(self._distributions)
        return Trial(number=taken.number, values=self._in_order(taken.params)), not open_trials

    def finish(self, trial: Trial, value: float | None, **facts: Any) -> None:
        """Record the score of a trial, or None if it failed, and JSON values about it."""
        states = self._optuna.trial.TrialState
        taken = self._optuna.trial.Trial(self._study, self._study.trials[trial.number]._trial_id)
        for name, fact in facts.items():
            taken.set_user_attr(name, fact)
        # After the last point the sampler stops `Study.optimize`, and raises as none is running; all is stored by then.
        with suppress(RuntimeError):
            self._study.tell(taken, value, state=states.FAIL if value is None else states.COMPLETE)

    @property
    def finished(self) -> list[Trial]:
        """Finished trials: best first, earlier before later at equal scores, failed ones last."""
        states = self._optuna.trial.TrialState
        trials = [
            Trial(number=t.number, values=self._in_order(t.params), value=t.value, facts=t.user_attrs)
            for t in self._study.get_trials(states=(states.COMPLETE, states.FAIL))
        ]
        return sorted(trials, key=self._rank)

    @property
    def best(self) -> Trial | None:
        """The best finished trial, or None without a score."""
        first = next(iter(self.finished), None)
        return first if first is not None and first.value is not None else None

    def _rank(self, trial: Trial) -> tuple[bool, float, int]:
        value = 0.0 if trial.value is None else trial.value
        return trial.value is None, -value if self._highest else value, trial.number

    def _in_order(self, values: Mapping[str, Any]) -> dict[str, int | float]:
        return {name: values[name] for name in self._distributions}

    def _refuse_other(self, asked: Mapping[str, Any], file: Path) -> None:
        before = self._study.user_attrs.get(_ASKED)
        if before is None:
            self._study.set_user_attr(_ASKED, asked)
            return
        remedy = "keep the old value, start over with --restart, or use another --out"
        refuse_change(f"the search in {file.parent}", before, asked, remedy=remedy)


def load_optuna() -> Any:
    """Import Optuna; raise `UserError` if its extra, `search`, is not installed."""
    try:
        import optuna
    except ImportError:
        raise missing_extra("search", wanted_by="--search") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
