"""The plans of adapters, Table 7 of the discourse-prefix paper, and shares of a training set."""

from dataclasses import replace
from pathlib import Path

import pytest

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import Turns
from precis.phases.data.run_pairs import NamedPairs, examples_in_share
from precis.recipes.adapter_recipes import (
    LOW_RESOURCE,
    TABLE_7,
    TunePlan,
    layers_named,
    resolve_prefix,
    resolve_tuning,
    settings_for,
    split_assignments,
)
from precis.tuning import METHODS, MethodSettings, NoPrefix, Prefix, method
from precis.tuning.discourse import most_segments
from precis.tuning.prefix import (
    AllLayers,
    Direct,
    FromTokens,
    LowLayers,
    Reparametrized,
    SingleLayer,
    TopLayers,
)
from precis_text.errors import UserError
from tests.tiny_models import our_tokenizer

PLAN = TunePlan(method="hierblock", prefix=Prefix(length=4))


def rows(count: int) -> TokenizedPairs:
    pairs = [Pair(f"Ann sings the song {n}.", "Ann sings.") for n in range(count)]
    return TokenizedPairs.from_pairs(
        pairs, our_tokenizer(), max_source=64, max_target=64, decoder_start_token_id=1
    )


def test_the_expected_target_is_the_mean_of_the_training_summaries_unless_it_is_given() -> None:
    data = rows(5)
    assert PLAN.tuning(data, our_tokenizer()).target_length == round(data.targets.lengths.mean())
    assert replace(PLAN, target_length=17).tuning(data, our_tokenizer()).target_length == 17


def test_a_single_layer_is_counted_from_0_and_that_is_said() -> None:
    with pytest.raises(UserError, match=r"single:0 \(the lowest; counted from 0\)"):
        layers_named("layer:1")


def test_words_to_begin_with_become_ids_without_control_tokens() -> None:
    found = replace(PLAN, initial_text="Ann sings").tuning(rows(2), our_tokenizer()).prefix
    assert isinstance(found, Prefix)
    assert isinstance(found.keys, FromTokens)
    assert our_tokenizer().decode(found.keys.ids).strip() == "Ann sings"


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("all", AllLayers()),
        ("top:4", TopLayers(count=4)),
        ("low:7", LowLayers(count=7)),
        ("single:0", SingleLayer(index=0)),
    ],
)
def test_layers_are_named_in_words(text: str, layers: object) -> None:
    assert layers_named(text) == layers


@pytest.mark.parametrize("text", ["", "top", "top:", "top:-1", "upper:3", "all:2"])
def test_other_words_for_layers_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="write all, top:4"):
        layers_named(text)


def keys_of(*assignments: str) -> object:
    prefix = resolve_prefix("e2e", "uniblock", assignments).prefix
    assert isinstance(prefix, Prefix)
    return prefix.keys


def test_keys_are_made_by_the_network_unless_they_begin_as_words_or_are_asked_for() -> None:
    assert keys_of() == Reparametrized()
    assert keys_of("prefix.keys.width=16") == Reparametrized(width=16)
    assert keys_of("prefix.keys=direct") == Direct()
    assert keys_of("prefix.keys.std=0.1", "prefix.keys=direct") == Direct(std=0.1)
    assert keys_of("initial_text=So") == Direct()
    with pytest.raises(UserError, match=r"prefix\.keys\.width: unknown setting of prefix\.keys"):
        keys_of("prefix.keys=direct", "prefix.keys.width=16")
    with pytest.raises(UserError, match="cannot be initialized with words"):
        keys_of("initial_text=So", "prefix.keys.width=16")


