"""Summaries depend on their document alone, with any encoder-decoder, and say how much of it was read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from precis.generation.generation_settings import generation_config
from precis.generation.summarizer import Summarizer
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.tuning import Prefix, attach, method
from precis_text.control_characters import join_parts, mark_units
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.forms.form import FormType
from tests.tiny_models import KINDS, documents, our_tokenizer, tiny

SHORT = GenerationSettings(max_tokens=12)
DOCUMENTS = documents(7)
LONG = "\n".join(documents(12, seed=9))


def summarizer(kind: str = "zcodepp", **options: int) -> Summarizer:
    model, tokenizer = tiny(kind, positions=512)
    return Summarizer(model, tokenizer, settings=SHORT, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beams", [1, 3])
def test_company_in_a_batch_changes_no_summary(kind: str, beams: int) -> None:
    s = summarizer(kind)
    settings = replace(SHORT, beams=beams)
    together = s.summarize(DOCUMENTS, settings=settings, batch_size=7)
    alone = [s.summarize([document], settings=settings, batch_size=1)[0] for document in DOCUMENTS]
    assert together == alone


def test_summaries_come_in_the_order_of_the_documents() -> None:
    s = summarizer()
    forward = s.summarize(DOCUMENTS, batch_size=2)
    backward = s.summarize(DOCUMENTS[::-1], batch_size=3)
    assert forward == backward[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_of_a_short_document_is_counted_and_read(kind: str) -> None:
    s = summarizer(kind)
    document = " ".join(DOCUMENTS[0].split()[:40])
    summary = s.summarize([document])[0]
    expected = len(s.tokenizer(document, add_special_tokens=False)["input_ids"])
    assert (summary.document_tokens, summary.tokens_read, summary.how) == (expected, expected, "whole")
    assert not summary.truncated


def test_truncation_is_counted_and_keeps_the_end_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    s = summarizer(max_source=20)
    seen = _watch_inputs(s.model, monkeypatch)
    summary = s.summarize([LONG], long="truncate")[0]
    assert summary.truncated
    assert summary.tokens_read == 18  # without [CLS] and [SEP]
    assert seen[0].shape == (1, 20)
    assert seen[0][0, -1] == s.tokenizer.eos_token_id


def test_pieces_cover_the_whole_document_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s = summarizer(max_source=40)
    seen = _watch_inputs(s.model, monkeypatch)
    summary = s.summarize([LONG], long="chunk", batch_size=4)[0]
    assert summary.how == "chunk"
    assert summary.pieces > 10
    assert not summary.truncated
    assert max(ids.shape[1] for ids in seen) <= 40
    body = s.tokenizer(LONG, add_special_tokens=False)["input_ids"]
    specials = set(s.tokenizer.all_special_ids)
    read = [token for ids in seen for row in ids.tolist() for token in row if token not in specials]
    assert sorted(read[: len(body)]) == sorted(body)


def test_the_summaries_of_a_passages_pieces_are_read_with_its_answer_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = summarizer(max_source=64)
    seen = _watch_inputs(s.model, monkeypatch)
    summary = s.summarize([join_parts("the pool", LONG)], long="chunk", batch_size=1)[0]
    assert summary.pieces > 1
    lead = s.tokenizer("the pool", add_special_tokens=False)["input_ids"]
    assert len(seen) > summary.pieces
    assert all(ids[0, 1 : 1 + len(lead)].tolist() == lead for ids in seen)


def test_pieces_end_where_sentences_end(monkeypatch: pytest.MonkeyPatch) -> None:
    s = summarizer(max_source=60)
    seen = _watch_inputs(s.model, monkeypatch)
    s.summarize([LONG], long="chunk", batch_size=1)
    endings = [s.tokenizer.decode(ids[0, -2:-1]) for ids in seen[:-1]]
    assert sum(ending.strip() in (".", "?", "!", "") for ending in endings) > len(endings) / 2


def test_fusion_in_encoder_is_the_default_for_long_documents_and_leaves_the_model_as_it_was() -> None:
    s = summarizer(max_source=64)
    before = s.model.get_encoder().stack.plan
    summary = s.summarize([LONG])[0]
    assert (summary.how, summary.truncated) == ("fie", False)
    assert s.model.get_encoder().stack.plan == before


@pytest.mark.parametrize("kind", ["bart", "t5", "led"])
def test_other_models_read_long_documents_in_pieces(kind: str) -> None:
    model, tokenizer = tiny(kind, positions=64)
    summary = Summarizer(model, tokenizer, settings=SHORT).summarize([LONG])[0]
    assert (summary.how, summary.truncated) == ("chunk", False)
    assert summary.pieces > 1


def test_fusion_in_encoder_is_refused_for_other_models() -> None:
    with pytest.raises(UserError, match="only Z-Code"):
        summarizer("bart").summarize([LONG], long="fie")


def test_mixed_reading_in_one_batch_changes_no_summary() -> None:
    s = summarizer(max_source=100)
    mixed = [DOCUMENTS[0], LONG, "Ann sings.", DOCUMENTS[1]]
    together = s.summarize(mixed, batch_size=4)
    assert together == [s.summarize([document])[0] for document in mixed]
    assert {summary.how for summary in together} == {"whole", "fie"}


def test_control_tokens_are_never_written() -> None:
    model, tokenizer = tiny("zcodepp")
    s = Summarizer(model, tokenizer, settings=GenerationSettings(min_tokens=30, max_tokens=30))
    loud = {tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id, len(tokenizer) - 1}
    with torch.no_grad():  # the model would love to write them
        model.lm_head.weight[list(loud)] += 5.0
    text = s.summarize([DOCUMENTS[0]])[0].text
    assert "[" not in text
    assert "\ufffd" not in text


def test_the_models_own_decoding_is_the_default_and_its_default_length_is_not_20() -> None:
    model, tokenizer = tiny("bart")
    assert Summarizer(model, tokenizer).settings.max_tokens == 128
    assert model.generation_config is not None
    model.generation_config.update(num_beams=4, max_length=142, min_length=56, no_repeat_ngram_size=3)
    settings = Summarizer(model, tokenizer).settings
    assert (settings.beams, settings.max_tokens, settings.min_tokens) == (4, 141, 55)
    assert settings.no_repeat_ngram == 3


def test_minimum_and_maximum_length_hold() -> None:
    s = summarizer()
    bounds = GenerationSettings(min_tokens=9, max_tokens=9)
    assert all(summary.summary_tokens == 9 for summary in s.summarize(DOCUMENTS, settings=bounds))


def test_a_summary_that_hits_its_limit_says_that_it_is_not_finished() -> None:
    s = summarizer()
    summary = s.summarize([DOCUMENTS[0]], settings=GenerationSettings(min_tokens=5, max_tokens=5))[0]
    assert summary.finished == summary.text.endswith((".", "!", "?"))


def test_an_end_mark_that_was_forced_is_no_end() -> None:
    s = summarizer("bart")
    assert s.model.generation_config is not None
    s.model.generation_config.update(forced_eos_token_id=s.tokenizer.eos_token_id)
    summary = s.summarize([DOCUMENTS[0]], settings=GenerationSettings(min_tokens=4, max_tokens=5))[0]
    assert summary.finished == summary.text.endswith((".", "!", "?"))


@pytest.mark.parametrize("beams", [1, 2])
def test_a_forced_end_mark_and_more_sentences_than_fit_do_not_lose_the_text(beams: int) -> None:
    s = summarizer("bart")
    assert s.model.generation_config is not None
    s.model.generation_config.update(forced_eos_token_id=s.tokenizer.eos_token_id)
    word = s.tokenizer("the", add_special_tokens=False)["input_ids"][-1]
    assert s.tokenizer.decode([word]).strip() == "the"
    with torch.no_grad():  # the model loves to write it, and no stop
        s.model.final_logits_bias[0, word] += 50.0
    settings = replace(SHORT, beams=beams)
    summary = s.summarize([DOCUMENTS[0]], settings=settings, sentences=60, short="write")[0]
    assert summary.text.split() == ["the"] * summary.summary_tokens
    assert summary.summary_tokens > 500
    assert not summary.finished


def test_every_end_mark_of_the_configuration_ends_a_summary() -> None:
    s = summarizer("bart")
    other = s.tokenizer("pool", add_special_tokens=False)["input_ids"][0]
    assert s.model.generation_config is not None
    s.model.generation_config.update(eos_token_id=[s.tokenizer.eos_token_id, other])
    with torch.no_grad():  # the model would love to write it
        s.model.final_logits_bias[0, other] += 50.0
    summary = s.summarize([DOCUMENTS[0]], settings=GenerationSettings(min_tokens=4, max_tokens=9))[0]
    assert summary.finished
    assert summary.summary_tokens < 9


def test_a_checkpoint_that_never_stops_early_is_taken_at_its_word() -> None:
    model, tokenizer = tiny("bart")
    assert model.generation_config is not None
    model.generation_config.update(num_beams=3, early_stopping="never")
    settings = Summarizer(model, tokenizer).settings
    assert settings.early_stopping == "never"
    assert GenerationSettings.from_dict(settings.to_dict()) == settings
    assert generation_config(settings, model, tokenizer).early_stopping == "never"


def test_what_is_switched_off_is_off_whatever_the_checkpoint_says() -> None:
    plain, marked = summarizer("bart"), summarizer("bart")
    assert marked.model.generation_config is not None
    marked.model.generation_config.update(no_repeat_ngram_size=1, min_new_tokens=12, min_length=12)
    assert marked.summarize(DOCUMENTS) == plain.summarize(DOCUMENTS)


def test_the_decoders_positions_bound_the_length() -> None:
    model, tokenizer = tiny("bart", positions=64)
    s = Summarizer(model, tokenizer, settings=GenerationSettings(min_tokens=500, max_tokens=500))
    assert s.summarize(["Ann sings."])[0].summary_tokens <= 64


def test_the_instruction_stands_before_the_document_and_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = summarizer()
    seen = _watch_inputs(s.model, monkeypatch)
    plain = s.summarize(["Ann sings."])[0]
    told = s.summarize(["Ann sings."], instruction="Be brief:")[0]
    assert s.tokenizer.decode(seen[1][0], skip_special_tokens=True) == "Be brief: Ann sings."
    assert told.document_tokens == plain.document_tokens


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (14, "The pool reopens on Monday. Entry is free. Children need an adult with them."),
        (13, "The pool reopens on Monday. Entry is free."),
        (7, "The pool reopens on Monday."),
        (3, "The pool reopens"),  # cut, and said to be unfinished
    ],
)
def test_words_are_an_upper_bound_in_whole_sentences(
    words: int, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = summarizer("bart")  # decoded by `generate`, which can be told what to write
    text = "The pool reopens on Monday. Entry is free. Children need an adult with them."
    writes(s, text, monkeypatch)
    written = s.tokenizer(text, add_special_tokens=False)["input_ids"]
    for summary in s.summarize(DOCUMENTS, words=words):
        assert (summary.text, summary.finished) == (kept, kept.endswith("."))
        assert summary.summary_tokens == len(written)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": 5, "sentences": 1}, "one of words, sentences and tokens"),
        ({"words": 0}, "0 words"),
        ({"sentences": 0}, "0 sentences"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        summarizer().summarize(DOCUMENTS, **options)  # type: ignore[arg-type]


def writes(s: Summarizer, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a model write a text; it is one that `generate` decodes."""
    ids = s.tokenizer(text, add_special_tokens=False)["input_ids"]
    row = torch.tensor([2, *ids, s.tokenizer.eos_token_id])
    monkeypatch.setattr(s.model, "generate", lambda input_ids, **_: row.expand(len(input_ids), -1))


