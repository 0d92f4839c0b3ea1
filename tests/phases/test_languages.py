"""A model of two languages, from the vocabulary to the scores: each step reads the languages at their shares."""

import json
from pathlib import Path

import numpy as np
import pytest

from precis.cli import main
from precis.data.mixing_shares import BySize
from precis.data.packs.text_sources import read_texts
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.phases.data.corpus_packing import make_pack
from precis.phases.train.grounding import ground
from precis.phases.train.pretraining import pretrain, resolve_pretraining
from precis.phases.train.tokenizer_training import make_shared_tokenizer
from precis.recipes.planning import resolve_grounding
from precis_text.errors import UserError
from tests.tiny_models import save

pytestmark = pytest.mark.filterwarnings("ignore:the texts give only")
GERMAN = ["brücke", "fluß", "größe", "übung", "straße", "mädchen"]
ENGLISH = ["bridge", "river", "height", "practice", "street", "girl"]
TINY = {
    "model.hidden_size": 16,
    "model.num_attention_heads": 2,
    "model.intermediate_size": 32,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "train.steps": 4,
    "train.warmup_steps": 1,
    "train.precision": "fp32",
    "batch_size": 4,
    "block_length": 32,
    "validation_blocks": 2,
}


def sentences(words: list[str], count: int, *, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, size=12)) + "." for _ in range(count)]


