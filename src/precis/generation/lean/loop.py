"""The lean decode loop: the tokens of `generate`, in less time.

    source once   ->   packed decoder, one step of all rows   ->   rules   ->   greedy or beam search
    (encoder)          (lean_zcodepp, lean_linear, lean_cache)    (lean_rules)   (lean_greedy, lean_beams)

On CUDA a step of all that is one graph, replayed (`lean_static`). Caches and graphs of the last shapes stay for the
next batch, 4 GiB of caches at most, as long as the packed weights do.

In fp32 the tokens are those of `generate` (`tests/generation/lean/test_loop.py`, `benchmarks/lean_parity.py`); in bf16
and int8 they are those of a slightly different model.

Packed weights are copies of the matrices of encoder, decoder and head, not of the embeddings or the matrices for the
source's keys and values: 4 bytes for each of their numbers in fp32, 2 in bf16 (which the encoder is not brought to), 1
in int8. On CUDA only the decoder's queries, keys and values are, whose three matrices become one. The copies live as
long as the `LeanLoop`, that is as long as the `Summarizer`, or until `release`.
They are never stale: before a set of documents is decoded every weight is held against what was packed, by its place,
its version and its sum, which costs one reading of the weights (a few milliseconds in a summary's hundreds).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import GenerationConfig, LogitsProcessor, PreTrainedModel

from precis.errors import UserError
from precis.generation.lean.autocast import without_autocast
from precis.generation.lean.beams import BeamSettings, beam_search
from precis.generation.lean.encoder import PackedEncoder, packs_encoder
from precis.generation.lean.graph import Capture, Replayed
from precis.generation.lean.greedy import greedy_search
from precis.generation.lean.linear import Weights
from precis.generation.lean.passes import Passes
from precis.generation.lean.prophetnet import PackedProphetNet, why_not_prophetnet
from precis.generation.lean.prophetnet_drafts import ProphetNetPasses
from precis.generation.lean.rules import TokenRules, unsupported
from precis.generation.lean.speculative import (
    Choice,
    Drafted,
    checked_choice,
    checked_drafts,
    write_by_drafts,
)
from precis.generation.lean.speculative import why_not as why_no_drafts
from precis.generation.lean.static import StaticLoop
from precis.generation.lean.steps import PackedDecoder, Steps
from precis.generation.lean.zcodepp import PackedZCodePP, why_not_zcodepp
from precis.generation.lean.zcodepp_drafts import ZCodePPPasses
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration

_DRAFTING_ROWS = (
    6  # that the matrices are made ready for: some tokens, and some states that look ahead from each
)

Fingerprint = tuple[tuple[int, int, float], ...]


def why_not(model: PreTrainedModel, config: GenerationConfig) -> str | None:
    """Why this loop cannot decode this model under this configuration; None where it can."""
    options = unsupported(config)
    if options:
        return f"the generation configuration sets {', '.join(options)}"
    if config.max_new_tokens is None:
        return "the generation configuration sets no max_new_tokens"
    if type(model) is ZCodePPForConditionalGeneration:
        return why_not_zcodepp(model)
    if type(model) is ProphetNetForConditionalGeneration:
        return why_not_prophetnet(model)
    return f"{type(model).__name__} is no model that it knows"


def _packed(model: PreTrainedModel, *, rows: int, weights: Weights) -> PackedDecoder:
    if isinstance(model, ProphetNetForConditionalGeneration):
        return PackedProphetNet(model, rows=rows, weights=weights)
    assert isinstance(model, ZCodePPForConditionalGeneration)
    return PackedZCodePP(model, rows=rows, weights=weights)


def _passes(packed: PackedDecoder, source: Tensor, *, steps: int) -> Passes:
    if isinstance(packed, PackedProphetNet):
        return ProphetNetPasses(packed, source, steps=steps)
    assert isinstance(packed, PackedZCodePP)
    return ZCodePPPasses(packed, source, steps=steps)


@final
class LeanLoop:
    """Decodes with one model; keeps its packed weights between calls."""

    def __init__(self, model: PreTrainedModel, weights: Weights, *, capture: Capture | None = None) -> None:
        """`capture`: how steps are repeated where it takes the device; None: as CUDA graphs on CUDA."""
        self._model, self._weights = model, weights
        self._static = StaticLoop(capture or Replayed())
        self._packed: PackedDecoder | None = None
        self._encoder: PackedEncoder | None = None
        self._one_row = False
        self._fingerprint: Fingerprint = ()

    def release(self) -> None:
        """Free the packed weights; the next call makes them again."""
        self._packed, self._encoder, self._fingerprint = None, None, ()
        self._static.release()

    def check(self) -> None:
        """Free the packed weights if the model's have changed since. Call it where training may have happened."""
        if self._packed is not None and self._present() != self._fingerprint:
            self.release()

    @torch.no_grad()
    def __call__(
        self,
        inputs: dict[str, Tensor],
        config: GenerationConfig,
        processors: Sequence[LogitsProcessor] = (),
    ) -> list[list[int]]:
        """The tokens of each document: the start token, the summary, and the end mark if it came to that.

        Args:
            inputs: `input_ids` and `attention_mask` (b s), and what else the encoder takes.
            config: complete, with `max_new_tokens`; one for which `why_not` gives None.
            processors: applied after the configuration's own rules.

        Raises:
            UserError: the model or an option of `config` is unknown here.
        """
        reason = why_not(self._model, config)
        if reason is not None:
            raise UserError(f"the lean loop cannot be used: {reason}; use Generate() or Automatic()")
        documents, beams = inputs["input_ids"].shape[0], config.num_beams or 1
        valid = inputs["attention_mask"].bool()
        with without_autocast(self._model.device):
            packed = self._ready(documents * beams)
            source = self._encoded(**inputs)
            rules = TokenRules.of(config, processors, device=source.device)
            search = _beam_settings(config) if beams > 1 else None
            with torch.inference_mode():
                written = self._static.decode(packed, source, valid, rules, search)
                return _grown(packed, source, valid, rules, search) if written is None else written

    @torch.no_grad()
    def draft(
        self,
        input_ids: Int[Tensor, "1 s"],
        config: GenerationConfig,
        processors: Sequence[LogitsProcessor] = (),
        *,
        choice: Choice | None = None,
        drafts: int | None = None,
    ) -> Drafted:
        """One document by drafts of the model's own streams; what is written is what `__call__` writes.

        Args:
            input_ids: the document, without padding.
            choice, drafts: see `precis.generation.lean.speculative.speculate`.

        Raises:
            UserError: the model or an option of `config` is unknown here, or the model has no streams to draft with.
        """
        reason = why_not(self._model, config) or why_no_drafts(self._model, config)
        if reason is not None:
            raise UserError(f"drafting cannot be used: {reason}")
        streams, chosen = checked_drafts(self._model, drafts), checked_choice(choice, config)
        with without_autocast(self._model.device):
            packed = self._ready(_DRAFTING_ROWS)
            source = self._encoded(input_ids=input_ids)
            rules = TokenRules.of(config, processors, device=source.device)
            with torch.inference_mode():
                passes = _passes(packed, source, steps=rules.max_tokens)
                return write_by_drafts(passes, rules, chosen, drafts=streams, device=source.device)

    def _encoded(self, **inputs: Tensor) -> Float[Tensor, "b s d"]:
        """The encoder's last states."""
        with self._encoder.in_place() if self._encoder is not None else nullcontext():
            return self._model.get_encoder()(**inputs, return_dict=True).last_hidden_state

    def _ready(self, rows: int) -> PackedDecoder:
        """The packed decoder for so many rows; made again where one row follows several or the other way round."""
        one_row = rows == 1 and self._model.device.type == "cpu"  # elsewhere one layout does for all
        if self._packed is None or self._one_row != one_row:
            self.release()
            self._fingerprint = self._present()
            self._packed = _packed(self._model, rows=rows, weights=self._weights)
            encoder = self._model.get_encoder()
            if packs_encoder(encoder, self._weights):
                self._encoder = PackedEncoder(encoder, self._weights)
            self._one_row = one_row
        return self._packed

    def _present(self) -> Fingerprint:
        """What tells the model's weights of now from those of another time."""
        model = self._model
        parts = [model.get_decoder(), model.get_input_embeddings(), model.get_output_embeddings()]
        if packs_encoder(self._model.get_encoder(), self._weights):
            parts.append(self._model.get_encoder())
        return _fingerprint(parts)


def _grown(
    packed: PackedDecoder, source: Tensor, valid: Tensor, rules: TokenRules, search: BeamSettings | None
) -> list[list[int]]:
    """Written in caches that grow, each step as long as it has to be."""
    documents, beams, device = source.shape[0], 1 if search is None else search.beams, source.device
    steps = Steps(packed, source, valid, beams=beams, steps=rules.max_tokens)
    if search is None:
        return greedy_search(steps, rules, documents=documents, device=device)
    return beam_search(steps, rules, search, documents=documents, device=device)


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
    """Place, in-place changes counted by torch, and sum of every weight.

    The sum is for changes through `.data`, which nobody counts.
    """
    weights = {weight.data_ptr(): weight for part in parts for weight in part.parameters()}  # tied ones once
    sums = [weight.sum() for weight in weights.values()]
    together = len({total.device for total in sums}) == 1  # then the device is waited for once
    values = torch.stack(sums).tolist() if together else [float(total) for total in sums]
    return tuple(
        (place, 0 if weight.is_inference() else weight._version, value)
        for (place, weight), value in zip(weights.items(), values, strict=True)
    )