@pytest.mark.parametrize("asked", [{"words": 3}, {"sentences": 1}, {"tokens": 40}])
def test_a_document_within_its_cap_is_given_back_without_asking_the_model(
    asked: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    s = summarizer("bart")
    writes(s, "Something else.", monkeypatch)
    kept, other = s.summarize([" Ann sings loudly.\n", "Ann sings. Bob and Cleo dance. " * 9], **asked)  # type: ignore[arg-type]
    assert (kept.text, kept.kept, kept.finished) == ("Ann sings loudly.", True, True)
    assert kept.tokens_read == kept.document_tokens > 0
    assert not other.kept


def test_no_summary_is_longer_than_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    s = summarizer("bart")
    writes(s, "The pool reopens on Monday. Entry is free.", monkeypatch)
    kept, other = s.summarize(
        ["Ann sings in the choir.", "Ann sings in the choir, and nobody listens to her."]
    )
    assert (kept.text, kept.kept) == ("Ann sings in the choir.", True)
    assert (other.text, other.kept) == ("The pool reopens on Monday. Entry is free.", False)
    (cut,) = s.summarize(["Ann sings. Bob hums."], sentences=1)
    assert (cut.text, cut.kept, cut.finished) == ("The pool reopens", False, False)


def test_what_is_scored_is_what_the_model_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    s = summarizer("bart")
    writes(s, "The pool reopens on Monday. Entry is free.", monkeypatch)
    assert not s.summarize(["Ann sings."], short="write")[0].kept
    assert not s.summarize(["Ann sings."], short="write", words=20)[0].kept


def test_a_model_without_a_limit_gets_one_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny("t5")
    monkeypatch.setattr(tokenizer, "model_max_length", int(1e30))
    s = Summarizer(model, tokenizer, settings=SHORT)
    assert (s.max_source, s.limit_is_assumed) == (512, True)
    document = " ".join(documents(40, seed=2))
    for long in ("chunk", "truncate"):
        summary = s.summarize([document], long=long)[0]
        assert summary.how == long
        assert summary.truncated == (long == "truncate")


def test_a_limit_of_ones_own_holds(tmp_path: Path) -> None:
    model, tokenizer = tiny("bart", positions=64)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    s = Summarizer.from_pretrained(tmp_path, settings=SHORT, max_source=32)
    assert s.summarize([LONG], long="truncate")[0].tokens_read < 32
    with pytest.raises(UserError, match="max_source=65: this model reads 8 to 64 tokens at once"):
        Summarizer.from_pretrained(tmp_path, max_source=65)


@pytest.mark.parametrize("form", [None, "tldr"])
@pytest.mark.parametrize("document", [None, 5, b"text", "Ann \ud83d sings."])
def test_what_is_no_text_is_named(document: object, form: FormType | None) -> None:
    with pytest.raises(UserError, match=r"document 2(?: is of type|: invalid Unicode .*at character 5)"):
        summarizer().summarize(["Ann sings.", document], type=form)  # type: ignore[list-item]


def test_settings_of_another_type_come_with_the_way_to_make_them() -> None:
    with pytest.raises(UserError, match=r"settings=\{'beams': 2\}: use dataclasses\.replace"):
        summarizer().summarize(DOCUMENTS, settings={"beams": 2})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["zcodepp", "bart"])
