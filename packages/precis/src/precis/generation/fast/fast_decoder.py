"""The fast decoding loop: the tokens of `generate`, in less time.

    source once   ->   packed decoder, one read of all rows   ->   rules   ->   greedy or beam search, or drafting
    (encoder)          (packed_decoder)                            (token_rules) (token_search, self_speculation)

On a CPU, a step of a model in fp32 is one call of a C++ kernel (`compiled_step`). On CUDA, each step is one graph,
replayed (`static_shapes`). Caches and graphs of the last shapes, at most 4 GiB of caches,
stay for the next batch, as long as the packed weights.

In fp32 the tokens equal those of `generate` (`tests/generation/fast/test_fast_decoder.py`,
`benchmarks/fast_parity.py`); bf16 and int8 behave like a slightly different model.

Packed weights are copies of the matrices of encoder, decoder and head, not of the embeddings. They take 4 bytes per
number in fp32, 2 in bf16 (not for the encoder) and 1 in int8 (not for the source's keys and values). On CUDA only
the decoder's queries, keys and values are copied, whose matrices become one. The copies live as long as the
`FastDecoder`, that is, as long as the `Summarizer`, or until `release`. They are never stale: before each set of
documents, the loop compares every weight's address, version and sum with the packed ones. This reads the weights once
(a few milliseconds of a summary's hundreds).

Decoding disables autocast, because the summary must not depend on the caller: the validation of a bf16 run uses
autocast, and so may a caller. Products would then be in bf16, while caches and packed weights keep the model's own
dtype. To decode in bf16, load the model in bf16 or use `BFloat16()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationConfig, LogitsProcessor, PreTrainedModel

from precis.generation.fast.packed_decoder import PackedDecoder, Steps, why_not_as_known
from precis.generation.fast.packed_linear import AsGiven, PackedEncoder, Weights, packs_encoder
from precis.generation.fast.packed_prophetnet import PackedProphetNet
from precis.generation.fast.packed_zcodepp import PackedZCodePP
from precis.generation.fast.self_speculation import (
    Drafted,
    DraftWriter,
    ModulePasses,
    checked_drafts,
    why_no_drafts,
    why_no_rules,
)
from precis.generation.fast.static_shapes import Capture, Replayed, StaticLoop
from precis.generation.fast.token_rules import TokenRules
from precis.generation.fast.token_search import BeamSettings, Search, search_of
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.tuning import attached
from precis_text.errors import UserError

# Typical rows in drafting: some tokens, and some states that predict ahead from each.
_DRAFTING_ROWS = 6

_PACKERS: dict[type[PreTrainedModel], type[PackedDecoder]] = {
    ZCodePPForConditionalGeneration: PackedZCodePP,
    ProphetNetForConditionalGeneration: PackedProphetNet,
}

TOKENS_EVERY = 4  # tokens
OnTokens = Callable[[int, list[int]], None]  # row of the batch, and its tokens so far, the start token first
Fingerprint = tuple[tuple[int, int, float], ...]


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which operators on `device` compute in the dtype of their inputs."""
    return torch.autocast(device.type, enabled=False)


def why_not(model: PreTrainedModel, config: GenerationConfig) -> str | None:
    """Return why this loop cannot decode this model under this configuration; None if it can."""
    reason = why_no_rules(config)
    if reason is not None:
        return reason
    packer = _PACKERS.get(type(model))
    if packer is None:
        return f"it does not support {type(model).__name__}"
    return why_not_as_known(model, packer.known)


