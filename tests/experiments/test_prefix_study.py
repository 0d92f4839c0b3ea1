"""The discourse-prefix comparisons: what is planned, and what the tables say of results that are made up here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from precis.generation.model_loader import load_model
from precis.recipes.run_plan import PRECISION
from precis.tuning import Prefix, method
from precis.tuning.prefix import LowLayers, NoPrefix, SingleLayer, TopLayers
from precis_experiments.experiment import Runner
from precis_experiments.initial_model import begin_with
from precis_experiments.prefix_study import Trials, discourse_prefix
from precis_experiments.prefix_tables import (
    LOW_SYSTEMS,
    PAPER,
    SPARSE,
    SYSTEMS,
    UNTUNED,
    cell,
    draw_all,
    draw_low_resource,
    mean_over_tasks,
    rate_step,
    tables,
    temperature_step,
)
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import (
    DIALOGUES,
    FACTS,
    FINE_TUNING,
    LOW,
    PREFIX_SCALES,
    TOP,
    WHOLE,
    PrefixScale,
)
from precis_experiments.tuning_cost import StepAsked, measure, step_cost
from precis_text.errors import RunError
from tests.tiny_models import save

SMOKE, MICRO = PREFIX_SCALES["smoke"], PREFIX_SCALES["micro"]


def found(rougeL: float, **more: Any) -> dict[str, Any]:  # noqa: N803 - the score's own name
    scores = {"rouge1": [50.0, 52.0], "rouge2": [30.0, 30.0], "rougeL": [rougeL, rougeL + 2]}
    return {"bleu": rougeL, "bleu_resampled": [rougeL] * 20, "examples": scores, "passes": 1.5, **more}


@pytest.mark.parametrize("name", PREFIX_SCALES)
def test_scales_survive_the_trip_through_json_and_have_the_papers_shares(name: str) -> None:
    scale = PREFIX_SCALES[name]
    assert PrefixScale.from_dict(json.loads(json.dumps(scale.to_dict()))) == scale
    assert set(scale.shares) <= {0.05, 0.10, 0.25, 0.50, 1.0}


def test_on_few_pairs_pairs_are_scarce_and_not_steps() -> None:
    assert MICRO.low_pairs() == (200, 400, 1000, 2000, 4000)
    assert {MICRO.steps_on(FACTS, pairs) for pairs in MICRO.low_pairs()} == {MICRO.low_steps}
    shortest_pair = 100  # tokens, more than a pair of E2E has on average
    read = MICRO.low_steps * MICRO.batch_tokens / shortest_pair
    assert read > 2 * MICRO.low_pairs()[2]  # a quarter of the pool is read more than twice
    assert MICRO.steps_on(DIALOGUES) == MICRO.dialogues_steps


@pytest.mark.parametrize("name", PREFIX_SCALES)
def test_neither_task_is_read_by_the_base(name: str) -> None:
    assert not {FACTS, DIALOGUES} & set(PREFIX_SCALES[name].base.grounding_tasks)


def test_every_system_but_fine_tuning_is_a_method_with_the_papers_prefix_length() -> None:
    assert MICRO.plan(FINE_TUNING, FACTS) is None
    for system in SYSTEMS[1:]:
        plan = MICRO.plan(system, FACTS)
        assert plan is not None
        assert (plan.method, plan.prefix) == (system, Prefix(length=10, keys=MICRO.keys))
    assert set(LOW_SYSTEMS) <= set(SYSTEMS)


def test_the_rate_with_the_lowest_loss_is_taken_and_each_family_has_its_own(tmp_path: Path) -> None:
    scale = replace(SMOKE, fine_tuning_rates=(1e-3, 3e-3), prefix_rates=(1e-3, 1e-2))
    study = Study(tmp_path / "study", scale, name="test")
    for name, rate, best in (
        ("rate-fine-tuning-0.001", 1e-3, 2.0),
        ("rate-fine-tuning-0.003", 3e-3, 3.0),
        ("rate-prefix-0.001", 1e-3, 4.0),
        ("rate-prefix-0.01", 1e-2, 3.5),
    ):
        study.place(name).mkdir(parents=True)
        (study.place(name) / "result.json").write_text(json.dumps({"rate": rate, "best": best}))
    for temperature, best in ((1.0, 3.5), (0.1, 3.4)):
        name = temperature_step(temperature)
        study.place(name).mkdir(parents=True)
        record = {"temperature": temperature, "best": best}
        (study.place(name) / "result.json").write_text(json.dumps(record))
    trials = Trials(scale, Runner(study, tmp_path, print))
    assert [trials.rate(system) for system in (FINE_TUNING, "prefix", "softsa")] == [1e-3, 1e-2, 1e-2]
    assert trials.temperature() == 0.1
    for system, temperature in (("prefix", 1.0), ("softsa", 0.1), ("hierblock+softsa", 0.1)):
        plan = scale.plan(system, FACTS, temperature=0.1)
        assert plan is not None
        assert plan.attention.temperature == temperature


def test_nothing_else_is_left_when_a_step_is_measured(tmp_path: Path) -> None:
    steps = list(
        discourse_prefix.steps(MICRO, Runner(Study(tmp_path / "study", MICRO, name="test"), tmp_path, print))
    )
    *before, last = steps
    assert last.name == "cost"
    done: set[str] = set()
    for step in steps:
        assert set(step.needs) <= done
        done.add(step.name)
    needed = set(last.needs)
    for step in reversed(before):
        needed |= set(step.needs) if step.name in needed else set()
    assert {step.name for step in before} - needed <= {cell(FACTS, UNTUNED, 0), cell(DIALOGUES, UNTUNED, 0)}


def test_tables_show_what_is_there_with_paired_differences_and_the_papers_figures() -> None:
    scale = replace(MICRO, facts_seeds=(0, 1), sampling_seeds=(0,), shares=(0.05,))
    results = {
        cell(FACTS, UNTUNED, 0): found(20.0, passes=0.0),
        cell(FACTS, FINE_TUNING, 0): found(60.0),
        cell(FACTS, FINE_TUNING, 1): found(62.0),
        cell(FACTS, "prefix", 0): found(50.0),
        cell(FACTS, "hierblock", 1): found(63.0),
        cell(DIALOGUES, "prefix", 0): found(30.0),
        cell(FACTS, FINE_TUNING, 0, 200): found(41.0, passes=20.0),
        cell(FACTS, "prefix", 0, 200): found(40.0, passes=20.0),
        **{
            rate_step("prefix", rate): {"best": best}
            for rate, best in ((1e-3, 3.5), (3e-3, 3.4), (1e-2, 3.25))
        },
    }
    text = tables(scale, results)
    assert "0.001: 3.500, 0.003: 3.400, 0.01: 3.250; chosen 0.01 (at the edge of the range)" in text
    lines = text.splitlines()
    untuned = next(line for line in lines if UNTUNED in line)
    assert untuned.startswith(f"| {UNTUNED} | 0.00 | 20.0")
    assert "| -41.0 [-42.0, -40.0]" in untuned  # its one run against both seeds of fine-tuning
    assert f"rates tried for {scale.rate_steps:,}" in text
    line = next(line for line in lines if line.startswith("| prefix |"))
    assert "-10.0 [-10.0, -10.0]" in line  # of the seed that both have
    line = next(line for line in lines if line.startswith("| hierblock |"))
    assert line.endswith("1.0 [1.0, 1.0] |  |")  # prefix has no seed 1
    assert "| SAMSum |" in text
    assert PAPER["samsum"]["prefix"] in next(
        line for line in reversed(lines) if line.startswith("| prefix |")
    )
    darts = tables(
        scale, {cell("dart", system, 0): found(50.0) for system in ("prefix", "softsa")}
    ).splitlines()
    assert next(line for line in darts if line.startswith("| prefix |")).endswith("| 74.48/48.42/56.70 |")
    assert next(line for line in darts if line.startswith("| softsa |")).endswith("|  |")  # not printed
    assert (
        "| 200 | 5% | 20.0 | 42.0 [41.0, 43.0] | 41.0 [40.0, 42.0] |  |  | -1.0 [-1.0, -1.0] |  |  |" in text
    )


def test_low_resource_curves_are_drawn_of_what_is_there(tmp_path: Path) -> None:
    draw_low_resource(MICRO, {}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
    results = {cell(FACTS, "prefix", 0, pairs): found(40.0) for pairs in (200, 400)}
    draw_low_resource(MICRO, results, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()  # a point is the mean of both tasks
    results |= {cell(DIALOGUES, "prefix", 0, 200): found(20.0)}
    draw_low_resource(MICRO, results, tmp_path / "some.png")
    assert (tmp_path / "some.png").stat().st_size > 10_000
    single = {cell(DIALOGUES, MICRO.single_layers[n], 0): found(20.0 + n) for n in range(3)}
    draw_all(MICRO, {**results, **single}, tmp_path)
    assert (tmp_path / "single-layers.png").stat().st_size > 10_000


def test_the_papers_figures_are_three_scores_each_and_name_known_systems() -> None:
    for figures in PAPER.values():
        assert set(figures) <= {*SYSTEMS, *SPARSE, *WHOLE}
        for scores in figures.values():
            assert all(0.0 < float(score) < 100.0 for score in scores.split("/", 2))
    assert PAPER["dart"]["hierblock+softsa"] == "74.62/48.60/57.03"  # Table 5
    assert PAPER["samsum"]["softsa"] == "52.48/27.93/43.80"  # Table 11; Table 4 has the last


def test_costs_are_beside_those_of_fine_tuning() -> None:
    step = {"seconds": 0.2, "peak_mb": 100.0, "trained": 2e6, "parameters": 2e6}
    small = {"seconds": 0.1, "peak_mb": 50.0, "trained": 2e4, "parameters": 2.02e6}
    slow = {**small, "seconds": 0.3}
    rounds = {FINE_TUNING: [step] * 3, "prefix": [small, small, slow]}
    cost = {"threads": 2, "rounds": rounds, "systems": {FINE_TUNING: step, "prefix": small}}
    text = tables(MICRO, {"cost": cost})
    assert "| prefix | 20,000 | 1.00% | 100 | 0.50 (0.50-1.50) | 50 | 0.50 (0.50-0.50) |" in text


@pytest.mark.slow
def test_a_step_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    base = str(save("zcodepp", tmp_path / "base"))
    short = {"rows": 2, "source_tokens": 8, "target_tokens": 4, "steps": 2}
    tuning = method("hierblock", Prefix(length=2))
    asked = StepAsked(base=base, tuning=tuning, **short)
    assert StepAsked.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    tuned, whole = step_cost(asked, threads=1), measure(replace(asked, tuning=None))
    assert tuned["trained"] == tuned["parameters"] - whole["parameters"] == (2 + 1 + 1) * 2 * 2 * 32
    assert whole["trained"] == whole["parameters"]
    assert tuned["seconds"] > 0
    assert tuned["peak_mb"] > 0
    with pytest.raises(RunError, match=r"cannot measure a step of .*no such folder"):
        step_cost(replace(asked, base=str(tmp_path / "none")), threads=1)


def test_another_scale_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    Study(tmp_path / "study", MICRO, name="discourse-prefix", data=tmp_path)
    with pytest.raises(Exception, match="was started with --scale micro, now --scale smoke; resume with"):
        discourse_prefix(SMOKE, data=tmp_path, out=tmp_path / "study", notify=print)


@pytest.mark.parametrize("precision", [pytest.param("fp32", marks=pytest.mark.slow), "bf16"])
def test_systems_are_tried_trained_and_scored_and_the_tables_take_what_they_give(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything after the base, on a tiny one and a few invented facts."""
    monkeypatch.setenv(PRECISION, precision)
    scale = replace(
        SMOKE, dev_rows=2, test_rows=3, fine_tuning_rates=(1e-2,), prefix_rates=(1e-1,), temperatures=(0.1,)
    )
    for split, count in (("train", 30), ("dev", 4), ("test", 5)):
        rows = [
            {"document": f"name[Oak {n}]", "summary": f"Oak {n}.", "summaries": [f"Oak {n}.", "An oak."]}
            for n in range(count)
        ]
        (tmp_path / FACTS).mkdir(exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / FACTS / f"{split}.jsonl").write_text(text)
    study = Study(tmp_path / "study", scale, name="test")
    save("zcodepp", study.place("base") / "run" / "model")
    few = replace(scale, pool=200, shares=(0.05,))
    asked = {
        *(rate_step(name, rate) for name, rate in ((FINE_TUNING, 1e-2), ("prefix", 1e-1))),
        *map(temperature_step, scale.temperatures),
        cell(FACTS, UNTUNED, 0),
        *(cell(FACTS, system, 0) for system in (FINE_TUNING, "hierblock+softsa")),
        cell(FACTS, "prefix", 0, 10),
    }
    every = discourse_prefix.steps(few, Runner(study, tmp_path, lambda _: None))
    steps = [replace(step, needs=()) for step in every if step.name in asked]
    assert {step.name for step in steps} == asked
    results = study.work(steps, lambda _: None)
    assert results[cell(FACTS, "prefix", 0, 10)]["pairs"] == 10
    kept = (study.place(cell(FACTS, UNTUNED, 0)) / "texts.jsonl").read_text().splitlines()
    assert [json.loads(row)["document"] for row in kept] == ["name[Oak 0]", "name[Oak 2]", "name[Oak 4]"]
    dev = (study.place(cell(FACTS, FINE_TUNING, 0)) / "dev.jsonl").read_text().splitlines()
    assert json.loads(dev[-1])["summaries"] == ["Oak 3.", "An oak."]
    text = tables(replace(scale, sampling_seeds=(0,)), results)
    for system in (UNTUNED, FINE_TUNING, "hierblock+softsa"):
        assert f"| {system} |" in text
    assert "| 10 | 5% |" in text


