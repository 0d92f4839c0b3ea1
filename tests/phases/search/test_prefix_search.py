"""The search for a prefix: Table 7's ranges for what a method uses, and the best adapter at the end."""

import json
from pathlib import Path
from typing import Any

import pytest

import precis
from precis.generation.adapters import base_of
from precis.generation.model_location import locate
from precis.phases.search.prefix_search import prefix_space
from precis.tuning import METHODS, read_adapter
from precis_text.errors import UserError
from tests.tiny_models import save

TABLE_7 = {
    "prefix": {},
    "uniblock": {"encoder_segments": (1, 2, 3), "decoder_segments": (1, 2)},
    "hierblock": {"encoder_segments": (1, 2, 3), "decoder_segments": (1, 2)},
    "truncsa": {"temperature": (1.0, 0.1)},
    "htruncsa": {"temperature": (1.0, 0.1)},
    "softsa": {"temperature": (1.0, 0.1, 0.01)},
    "hsoftsa": {"temperature": (1.0, 0.1, 0.01)},
    "hierblock+softsa": {
        "encoder_segments": (1, 2, 3),
        "decoder_segments": (1, 2),
        "temperature": (1.0, 0.1, 0.01),
    },
}
BRIEF: dict[str, Any] = {
    "steps": 1,
    "batch_size": 4,
    "max_source": 32,
    "max_target": 8,
    "learning_rate": 0.01,
    "select": "loss",
    "settings": ["prefix.length=3", "generated_rows=0"],
}


@pytest.mark.parametrize("method", METHODS)
def test_the_ranges_of_a_method_are_those_of_table_7(method: str) -> None:
    if not TABLE_7[method]:
        with pytest.raises(UserError, match="--method prefix: Table 7 gives no range for its settings"):
            prefix_space(method)
    else:
        assert prefix_space(method).training_grid == TABLE_7[method]


def test_values_of_ones_own_and_settings_that_are_fixed() -> None:
    space = prefix_space(
        "hierblock+softsa",
        asked=["attention.encoder_segments", "train.learning_rate"],
        ranges=["temperature=0.5", "decoder_segments=none"],
    )
    assert space.training_grid == {"temperature": (0.5,)}
    assert prefix_space("prefix", ranges=["learning_rate=0.001,0.01"]).training_grid == {
        "learning_rate": (0.001, 0.01)
    }


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (
            "prefix",
            {"ranges": ["encoder_segments=1,2"]},
            "encoder_segments does not apply to --method prefix",
        ),
        ("hierblock", {"ranges": ["beams=1,2"]}, "--space: unknown range 'beams'"),
        ("hierblock", {"ranges": ["encoder_segments=1,1"]}, "a value is given twice"),
        (
            "hierblock",
            {"asked": ["attention.encoder_segments"], "ranges": ["encoder_segments=1,2"]},
            "--space encoder_segments: attention.encoder_segments was also given",
        ),
    ],
)
def test_ranges_that_cannot_be_searched_are_refused(
    method: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        prefix_space(method, **options)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    precis.write_synthetic(folder, {"train": 8, "dev": 3}, seed=0)
    return folder


@pytest.mark.long
def test_the_best_adapter_is_exported_and_names_its_base(pairs: Path, tmp_path: Path) -> None:
    base, out = save("bart", tmp_path / "base", positions=128), tmp_path / "out"
    asked: Any = {
        "out": out,
        "method": "uniblock",
        "space": ["decoder_segments=none", "encoder_segments=1,3"],
    }
    done = precis.tune(base, pairs, search=True, **asked, **BRIEF)
    assert done.model == out / "adapter"
    assert sorted(trial.values["encoder_segments"] for trial in done.trials) == [1, 3]
    assert done.decodings == []
    best = done.trials[0]
    kept = read_adapter(out / "adapter").tuning
    assert kept == read_adapter(out / "trials" / f"{best.number:03d}" / "adapter").tuning
    assert kept.to_dict()["encoder"]["layer"]["prefix"]["segments"] == best.values["encoder_segments"]
    assert base_of(out / "adapter") == str(base.resolve())
    assert locate(out).adapter == out / "adapter"
    assert len([*(out / "trials").glob("*/adapter")]) == 1
    record = json.loads((out / "settings.json").read_text())
    assert record["plan"]["attention"]["encoder_segments"] == best.values["encoder_segments"]
    before = {path: path.stat().st_mtime_ns for path in (out / "trials").rglob("metrics.jsonl")}
    again = precis.tune(base, pairs, search=True, **asked, **BRIEF)
    assert [trial.number for trial in again.trials] == [trial.number for trial in done.trials]
    assert before == {path: path.stat().st_mtime_ns for path in (out / "trials").rglob("metrics.jsonl")}
    with pytest.raises(UserError, match="contains a search; add search"):
        precis.tune(base, pairs, out=out, method="uniblock", **BRIEF)


def test_a_point_that_no_prefix_can_have_is_refused_before_the_first_trial(
    pairs: Path, tmp_path: Path
) -> None:
    base = save("bart", tmp_path / "base", positions=128)
    asked: Any = {**BRIEF, "settings": ["prefix.length=2", "generated_rows=0"], "method": "hierblock"}
    with pytest.raises(UserError, match="3 segments, but the prefix has length 2"):
        precis.tune(base, pairs, search=True, out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


def test_options_of_a_search_need_it(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="trials is for a search; add search"):
        precis.tune("base", pairs, out=tmp_path / "out", trials=2)
