"""A search: which points are tried, what is kept, what a stopped one does, and what it refuses."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from precis.generation.generation_settings import settings_of
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.search import grid_search as module
from precis.phases.search.grid_search import FineTunedModel, Searched, is_search, search
from precis.phases.search.grid_study import GridStudy
from precis.phases.search.search_space import SearchSpace, with_ranges
from precis.phases.train import finetuning as finetuning
from precis.phases.train.pair_training import PairRequest
from precis.recipes.planning import resolve_run
from precis.training.callbacks import StartInfo, StepInfo
from precis_text.errors import RunError, UserError
from tests.tiny_models import save

BRIEF = (
    "train.warmup_steps=1",
    "train.select=loss",
    "train.skip_limit=2",
    "max_source=48",
    "max_target=8",
    "generated_rows=3",
    "generation.max_tokens=6",
)
NOTHING = ("warmup_steps=none", "learning_rate=none", "batch_size=none", "epochs=none")
NO_DECODING = ("beams=none", "length_penalty=none", "no_repeat_ngram=none")
RATES = (*NOTHING[:1], *NOTHING[2:], "learning_rate=1e-12,1e-2", *NO_DECODING)


class Watcher:
    """Remembers where trainings began; `stop` sends a signal at the first step."""

    def __init__(self, *, stop: bool = False) -> None:
        self.began: list[tuple[str, int]] = []
        self.stop = stop

    def __call__(self) -> Sequence[Any]:
        return [self]

    def on_start(self, info: StartInfo) -> None:
        self.began.append((info.folder.name, info.first_step))

    def on_step(self, info: StepInfo) -> None:
        if self.stop:
            self.stop = False
            os.kill(os.getpid(), signal.SIGTERM)

    def on_validation(self, info: Any) -> None: ...
    def on_end(self, result: Any) -> None: ...


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("zcodepp", tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"document": f"Ann sings the song number {n}.", "summary": "Ann sings."} for n in range(12)]
    for split, part in (("train", rows[:8]), ("dev", rows[8:])):
        folder = tmp_path / "pairs"
        folder.mkdir(exist_ok=True)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    return tmp_path / "pairs"


def run_it(
    model: str | None, data: Path, out: Path, ranges: Sequence[str], *more: str, **options: Any
) -> Searched:
    settings = {text.partition("=")[0]: text for text in (*BRIEF, "train.steps=2", *more)}
    run = resolve_run("pretrained", assignments=settings.values())
    of_search = {name: options.pop(name) for name in ("trials", "callbacks") if name in options}
    return search(
        FineTunedModel(run=run),
        PairRequest(sources=NamedPairs(data=str(data)).sources(), out=out, start=model, **options),
        space=with_ranges(SearchSpace(), ranges),
        **{"callbacks": lambda: [], **of_search},
    )


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.long
def test_the_best_training_and_its_best_decoding_are_exported(model: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ranges = (*RATES[:4], "beams=1,2", "length_penalty=none", "no_repeat_ngram=0,1")
    done = run_it(model, data, out, ranges)
    assert done.model == out / "model"
    assert [trial.values["learning_rate"] for trial in done.trials] == [1e-2, 1e-12]
    assert len(done.decodings) == 4
    record = json.loads((out / "search.json").read_text())
    losses = [trial["value"] for trial in record["trials"]]
    assert losses == sorted(losses)
    assert losses[0] < losses[1]
    scores = [trial["value"] for trial in record["decodings"]]
    assert scores == sorted(scores, reverse=True)
    best = f"{done.trials[0].number:03d}"
    assert {"model", "settings.json"} <= set(files(out / "trials" / best))
    assert {path.parent.name for path in (out / "trials").glob("*/model")} == {best}
    assert not list((out / "trials").glob("*/checkpoints"))
    exported, trained = load_model(out), load_model(out / "trials" / best)
    own = settings_of(exported.model).to_dict()
    assert own.items() >= done.decodings[0].values.items()
    assert all(map(lambda a, b: a.equal(b), exported.model.parameters(), trained.model.parameters()))
    assert locate(out).use.max_source == 48
    settings = json.loads((out / "settings.json").read_text())["run"]
    assert settings["train"]["learning_rate"] == 1e-2
    assert settings["generation"].items() >= done.decodings[0].values.items()
    assert [len(table.rows) for table in done.tables()] == [2, 4]


@pytest.mark.long
def test_fewer_trials_are_distinct_points_and_more_of_them_later_add_to_these(
    model: str, data: Path, tmp_path: Path
) -> None:
    ranges = (*NO_DECODING, *NOTHING[:1], "learning_rate=1e-4,1e-3", "batch_size=4,8", "epochs=none")
    watcher = Watcher()
    first = run_it(model, data, tmp_path / "out", ranges, trials=2, callbacks=watcher)
    assert [name for name, _ in watcher.began] == ["000", "001"]
    second = run_it(model, data, tmp_path / "out", ranges, trials=9, callbacks=watcher)
    assert [name for name, _ in watcher.began] == ["000", "001", "002", "003"]
    tried = {trial.number: trial.values for trial in second.trials}
    assert len({tuple(values.values()) for values in tried.values()}) == 4
    assert {trial.number: trial.values for trial in first.trials}.items() <= tried.items()


@pytest.mark.long
def test_the_seed_says_which_points(tmp_path: Path) -> None:
    def order(name: str, seed: int) -> list[Any]:
        grid = {"a": (1, 2, 3), "b": (0.1, 0.2)}
        study = GridStudy(tmp_path / name, "s", grid, seed=seed, highest=True)
        taken = []
        for _ in range(study.size):
            trial, _ = study.take()
            study.finish(trial, 0.0)
            taken.append(tuple(trial.values.items()))
        return taken

    first = order("first", 1)
    assert len(set(first)) == 6
    assert first == order("second", 1) != order("third", 2)


@pytest.mark.long
def test_an_interrupted_trial_goes_on_from_its_checkpoint(model: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped = run_it(model, data, out, RATES, callbacks=Watcher(stop=True))
    assert (stopped.model, stopped.trials) == (None, [])
    watcher = Watcher()
    assert run_it(model, data, out, RATES, callbacks=watcher).model == out / "model"
    assert watcher.began == [("000", 1), ("001", 0)]
    whole = run_it(model, data, tmp_path / "whole", RATES)
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (out, tmp_path / "whole")]
    assert weights[0] == weights[1]
    assert whole.trials[0].number == run_it(model, data, out, RATES).trials[0].number


@pytest.mark.long
def test_a_kill_in_the_middle_of_taking_a_trial_loses_no_point(tmp_path: Path) -> None:
    grid = {"a": (1, 2), "b": (3, 4)}

    def study() -> GridStudy:
        return GridStudy(tmp_path / "s.sqlite3", "s", grid, seed=0, highest=True)

    study()._study.ask()  # a trial without values
    taken: list[Any] = []
    for _ in range(4):
        trial, is_new = study().take()
        again, _ = study().take()
        assert (again, is_new) == (trial, bool(taken))
        study().finish(trial, 1.0)
        taken.append(tuple(trial.values.values()))
    assert sorted(taken) == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert [trial.number for trial in study().finished] == [0, 1, 2, 3]


@pytest.mark.long
def test_decoding_goes_on_where_it_was(
    model: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = (*NOTHING, "beams=1,2,3", *NO_DECODING[1:])
    noted: list[str] = []

    def notify(line: str) -> None:
        noted.append(line)
        if line.startswith("decoding 2 of 3"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_it(model, data, tmp_path / "out", ranges, notify=notify)
    assert not (tmp_path / "out" / "model").exists()
    told: list[str] = []
    done = run_it(model, data, tmp_path / "out", ranges, notify=told.append)
    assert [line[:15] for line in told if line[:10] == "decoding 1" or " of 3:" in line] == [
        "decoding 3 of 3"
    ]
    assert len(done.decodings) == 3


@pytest.mark.long
def test_a_diverging_trial_fails_and_the_search_goes_on(model: str, data: Path, tmp_path: Path) -> None:
    rates = (*NOTHING[:1], *NOTHING[2:], "learning_rate=1e-3,1e30", *NO_DECODING)
    steps = ("train.steps=6", "train.warmup_steps=0")
    done = run_it(model, data, tmp_path / "out", rates, *steps)
    assert [(trial.values["learning_rate"], trial.value is None) for trial in done.trials] == [
        (1e-3, False),
        (1e30, True),
    ]
    assert "not finite" in done.trials[1].to_dict()["why"]
    rates = (*NOTHING[:1], *NOTHING[2:], "learning_rate=1e30", *NO_DECODING)
    with pytest.raises(RunError, match="all 1 trials"):
        run_it(model, data, tmp_path / "bad", rates, *steps)


def test_another_failure_ends_the_search_and_its_trial_stays_open(
    model: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finetune(*_: Any, **__: Any) -> None:
        raise RunError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(module, "finetune", finetune)
        with pytest.raises(RunError, match="the disk is full"):
            run_it(model, data, tmp_path / "out", (*NOTHING, *NO_DECODING))
    done = run_it(model, data, tmp_path / "out", (*NOTHING, *NO_DECODING))
    assert [trial.value is None for trial in done.trials] == [False]


@pytest.mark.long
def test_trials_of_a_new_model_share_one_tokenizer(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def train_tokenizer(*arguments: Any, **options: Any) -> Any:
        trained.append(options)
        return original(*arguments, **options)

    original = finetuning.train_tokenizer  # type: ignore[attr-defined]
    monkeypatch.setattr(finetuning, "train_tokenizer", train_tokenizer)
    small = (
        "model.hidden_size=32",
        "model.num_attention_heads=2",
        "model.intermediate_size=64",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.vocab_size=380",
    )
    done = run_it(None, data, tmp_path / "out", RATES, *small)
    assert (len(trained), len(done.trials)) == (1, 2)
    assert (tmp_path / "out" / "tokenizer" / "tokenizer.json").is_file()


@pytest.mark.long
def test_a_search_is_not_continued_as_another(model: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_it(model, data, out, RATES, trials=1)
    refused = {
        "with space.learning_rate=": {"ranges": (*NOTHING, *NO_DECODING)},
        "with train.weight_decay=": {"more": ["train.weight_decay=0.5"]},
        "without examples, now 4; ": {"examples": 4},
        "with start=": {"model": None},
    }
    for words, change in refused.items():
        with pytest.raises(UserError, match=f"was started {words}"):
            again(model, data, out, **change)  # type: ignore[arg-type]
    (data / "train.jsonl").write_text((data / "dev.jsonl").read_text())
    with pytest.raises(UserError, match="was started with data="):
        again(model, data, out)
    watcher = Watcher()
    again(model, data, out, restart=True, callbacks=watcher, trials=1)
    assert watcher.began == [("000", 0)]


def again(usual: str, data: Path, out: Path, **change: Any) -> Searched:
    ranges, more = change.pop("ranges", RATES), change.pop("more", [])
    return run_it(change.pop("model", usual), data, out, ranges, *more, **change)


@pytest.mark.slow
def test_a_number_of_validations_may_change(model: str, data: Path, tmp_path: Path) -> None:
    run_it(model, data, tmp_path / "out", RATES, trials=1)
    assert len(run_it(model, data, tmp_path / "out", RATES, "train.patience=3").trials) == 2


@pytest.mark.parametrize(
    ("ranges", "options", "says"),
    [
        (("learning_rate=0",), {}, "learning_rate=0.0 must be above 0"),
        (("beams=0",), {}, "beams=0 must be 1 to 128"),
        ((), {"trials": 0}, "--trials 0: use 1 or more"),
    ],
)
def test_what_would_fail_later_is_refused_at_once(
    ranges: Sequence[str], options: dict[str, Any], says: str, model: str, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=says):
        run_it(model, data, tmp_path / "out", ranges, **options)
    assert not (tmp_path / "out").exists()


def test_a_run_is_not_taken_for_a_search(model: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "checkpoints" / "step-00000001").mkdir(parents=True)
    (tmp_path / "out" / "lock").write_text("1 host\n")  # as every run leaves it
    with pytest.raises(UserError, match="contains a run, not a search"):
        run_it(model, data, tmp_path / "out", RATES, restart=True)
    assert not is_search(tmp_path / "out")


def test_several_processes_are_refused(
    model: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="in one process"):
        run_it(model, data, tmp_path / "out", RATES)


def test_without_optuna_the_package_is_named(
    model: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"--search needs .*pip install 'optuna<6,>=5'"):
        run_it(model, data, tmp_path / "out", RATES)