def test_prefixes_of_a_part_of_the_layers_are_cut_where_the_paper_cuts() -> None:
    for recipe_name, low, top in (("zcodepp-micro", 2, 1), ("zcodepp-base", 7, 5)):
        scale = replace(MICRO, base=replace(MICRO.base, recipe=recipe_name))
        below, above = (scale.plan(system, FACTS) for system in (LOW, TOP))
        assert below is not None
        assert above is not None
        assert (below.method, above.method) == ("prefix", "prefix")
        assert (below.prefix.layers, above.prefix.layers) == (LowLayers(count=low), TopLayers(count=top))  # type: ignore[union-attr]
    results = {cell(FACTS, "prefix", 0): found(20.0), cell(FACTS, TOP, 0): found(15.0)}
    (row,) = (line for line in tables(MICRO, results).splitlines() if line.startswith(f"| {TOP}"))
    assert "-5.0 [-5.0, -5.0]" in row
    assert f"| {TOP}" not in tables(MICRO, {cell("webnlg", TOP, 0): found(15.0)}).split("| webnlg")[0]


@pytest.mark.parametrize("name", PREFIX_SCALES)
def test_the_rest_of_table_4_and_figure_3_are_steps_at_every_scale(name: str, tmp_path: Path) -> None:
    (tmp_path / "dart").mkdir()
    rows = '{"document": "name[Oak]", "summary": "Oak."}\n'
    (tmp_path / "dart" / "test.jsonl").write_text(rows)
    scale = PREFIX_SCALES[name]
    study = Study(tmp_path / "study", scale, name="test")
    steps = {step.name for step in discourse_prefix.steps(scale, Runner(study, tmp_path, lambda _: None))}
    layers = len(scale.single_layers)
    assert {cell(DIALOGUES, system, 0) for system in (*SPARSE, *WHOLE)} <= steps
    assert {cell(DIALOGUES, f"prefix, layer {n}", 0) for n in range(1, layers + 1)} <= steps
    assert {cell("dart", "prefix", 0), cell(DIALOGUES, TOP, 0), cell(FACTS, LOW, 0)} <= steps
    for task_name in (FACTS, DIALOGUES):
        assert {cell(task_name, s, 0, scale.low_pairs(task_name)[0]) for s in LOW_SYSTEMS} <= steps