def jsonl(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine times as much English as German, and parallel captions."""
    folder = tmp_path_factory.mktemp("texts")
    jsonl(folder / "en" / "a.jsonl", [{"text": text} for text in sentences(ENGLISH, 450, seed=0)])
    jsonl(folder / "de" / "a.jsonl", [{"text": text} for text in sentences(GERMAN, 50, seed=1)])
    rng = np.random.default_rng(2)
    for split, count in (("train", 60), ("dev", 12), ("test", 6)):
        places = rng.integers(len(GERMAN), size=(count, 5))
        both = [
            {"de": " ".join(GERMAN[i] for i in row), "en": " ".join(ENGLISH[i] for i in row)}
            for row in places
        ]
        jsonl(folder / "pairs" / "multi30k" / f"{split}.jsonl", both)
        jsonl(
            folder / "pairs" / "klexikon_de" / f"{split}.jsonl",
            [{"document": row["de"], "summary": row["de"].split()[0]} for row in both[: count // 3]],
        )
    return folder


@pytest.fixture(scope="module")
def words(texts: Path) -> Path:
    made = make_shared_tokenizer(
        texts / "words",
        [str(texts / "en"), str(texts / "de")],
        mixture=BySize(temperature=100),
        vocab_size=460,
        characters=8_000,
    )
    assert set(made.by_corpus) == {str(texts / "en"), str(texts / "de")}
    return texts / "words"


def test_a_shared_vocabulary_reads_its_corpora_at_their_shares(texts: Path, tmp_path: Path) -> None:
    def told(temperature: float) -> list[int]:
        lines: list[str] = []
        make_shared_tokenizer(
            tmp_path / f"{temperature}",
            [str(texts / "en"), str(texts / "de")],
            mixture=BySize(temperature=temperature),
            vocab_size=400,
            characters=4_000,
            notify=lines.append,
        )
        return [int(line.split(": ")[1].split()[0].replace(",", "")) for line in lines]

    english, german = told(1)
    assert english / german == pytest.approx(9, rel=0.5)
    english, german = told(100)
    assert english / german == pytest.approx(1, rel=0.2)


def test_both_languages_have_pieces_of_their_own(words: Path) -> None:
    tokenizer = load_tokenizer(words)
    for word in (*GERMAN, *ENGLISH):
        assert len(tokenizer(word, add_special_tokens=False)["input_ids"]) <= 3


@pytest.mark.parametrize("named", [["a", "a"], ["a", "b"]])
def test_corpora_that_cannot_be_shared_are_refused(named: list[str], tmp_path: Path) -> None:
    for name, text in (("a", "some text"), ("b", " ")):
        jsonl(tmp_path / name / "x.jsonl", [{"text": text}])
    with pytest.raises(UserError, match=r"named twice|contains no text"):
        make_shared_tokenizer(
            tmp_path / "out", [str(tmp_path / n) for n in named], mixture=BySize(), vocab_size=420
        )


def test_parallel_columns_make_one_document_in_either_order(texts: Path) -> None:
    file = texts / "pairs" / "multi30k" / "train.jsonl"
    first, second = list(read_texts([file], column="de+en"))[:2]
    rows = [json.loads(line) for line in file.read_text().splitlines()[:2]]
    assert first == rows[0]["de"] + "\n" + rows[0]["en"]
    assert second == rows[1]["en"] + "\n" + rows[1]["de"]
    with pytest.raises(UserError, match="no column 'ru'"):
        list(read_texts([file], column="de+ru"))


def test_a_column_with_a_plus_in_its_name_is_one_column(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "x.jsonl", [{"a+b": "whole", "a": "x", "b": "y"}])
    assert list(read_texts([file], column="a+b")) == ["whole"]


@pytest.fixture(scope="module")
def pretrained(texts: Path, words: Path) -> tuple[Path, list[str]]:
    """Phase 1 on both languages and on captions, the temperature high."""
    packs = []
    for name, column in (("en", "text"), ("de", "text"), ("pairs/multi30k/train.jsonl", "de+en")):
        pack = texts / "packs" / name.partition("/")[0]
        make_pack([texts / name], pack, tokenizer=str(words), column=column, dev_share=0.2)
        packs.append(str(pack))
    told: list[str] = []
    run = resolve_pretraining("zcodepp-micro", changes=TINY)
    pretrain(
        run,
        corpora=packs,
        mixture=BySize(temperature=2),
        out=texts / "phase1",
        callbacks=[],
        notify=told.append,
    )
    return texts / "phase1", told


def test_phase_1_reads_corpora_at_the_shares_of_their_sizes(pretrained: tuple[Path, list[str]]) -> None:
    _, told = pretrained
    lines = [line for line in told if line.startswith("corpus: ")]
    tokens = [int(line.split(", ")[1].split()[0].replace(",", "")) for line in lines]
    shares = [float(line.split(", ")[-1].split("%")[0]) for line in lines]
    assert shares == pytest.approx([100 * share for share in BySize(temperature=2).shares(tokens)], abs=0.06)
    identity = json.loads((pretrained[0] / "settings.json").read_text())["identity"]
    assert identity["weights"] == pytest.approx(BySize(temperature=2).shares(tokens))


def test_phase_2_repeats_the_smaller_set_in_both_languages_and_each_is_scored_in_its_own(
    texts: Path, pretrained: tuple[Path, list[str]]
) -> None:
    told: list[str] = []
    changes = {"train.steps": 3, "train.warmup_steps": 1, "batch_tokens": 400, "max_source": 48}
    start = str(pretrained[0])
    done = ground(
        resolve_grounding(None, start=start, changes=changes),
        tasks=["multi30k_de_en", "klexikon_de"],
        start=start,
        data=str(texts / "pairs"),
        temperature=2,
        out=texts / "grounded",
        callbacks=[],
        notify=told.append,
    )
    assert done.model is not None
    small = next(line for line in told if line.startswith("klexikon_de: "))
    assert "20 pairs, 35 with repeats" in small  # 60 * (20 / 60) ** (1 / 2)
    assert any(line.startswith("multi30k_de_en: 60 pairs from") for line in told)
    assert {"loss/multi30k_de_en", "loss/klexikon_de"} <= done.result.metrics.keys()
    signatures = {}
    for name in ("multi30k_de_en", "klexikon_de"):
        where = ["--task", name, "--data", str(texts / "pairs"), "--out", str(texts / "scores" / name)]
        assert (
            main(["evaluate", "--model", str(texts / "grounded"), *where, "--beams", "1", "--limit", "1"])
            == 0
        )
        signatures[name] = json.loads((texts / "scores" / name / "scores.json").read_text())["signatures"]
    assert set(signatures["multi30k_de_en"]) == {"bleu", "chrf", "ter"}
    assert "tok:unicode|" in signatures["klexikon_de"]["rouge"]


def test_weights_and_a_temperature_are_not_both_taken(
    texts: Path, pretrained: object, tmp_path: Path
) -> None:
    packs = {str(texts / "packs" / "en"): 2.0, str(texts / "packs" / "de"): 1.0}
    with pytest.raises(UserError, match="use either it or FOLDER=WEIGHT"):
        pretrain(
            resolve_pretraining("zcodepp-micro", changes=TINY),
            corpora=packs,
            mixture=BySize(),
            out=tmp_path / "run",
        )


def test_another_models_vocabulary_serves_both_phases(texts: Path, tmp_path: Path) -> None:
    """As mT5's: it has an end mark and neither [CLS] nor [MASK] nor sentinels."""
    theirs, ours = save("t5", tmp_path / "theirs"), tmp_path / "ours"
    with pytest.raises(UserError, match=r"the tokenizer lacks \[CLS\]"):
        make_pack([texts / "en"], tmp_path / "pack", tokenizer=str(theirs))
    assert main(["tokenizer", "--from", str(theirs), "--out", str(ours)]) == 0
    make_pack([texts / "en"], tmp_path / "pack", tokenizer=str(ours), dev_share=0.2)
    run = resolve_pretraining("zcodepp-micro", changes=TINY)
    pretrain(run, corpora=[str(tmp_path / "pack")], out=tmp_path / "phase1", callbacks=[])
    start = str(tmp_path / "phase1")
    changes = {"train.steps": 2, "train.warmup_steps": 1, "batch_tokens": 400, "max_source": 48}
    done = ground(
        resolve_grounding(None, start=start, changes=changes),
        tasks=["multi30k_de_en"],
        start=start,
        data=str(texts / "pairs"),
        out=tmp_path / "phase2",
        callbacks=[],
    )
    assert done.model is not None
    assert len(load_tokenizer(tmp_path / "phase2" / "model")) == len(load_tokenizer(ours))


@pytest.mark.parametrize("more", [["--vocab-size", "900"], ["--data", "pairs"], ["--skip-bad"]])
def test_what_trains_a_tokenizer_does_not_go_with_one_that_is_taken(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tokenizer", "--from", "theirs", "--out", str(tmp_path / "out"), *more]) == 2
    assert "--from copies a tokenizer; omit all options except --out" in capsys.readouterr().err
