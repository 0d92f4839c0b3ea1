"""Several languages: what is packed, pre-trained and compared, and the table beside the paper's figures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from precis.recipes.run_plan import PRECISION
from precis_experiments.corpus_scores import score_texts
from precis_experiments.experiment import Runner
from precis_experiments.languages_study import TABLE_6, cell, measures, multilingual, starts_of
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import LANGUAGES_SCALES, LanguagesScale
from precis_text.errors import UserError
from tests.tiny_models import save

SCALE = LANGUAGES_SCALES["mini"]
_WORDS = "Ein Mann singt im Saal, und alle hören ihm bis zum Abend zu. "


def write_rows(file: Path, rows: list[dict[str, str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_data(folder: Path) -> None:
    english = [{"text": f"A man {n} sings in the hall, and all listen to him. " * 30} for n in range(160)]
    write_rows(folder / "pretrain_wikinews" / "part.jsonl", english)
    for split, count in (("train", 120), ("dev", 6), ("test", 6)):
        captions = [{"de": f"Ein Mann {n} singt.", "en": f"A man {n} sings."} for n in range(count)]
        write_rows(folder / "multi30k" / f"{split}.jsonl", captions)
        if split != "test":
            articles = [{"document": f"{n} {_WORDS * 4}", "summary": f"{n}. {_WORDS}"} for n in range(count)]
            write_rows(folder / "klexikon_de" / f"{split}.jsonl", articles)


def steps_of(scale: LanguagesScale, folder: Path) -> list[str]:
    runner = Runner(
        Study(folder / "look", scale, name="x", data=folder, only_look=True), folder, lambda _: None
    )
    return [step.name for step in multilingual.steps(scale, runner)]


def scored(name: str, texts: list[str]) -> dict[str, object]:
    references = [["one two three four"], ["five six seven eight"]]
    return {"loss": 2.0, "rows": 2, **score_texts(measures(name), texts, references)}


def test_smoke_runs_whole_from_new_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    write_data(tmp_path)
    shape = (("hidden_size", 32), ("intermediate_size", 64), ("encoder_layers", 1), ("decoder_layers", 1))
    scale = replace(LANGUAGES_SCALES["smoke"], shape=shape, vocab_size=600, batch_tokens=400)
    text = multilingual(scale, data=tmp_path, out=tmp_path / "out", notify=lambda _: None)
    packed = json.loads((tmp_path / "out" / "steps" / "pack" / "result.json").read_text())
    assert set(packed["tokens"]) == set(packed["tokens_per_word"]) == {"en-pretrain_wikinews", "de", "de-en"}
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    for start in ("scratch", "english", "languages"):
        assert len([line for line in lines if line.startswith(f"| {start} |")]) == 2  # a row for each task
    assert "Unfinished" not in text
    assert "several languages beat English on multi30k_de_en, BLEU (Z-Code++ 3.1)" in text


def test_a_given_model_is_compared_with_its_shape_from_nothing_and_needs_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    write_data(tmp_path)
    given = save("zcodepp", tmp_path / "given")
    scale = replace(LANGUAGES_SCALES["smoke"], start=str(given), tasks=("multi30k_de_en",), batch_tokens=200)
    assert steps_of(scale, tmp_path) == ["multi30k_de_en-nothing-0", "multi30k_de_en-given-0"]
    text = multilingual(scale, data=tmp_path, out=tmp_path / "out", notify=lambda _: None)
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith(("| nothing", "| given"))]
    assert rows == ["| nothing", "| given"]


def test_tasks_that_are_missing_are_left_out_and_without_any_it_stops(tmp_path: Path) -> None:
    write_data(tmp_path)
    names = steps_of(replace(LANGUAGES_SCALES["micro"], seeds=(0,)), tmp_path)
    assert names[:3] == ["pack", "languages", "english"]
    assert names[3:6] == [f"klexikon_de-{start}-0" for start in ("scratch", "english", "languages")]
    assert "mlsum_de" not in " ".join(names)
    with pytest.raises(UserError, match=r"lacks a folder wikilingua_ru_en"):
        steps_of(replace(SCALE, tasks=("wikilingua_ru_en",)), tmp_path)


def test_other_models_have_steps_of_their_own(tmp_path: Path) -> None:
    write_data(tmp_path)
    scale = replace(LANGUAGES_SCALES["smoke"], beside=("google/mt5-small",))
    assert starts_of(scale)[-1] == "google/mt5-small"
    assert "klexikon_de-google-mt5-small-0" in steps_of(scale, tmp_path)


def test_ours_stands_beside_the_papers_systems_and_mt5_decides_its_claim() -> None:
    name = "wikilingua_ru_en"
    scale = replace(SCALE, beside=("google/mt5-small",))
    right, half = ["one two three four", "five six seven eight"], ["one two three four", "nothing"]
    results = {cell(name, "languages", seed): scored(name, right) for seed in range(3)}
    results |= {cell(name, "google/mt5-small", seed): scored(name, half) for seed in range(3)}
    text = multilingual.table(scale, results)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| languages",
        "| google/mt5-small",
        *(f"| {system}, the paper" for system in ("PaLM 540B", "mT5 XL", "mT5 large", "Z-Code++ large")),
    ]
    assert "| Z-Code++ large, the paper |  | 15.9 |  |" in text
    claims = {claim.words: claim for claim in multilingual.claims(scale, results)}
    mt5 = claims[f"Z-Code++ beats mT5 of its size on {name}, ROUGE-2"]
    assert (mt5.theirs, mt5.ours and mt5.ours.mean, mt5.runs) == ("+4.7", 50.0, 3)
    assert claims["several languages beat English on mlsum_de, ROUGE-2"].verdict == "never run"


def test_the_largest_scale_has_the_papers_tasks() -> None:
    assert set(TABLE_6) <= set(SCALE.tasks)
    assert all(len(figures) == 4 for figures in TABLE_6.values())