def test_a_watcher_hears_of_the_tokens_and_changes_nothing(kind: str) -> None:
    s, heard = summarizer(kind), []
    settings = GenerationSettings(min_tokens=40, max_tokens=40)
    watched = s.summarize(
        DOCUMENTS[:3], settings=settings, batch_size=2, on_progress=lambda *told: heard.append(told)
    )
    assert watched == s.summarize(DOCUMENTS[:3], settings=settings, batch_size=2)
    assert heard == [
        (0, 3, 0),
        (0, 3, 16),
        (0, 3, 32),
        (2, 3, 0),
        (2, 3, 0),
        (2, 3, 16),
        (2, 3, 32),
        (3, 3, 0),
    ]


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_an_empty_document_is_named(empty: str) -> None:
    with pytest.raises(UserError, match="document 2 is empty"):
        summarizer().summarize(["Ann sings.", empty])


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(UserError, match="list of documents"):
        summarizer().summarize("Ann sings.")


def test_an_instruction_that_fills_the_input_is_refused() -> None:
    with pytest.raises(UserError, match="no room"):
        summarizer(max_source=8).summarize([LONG], instruction="word " * 20, long="truncate")


def test_a_stream_reads_ahead_by_windows_only() -> None:
    s = summarizer()
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "Ann sings."

    next(s.stream(endless(), batch_size=1))
    assert taken == 16


