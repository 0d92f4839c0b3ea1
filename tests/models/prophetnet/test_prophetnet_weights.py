"""Public ProphetNet checkpoints: what goes in comes out bit for bit, and nothing that could run code is opened."""

import argparse
import json
import pickle
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GenerationConfig
from transformers import ProphetNetConfig as TheirConfig
from transformers import ProphetNetForConditionalGeneration as Theirs

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.fairseq_weights import convert_fairseq
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import (
    config_from_transformers,
    save_for_transformers,
    settings_for_transformers,
)
from precis.objectives.future_tokens import Attenuated
from precis_text.errors import UserError

Ours = ProphetNetForConditionalGeneration
POSITIONS = 30


def their_model(**changes: Any) -> Theirs:
    torch.manual_seed(0)
    config = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "num_encoder_attention_heads": 2,
        "num_decoder_attention_heads": 4,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": POSITIONS,
        "num_buckets": 8,
        "relative_max_distance": 12,
        "ngram": 3,
        "init_std": 0.3,
        **changes,
    }
    return Theirs(TheirConfig(**config)).eval()


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    return their_model()


@pytest.fixture
def folder(theirs: Theirs, tmp_path: Path) -> Path:
    """A folder as transformers writes it."""
    theirs.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def logits(model: Any, **options: Any) -> torch.Tensor:
    ids = torch.arange(3, 21)[None] % 50
    with torch.no_grad():
        return model(input_ids=ids, decoder_input_ids=ids[:, :9], all_streams=True, **options).future_logits


def main_states(model: Any) -> torch.Tensor:
    ids = torch.arange(3, 21)[None] % 50
    with torch.no_grad():
        # without a cache: that of transformers has room for as many layers as the encoder has
        found = model(input_ids=ids, decoder_input_ids=ids[:, :9], output_hidden_states=True, use_cache=False)
    return found.decoder_hidden_states[-1]


def assert_same(one: Any, other: Any) -> None:
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, tensor in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
    assert torch.equal(logits(one.eval()), logits(other.eval()))


# --- transformers


def test_a_folder_of_transformers_is_loaded_and_nothing_is_lost(
    folder: Path, theirs: Theirs, tmp_path: Path
) -> None:
    ours = Ours.from_pretrained(folder)
    torch.testing.assert_close(main_states(ours), main_states(theirs), atol=1e-5, rtol=1e-5)
    assert not ours.training
    ours.save_pretrained(tmp_path / "ours")
    assert_same(ours, Ours.from_pretrained(tmp_path / "ours"))
    save_for_transformers(ours, tmp_path / "back")
    back = Theirs.from_pretrained(tmp_path / "back").eval()
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name
    assert_same(ours, Ours.from_pretrained(tmp_path / "back"))


def test_the_way_back_keeps_the_configuration(folder: Path, theirs: Theirs, tmp_path: Path) -> None:
    save_for_transformers(Ours.from_pretrained(folder), tmp_path / "back")
    kept, known = TheirConfig.from_pretrained(tmp_path / "back").to_dict(), theirs.config.to_dict()
    different = {name for name in known if known[name] != kept[name]}
    assert different <= {"transformers_version", "_name_or_path", "dtype"}


def test_the_way_back_keeps_what_is_not_usual(theirs: Theirs, tmp_path: Path) -> None:
    """The n-gram loss turned off, label smoothing, and how the model is to be decoded."""
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    unusual = {"disable_ngram_loss": True, "eps": 0.1}
    file.write_text(json.dumps({**json.loads(file.read_text()), **unusual}))
    decoding = {"num_beams": 5, "length_penalty": 2.0, "no_repeat_ngram_size": 3}
    GenerationConfig(**decoding).save_pretrained(tmp_path / "theirs")
    ours = Ours.from_pretrained(tmp_path / "theirs")
    assert Attenuated(gamma=ours.config.attenuation).of(2) == [1.0, 0.0]
    ours.save_pretrained(tmp_path / "ours")
    save_for_transformers(Ours.from_pretrained(tmp_path / "ours"), tmp_path / "back")
    kept = TheirConfig.from_pretrained(tmp_path / "back")
    assert {name: getattr(kept, name) for name in unusual} == unusual
    again = GenerationConfig.from_pretrained(tmp_path / "back")
    assert {name: getattr(again, name) for name in decoding} == decoding