@final
class FastDecoder:
    """The decoding loop of one model; it keeps its packed weights between calls."""

    def __init__(self, model: PreTrainedModel, weights: Weights, *, capture: Capture | None = None) -> None:
        """Set up the loop; `capture` makes steps replayable on its devices; if None, as CUDA graphs on CUDA."""
        self._model, self._weights = model, weights
        self._static = StaticLoop(capture or Replayed())
        self._packed: PackedDecoder | None = None
        self._encoder: PackedEncoder | None = None
        self._one_row = False
        self._fingerprint: Fingerprint = ()

    def release(self) -> None:
        """Free the packed weights; the next call rebuilds them."""
        self._packed, self._encoder, self._fingerprint = None, None, ()
        self._static.release()

    def check(self) -> None:
        """Free the packed weights if the model's have changed since. Call it after possible training."""
        if self._packed is not None and self._present() != self._fingerprint:
            self.release()

    @torch.no_grad()
    def __call__(
        self,
        inputs: dict[str, Tensor],
        config: GenerationConfig,
        processors: Sequence[LogitsProcessor] = (),
        *,
        on_tokens: OnTokens | None = None,
    ) -> list[list[int]]:
        """Return the tokens of each document: the start token, the summary, and the end mark if there is one.

        Args:
            inputs: `input_ids` and `attention_mask` (b s), and the encoder's other inputs.
            config: complete, with `max_new_tokens`; `why_not` returns None for it.
            processors: applied after the configuration's own rules.
            on_tokens: receives the tokens of a greedy search during decoding, but not of replayed steps.

        Raises:
            UserError: if the loop does not support the model or an option of `config`.
        """
        reason = why_not(self._model, config)
        if reason is not None:
            raise UserError(f"the fast loop cannot be used: {reason}; use Generate() or Automatic()")
        documents, beams = inputs["input_ids"].shape[0], config.num_beams or 1
        valid = inputs["attention_mask"].bool()
        with without_autocast(self._model.device):
            packed = self._ready(documents * beams)
            source = self._encoded(**inputs)
            rules = TokenRules.of(config, processors, device=source.device)
            search = _beam_settings(config) if beams > 1 else None
            with torch.inference_mode():
                written = self._static.decode(packed, source, valid, rules, search)
                return _grown(packed, source, valid, rules, search, on_tokens) if written is None else written

    @torch.no_grad()
    def draft(
        self,
        input_ids: Int[Tensor, "1 s"],
        config: GenerationConfig,
        processors: Sequence[LogitsProcessor] = (),
        *,
        drafts: int | None = None,
    ) -> Drafted:
        """Decode one document with drafts of the model's own streams; the result equals that of `__call__`.

        It supports an adapter on the model, and then uses the model's modules instead of packed weights.

        Args:
            input_ids: the document, without padding.
            processors: applied after the configuration's own rules.
            drafts: maximum drafts in a pass, 0 for one token at a time; if None, all of the model's streams.

        Raises:
            UserError: if the loop does not support the model or an option of `config`, the model lacks streams for
                drafts, or it has an adapter and `weights` is not `AsGiven()`.
        """
        model, adapted = self._model, attached(self._model) is not None
        reason = why_no_drafts(model, config) or (None if adapted else why_not(model, config))
        if reason is not None:
            raise UserError(f"drafting cannot be used: {reason}")
        if adapted and self._weights != AsGiven():
            raise UserError("drafting with an adapter does not support bf16 or int8; use weights=AsGiven()")
        streams = checked_drafts(model, drafts)
        rules = TokenRules.of(config, processors, device=model.device)
        with without_autocast(model.device):
            if adapted:
                source = model.get_encoder()(input_ids=input_ids, return_dict=True).last_hidden_state
                return DraftWriter(ModulePasses(model, source), rules).write(streams)
            packed = self._ready(_DRAFTING_ROWS)
            source = self._encoded(input_ids=input_ids)
            with torch.inference_mode():
                passes = Steps(packed, source, None, beams=1, steps=int(rules.max_tokens), drafts=streams)
                return DraftWriter(passes, rules).write(streams)

    def _encoded(self, **inputs: Tensor) -> Float[Tensor, "b s d"]:
        """Compute the encoder's last hidden states."""
        with self._encoder.in_place() if self._encoder is not None else nullcontext():
            return self._model.get_encoder()(**inputs, return_dict=True).last_hidden_state

    def _ready(self, rows: int) -> PackedDecoder:
        """Return the packed decoder for `rows` rows; rebuild it on a change between one and several rows."""
        one_row = rows == 1 and self._model.device.type == "cpu"  # other devices have one layout for all
        if self._packed is None or self._one_row != one_row:
            self.release()
            self._fingerprint = self._present()
            self._packed = _PACKERS[type(self._model)](self._model, rows=rows, weights=self._weights)
            encoder = self._model.get_encoder()
            if packs_encoder(encoder, self._weights):
                self._encoder = PackedEncoder(encoder, self._weights)
            self._one_row = one_row
        return self._packed

    def _present(self) -> Fingerprint:
        """Compute a fingerprint that detects changed weights."""
        model = self._model
        parts = [model.get_decoder(), model.get_input_embeddings(), model.get_output_embeddings()]
        if packs_encoder(self._model.get_encoder(), self._weights):
            parts.append(self._model.get_encoder())
        return _fingerprint(parts)