def test_a_saved_model_gives_the_same_summaries(tmp_path: Path) -> None:
    s = summarizer()
    s.model.save_pretrained(tmp_path)
    our_tokenizer().save_pretrained(tmp_path)
    again = Summarizer.from_pretrained(tmp_path, settings=SHORT)
    assert again.summarize(DOCUMENTS) == s.summarize(DOCUMENTS)


def _watch_inputs(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    seen: list[torch.Tensor] = []
    encoder = model.get_encoder()
    plain = encoder.forward

    def watched(input_ids: torch.Tensor, *args: object, **kwargs: object) -> object:
        seen.append(input_ids)
        return plain(input_ids, *args, **kwargs)

    monkeypatch.setattr(encoder, "forward", watched)
    return seen


def test_a_model_trained_by_fusion_reads_beyond_the_limit_of_its_global_layer_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ZCodePPConfig, "fusion_limit", 128)
    model, tokenizer = tiny("zcodepp")
    monkeypatch.setattr(model.config, "chunk_length", 32)
    s = Summarizer(model, tokenizer, settings=SHORT, max_source=64)
    assert s.max_source == 128
    seen = _watch_inputs(model, monkeypatch)
    short, long = s.summarize(["Ann sings.", LONG])
    assert (short.how, long.how, long.truncated) == ("whole", "chunk", False)
    assert max(ids.shape[1] for ids in seen) <= 128
    assert Summarizer(model, tokenizer, max_source=256).max_source == 256  # as it was trained to


def test_a_prefix_of_marked_units_reads_pieces_whose_summaries_are_all_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, tokenizer = tiny("bart", positions=64)
    attach(model, replace(method("uniblock", Prefix(length=4)), units="marked"))
    s = Summarizer(model, tokenizer)
    nothing = torch.tensor([[2, tokenizer.eos_token_id]])
    monkeypatch.setattr(model, "generate", lambda input_ids, **_: nothing.expand(len(input_ids), -1))
    document = mark_units("Ann sings. " * 60, ["Ann sings."] * 60)
    (summary,) = s.summarize([document], long="chunk")
    assert summary.pieces > 1
    assert summary.text == ""
