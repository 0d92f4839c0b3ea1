"""For tests of the fast loop: small models whose summaries end at different places, and what `generate` writes."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import final

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, PreTrainedModel

from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven, Weights
from precis.generation.fast.static_shapes import Capture
from precis.generation.generation_settings import generation_config
from precis.models import ProphetNetConfig, ProphetNetForConditionalGeneration
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.decoding_settings import GenerationSettings
from tests.tiny_models import documents, our_tokenizer, tiny

DOCUMENTS = documents(8)
STEPS = 14


@cache
def model() -> ZCodePPForConditionalGeneration:
    """A tiny Z-Code++, made once."""
    made, _ = tiny("zcodepp", seed=3)
    assert isinstance(made, ZCodePPForConditionalGeneration)
    return made


def inputs(count: int) -> dict[str, torch.Tensor]:
    """Documents of different lengths, padded."""
    encoded = our_tokenizer()(DOCUMENTS[-count:], padding=True, return_tensors="pt")
    return {name: encoded[name] for name in ("input_ids", "attention_mask")}


def config(**options: object) -> GenerationConfig:
    """Greedy and `STEPS` tokens, but for `options`."""
    made = generation_config(GenerationSettings(max_tokens=STEPS), model(), our_tokenizer())
    made.update(**options)
    return made


@cache
def end_marks(count: int) -> list[int]:
    """Tokens that this model likes to write late, so that summaries end at different places."""
    rows = model().generate(
        **inputs(8), generation_config=config(min_new_tokens=STEPS, no_repeat_ngram_size=2)
    )
    late = Counter(int(token) for row in rows for token in row[4:])
    return [token for token, _ in late.most_common(count)]


def by_generate(
    given: dict[str, torch.Tensor], config: GenerationConfig, *processors: "SentenceFloor"
) -> list[list[int]]:
    """Rows up to their end marks: `generate` fills up after them."""
    rows = model().generate(
        **given, generation_config=config, logits_processor=LogitsProcessorList(list(processors))
    )
    ends = config.eos_token_id
    marks = {ends} if isinstance(ends, int) else set(ends or ())
    stops = [next((i for i, t in enumerate(row) if i and t in marks), len(row)) for row in rows.tolist()]
    return [row[: stop + 1] for row, stop in zip(rows.tolist(), stops, strict=True)]


def prophet(seed: int = 0, *, ngram: int = 2, buckets: int = 32) -> ProphetNetForConditionalGeneration:
    """A tiny ProphetNet."""
    torch.manual_seed(seed)
    config = ProphetNetConfig(
        vocab_size=30,
        hidden_size=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        ngram=ngram,
        decoder_buckets=buckets,
        decoder_max_distance=12 if buckets < 32 else 128,
        max_position_embeddings=90,
        init_std=0.4,
    )
    return ProphetNetForConditionalGeneration(config).eval()


def prophet_documents(seed: int) -> dict[str, torch.Tensor]:
    """Four, one of them padded."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, 30, (4, 11), generator=rng)
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    return {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}


def prophet_settings(**options: object) -> GenerationConfig:
    """Greedy, 18 tokens and no trigram twice, but for `options`."""
    plain = {"max_new_tokens": 18, "do_sample": False, "num_beams": 1, "no_repeat_ngram_size": 3}
    return GenerationConfig(**{**plain, **options}, decoder_start_token_id=2, eos_token_id=2, pad_token_id=0)


BEAMS = [
    {"num_beams": 2, "early_stopping": True, "length_penalty": 1.0},
    {"num_beams": 3, "early_stopping": False, "length_penalty": 2.0, "no_repeat_ngram_size": 3},
    {"num_beams": 5, "early_stopping": True, "length_penalty": 0.6, "min_new_tokens": 4},
    {"num_beams": 4, "early_stopping": "never", "length_penalty": 1.5, "no_repeat_ngram_size": 2},
    {"num_beams": 4, "early_stopping": False, "length_penalty": 0.0},
]
GREEDY = [{}, {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2, "min_new_tokens": 5}]


@final
class SentenceFloor(LogitsProcessor):
    """A caller's own rule: it holds the end marks back until a row has as many sentence ends as were asked for.

    Not at the last token that there is room for: a configuration may force an end mark there (BART's does), and with it
    forbidden nothing could be written.
    """

    def __init__(
        self, count: int, *, ends: frozenset[int], end_marks: Sequence[int], max_tokens: int
    ) -> None:
        self._count, self._end_marks, self._max_tokens = count, list(end_marks), max_tokens
        self._ends = torch.tensor(sorted(ends), dtype=torch.long)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """(b t) ids so far, the start token first, and (b v) scores; rows with too few sentences cannot end."""
        if input_ids.shape[1] >= self._max_tokens:
            return scores
        seen = torch.isin(input_ids, self._ends.to(input_ids.device)).sum(-1)  # (b)
        scores = scores.clone()
        scores[:, self._end_marks] = scores[:, self._end_marks].masked_fill(
            (seen < self._count)[:, None], -torch.inf
        )
        return scores


@final
class Uncaptured(Capture):
    """Takes no device: batches are decoded in caches that grow, operator by operator."""

    def takes(self, device: torch.device) -> bool:
        return False

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        return step


@final
class Called(Capture):
    """Calls the step, on any device: what a graph does, without the graph."""

    def takes(self, device: torch.device) -> bool:
        return True

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        return step


@final
class Counted(Capture):
    """As `Called`, and counts shapes that were captured and steps that were made."""

    def __init__(self) -> None:
        self.captured, self.steps = 0, 0

    def takes(self, device: torch.device) -> bool:
        return True

    def __call__(self, step: Callable[[], None], device: torch.device) -> Callable[[], None]:
        self.captured += 1

        def counted() -> None:
            self.steps += 1
            step()

        step()  # as a graph's warm-up does, on whatever is there
        return counted


def static(
    given: dict[str, torch.Tensor],
    asked: GenerationConfig,
    *processors: LogitsProcessor,
    of: PreTrainedModel | None = None,
    weights: Weights | None = None,
) -> list[list[int]]:
    """Written in steps of a fixed shape, and never otherwise."""
    counted = Counted()
    rows = FastDecoder(of or model(), weights or AsGiven(), capture=counted)(given, asked, processors)
    assert counted.steps
    return rows