def test_padding_that_moves_transformers_positions_is_refused_both_ways(folder: Path, tmp_path: Path) -> None:
    settings = json.loads((folder / "config.json").read_text())
    with pytest.raises(UserError, match="pad_token_id=1"):
        config_from_transformers({**settings, "pad_token_id": 1})
    ours = Ours.from_pretrained(folder)
    ours.config.pad_token_id = 1
    with pytest.raises(UserError, match="pad_token_id=1"):
        save_for_transformers(ours, tmp_path / "back")


def test_xlm_prophetnet_is_loaded_by_its_raw_configuration(folder: Path) -> None:
    """transformers itself no longer knows this model type."""
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "model_type": "xlm-prophetnet"}))
    again = Ours.from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(settings))
    assert_same(again, Ours.from_pretrained(folder))


def test_weights_in_several_files_are_all_read(folder: Path, theirs: Theirs, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    assert_same(Ours.from_pretrained(tmp_path / "shards"), Ours.from_pretrained(folder))


@pytest.mark.parametrize(
    "name",
    [
        "prophetnet.encoder.word_embeddings.weight",
        "prophetnet.decoder.word_embeddings.weight",
        "lm_head.weight",
    ],
)
def test_the_token_table_is_found_under_any_of_its_names(name: str, folder: Path) -> None:
    """Files without doubled tensors keep whichever name came first."""
    plain = Ours.from_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    state[name] = state.pop("prophetnet.word_embeddings.weight")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    assert_same(Ours.from_pretrained(folder), plain)


def test_encoder_and_decoder_with_tables_of_their_own_are_refused(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["prophetnet.decoder.word_embeddings.weight"] = state["prophetnet.word_embeddings.weight"] + 1
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"decoder\.word_embeddings\.weight: differs from"):
        Ours.from_pretrained(folder)


def test_the_checkpoints_wishes_for_decoding_are_kept(folder: Path) -> None:
    wishes = {"num_beams": 5, "length_penalty": 1.2, "no_repeat_ngram_size": 3}
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **wishes}))
    (folder / "generation_config.json").unlink(missing_ok=True)  # as in old folders
    found = Ours.from_pretrained(folder).generation_config.to_dict()
    assert {name: found[name] for name in wishes} == wishes
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 4}))
    assert Ours.from_pretrained(folder).generation_config.num_beams == 4


def test_options_of_from_pretrained_are_obeyed(folder: Path) -> None:
    model, info = Ours.from_pretrained(folder, dtype=torch.bfloat16, output_loading_info=True)
    assert model.dtype == torch.bfloat16
    assert not info["missing_keys"]


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def test_a_folder_with_a_pickle_alone_is_refused_and_the_safe_way_named(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(UserError, match="save_pretrained") as refused:
        Ours.from_pretrained(folder)
    assert "any code" in str(refused.value)
    assert not (tmp_path / "sprung").exists()


def broken(kind: str, state: dict) -> dict:
    """Weights that are not those of the model, by what is wrong."""
    if kind == "missing":
        return {name: tensor for name, tensor in state.items() if "decoder.layers.2" not in name}
    if kind == "unexpected":
        extra = {
            name.replace("layers.2", "layers.3"): t.clone() for name, t in state.items() if "layers.2" in name
        }
        return {**state, **extra}
    if kind == "not the name of a ProphetNet weight":
        return {"model.shared.weight": torch.zeros(3, 3)}
    return {
        name: t[:-1].clone() if name.endswith("word_embeddings.weight") else t for name, t in state.items()
    }


@pytest.mark.parametrize(
    "kind", ["missing", "unexpected", "not the name of a ProphetNet weight", "this ProphetNet has"]
)
def test_weights_of_another_model_are_refused(kind: str, folder: Path) -> None:
    """transformers would fill what is missing with random numbers."""
    state = broken(kind, load_file(folder / "model.safetensors"))
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=kind):
        Ours.from_pretrained(folder)


def test_what_the_configuration_does_not_say_has_transformers_default() -> None:
    """Its start token is 0, ours is the end mark."""
    theirs, ours = TheirConfig(), config_from_transformers({"model_type": "prophetnet"})
    for name, value in settings_for_transformers(ours).items():
        if name not in ("model_type", "architectures"):
            assert getattr(theirs, name) == value, name