def test_settings_of_a_prefix_are_changed_by_name_like_all_others() -> None:
    plan = resolve_prefix(
        "e2e",
        "hierblock+softsa",
        ["prefix.length=7", "prefix.sites=encoder,cross", "prefix.layers=top:2", "attention.temperature=0.1",
         "attention.encoder_segments=3", "units=turns", "target_length=9", "prefix.dropout=0.5"],
    )  # fmt: skip
    assert plan == TunePlan(
        method="hierblock+softsa",
        prefix=Prefix(
            length=7,
            sites=("encoder", "cross"),
            layers=TopLayers(count=2),
            keys=Reparametrized(),
            dropout=0.5,
        ),
        attention=MethodSettings(encoder_segments=3, temperature=0.1),
        units=Turns(),
        target_length=9,
    )
    assert resolve_prefix("e2e", "softsa", ["prefix=none"]).prefix == NoPrefix()
    lengths = [resolve_prefix(name, "prefix").prefix for name in ("e2e", "xsum")]
    assert [prefix.length for prefix in lengths if isinstance(prefix, Prefix)] == [10, 100]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prefix=4"], "prefix=4: write none"),
        (["prefix.keys=net"], "write network or direct"),
        (["units=words"], "units=words: unknown units"),
        (["prefix=none", "prefix.length=4"], "prefix.length needs a prefix"),
        (["attention.mass=0.9"], "does not apply to --method softsa; only truncsa, htruncsa use it"),
        (["prefix.width=4"], "unknown setting; did you mean 'keys.width'"),
    ],
)
def test_what_a_prefix_cannot_be_is_one_line(words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        resolve_prefix(None, "softsa", words)


def test_assignments_about_the_run_are_told_from_those_about_the_prefix() -> None:
    both = ["prefix.length=4", "train.steps=9", "units=turns", "max_source=64"]
    assert split_assignments(both) == (["prefix.length=4", "units=turns"], ["train.steps=9", "max_source=64"])


@pytest.mark.parametrize("name", ["prefix", "uniblock", "hierblock", "hierblock+softsa"])
def test_methods_about_a_prefix_cannot_tune_a_whole_model(name: str) -> None:
    with pytest.raises(UserError, match="cannot tune the whole model"):
        TunePlan(method=name, prefix=NoPrefix())


def test_a_network_and_words_to_begin_with_exclude_each_other() -> None:
    with pytest.raises(UserError, match="cannot be initialized with words"):
        TunePlan(method="prefix", prefix=Prefix(length=2, keys=Reparametrized()), initial_text="Ann")


def test_a_plan_survives_the_trip_through_json() -> None:
    assert TunePlan.from_dict(PLAN.to_dict()) == PLAN
    whole = TunePlan(method="softsa", prefix=NoPrefix())
    assert TunePlan.from_dict(whole.to_dict()) == whole


@pytest.mark.parametrize("name", METHODS)
def test_blocked_methods_cut_texts_and_others_do_not(name: str) -> None:
    tuning = method(name, Prefix(length=3), MethodSettings(encoder_segments=3))
    assert most_segments(tuning) == (3 if "block" in name else 1)


def test_table_7_is_the_papers() -> None:
    lengths = {name: row.prefix_length for name, row in TABLE_7.items()}
    assert lengths == {
        "xsum": 100, "cnndm": 50, "pubmed": 50, "wikihow": 100, "samsum": 10, "e2e": 10, "dart": 10,
    }  # fmt: skip
    assert [row.epochs for row in TABLE_7.values()] == [30, 30, 30, 30, 20, 10, 10]
    assert [row.batch_size for row in TABLE_7.values()] == [8, 8, 8, 8, 16, 16, 16]
    assert {(row.learning_rate, row.beams) for row in TABLE_7.values()} == {(5e-5, 5)}


@pytest.mark.parametrize(("name", "like"), [("webnlg", "dart"), ("dialogsum", "samsum"), ("aeslc", "cnndm")])
def test_other_tasks_are_tuned_as_those_of_their_kind(name: str, like: str) -> None:
    assert settings_for(name) == TABLE_7[like]
    assert settings_for(None) == TABLE_7["cnndm"]


def test_a_run_has_the_tasks_lengths_and_beams_and_no_warmup_decay_or_smoothing() -> None:
    run = resolve_tuning("samsum", changes={"train.learning_rate": 0.01}, assignments=["batch_size=4"])
    assert (run.max_source, run.generation.no_repeat_ngram, run.generation.beams) == (512, 3, 5)
    assert (run.train.epochs, run.train.learning_rate, run.batch_size) == (20, 0.01, 4)
    assert (run.train.warmup_steps, run.train.weight_decay, run.label_smoothing) == (0, 0.0, 0.0)


def test_a_share_counts_the_pairs_that_are_trained_on(tmp_path: Path) -> None:
    rows = [f'{{"document": "Ann sings {n}.", "summary": "s"}}\n' for n in range(100)]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    (tmp_path / "dev.jsonl").write_text(rows[0])
    with_dev = NamedPairs(data=str(tmp_path)).sources()
    assert [examples_in_share(with_dev, share, seed=0) for share in LOW_RESOURCE] == [5, 10, 25, 50]
    held_out = NamedPairs(data=str(tmp_path / "train.jsonl")).sources()  # 5 of 100 pairs are for validation
    assert examples_in_share(held_out, 1.0, seed=0) == 95
    assert examples_in_share(with_dev, 0.0001, seed=0) == 1


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_out_of_range_is_refused(share: float, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"document": "d", "summary": "s"}\n')
    with pytest.raises(UserError, match="above 0 and at most 1"):
        examples_in_share(NamedPairs(data=str(tmp_path / "pairs.jsonl")).sources(), share, seed=0)