def test_sparse_systems_and_single_layers_are_the_methods_of_the_paper() -> None:
    for system in SPARSE:
        plan = MICRO.plan(system, DIALOGUES, temperature=0.1)
        assert plan is not None
        assert (plan.method, plan.attention.temperature) == (system, 0.1 if "softsa" in system else 1.0)
    for system, name in WHOLE.items():
        plan = MICRO.plan(system, DIALOGUES)
        assert plan is not None
        assert (plan.method, plan.prefix) == (name, NoPrefix())
    for index, system in enumerate(MICRO.single_layers):
        plan = MICRO.plan(system, DIALOGUES)
        assert plan is not None
        assert plan.prefix.layers == SingleLayer(index=index)  # type: ignore[union-attr]
    assert len(MICRO.single_layers) == 3


def test_tables_of_single_layers_and_of_the_mean_over_two_tasks() -> None:
    scale = replace(MICRO, sampling_seeds=(0, 1, 2), shares=(0.05,))
    results = {
        cell(DIALOGUES, "prefix", 0): found(30.0),
        cell(DIALOGUES, "prefix, layer 3", 0): found(28.0),
        cell(DIALOGUES, "fine-tuning, softsa", 0): found(33.0),
        **{cell(FACTS, "prefix", seed, 200): found(50.0) for seed in (0, 1, 2)},
        **{cell(DIALOGUES, "prefix", seed, 200): found(20.0) for seed in (0, 1, 2)},
    }
    lines = tables(scale, results).splitlines()
    assert "| 3 | 29.0 [28.0, 30.0] | -2.0 [-2.0, -2.0] |" in lines
    assert "| 5% |  | 36.0 [35.0, 37.0] |  |  |" in lines  # the mean of 51 and 21
    sparse = next(line for line in lines if line.startswith("| fine-tuning, softsa |"))
    assert sparse.endswith("| 50.51/25.71/41.42 |")


