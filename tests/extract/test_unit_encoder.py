"""The vectors of units: the mean and the last hidden state of exactly their own tokens."""

import copy
import logging
from pathlib import Path

import pytest
import torch

from precis.extract import unit_encoder
from precis.extract.unit_encoder import UnitReader, _unit_vectors, around, unit_tokenizer
from precis.generation.model_loader import load_model
from tests.tiny_models import our_tokenizer, save


def test_a_units_vector_is_its_tokens_mean_and_its_last_state() -> None:
    states = torch.arange(20.0).reshape(10, 2)
    found = _unit_vectors(states, torch.tensor([1, 4, 5]), torch.tensor([3, 1, 4]))
    want = [[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 8.0, 9.0], [13.0, 14.0, 16.0, 17.0]]
    assert found.tolist() == want


@pytest.mark.parametrize("kind", ["zcodepp", "bart"])
def test_the_vectors_are_those_of_the_encoders_states_token_by_token(kind: str, tmp_path: Path) -> None:
    loaded = load_model(save(kind, tmp_path / kind))
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=96)
    document = "Ann sings in the hall. Bob listens to her. It rains."
    (tokens,) = reader.tokenize([document])
    assert tokens is not None
    (read,) = reader.read([tokens])
    whole = [token for row in tokens.ids for token in row]
    before, after = reader._before, reader._after
    ids = torch.tensor([[*before, *whole, *after]])
    with torch.inference_mode():
        states = loaded.model.get_encoder()(input_ids=ids).last_hidden_state[0]
    place = len(before)
    for row, vector in zip(tokens.ids, read.vectors, strict=True):
        own = states[place : place + len(row)]
        torch.testing.assert_close(vector, torch.cat([own.mean(0), own[-1]]), atol=1e-5, rtol=1e-5)
        place += len(row)
    assert place + len(after) == len(states)
    assert [*before, *tokens.ids[0], *after] == loaded.tokenizer(tokens.units[0].text)["input_ids"]


def test_inputs_that_are_read_are_counted(tmp_path: Path) -> None:
    loaded = load_model(save("bart", tmp_path / "bart"))
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=16, together=16)
    tokens = [each for each in reader.tokenize(["Ann sings in the hall."] * 2) if each]
    told: list[tuple[int, int, int]] = []
    read = reader.read(tokens, lambda *counts: told.append(counts))
    inputs = sum(each.pieces for each in read)
    assert told == [(done, inputs, 0) for done in range(1, inputs + 1)]


def test_an_input_as_long_as_the_model_reads_is_read_whole(tmp_path: Path) -> None:
    loaded = load_model(save("zcodepp", tmp_path / "zcodepp"))
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=96)
    assert (reader.how(96), reader.how(97)) == ("whole", "fie")


def test_a_text_longer_than_a_tokenizers_limit_is_no_reason_for_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    caplog.set_level(logging.WARNING, "transformers")  # another test may have made it silent
    tokenizer = copy.deepcopy(our_tokenizer())
    tokenizer.model_max_length = 1
    assert len(unit_tokenizer(tokenizer).encode(["Ann sings in the hall."])[0]) > 1
    around(tokenizer)
    assert not caplog.records
    tokenizer("Ann sings in the hall.")
    assert caplog.records  # transformers' own default


def test_a_text_of_cut_tokens_shows_no_control_tokens() -> None:
    tokenizer = our_tokenizer()
    tokens = unit_tokenizer(tokenizer)
    ((first, *_),) = tokens.encode(["Ann sings"])
    shown = tokens.decode([first, tokenizer.unk_token_id, tokenizer.eos_token_id])
    assert shown.strip() == tokens.decode([first]).strip() != ""


def test_the_memory_of_the_previous_pass_is_given_back_before_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(save("zcodepp", tmp_path / "zcodepp"))
    reader = UnitReader(loaded.model, loaded.tokenizer, max_source=96)
    tokens = [each for each in reader.tokenize(["Ann sings in the hall. Bob listens."] * 4) if each]
    length = tokens[0].document_tokens + len(reader._before) + len(reader._after)
    given_back: list[int] = []
    monkeypatch.setattr(unit_encoder, "trim_heap", lambda: given_back.append(1))
    monkeypatch.setattr(unit_encoder, "_LARGE", 4 * length)
    reader.read(tokens[:3])
    assert not given_back
    reader.read(tokens)
    assert given_back == [1]
