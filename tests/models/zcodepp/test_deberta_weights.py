"""Starting from a DeBERTa checkpoint, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, DebertaV2Config, DebertaV2Model

from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.errors import UserError


def deberta_config(**changes: Any) -> DebertaV2Config:
    return DebertaV2Config(
        **{
            "vocab_size": 60,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 48,
            "relative_attention": True,
            "position_buckets": 16,
            "max_position_embeddings": 32,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "type_vocab_size": 0,
            **changes,
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    DebertaV2Model(deberta_config()).save_pretrained(tmp_path)
    return tmp_path


@torch.no_grad()
def test_encoder_states_are_debertas(folder: Path) -> None:
    theirs = DebertaV2Model.from_pretrained(folder).eval()
    ours = ZCodePPForConditionalGeneration.from_deberta(folder, decoder_layers=1).eval()
    ids = torch.randint(4, 60, (2, 20))
    expected = theirs(ids).last_hidden_state
    torch.testing.assert_close(ours.get_encoder()(ids).last_hidden_state, expected, atol=1e-5, rtol=1e-5)
    assert ours.lm_head.weight.data_ptr() == ours.get_input_embeddings().weight.data_ptr()


@torch.no_grad()
def test_fusion_layers_carry_the_encoders_own_weights(folder: Path) -> None:
    dense = ZCodePPForConditionalGeneration.from_deberta(folder, decoder_layers=1)
    fused = ZCodePPForConditionalGeneration.from_deberta(folder, decoder_layers=1, chunk_length=8)
    for (name, own), other in zip(
        fused.get_encoder().named_parameters(), dense.get_encoder().parameters(), strict=True
    ):
        assert torch.equal(own, other), name
    ids = torch.randint(4, 60, (1, 30))
    assert torch.isfinite(fused.eval().get_encoder()(ids).last_hidden_state).all()


def test_more_token_rows_leave_room_for_sentinels(folder: Path) -> None:
    model = ZCodePPForConditionalGeneration.from_deberta(folder, decoder_layers=1, vocab_size=70)
    original = DebertaV2Model.from_pretrained(folder).embeddings.word_embeddings.weight
    table = model.get_input_embeddings().weight
    assert table.shape == (70, 32)
    assert torch.equal(table[:60], original)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"position_biased_input": True}, "absolute positions"), ({"type_vocab_size": 2}, "token types")],
)
def test_other_debertas_are_refused(tmp_path: Path, changes: dict[str, bool | int], words: str) -> None:
    DebertaV2Model(deberta_config(**changes)).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=words):
        ZCodePPForConditionalGeneration.from_deberta(tmp_path)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=1)).save_pretrained(
        tmp_path
    )
    with pytest.raises(UserError, match="'bert' model"):
        ZCodePPForConditionalGeneration.from_deberta(tmp_path)


def test_settings_of_the_checkpoint_cannot_be_overridden(folder: Path) -> None:
    with pytest.raises(UserError, match="hidden_size"):
        ZCodePPForConditionalGeneration.from_deberta(folder, hidden_size=64)


def test_a_pickle_is_refused_with_the_safe_way(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model\.bin.*convert"):
        ZCodePPForConditionalGeneration.from_deberta(folder)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not have a config\.json"):
        ZCodePPForConditionalGeneration.from_deberta(tmp_path)
