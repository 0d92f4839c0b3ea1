"""Grounded pre-training: which sets are read, how much of each, what stands before a document, what is recorded."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precis.data.pairs.pair import Pair
from precis.data.tasks.instructions import GENERAL, KINDS, VERSION
from precis.data.tasks.tasks import TASKS
from precis.generation.model_location import locate
from precis.generation.model_metadata import ModelUse
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.data.training_sets import find_sets
from precis.phases.train.finetuning import finetune
from precis.phases.train.grounding import draw, ground, read_set
from precis.phases.train.pair_training import PairRequest
from precis.recipes.catalogue import RECIPES, recipe
from precis.recipes.planning import grounding, resolve_grounding, resolve_run
from precis.training import Lowest, Trained
from precis_text.errors import UserError
from tests.tiny_models import save

BRIEF = ("train.steps=2", "train.warmup_steps=1", "max_source=48", "max_target=16", "batch_tokens=600")


@pytest.fixture(autouse=True)
def _no_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("zcodepp", tmp_path_factory.mktemp("models") / "tiny"))


def write(folder: Path, *, train: int, dev: int = 4, word: str = "song") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("dev", dev)):
        rows = [
            {"id": f"{split}{n}", "document": f"Ann sings the {word} number {n}.", "summary": "Ann sings."}
            for n in range(count)
        ]
        if rows:
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    write(tmp_path / "shelf" / "samsum", train=9)
    write(tmp_path / "shelf" / "aeslc", train=30, word="mail")
    write(tmp_path / "shelf" / "cnndm", train=5, dev=0, word="story")
    return tmp_path / "shelf"


def run_it(
    model: str, tasks: Sequence[str], shelf: Path, out: Path, *more: str, **options: Any
) -> tuple[Trained, list[str]]:
    told: list[str] = []
    run = resolve_grounding(None, start=model, assignments=(*BRIEF, *more))
    options = {"callbacks": [], **options}
    done = ground(run, tasks=tasks, start=model, out=out, data=str(shelf), notify=told.append, **options)
    return done, told


def questions(folder: Path) -> None:
    """Splits that are cut already, so that nobody asks for a list of articles."""
    write(folder, train=3)
    (folder / "test.jsonl").write_text((folder / "dev.jsonl").read_text())


def names(wanted: Sequence[str], **options: Any) -> list[str]:
    return [chosen.name for chosen in find_sets(wanted, **options)]


def test_sets_are_tasks_places_and_files(shelf: Path, tmp_path: Path) -> None:
    own = write(tmp_path / "own.pairs", train=3)
    elsewhere = write(tmp_path / "elsewhere", train=3)
    sets = find_sets(["samsum", f"dialogsum={elsewhere}", str(own)], data=str(shelf))
    assert [(chosen.name, chosen.kind) for chosen in sets] == [
        ("samsum", "dialogue"),
        ("dialogsum", "dialogue"),
        ("own", "document"),
    ]
    assert [chosen.sources.train.source for chosen in sets] == [
        str(shelf / "samsum"),
        str(elsewhere),
        str(own),
    ]


def test_all_means_every_task_with_training_files_and_some_can_be_left_out(shelf: Path) -> None:
    (shelf / "e2e").mkdir()
    assert names(["all"], data=str(shelf)) == ["samsum", "aeslc", "cnndm"]
    assert names(["all"], data=str(shelf), leave_out=["samsum"]) == ["aeslc", "cnndm"]
    assert names(["all"], data=str(shelf), leave_out=["xsum"]) == ["samsum", "aeslc", "cnndm"]


@pytest.mark.parametrize("folder", ["squad_v1.1", "squad-qg"])
def test_questions_are_found_where_the_task_table_says(folder: str, shelf: Path) -> None:
    questions(shelf / folder)
    for name in ("squad-qg", "squad-qg-zhao") if folder == "squad_v1.1" else ("squad-qg",):
        (found,) = find_sets([name], data=str(shelf))
        assert found.sources.train == NamedPairs(task=name, data=str(shelf)).sources().train
        assert found.sources.train.source.endswith(str(shelf / folder))


def test_all_takes_the_questions_once_though_they_are_split_in_two_ways(shelf: Path) -> None:
    questions(shelf / "squad_v1.1")
    assert names(["all"], data=str(shelf)) == ["samsum", "aeslc", "cnndm", "squad-qg"]
    assert names(["all"], data=str(shelf), leave_out=["squad-qg"]) == ["samsum", "aeslc", "cnndm"]
    questions(shelf / "squad-qg-zhao")
    assert names(["all"], data=str(shelf)) == ["samsum", "aeslc", "cnndm", "squad-qg"]


def test_a_task_that_the_folder_lacks_is_not_read_from_its_own_files(shelf: Path) -> None:
    write(shelf, train=3)
    with pytest.raises(
        UserError, match="xsum: no such folder; name the task's place with --tasks xsum=PLACE"
    ):
        find_sets(["xsum"], data=str(shelf))


@pytest.mark.parametrize(
    ("wanted", "leave_out", "says"),
    [
        (["samsun"], [], "'samsun' is neither a task nor a file or folder; did you mean 'samsum'"),
        (["samsun=x"], [], "unknown task 'samsun'; did you mean 'samsum'"),
        (["samsum", "samsum"], [], "'samsum' is given twice"),
        (["samsum"], ["samsun"], "--leave-out samsun: no such set or task; did you mean 'samsum'"),
        (["samsum"], ["samsum"], "no set to train on"),
        (["xsum"], [], "no such folder; name the task's place with --tasks xsum=PLACE"),
    ],
)
def test_a_wrong_set_is_one_clear_line(
    wanted: list[str], leave_out: list[str], says: str, shelf: Path
) -> None:
    with pytest.raises(UserError, match=says):
        find_sets(wanted, data=str(shelf), leave_out=leave_out)


def test_all_needs_a_folder() -> None:
    with pytest.raises(UserError, match="--tasks all: name the folder"):
        find_sets(["all"])


def test_a_draw_keeps_the_order_and_every_pair_has_the_same_chance() -> None:
    pairs = [Pair(str(n), "s") for n in range(20)]
    counts = np.zeros(20)
    for seed in range(400):
        drawn, seen = draw(iter(pairs), 5, rng=np.random.default_rng(seed))
        rows = [int(pair.document) for pair in drawn]
        assert (len(set(rows)), rows, seen) == (5, sorted(rows), 20)
        counts[rows] += 1
    assert counts.min() > 60  # 100 expected, standard deviation 9
    assert counts.max() < 140
    assert draw(pairs, 50, rng=np.random.default_rng(0)) == (pairs, 20)


def test_training_documents_carry_training_wordings_and_dev_documents_the_others(shelf: Path) -> None:
    (chosen,) = find_sets(["aeslc"], data=str(shelf))
    read = read_set(chosen, cap=12, dev_rows=3, seed=0)
    assert (len(read.train), read.available, len(read.dev)) == (12, 30, 3)
    kind = KINDS["email_subject"]
    for pairs, wordings in ((read.train, kind.training), (read.dev, kind.held_out)):
        texts = {wording.text for wording in wordings}
        used = {pair.document.partition(" Ann sings")[0] for pair in pairs}
        assert used <= texts
    assert len({pair.document.partition(" Ann sings")[0] for pair in read.train}) > 1


TABLE_1 = {
    "mediasum": {
        "Summarize the following interview script into a two sentences summary.",
        "How can the following interview script be rephrased into a few sentences summary.",
    },
    "multi_news": {
        "Summarize the news article into a one sentence summary.",
        "Rephrase the news article with a few sentences.",
    },
    "newsroom": {
        "Summarize the news article into a one sentence summary.",
        "Rephrase the news article concisely with a few sentences.",
    },
    "wikihow": {
        "Summarize the paragraph into a one sentence summary.",
        "Summarize the paragraph with a few words.",
    },
}


def test_table_1_is_four_sets_with_its_instructions_word_for_word(tmp_path: Path) -> None:
    for name in TABLE_1:
        write(tmp_path / name, train=12, dev=8)
    sets = find_sets(["zcodepp-table1"], data=str(tmp_path))
    assert [chosen.name for chosen in sets] == [*TABLE_1]
    for chosen in sets:
        read = read_set(chosen, cap=12, dev_rows=8, seed=0)
        for pairs in (read.train, read.dev):  # whatever the length of a summary
            assert {pair.document.partition(" Ann sings")[0] for pair in pairs} == TABLE_1[chosen.name]
    left = find_sets(["zcodepp-table1"], data=str(tmp_path), leave_out=["newsroom"])
    assert [chosen.name for chosen in left] == ["mediasum", "multi_news", "wikihow"]
    (alone,) = find_sets(["wikihow"], data=str(tmp_path))
    assert alone.wordings == ()


def test_a_model_grounded_on_table_1_gets_its_instruction_for_other_documents(
    model: str, tmp_path: Path
) -> None:
    for name in TABLE_1:
        write(tmp_path / name, train=6, dev=2)
    done, told = run_it(model, ["zcodepp-table1"], tmp_path, tmp_path / "run", "generated_rows=0")
    assert locate(done.folder).use.instruction == "Rephrase the news article with a few sentences."
    assert sum("instructions for: zcodepp-table1" in line for line in told) == 4


def test_what_a_set_gives_depends_on_the_seed_and_not_on_its_company(shelf: Path) -> None:
    alone = find_sets(["aeslc"], data=str(shelf))[0]
    second = find_sets(["samsum", "aeslc"], data=str(shelf))[1]
    assert (
        read_set(alone, cap=12, dev_rows=3, seed=0).train
        == read_set(second, cap=12, dev_rows=3, seed=0).train
    )
    other = read_set(alone, cap=12, dev_rows=3, seed=1).train
    assert other != read_set(alone, cap=12, dev_rows=3, seed=0).train


def test_table_9_is_the_default_from_small_on_and_small_models_keep_their_rates() -> None:
    for name in ("zcodepp-small", "zcodepp-large", "pretrained"):
        run = grounding(recipe(name))
        train = run.train
        assert (train.warmup_steps, train.learning_rate, train.epochs) == (1500, 1e-5, 10)
        assert (train.weight_decay, train.eps, train.clip_norm, train.betas) == (
            0.01,
            1e-6,
            1.0,
            (0.9, 0.999),
        )
        assert (run.batch_size, run.batch_tokens, run.label_smoothing) == (64, None, 0.0)
    assert grounding(recipe("zcodepp-micro")).train.learning_rate == 1e-3
    assert all(grounding(recipe(name)).train.select == Lowest() for name in RECIPES)


def test_the_recipe_follows_the_size_of_the_model(model: str, tmp_path: Path) -> None:
    assert resolve_grounding(None, start=model).name == "zcodepp-micro"
    assert resolve_grounding(None, start=str(save("bart", tmp_path / "bart"))).name == "pretrained"
    assert resolve_grounding("zcodepp-mini", start=model).name == "zcodepp-mini"


def test_a_small_prophetnet_is_grounded_at_its_own_rate_and_a_large_one_as_table_9_says(
    tmp_path: Path,
) -> None:
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    for width in (128, 768):
        ProphetNetConfig(hidden_size=width, **heads).save_pretrained(tmp_path / str(width))
    small, large = (resolve_grounding(None, start=str(tmp_path / str(width))) for width in (128, 768))
    assert (small.name, large.name) == ("prophetnet-micro", "prophetnet-base")
    assert (small.train.learning_rate, large.train.learning_rate) == (1e-3, 1e-5)
    # batches of 64 pairs, not 64 times what the recipe accumulates
    assert (large.batch_size, large.train.gradient_accumulation) == (64, 1)


def test_a_run_measures_each_set_and_records_what_it_trained_on(
    model: str, shelf: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done, told = run_it(model, ["all"], shelf, out, leave_out=["samsum"], cap=6, callbacks=None)
    assert done.model == out / "model"
    assert ModelUse(max_source=48, instruction=GENERAL, grounded_on=("aeslc", "cnndm")) == locate(out).use
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    (last,) = [line for line in lines if line["kind"] == "validation" and line["step"] == 2]
    assert last["loss"] == pytest.approx((last["loss/aeslc"] + last["loss/cnndm"]) / 2)
    assert "loss/samsum" not in last
    record = json.loads((out / "settings.json").read_text())
    assert record["run"]["model"] is None  # the shape is the given model's
    assert record["identity"]["cap"] == 6
    assert record["identity"]["wordings"] == VERSION
    assert list(record["identity"]["sets"]) == ["aeslc", "cnndm"]
    assert any(line.startswith("aeslc: 6 of 30 pairs") for line in told)
    assert "trained on: aeslc, cnndm; a score on one of these is not zero-shot" in told
    assert "left out: samsum" in told


def test_rouge_is_measured_where_summaries_are_asked_for(model: str, shelf: Path, tmp_path: Path) -> None:
    done, _ = run_it(model, ["samsum", "aeslc"], shelf, tmp_path / "run", "generated_rows=2")
    assert {"rougeL", "rougeL/samsum", "rougeL/aeslc"} <= set(done.result.metrics)


def test_the_same_run_twice_is_the_same_to_the_bit(model: str, shelf: Path, tmp_path: Path) -> None:
    weights = [
        (run_it(model, ["samsum", "aeslc"], shelf, tmp_path / name)[0].model or Path()) / "model.safetensors"
        for name in ("one", "two")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert weights[0].read_bytes() != (Path(model) / "model.safetensors").read_bytes()


@pytest.mark.parametrize("change", [{"cap": 3}, {"leave_out": ["aeslc"]}, {"data": "longer"}])
def test_a_run_is_not_continued_with_another_mixture(
    change: dict[str, Any], model: str, shelf: Path, tmp_path: Path
) -> None:
    run_it(model, ["samsum", "aeslc"], shelf, tmp_path / "run")
    if "data" in change:
        change = {}
        write(shelf / "samsum", train=10)
    with pytest.raises(UserError, match="was started with"):
        run_it(model, ["samsum", "aeslc"], shelf, tmp_path / "run", **change)


def test_bad_pairs_name_their_set_or_are_left_out(model: str, shelf: Path, tmp_path: Path) -> None:
    file = shelf / "samsum" / "train.jsonl"
    file.write_text(file.read_text() + '{"id": "bad", "document": "Ann.", "summary": "  "}\n')
    with pytest.raises(UserError, match=r"samsum.*line 10: the summary .* is empty"):
        run_it(model, ["aeslc", "samsum"], shelf, tmp_path / "run")
    _, told = run_it(model, ["aeslc", "samsum"], shelf, tmp_path / "run", skip_bad=True)
    assert any(line.startswith("samsum: 9 pairs") and "1 skipped" in line for line in told)


@pytest.mark.long
def test_a_grounded_model_is_asked_as_its_tasks_are(model: str, shelf: Path, tmp_path: Path) -> None:
    run_it(model, ["aeslc"], shelf, tmp_path / "grounded")
    use = locate(tmp_path / "grounded").use
    assert use.instruction == TASKS["aeslc"].instruction  # no kind here was trained with the general wording
    assert use.instruction_for("samsum") == TASKS["samsum"].instruction
    assert use.instruction_for("") == use.instruction_for(None) == use.instruction
    assert ModelUse(instruction="Do:").instruction_for("samsum") == "Do:"
    told: list[str] = []
    finetune(
        resolve_run(None, pretrained=True, task_name="samsum", assignments=(*BRIEF[:2], "max_source=48")),
        PairRequest(
            sources=NamedPairs(task="samsum", data=str(shelf)).sources(),
            start=str(tmp_path / "grounded"),
            out=tmp_path / "tuned",
            notify=told.append,
            callbacks=[],
        ),
    )
    tuned = locate(tmp_path / "tuned").use
    assert (tuned.task, tuned.grounded_on) == ("samsum", ("aeslc",))
    assert tuned.instruction == TASKS["samsum"].instruction
    assert any(line.endswith(TASKS["samsum"].instruction) for line in told)


def test_precis_json_of_earlier_versions_is_still_read() -> None:
    assert ModelUse.from_dict({"max_source": 512, "instruction": "", "task": "samsum"}).grounded_on == ()


@pytest.mark.long
def test_few_shot_pairs_can_be_drawn_by_a_seed_of_their_own(model: str, shelf: Path, tmp_path: Path) -> None:
    digests = {}
    for name, seed in (("a", None), ("b", 0), ("c", 1)):
        told: list[str] = []
        finetune(
            resolve_run(None, pretrained=True, assignments=(*BRIEF[:2], "max_source=48")),
            PairRequest(
                sources=NamedPairs(task="aeslc", data=str(shelf)).sources(),
                start=model,
                out=tmp_path / name,
                examples=4,
                sampling_seed=seed,
                notify=told.append,
                callbacks=[],
            ),
        )
        digests[name] = (tmp_path / name / "model" / "model.safetensors").read_bytes()
        assert any(line.endswith(f"(seed {seed or 0})") for line in told)
    assert digests["a"] == digests["b"] != digests["c"]
