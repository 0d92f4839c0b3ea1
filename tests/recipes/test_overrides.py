"""`--set` changes what it names and nothing else, and refuses what it cannot understand."""

import pytest

from precis.recipes.catalogue import recipe
from precis.recipes.overrides import (
    check_on_pairs,
    metric_to_select,
    refuse_shape,
    with_changes,
    with_overrides,
)
from precis.recipes.planning import grounding, resolve_run
from precis.training import Highest, Lowest
from precis_text.errors import UserError

MICRO = recipe("zcodepp-micro")


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("train.learning_rate=3e-4", 3e-4),
        ("model.encoder_layers=4", 4),
        ("model.chunk_length=256", 256),
        ("model.chunk_length=none", None),
        ("model.decoder_feed_forward=gated-gelu", "gated-gelu"),
        ("train.precision=bf16", "bf16"),
        ("train.betas=0.9,0.98", (0.9, 0.98)),
        ("train.patience=3", 3),
        ("stream_weights=1,0,0.5", (1.0, 0.0, 0.5)),
        ("stream_weights=none", None),
        ("train.select=loss", Lowest(metric="loss")),
        ("train.select=rouge1", Highest(metric="rouge1")),
        ("generation.early_stopping=false", False),
        ("max_source=300", 300),
        ("label_smoothing=0", 0.0),
    ],
)
def test_a_value_of_every_type_is_read(assignment: str, value: object) -> None:
    changed = with_overrides(MICRO, [assignment])
    path = assignment.partition("=")[0].split(".")
    found: object = changed
    for name in path:
        found = getattr(found, name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("train.learnig_rate=1", "did you mean 'learning_rate'"),
        ("trian.learning_rate=1", "did you mean 'train'"),
        ("train=1", "group of settings"),
        ("train.learning_rate.x=1", "single value"),
        ("train.learning_rate=fast", "not a number"),
        ("train.learning_rate=nan", "'nan' is not a finite number"),
        ("train.weight_decay=-inf", "'-inf' is not a finite number"),
        ("=3", "write NAME=VALUE"),
        ("model.dropout=1", r"model\.dropout=1\.0 is outside \[0, 1\)"),
        ("model.hidden_size=0", "model.hidden_size=0 is too small"),
        ("model.encoder_layers=2.5", "not a whole number"),
        ("train.precision=fp8", "'fp32' or 'bf16'"),
        ("generation.early_stopping=maybe", "'true' or 'false'"),
        ("train.betas=0.9", "commas"),
        ("stream_weights=1,x", "not a list of values separated by commas"),
        ("max_source", "NAME=VALUE"),
        ("max_source=1", "too small"),
        ("train.learning_rate=-1", "above 0"),
        ("train.select=rougel", "did you mean 'rougeL'"),
        ("train.select=foo", "unknown metric 'foo'; known: accuracy"),
        ("train.select=accuracy/samsum", "unknown metric 'accuracy/samsum'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(assignment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        with_overrides(MICRO, [assignment])


@pytest.mark.parametrize("name", ["loss", "nll", "nll_1", "loss/samsum", "mlm", "rtd", "csp"])
def test_of_a_loss_the_lowest_is_the_best(name: str) -> None:
    assert metric_to_select(name) == Lowest(metric=name)


@pytest.mark.parametrize(
    "name", ["accuracy", "accuracy_2", "rouge2", "rougeL/xsum", "rtd_accuracy", "csp_accuracy"]
)
def test_of_a_score_the_highest_is_the_best(name: str) -> None:
    assert metric_to_select(name) == Highest(metric=name)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["train.select=nll_1"], "validation on pairs does not measure it"),
        (["train.select=loss/samsum"], "validation on pairs does not measure it"),
        (["generated_rows=0"], "select=rougeL is measured on generated summaries"),
        (["batch_size=0"], "batch_size=0 is too small"),
        (["batch_tokens=0"], "batch_tokens=0 is too small"),
    ],
)
def test_what_would_fail_at_the_first_batch_or_validation_is_refused(
    assignments: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check_on_pairs(resolve_run("zcodepp-micro", assignments=assignments))


def test_what_is_measured_may_name_the_best_checkpoint() -> None:
    check_on_pairs(resolve_run("zcodepp-micro"))
    check_on_pairs(resolve_run("zcodepp-micro", assignments=["generated_rows=0", "train.select=nll"]))
    of_a_set = with_overrides(grounding(MICRO), ["train.select=loss/samsum"])
    check_on_pairs(of_a_set, several_sets=True)


def test_steps_take_epochs_back_and_rows_take_tokens_back() -> None:
    changed = with_changes(MICRO, {"train.steps": 7, "batch_size": 3})
    assert (changed.train.steps, changed.train.epochs) == (7, None)
    assert (changed.batch_size, changed.batch_tokens) == (3, None)


def test_both_of_two_exclusive_settings_are_refused() -> None:
    with pytest.raises(UserError, match="either steps or epochs"):
        with_changes(MICRO, {"train.steps": 7, "train.epochs": 2.0})


def test_a_task_sets_lengths_and_decoding_and_options_win() -> None:
    run = resolve_run("zcodepp-micro", task_name="e2e", changes={"max_target": 40})
    assert (run.max_source, run.max_target, run.generation.beams) == (128, 40, 5)


def test_assignments_win_over_options() -> None:
    run = resolve_run("zcodepp-micro", changes={"max_target": 40}, assignments=["max_target=50"])
    assert run.max_target == 50


def test_a_given_model_gets_gentler_settings() -> None:
    assert resolve_run(None, pretrained=True).train.learning_rate < 1e-4
    assert resolve_run(None).name == "zcodepp-mini"


def test_the_shape_of_a_given_model_cannot_be_set() -> None:
    with pytest.raises(UserError, match=r"model.ngram=3: the model given with --model"):
        refuse_shape(["train.steps=3", "model.ngram=3"])
    refuse_shape(["train.steps=3"])


def test_a_setting_that_is_named_twice_is_refused_rather_than_one_of_them_lost() -> None:
    with pytest.raises(UserError, match=r"--set train\.seed is given twice, the second time as 2"):
        with_overrides(MICRO, ["train.seed=1", "train.seed=2"])
