"""What new ProphetNets begin with."""

from dataclasses import replace
from pathlib import Path

import pytest

from precis.models import ProphetNetConfig, ProphetNetForConditionalGeneration
from precis.phases.train.trainable_model import new_config
from precis.recipes.catalogue import model_of, recipe
from precis.recipes.run_plan import ProphetNetShape
from tests.tiny_models import our_tokenizer

TINY = {
    "vocab_size": 300,
    "hidden_size": 64,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}


def spreads(model: ProphetNetForConditionalGeneration) -> dict[str, float]:
    """Of tokens, of both tables of positions, and of a projection."""
    decoder, stack = model.get_decoder(), model.get_encoder().stack
    tables = {
        "tokens": model.get_input_embeddings(),
        "source": stack.positions.rows,
        "target": decoder.positions.rows,
        "query": decoder.layers[0].self_attention.query,
    }
    return {name: table.weight[1:].std().item() for name, table in tables.items()}


def test_everything_begins_as_released_unless_told_otherwise() -> None:
    found = spreads(ProphetNetForConditionalGeneration(ProphetNetConfig(**TINY)))
    assert found == pytest.approx(dict.fromkeys(found, 0.02), rel=0.1)
    shape = recipe("prophetnet-large").model
    assert (shape.init_std, shape.position_std) == (0.02, None)  # type: ignore[union-attr]


def test_positions_have_a_spread_of_their_own_and_padding_none() -> None:
    model = ProphetNetForConditionalGeneration(ProphetNetConfig(**TINY, init_std=0.1, position_std=0.03))
    wanted = {"tokens": 0.1, "source": 0.03, "target": 0.03, "query": 0.1}
    assert spreads(model) == pytest.approx(wanted, rel=0.1)
    for table in (model.get_encoder().stack.positions.rows, model.get_decoder().positions.rows):
        assert not table.weight[0].any()


def test_loaded_weights_are_not_drawn_again(tmp_path: Path) -> None:
    model = ProphetNetForConditionalGeneration(ProphetNetConfig(**TINY, init_std=0.1, position_std=0.03))
    rows = model.get_decoder().positions.rows.weight
    rows.data[0] = 5.0
    model.save_pretrained(tmp_path)
    again = ProphetNetForConditionalGeneration.from_pretrained(tmp_path)
    assert again.get_decoder().positions.rows.weight.equal(rows)


def test_a_narrow_recipe_reaches_the_model() -> None:
    shape = recipe("prophetnet-micro").model
    assert isinstance(shape, ProphetNetShape)
    shape = replace(shape, vocab_size=len(our_tokenizer()))
    found = spreads(model_of(new_config(shape, our_tokenizer())))
    wanted = {"tokens": 0.0566, "source": 0.0113, "target": 0.0113, "query": 0.0566}
    assert found == pytest.approx(wanted, rel=0.1)
