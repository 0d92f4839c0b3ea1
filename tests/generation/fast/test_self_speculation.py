"""Drafting with predicting streams changes how fast a text is written and nothing else."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from transformers import GenerationConfig, PreTrainedModel

from precis.generation.decoder_batches import Drafting
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, BFloat16, Int8, has_int8
from precis.generation.fast.self_speculation import Drafted, DraftWriter, ModulePasses
from precis.generation.fast.token_rules import TokenRules
from precis.generation.summarizer import Summarizer
from precis.models import (
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    ZCodePPConfig,
    ZCodePPForConditionalGeneration,
)
from precis.tuning import Prefix, method
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from tests.tiny_models import documents as words
from tests.tiny_models import our_tokenizer
from tests.tuning.bases import attach_loud

VOCABULARY = 24
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "encoder_layers": 1, "decoder_layers": 2}


def prophet(ngram: int, **sizes: int) -> ProphetNetForConditionalGeneration:
    torch.manual_seed(0)
    config = ProphetNetConfig(
        **{**SIZES, "max_position_embeddings": 40, **sizes},
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        ngram=ngram,
        init_std=0.4,
    )
    return ProphetNetForConditionalGeneration(config).eval()


def zcodepp(future: int, **sizes: int) -> ZCodePPForConditionalGeneration:
    torch.manual_seed(0)
    config = ZCodePPConfig(
        **{**SIZES, **sizes},
        num_attention_heads=2,
        intermediate_size=24,
        future_tokens=future,
        initializer_range=0.4,
    )
    model = ZCodePPForConditionalGeneration(config).eval()
    for parameter in model.get_decoder().parameters():
        nn.init.normal_(parameter, std=0.5)  # texts that do not repeat one token
    return model


def settings(model: Any, **options: Any) -> GenerationConfig:
    plain = {"max_new_tokens": 20, "do_sample": False, "num_beams": 1}
    return GenerationConfig(
        **{**plain, **options},
        decoder_start_token_id=model.config.decoder_start_token_id,
        eos_token_id=model.config.eos_token_id,
        pad_token_id=0,
    )


def documents(count: int) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(3)
    return [torch.randint(4, VOCABULARY, (1, 5 + i % 7), generator=rng) for i in range(count)]


@torch.no_grad()
def by_modules(model: Any, document: torch.Tensor, config: GenerationConfig) -> Drafted:
    """Drafts by the model's own modules, as they read where an adapter is attached."""
    source = model.get_encoder()(input_ids=document, return_dict=True).last_hidden_state
    rules = TokenRules.of(config, [], device=source.device)
    return DraftWriter(ModulePasses(model, source), rules).write(model.future_streams.stop - 1)


POSITIONS = {prophet: {"max_position_embeddings": 300}, zcodepp: {}}  # type: ignore[dict-item]
MODELS = {
    "prophetnet-2": lambda: prophet(2),
    "prophetnet-4": lambda: prophet(4),
    "zcodepp-1": lambda: zcodepp(1),
    "zcodepp-3": lambda: zcodepp(3),
}


@pytest.mark.many_steps
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize(
    "options",
    [{}, {"no_repeat_ngram_size": 2, "min_new_tokens": 9}, {"max_new_tokens": 2}, {"max_new_tokens": 1}],
    ids=["plain", "rules", "two tokens", "one token"],
)
def test_greedy_drafting_writes_what_generate_writes(
    make: Callable[..., PreTrainedModel], options: dict[str, int]
) -> None:
    model = make()
    config = settings(model, **options)
    fast = FastDecoder(model, AsGiven())
    kept = 0
    for document in documents(8):  # `benchmarks/fast_parity.py` has 500
        expected = model.generate(document, generation_config=config)[0].tolist()
        drafted = fast.draft(document, config)
        assert drafted.tokens == expected
        assert by_modules(model, document, config) == drafted
        assert drafted.written <= drafted.passes + drafted.kept
        assert config.max_new_tokens > 2 or not drafted.drafted  # no place is left for a draft
        kept += drafted.kept
    if config.max_new_tokens == 20 and not options:
        assert kept > 0  # some drafts were right, or nothing was tested


@pytest.mark.parametrize("make", [MODELS["prophetnet-2"], MODELS["zcodepp-1"]], ids=["prophetnet", "zcodepp"])
def test_the_models_own_modules_draft_what_packed_weights_draft(make: Callable[..., PreTrainedModel]) -> None:
    model, document = make(), documents(1)[0]
    config = settings(model, max_new_tokens=6, min_new_tokens=6)
    drafted = by_modules(model, document, config)
    assert drafted == FastDecoder(model, AsGiven()).draft(document, config)
    assert drafted.drafted > 0


@pytest.mark.parametrize("weights", [BFloat16(), Int8()], ids=["bf16", "int8"])
@pytest.mark.parametrize("make", [MODELS["prophetnet-2"], MODELS["zcodepp-1"]], ids=["prophetnet", "zcodepp"])
def test_drafting_works_with_smaller_weights_too(
    make: Callable[..., PreTrainedModel], weights: BFloat16 | Int8
) -> None:
    if isinstance(weights, Int8) and not has_int8():
        pytest.skip("this build of torch has no product for 8-bit weights")
    model = make()
    drafted = FastDecoder(model, weights).draft(documents(1)[0], settings(model))
    assert drafted.written > 0