# --- fairseq

WIDTH = 128  # two heads of 64, as in released checkpoints


def our_model(**changes: Any) -> Ours:
    torch.manual_seed(1)
    shape = {
        "vocab_size": 110,
        "hidden_size": WIDTH,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 513,
        "decoder_positions": 514,
        "ngram": 2,
        "bos_token_id": 102,
        "eos_token_id": 102,
        "decoder_start_token_id": 102,
        "init_std": 0.1,
        **changes,
    }
    return Ours(ProphetNetConfig(**shape)).eval()


FAIRSEQ = (  # ours -> fairseq's, in this order
    (r"^model\.encoder\.tokens", "encoder.embed_tokens"),
    (r"^model\.encoder\.stack\.positions\.rows", "encoder.embed_positions"),
    (r"^model\.encoder\.stack\.norm", "encoder.emb_layer_norm"),
    (r"^model\.encoder\.stack\.layers", "encoder.layers"),
    (r"^model\.decoder\.positions\.rows", "decoder.embed_positions"),
    (r"^model\.decoder\.norm", "decoder.emb_layer_norm"),
    (r"^model\.decoder\.streams", "decoder.ngram_input_embed"),
    (r"^model\.decoder\.layers", "decoder.layers"),
    (r"\.position_scores\.", ".ngram_self_attn.relative_linear."),
    (r"\.self_attention\.", ".ngram_self_attn."),
    (r"\.cross_attention\.", ".encoder_attn."),
    (r"\.cross_norm\.", ".encoder_attn_layer_norm."),
    (r"\.(self|attention)_norm\.", ".self_attn_layer_norm."),
    (r"\.feed_forward_norm\.", ".final_layer_norm."),
    (r"\.feed_forward\.up\.", ".fc1."),
    (r"\.feed_forward\.down\.", ".fc2."),
    (r"\.attention\.", ".self_attn."),
    (r"\.query\.", ".q_proj."),
    (r"\.key\.", ".k_proj."),
    (r"\.value\.", ".v_proj."),
    (r"\.output\.", ".out_proj."),
)