def write(
    search: Search, steps: Steps, *, documents: int, on_tokens: OnTokens | None = None
) -> list[list[int]]:
    """Return the tokens of each document from the start token to the end mark or the limit.

    `on_tokens` receives the unfinished rows every few steps. Tokens of a greedy search are final, those of beams not.

    Dropping rows copies the caches of the others, which costs one or two steps. It happens when a quarter of the rows
    is finished.
    """
    results: dict[int, list[int]] = {}
    rows = list(range(documents))  # the document of each row
    step = 0
    while True:
        step += 1
        search()
        over = search.outcome.over.tolist()
        open_rows = [row for row in range(len(rows)) if not over[row]]
        if on_tokens is not None and step % TOKENS_EVERY == 0:
            so_far = search.outcome.rows(len(rows))
            for row in open_rows:
                on_tokens(rows[row], so_far[row])
        if len(open_rows) > 0.75 * len(rows):
            continue
        written = search.outcome.rows(len(rows))
        results |= {rows[row]: written[row] for row in range(len(rows)) if over[row]}
        if not open_rows:
            return [results[document] for document in range(documents)]
        kept = torch.tensor(open_rows, device=search.outcome.over.device)
        steps.keep(kept)
        search.keep(kept)
        rows = [rows[row] for row in open_rows]


def _grown(
    packed: PackedDecoder,
    source: Tensor,
    valid: Tensor,
    rules: TokenRules,
    settings: BeamSettings | None,
    on_tokens: OnTokens | None,
) -> list[list[int]]:
    """Decode in caches that grow, without padding."""
    documents, beams, room = source.shape[0], 1 if settings is None else settings.beams, int(rules.max_tokens)
    steps = Steps(packed, source, valid, beams=beams, steps=room)
    search = search_of(settings, steps, rules, place=0, documents=documents, room=room)
    return write(search, steps, documents=documents, on_tokens=None if beams > 1 else on_tokens)


def _beam_settings(config: GenerationConfig) -> BeamSettings:
    penalty = config.length_penalty
    stopping: Any = config.early_stopping
    return BeamSettings(
        beams=config.num_beams or 1,
        length_penalty=1.0 if penalty is None else float(penalty),
        early_stopping=stopping or False,
    )


@torch.no_grad()
def _fingerprint(parts: Sequence[nn.Module]) -> Fingerprint:
    """Return the address, torch's count of in-place changes, and the sum of every weight.

    The sum detects changes through `.data`, which torch does not count.
    """
    weights = {weight.data_ptr(): weight for part in parts for weight in part.parameters()}  # tied ones once
    sums = [weight.sum() for weight in weights.values()]
    together = len({total.device for total in sums}) == 1  # then synchronize with the device only once
    values = torch.stack(sums).tolist() if together else [float(total) for total in sums]
    return tuple(
        (place, 0 if weight.is_inference() else weight._version, value)
        for (place, weight), value in zip(weights.items(), values, strict=True)
    )