def test_more_tokens_than_positions_are_refused_by_both_loops() -> None:
    model = prophet(2)
    longest = model.get_decoder().longest
    config = settings(model, max_new_tokens=longest + 1)
    loop, document = FastDecoder(model, AsGiven()), documents(1)[0]
    with pytest.raises(ValueError, match=f"positions for {longest}"):
        loop.draft(document, config)
    with pytest.raises(ValueError, match=f"positions for {longest}"):
        loop({"input_ids": document, "attention_mask": torch.ones_like(document)}, config)


@pytest.mark.long
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_fewer_drafts_write_the_same_and_none_is_a_token_a_pass(make: Callable[..., PreTrainedModel]) -> None:
    model = make()
    config, fast = settings(model), FastDecoder(model, AsGiven())
    for document in documents(4):
        whole, one, none = (fast.draft(document, config, drafts=drafts) for drafts in (None, 1, 0))
        assert whole.tokens == one.tokens == none.tokens
        assert (none.passes, none.drafted, none.kept) == (none.written, 0, 0)
        assert one.drafted <= one.passes - 1


@pytest.mark.parametrize("make", [MODELS["prophetnet-4"], MODELS["zcodepp-3"]], ids=["prophetnet", "zcodepp"])
def test_drafts_that_are_always_right_are_all_kept(make: Callable[..., PreTrainedModel]) -> None:
    model = make()
    config = settings(model, max_new_tokens=17, min_new_tokens=17)
    document = documents(1)[0]
    expected = model.generate(document, generation_config=config)[0].tolist()
    source = model.get_encoder()(input_ids=document, return_dict=True).last_hidden_state
    rules = TokenRules.of(config, [], device=source.device)
    drafted = DraftWriter(Oracle(model, source, expected), rules).write(3)
    assert drafted.tokens == expected
    assert drafted.kept == drafted.drafted == 17 - drafted.passes
    assert drafted.passes == math.ceil(17 / 4)


class Oracle:
    """The model's passes, but their drafts are the tokens of a text."""

    def __init__(self, model: Any, source: torch.Tensor, text: list[int]) -> None:
        self.inner, self.text, self.read = ModulePasses(model, source), text, 0

    def look_ahead(self, tokens: torch.Tensor, drafts: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.read += tokens.shape[1]
        return self.inner.look_ahead(tokens, drafts)

    def guess(self, ahead: torch.Tensor) -> torch.Tensor:
        guessed = torch.tensor(self.text[self.read + 1 :][: len(ahead)])
        return nn.functional.one_hot(guessed, VOCABULARY).float()

    def forget(self, count: int) -> None:
        self.read -= count
        self.inner.forget(count)


@pytest.mark.long
def test_the_summarizer_drafts_when_it_is_asked_to() -> None:
    tokenizer = our_tokenizer()
    model = prophet(3, vocab_size=len(tokenizer), max_position_embeddings=300)
    texts = words(5)
    short = GenerationSettings(max_tokens=20)
    plain = Summarizer(model, tokenizer, settings=short).summarize(texts)
    drafting = Summarizer(model, tokenizer, settings=short, loop=Drafting())
    assert drafting.summarize(texts) == plain
    beams = GenerationSettings(beams=2)
    with pytest.raises(UserError, match="beam search cannot draft"):
        Summarizer(model, tokenizer, settings=beams, loop=Drafting()).summarize(texts)


@pytest.mark.many_steps
@pytest.mark.parametrize("make", [prophet, zcodepp])
@pytest.mark.parametrize("name", ["prefix", "hierblock", "truncsa"])
def test_with_an_adapter_on_the_model_drafts_write_the_greedy_text(
    make: Callable[..., PreTrainedModel], name: str
) -> None:
    tokenizer = our_tokenizer()
    model = make(2, vocab_size=len(tokenizer), **POSITIONS[make])
    texts, short = words(5), GenerationSettings(max_tokens=20)
    bare = Summarizer(model, tokenizer, settings=short).summarize(texts)
    attach_loud(model, method(name, Prefix(length=4)))
    greedy = Summarizer(model, tokenizer, settings=short).summarize(texts)
    assert greedy != bare
    assert Summarizer(model, tokenizer, settings=short, loop=Drafting()).summarize(texts) == greedy
    with pytest.raises(UserError, match="use weights=AsGiven"):
        Summarizer(model, tokenizer, settings=short, loop=Drafting(weights=BFloat16())).summarize(texts)


def test_what_cannot_draft_is_refused_in_one_line() -> None:
    document = documents(1)[0]
    alone = prophet(1)
    with pytest.raises(UserError, match="predicts only the next token"):
        FastDecoder(alone, AsGiven()).draft(document, settings(alone))
    model = prophet(2)
    loop = FastDecoder(model, AsGiven())
    with pytest.raises(UserError, match="beam search cannot draft"):
        loop.draft(document, settings(model, num_beams=2))
    with pytest.raises(UserError, match="draft 0 to 1 tokens ahead"):
        loop.draft(document, settings(model), drafts=2)