def fairseq_weights(model: Theirs, *, joined: bool) -> dict[str, torch.Tensor]:
    """A model of ours as fairseq saves it; `joined`: query, key and value in one tensor, as before version 0.9."""
    named = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        for ours, other in FAIRSEQ:
            name = re.sub(ours, other, name)
        named[name] = tensor.clone()
    named["decoder.embed_tokens.weight"] = named["encoder.embed_tokens.weight"].clone()
    named |= {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}
    if joined:
        for query in [name for name in named if ".q_proj." in name]:
            parts = [named.pop(query.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
            named[query.replace("q_proj.", "in_proj_")] = torch.cat(parts)
    return named


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_a_checkpoint_of_fairseq_is_converted_and_nothing_is_lost(
    joined: bool, ending: str, tmp_path: Path
) -> None:
    model = our_model()
    state = fairseq_weights(model, joined=joined)
    assert ("decoder.layers.1.ngram_self_attn.in_proj_weight" in state) == joined
    assert state["encoder.embed_positions.weight"].shape[0] == 513
    assert state["decoder.embed_positions.weight"].shape[0] == 514
    file = tmp_path / f"checkpoint.{ending}"
    if ending == "pt":
        options = argparse.Namespace(arch="ngram_transformer_prophet_large", encoder_attention_heads=2)
        torch.save({"args": options, "model": state, "extra_state": {"epoch": 9, "val_loss": 3.5}}, file)
    else:
        save_file(state, file)
    found = convert_fairseq(file)
    assert_same(model, found)
    shape = (
        "eos_token_id",
        "decoder_start_token_id",
        "pad_token_id",
        "ngram",
        "decoder_buckets",
        "hidden_act",
    )
    assert {name: getattr(found.config, name) for name in shape} == {
        name: getattr(model.config, name) for name in shape
    }
    found.save_pretrained(tmp_path / "saved")
    assert_same(model, Ours.from_pretrained(tmp_path / "saved"))


def test_its_options_decide_what_weights_do_not_show(tmp_path: Path) -> None:
    changes = {"encoder_attention_heads": 4, "decoder_attention_heads": 8, "hidden_act": "relu"}
    changes |= {
        "decoder_max_distance": 40,
        "dropout": 0.0,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
    }
    model = our_model(**changes)
    options = argparse.Namespace(
        encoder_attention_heads=4,
        decoder_attention_heads=8,
        activation_fn="relu",
        relative_max_distance=40,
        dropout=0.0,
        attention_dropout=0.2,
        activation_dropout=0.3,
    )
    torch.save({"args": options, "model": fairseq_weights(model, joined=False)}, tmp_path / "a.pt")
    found = convert_fairseq(tmp_path / "a.pt")
    assert {name: getattr(found.config, name) for name in changes} == changes
    assert_same(model, found)


def test_the_meters_in_old_checkpoints_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq 0.9 saves objects of its own beside the weights; they are read without fairseq."""
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters", "reset": lambda self: None})
    module = types.ModuleType("fairseq.meters")
    module.AverageMeter = meter  # type: ignore[attr-defined]
    used = meter()
    used.sum, used.count = 2.5, 4
    model = our_model()
    state = {"model": fairseq_weights(model, joined=False), "extra_state": {"train_meters": {"loss": used}}}
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
        patched.setitem(sys.modules, "fairseq.meters", module)
        torch.save(state, tmp_path / "a.pt")
    assert_same(model, convert_fairseq(tmp_path / "a.pt"))


@pytest.mark.parametrize("place", ["args", "model", "extra"])
def test_a_file_with_any_other_object_is_refused_and_runs_nothing(place: str, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    whole = {"args": argparse.Namespace(), "model": fairseq_weights(our_model(), joined=False), "extra": 1}
    whole[place] = Trap(trap)
    torch.save(whole, tmp_path / "a.pt")
    with pytest.raises(UserError, match="holds more than tensors and plain values") as refused:
        convert_fairseq(tmp_path / "a.pt")
    assert "safetensors" in str(refused.value)
    assert not trap.exists()
    with (tmp_path / "a.pt").open("rb") as file:  # the trap works
        torch.load(file, weights_only=False)
    assert trap.exists()


def plain_pickle(file: Path) -> None:
    file.write_bytes(pickle.dumps({"model": Trap(file.with_name("sprung"))}))


def bare_weights(file: Path) -> None:
    torch.save(fairseq_weights(our_model(), joined=False), file)


def another_model(file: Path) -> None:
    torch.save(
        {"model": {"encoder.embed_tokens.weight": torch.zeros(4, 64), "decoder.lstm.weight": torch.zeros(3)}},
        file,
    )


def half_a_model(file: Path) -> None:
    state = fairseq_weights(our_model(), joined=False)
    torch.save({"model": {name: t for name, t in state.items() if "fc2" not in name}}, file)


def other_tables(file: Path) -> None:
    state = fairseq_weights(our_model(), joined=False)
    torch.save({"model": {**state, "decoder.embed_tokens.weight": torch.zeros(110, WIDTH)}}, file)


def odd_heads(file: Path) -> None:
    options = argparse.Namespace(encoder_attention_heads=3)
    torch.save({"args": options, "model": fairseq_weights(our_model(), joined=False)}, file)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file: None, "no such file"),
        (lambda file: file.mkdir(), "is a folder"),
        (lambda file: file.write_bytes(b""), "cannot be read|holds more than"),
        (lambda file: file.write_bytes(b"not a checkpoint"), "cannot be read|holds more than"),
        (plain_pickle, "holds more than tensors"),
        (bare_weights, "contains no 'model' with weights"),
        (another_model, "decoder.lstm.weight: not the name of a ProphetNet weight"),
        (half_a_model, "is missing"),
        (other_tables, r"decoder\.embed_tokens\.weight: differs from"),
        (odd_heads, "is not a multiple of encoder_attention_heads=3"),
    ],
    ids=["nothing", "folder", "empty", "text", "pickle", "bare", "another", "half", "tables", "heads"],
)
def test_what_is_no_whole_checkpoint_is_refused_in_one_line(
    write: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write(tmp_path / "a.pt")
    with pytest.raises(UserError, match=message) as refused:
        convert_fairseq(tmp_path / "a.pt")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "sprung").exists()


def test_tables_of_two_lengths_have_no_place_in_transformers(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tables of one length"):
        save_for_transformers(our_model(), tmp_path / "back")
    assert not (tmp_path / "back").exists()