def test_a_mean_over_tasks_weighs_tasks_and_not_texts() -> None:
    one, many = found(50.0), found(0.0)
    many["examples"]["rougeL"] = [10.0] * 50
    assert mean_over_tasks([{0: one}, {0: many}], [0]).startswith("30.5 [30.0, 31.0]")


def test_a_given_base_takes_the_place_of_the_pre_trained_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECISION, "fp32")
    given = save("zcodepp", tmp_path / "given")
    for name in (FACTS, DIALOGUES):
        (tmp_path / name).mkdir()
        for split in ("train", "dev", "test"):
            rows = [{"document": f"name[Oak {n}]", "summary": f"Oak {n}."} for n in range(8)]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / name / f"{split}.jsonl").write_text(text)
    scale = begin_with(replace(SMOKE, rate_steps=1, test_rows=2, dev_rows=2), str(given))
    layers = load_model(str(given)).model.config.encoder_layers
    assert scale.single_layers == tuple(f"prefix, layer {n}" for n in range(1, layers + 1))
    names = [cell(FACTS, UNTUNED, 0), rate_step("prefix", 0.001)]
    text = discourse_prefix(scale, data=tmp_path, out=tmp_path / "out", notify=lambda _: None, only=names)
    assert {place.parent.name for place in (tmp_path / "out").glob("steps/*/result.json")} == set(names)
    assert f"| {UNTUNED} |" in text
    assert f"the given model's weights have the digest {scale.weights}." in text
