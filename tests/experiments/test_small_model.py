"""The model in the box: what it may be trained on, and the way from data sets to a folder that may be released."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from precis.extract.extractor_opening import open_extractor
from precis.generation.summarizer import Summarizer
from precis.recipes.overrides import with_changes
from precis.recipes.run_plan import ExtractPlan, ScorerShape
from precis.training import TrainSettings
from precis.training.schedule import StableThenDecay
from precis_experiments import small_model as module
from precis_experiments.open_sets import (
    EXTENSIONS,
    OTHER_LANGUAGES,
    SETS,
    TEXTS,
    OpenSet,
    check_rows,
    is_open,
    pairs_of,
)
from precis_experiments.small_model import WRITING, default_model
from precis_text.errors import UserError
from tests.tiny_models import save

RUN = ExtractPlan(
    scorer=ScorerShape(width=16, layers=1, heads=2),
    train=TrainSettings(epochs=1, learning_rate=1e-3, warmup_steps=0),
    batch_units=64,
)


@pytest.mark.parametrize(
    "chosen", [*SETS, *EXTENSIONS, *OTHER_LANGUAGES, *TEXTS], ids=lambda chosen: chosen.name
)
def test_every_set_is_openly_licensed(chosen: OpenSet) -> None:
    assert all(is_open(licence.strip()) for licence in chosen.licence.split(","))


@pytest.mark.parametrize(
    "licence",
    ["CC BY-NC 4.0", "CC BY-NC-ND 4.0", "CC BY-ND 4.0", "CC BY-NC-SA 3.0", "research", "", "unclear"],
)
def test_what_forbids_commerce_or_changes_is_not_open(licence: str) -> None:
    assert not is_open(licence)


def write(folder: Path, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def test_a_meeting_gives_a_pair_for_each_query_with_its_turns(tmp_path: Path) -> None:
    row = {
        "document": "Ann: one\nBob: two\nAnn: three",
        "specific_queries": [
            {"query": "?", "answer": "two and three", "relevant_text_span": [["1", "2"]]},
            {"query": "?", "answer": "nothing", "relevant_text_span": []},
        ],
    }
    write(tmp_path / "qmsum", [row])  # type: ignore[list-item]
    chosen = next(each for each in SETS if each.name == "qmsum")
    assert list(pairs_of(chosen, tmp_path / "qmsum", "dev")) == [
        {"document": "Bob: two\nAnn: three", "summaries": ["two and three"]}
    ]


def test_rows_under_closed_licences_of_a_mixed_set_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"document": name, "summary": name, "text_license": licence}
        for name, licence in (("a", "CC BY 4.0"), ("b", "CC BY-NC-SA 3.0"), ("c", "see GUM LICENSE.txt"))
    ]
    write(tmp_path / "gum", rows)  # type: ignore[arg-type]
    chosen = next(each for each in SETS if each.name == "gum")
    assert [pair["document"] for pair in pairs_of(chosen, tmp_path / "gum", "train")] == ["a"]


def row_of(chosen: OpenSet, number: int) -> dict[str, object]:
    """A row as the files of a set have it."""
    story = f"Ann sings song {number} in the old hall. Bob listens to her song {number} for long. It rains. "
    row: dict[str, object] = {
        "document": story * 12,
        "summary": f"Ann sings song {number}.",
        "text": story * 12,
    }
    if chosen.name == "qmsum":
        query = {"query": "?", "answer": "Ann sings.", "relevant_text_span": [["0", "0"]]}
        row |= {"document": f"Ann: {story}", "specific_queries": [query]}
    return row | ({"text_license": "CC BY 4.0"} if chosen.name == "gum" else {})


def test_every_row_of_every_set_and_of_what_is_made_of_them_names_its_source_and_an_open_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis_experiments.small_model.MADE_PAIRS", 100)
    data, made = tmp_path / "data", tmp_path / "made"
    for chosen in (*SETS, *TEXTS):
        write(data / chosen.place, [row_of(chosen, number) for number in range(60)])
    places = [Path(place) for place in module._write_all(made, data, lambda _: None)]
    places += map(Path, module._write_made(made, data))
    (made / "texts").mkdir()
    module._write_texts(data, made / "texts")
    names = {each.name for each in SETS}
    assert {place.name for place in places} == names | {"principal", "synthetic"}
    assert check_rows(places) >= 2 * 60 * len(SETS)
    assert check_rows([made / "texts"]) >= 59 * len((*SETS, *TEXTS))
    sources = {
        json.loads(line)["source"]
        for place in (*places, made / "texts")
        for file in place.glob("*.jsonl")
        for line in file.read_text().splitlines()
    }
    assert sources == names | {each.name for each in TEXTS} | {"synthetic"}


@pytest.mark.parametrize(
    "row",
    [
        {"source": "a", "licence": "CC BY-NC 4.0"},
        {"source": "a", "licence": "MIT, CC BY-ND 4.0"},
        {"source": "a"},
        {"licence": "MIT"},
    ],
)
def test_a_row_without_a_source_or_an_open_licence_is_named_before_anything_is_trained(
    row: dict[str, str], tmp_path: Path
) -> None:
    rows = [{"document": f"Ann sings song {n}. It rains.", "summary": "Ann sings."} for n in range(30)]
    write(tmp_path / "data" / "scitldr", rows)  # type: ignore[arg-type]
    out = tmp_path / "out"
    with pytest.raises(UserError, match="nothing"):  # no such model; the pairs are written by then
        default_model(RUN, data=tmp_path / "data", start=str(tmp_path / "nothing"), out=out)
    with (out / "pairs" / "scitldr" / "train.jsonl").open("a") as file:
        file.write(json.dumps({"document": "a", "summaries": ["a"], **row}) + "\n")
    with pytest.raises(UserError, match=r"train.jsonl, line 31: a released model may not be trained on"):
        default_model(RUN, data=tmp_path / "data", start=str(tmp_path / "nothing"), out=out)


@pytest.mark.parametrize("folder", ["samsum", "dialogsum", "aeslc", "cnndm", "reuters21578", "multi30k"])
def test_no_set_is_one_that_forbids_commerce_or_is_press(folder: str) -> None:
    assert not any(folder in each.place for each in (*SETS, *TEXTS))


def test_data_to_release(tmp_path: Path) -> None:
    rows = [
        {"document": f"Ann sings song {n}. Bob listens to it. It rains.", "summary": f"Ann sings song {n}."}
        for n in range(30)
    ]
    write(tmp_path / "data" / "scitldr", rows)  # type: ignore[arg-type]
    start = save("zcodepp", tmp_path / "start")
    told: list[str] = []
    for _ in range(2):  # the second time nothing is left to do
        done = default_model(
            RUN, data=tmp_path / "data", start=str(start), out=tmp_path / "out", notify=told.append
        )
    assert done.model is not None
    assert any("qmsum" in line and "skipped" in line for line in told)
    for line in (tmp_path / "out" / "pairs" / "scitldr" / "train.jsonl").read_text().splitlines():
        pair = json.loads(line)
        assert pair["source"] == "scitldr"
        assert is_open(pair["licence"])
    (summary,) = open_extractor(tmp_path / "out" / "release").summarize(
        ["Ann sings. It rains. Bob listens to it."], sentences=1
    )
    assert summary.mode == "extract"


def test_a_place_without_any_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains none of"):
        default_model(RUN, data=tmp_path, start="nothing", out=tmp_path / "out")


@pytest.mark.slow
def test_a_model_that_writes_too_is_grounded_on_all_pairs_first_and_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis_experiments.small_model.MADE_PAIRS", 100)
    story = [f"Ann sings song {n} in the old hall. Bob listens to her song for long." for n in range(20)]
    rows = [{"document": f"It is year {n}. " + " ".join(story), "summary": "Ann sings."} for n in range(300)]
    write(tmp_path / "data" / "scitldr", rows)  # type: ignore[arg-type]
    start = str(save("zcodepp", tmp_path / "start"))
    smoke = WRITING["smoke"]
    small = {"batch_tokens": 512, "max_source": 64, "train.warmup_steps": 1}
    assert smoke.pretrain is not None
    pretraining = with_changes(smoke.pretrain, {"block_length": 32, "validation_blocks": 2})
    for steps in (2, 3):  # the second time it is given one more
        length = {"train.steps": steps, "train.schedule": StableThenDecay(decay_steps=steps - 2)}
        writing = replace(smoke, pretrain=pretraining, ground=with_changes(smoke.ground, {**small, **length}))
        done = default_model(
            RUN, data=tmp_path / "data", start=start, out=tmp_path / "out", writing=writing, cap=5
        )
    assert done.model is not None
    sets = [p.name for p in (tmp_path / "out" / "pairs").iterdir() if p.is_dir()]
    assert sorted(sets) == ["principal", "scitldr", "synthetic"]
    first = json.loads((tmp_path / "out/pairs/principal/train.jsonl").read_text().splitlines()[0])
    assert first["summaries"][0].split(". ")[0] in first["document"]
    assert is_open(first["licence"])
    for mode, opened in (("extract", open_extractor), ("abstract", Summarizer.from_pretrained)):
        (summary,) = opened(tmp_path / "out" / "release").summarize([rows[0]["document"]])
        assert summary.mode == mode
