"""`precis convert`: fairseq's and transformers' ProphetNet become folders that every command can use."""

import json
from pathlib import Path

import pytest
import torch
from transformers import ProphetNetConfig as TheirConfig
from transformers import ProphetNetForConditionalGeneration as Theirs

from precis.data.synthetic.corpus import make_pairs
from precis.data.text.encoding import decode_summary
from precis.generation.generation_settings import generation_config
from precis.generation.model_loader import load_model
from precis.generation.summarizer import Summarizer
from precis.models.prophetnet import fairseq_weights as prophetnet_fairseq
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.phases.use.model_conversion import convert
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.devices import beside
from tests.fairseq_checkpoints import bert_like, save_released

DOCUMENTS = [pair.document for pair in make_pairs(3, seed=1)]


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    bert_like(DOCUMENTS, entries=400).save_pretrained(tmp_path / "bert")
    return str(tmp_path / "bert")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_released(tmp_path / "a.pt")


def test_a_converted_checkpoint_summarizes(checkpoint: Path, tokenizer: str, tmp_path: Path) -> None:
    done = convert(checkpoint, tmp_path / "out", tokenizer=tokenizer)
    assert (done.streams, done.has_tokenizer) == (2, True)
    loaded = load_model(tmp_path / "out")
    assert type(loaded.model) is ProphetNetForConditionalGeneration
    assert done.parameters == loaded.model.num_parameters()
    summarizer = Summarizer.from_pretrained(tmp_path / "out")
    assert summarizer.max_source == 512  # 513 rows, one for padding
    options = {"long": "truncate", "settings": GenerationSettings(max_tokens=8)}
    found = summarizer.summarize([DOCUMENTS[0], DOCUMENTS[1] * 40], **options)  # type: ignore[arg-type]
    assert [summary.how for summary in found] == ["whole", "truncate"]
    assert found[1].tokens_read == 511  # and [SEP]
    assert all(summary.summary_tokens for summary in found)


def test_texts_end_with_sep_and_have_no_cls_and_decoding_starts_from_sep(
    checkpoint: Path, tokenizer: str, tmp_path: Path
) -> None:
    """As fairseq does it; BERT's own template puts [CLS] first, which ProphetNet never saw."""
    convert(checkpoint, tmp_path / "out", tokenizer=tokenizer)
    loaded = load_model(tmp_path / "out")
    words, config = loaded.tokenizer, loaded.model.config
    end = words.sep_token_id
    assert end == 5
    ids = words(DOCUMENTS[0])["input_ids"]
    assert ids[-1] == end
    assert words.cls_token_id not in ids
    assert words("one", "two")["input_ids"].count(end) == 2
    assert (config.eos_token_id, config.decoder_start_token_id, config.pad_token_id) == (end, end, 0)
    assert words.eos_token_id == end
    generation = loaded.model.generation_config
    assert (generation.eos_token_id, generation.decoder_start_token_id) == (end, end)


def test_the_mark_between_sentences_becomes_a_line_break(
    checkpoint: Path, tokenizer: str, tmp_path: Path
) -> None:
    """fairseq's CNN/DM models write [X_SEP], id 2, after each sentence; BERT's vocabulary calls it [unused1]."""
    convert(checkpoint, tmp_path / "out", tokenizer=tokenizer)
    summarizer = Summarizer.from_pretrained(tmp_path / "out")
    said = summarizer.tokenizer(DOCUMENTS[0])["input_ids"][:5]
    line = summarizer.tokenizer.decode(said)
    assert decode_summary([*said, 2, *said], summarizer.tokenizer) == f"{line}\n{line}"
    config = generation_config(GenerationSettings(), summarizer.model, summarizer.tokenizer)
    assert 2 not in config.suppress_tokens
    end = summarizer.model.config.eos_token_id
    written = summarizer._decoder._written([end, *said, 2, *said], [end], None)
    assert (written.text, written.tokens) == (f"{line}\n{line}", 10)


def test_without_a_tokenizer_a_model_alone_is_written_and_can_be_completed(
    checkpoint: Path, tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prophetnet_fairseq, "_BERT_ENTRIES", 400)
    assert not convert(checkpoint, tmp_path / "out").has_tokenizer
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["eos_token_id"], config["decoder_start_token_id"]) == (102, 102)
    with pytest.raises(UserError, match="no tokenizer"):
        load_model(tmp_path / "out")
    assert convert(checkpoint, tmp_path / "out", tokenizer=tokenizer).has_tokenizer
    with pytest.raises(UserError, match="already exists"):
        convert(checkpoint, tmp_path / "out", tokenizer=tokenizer)


