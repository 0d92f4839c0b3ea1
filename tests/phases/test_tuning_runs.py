"""What the words of `precis tune` attach, and batches that can be cut into segments."""

from dataclasses import replace

import pytest
from tiny_models import our_tokenizer

from precis.data.batches.tokenized import TokenizedPairs
from precis.data.pairs.sources import Pair
from precis.errors import UserError
from precis.phases.tuning_runs import TunePlan, most_segments, parse_keys, parse_layers
from precis.tuning import METHODS, MethodSettings, NoPrefix, Prefix, method
from precis.tuning.prefix import (
    AllLayers,
    Direct,
    FromTokens,
    LowLayers,
    Reparametrized,
    SingleLayer,
    TopLayers,
)

PLAN = TunePlan(method="hierblock", prefix=Prefix(length=4))


def rows(count: int) -> TokenizedPairs:
    pairs = [Pair(f"Ann sings the song {n}.", "Ann sings.") for n in range(count)]
    return TokenizedPairs.from_pairs(
        pairs, our_tokenizer(), max_source=64, max_target=64, decoder_start_token_id=1
    )


def test_the_expected_target_is_the_mean_of_the_training_summaries_unless_it_is_given() -> None:
    data = rows(5)
    assert PLAN.tuning(data, our_tokenizer()).target_length == round(data.target_lengths.mean())
    assert replace(PLAN, target_length=17).tuning(data, our_tokenizer()).target_length == 17


def test_a_single_layer_is_counted_from_0_and_that_is_said() -> None:
    with pytest.raises(UserError, match=r"single:0 \(the lowest; counted from 0\)"):
        parse_layers("layer:1")


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
    assert parse_layers(text) == layers


@pytest.mark.parametrize("text", ["", "top", "top:", "top:-1", "upper:3", "all:2"])
def test_other_words_for_layers_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="write all, top:4"):
        parse_layers(text)


def test_keys_are_made_by_the_network_unless_they_begin_as_words_or_are_asked_for() -> None:
    usual = {"reparametrize": None, "inner_width": None, "initial_text": ""}
    assert parse_keys(**usual) == Reparametrized()
    assert parse_keys(**{**usual, "inner_width": 16}) == Reparametrized(width=16)
    assert parse_keys(**{**usual, "reparametrize": False}) == Direct()
    assert parse_keys(**{**usual, "initial_text": "So"}) == Direct()
    for without in ({"reparametrize": False}, {"initial_text": "So"}):
        with pytest.raises(UserError, match="--inner-width belongs to"):
            parse_keys(**{**usual, **without, "inner_width": 16})


@pytest.mark.parametrize("name", ["prefix", "uniblock", "hierblock", "hierblock+softsa"])
def test_methods_about_a_prefix_cannot_tune_a_whole_model(name: str) -> None:
    with pytest.raises(UserError, match="cannot tune the whole model"):
        TunePlan(method=name, prefix=NoPrefix())


def test_a_network_and_words_to_begin_with_exclude_each_other() -> None:
    with pytest.raises(UserError, match="cannot begin as given words"):
        TunePlan(method="prefix", prefix=Prefix(length=2, keys=Reparametrized()), initial_text="Ann")


def test_a_plan_survives_the_trip_through_json() -> None:
    assert TunePlan.from_dict(PLAN.to_dict()) == PLAN
    whole = TunePlan(method="softsa", prefix=NoPrefix())
    assert TunePlan.from_dict(whole.to_dict()) == whole


@pytest.mark.parametrize("name", METHODS)
def test_blocked_methods_cut_texts_and_others_do_not(name: str) -> None:
    tuning = method(name, Prefix(length=3), MethodSettings(encoder_segments=3))
    assert most_segments(tuning) == (3 if "block" in name else 1)