def their_folder(folder: Path, **changes: int) -> Path:
    torch.manual_seed(0)
    shape = {"vocab_size": 400, "hidden_size": 16, "num_encoder_layers": 1, "num_decoder_layers": 1}
    shape |= {
        "num_encoder_attention_heads": 2,
        "num_decoder_attention_heads": 2,
        "max_position_embeddings": 64,
    }
    shape |= {"eos_token_id": 5, "bos_token_id": 5, "decoder_start_token_id": 5, **changes}
    Theirs(TheirConfig(encoder_ffn_dim=16, decoder_ffn_dim=16, init_std=0.3, **shape)).save_pretrained(folder)
    return folder


def test_a_folder_of_transformers_is_converted_with_its_own_tokenizer(tmp_path: Path) -> None:
    folder = their_folder(tmp_path / "theirs")
    bert_like(DOCUMENTS, entries=400).save_pretrained(folder)
    convert(folder, tmp_path / "out")
    mine, theirs = Summarizer.from_pretrained(tmp_path / "out"), Theirs.from_pretrained(folder)
    assert type(mine.model) is ProphetNetForConditionalGeneration
    assert mine.max_source == 63
    ids = torch.tensor([[9, 20, 30, 5]])
    options = {"max_new_tokens": 9, "do_sample": False}
    written = mine.model.generate(beside(mine.model, ids), **options)
    assert torch.equal(written.cpu(), theirs.generate(ids, **options))


def test_a_tokenizer_of_another_model_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    bert_like(DOCUMENTS, entries=401).save_pretrained(tmp_path / "large")
    with pytest.raises(UserError, match="401 entries but the model only 400"):
        convert(checkpoint, tmp_path / "out", tokenizer=str(tmp_path / "large"))
    bert_like(DOCUMENTS, marks=("[PAD]", "[UNK]")).save_pretrained(tmp_path / "bare")
    with pytest.raises(UserError, match=r"lacks \[SEP\] and \[PAD\]"):
        convert(checkpoint, tmp_path / "out", tokenizer=str(tmp_path / "bare"))
    bert_like(DOCUMENTS, entries=400).save_pretrained(tmp_path / "bert")
    with pytest.raises(UserError, match=r"\[SEP\] is 5, but the model ends texts with 7"):
        convert(
            their_folder(tmp_path / "theirs", eos_token_id=7),
            tmp_path / "out",
            tokenizer=str(tmp_path / "bert"),
        )
    assert not (tmp_path / "out").exists()


def test_a_place_that_holds_something_else_is_left_alone(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    for out in (tmp_path / "taken", checkpoint):
        with pytest.raises(UserError, match=r"contains notes.txt|is a file"):
            convert(checkpoint, out)
    assert (tmp_path / "taken" / "notes.txt").read_text() == "mine"
    assert checkpoint.stat().st_size > 1000


def test_a_checkpoint_of_another_vocabulary_needs_its_tokenizer(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="400 entries, which is not BERT's vocabulary"):
        convert(checkpoint, tmp_path / "out")


def test_a_folder_whose_tokenizer_cannot_be_loaded_gives_the_model(tmp_path: Path) -> None:
    folder = their_folder(tmp_path / "theirs")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMProphetNetTokenizer"}')
    done = convert(folder, tmp_path / "out")
    assert not done.has_tokenizer
    assert done.tokenizer_problem is not None
    assert str(folder) in done.tokenizer_problem
    ProphetNetForConditionalGeneration.from_pretrained(tmp_path / "out")


def test_a_configuration_and_its_values_may_be_given(tmp_path: Path) -> None:
    folder = their_folder(tmp_path / "theirs")
    plain = ProphetNetForConditionalGeneration.from_pretrained(folder)
    for options in ({"attenuation": 0.5}, {"config": plain.config, "attenuation": 0.5}):
        changed = ProphetNetForConditionalGeneration.from_pretrained(folder, **options)
        assert changed.config.attenuation == 0.5
        for name, tensor in plain.state_dict().items():
            assert torch.equal(tensor, changed.state_dict()[name]), name
    with pytest.raises(UserError, match="not its weights"):
        ProphetNetForConditionalGeneration.from_pretrained(folder, vocab_size=300)
