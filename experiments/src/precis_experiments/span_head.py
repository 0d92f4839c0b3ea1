"""A span head on an encoder, for SQuAD 1.1: each token is scored as the start and as the end of the answer.

    question [SEP] passage -> encoder -> two scores a token -> the best span -> the words of the passage

It is BERT's head for SQuAD (Devlin et al. 2019, section 4.2). The answer's place is its first occurrence in the
passage, since rows of pairs do not keep the offset. An answer that the passage lacks, or that truncation removes, is
not trained on. The head serves the ablation of Z-Code++ A.4, which asks what the encoder understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from precis.data.batches.length_buckets import Moves
from precis.data.pairs.pair import Pair
from precis.data.text.encoding import control_ids
from precis.generation.decoder_batches import padded
from precis.messages import Notify, silent
from precis.objectives.losses import Loss
from precis.training import TrainResult, TrainSettings, standard_callbacks, train
from precis_text.control_characters import SEPARATOR, remove_marks

LONGEST_ANSWER = 30  # tokens, as in BERT's script
_BATCH = 32
_NOWHERE = -100


@final
@dataclass(frozen=True)
class Question:
    """A question with its passage as token ids.

    Attributes:
        ids: what the encoder reads.
        passage: its text.
        places: for each id the characters of the passage that it covers; (0, 0) outside of the passage.
        span: the first and the last token of the answer; `_NOWHERE` without one.
    """

    ids: list[int]
    passage: str
    places: list[tuple[int, int]]
    span: tuple[int, int]


def read_question(pair: Pair, tokenizer: PreTrainedTokenizerBase, *, most: int) -> Question:
    """Tokenize a question, a separator and its passage, truncated to `most` tokens, and find the answer."""
    question, _, passage = remove_marks(pair.document).partition(SEPARATOR)
    control = control_ids(tokenizer)
    asked = [token for token in tokenizer(question)["input_ids"] if token not in control]
    found = tokenizer(passage, return_offsets_mapping=True)
    ids, offsets = found["input_ids"], [(begin, end) for begin, end in found["offset_mapping"]]
    start = next((place for place, token in enumerate(ids) if token not in control), 0)
    lead = [*ids[:start], *asked, tokenizer.sep_token_id or tokenizer.eos_token_id]
    ids, places = [*lead, *ids[start:]][:most], [*[(0, 0)] * len(lead), *offsets[start:]][:most]
    return Question(ids, passage, places, _span_of(pair.summary, passage, places))


def _span_of(answer: str, passage: str, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    first = passage.find(answer)
    last = first + len(answer)
    inside = [n for n, (begin, end) in enumerate(places) if begin < last and end > first and end > begin]
    whole = first >= 0 and inside and places[inside[-1]][1] >= last
    return (inside[0], inside[-1]) if whole else (_NOWHERE, _NOWHERE)


@dataclass(frozen=True)
class SpanBatch(Moves):
    """Right-padded questions; `spans` (b 2) has the first and the last token of each answer."""

    input_ids: Tensor
    attention_mask: Tensor
    spans: Tensor


@final
@dataclass(frozen=True)
class SpanBatches:
    """Batches of questions in an order drawn from the seed for each epoch."""

    questions: Sequence[Question]
    pad: int
    seed: int

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in which every question occurs once."""
        return -(-len(self.questions) // _BATCH)

    def batch(self, step: int) -> SpanBatch:
        """Return the batch at a step."""
        epoch, number = divmod(step, self.batches_per_epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.questions))
        chosen = [self.questions[row] for row in order[number * _BATCH : (number + 1) * _BATCH]]
        ids, mask = padded([question.ids for question in chosen], self.pad)
        return SpanBatch(ids, mask.long(), torch.tensor([question.span for question in chosen]))


class SpanReader(nn.Module):
    """An encoder with a span head."""

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(width, 2)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return log-probabilities (b 2 s) of the start and of the end over the tokens of each row."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        scores = self.head(states).float().transpose(1, 2)
        return scores.masked_fill(~attention_mask.bool()[:, None], -torch.inf).log_softmax(-1)


def span_loss(model: nn.Module, batch: SpanBatch) -> Loss:
    """Return the negative log-probability of both ends, summed over the questions."""
    scores = model(batch.input_ids, batch.attention_mask)
    total = nn.functional.nll_loss(
        scores.flatten(0, 1), batch.spans.flatten(), ignore_index=_NOWHERE, reduction="sum"
    )
    return Loss(total=total, num_targets=(batch.spans != _NOWHERE).sum())


def train_reader(
    encoder: nn.Module,
    width: int,
    questions: Iterable[Question],
    *,
    pad: int,
    settings: TrainSettings,
    folder: Path,
    identity: dict[str, Any],
    notify: Notify = silent,
) -> tuple[SpanReader, TrainResult]:
    """Train an encoder with a new head on the questions whose answers were found, or resume that run."""
    torch.manual_seed(settings.seed)
    model = SpanReader(encoder, width)
    read = [*questions]
    known = [question for question in read if question.span[0] != _NOWHERE]
    notify(f"{len(known):,} of {len(read):,} answers are in the tokens that are read")
    batches = SpanBatches(known, pad, settings.seed)
    result = train(
        model,
        batches=batches,
        objective=span_loss,
        settings=settings,
        folder=folder,
        callbacks=standard_callbacks(),
        identity=identity,
    )
    return model, result


@torch.inference_mode()
def answers(model: SpanReader, questions: Sequence[Question], *, pad: int) -> list[str]:
    """Return the words of the passage between the best start and the best end of each question."""
    model.eval()
    device = next(model.parameters()).device
    written: list[str] = []
    for begin in range(0, len(questions), _BATCH):
        chosen = questions[begin : begin + _BATCH]
        ids, mask = padded([question.ids for question in chosen], pad)
        scores = model(ids.to(device), mask.long().to(device)).cpu()
        written += [_answer(question, scores[row]) for row, question in enumerate(chosen)]
    return written


def _answer(question: Question, scores: Tensor) -> str:
    """Return the words of the best span of at most `LONGEST_ANSWER` tokens inside the passage."""
    inside = torch.tensor([end > begin for begin, end in question.places])
    starts, ends = scores[:, : len(inside)].masked_fill(~inside, -torch.inf)
    both = starts[:, None] + ends[None]
    allowed = torch.ones_like(both).triu().tril(LONGEST_ANSWER - 1).bool()
    best = int(both.masked_fill(~allowed, -torch.inf).argmax())
    first, last = divmod(best, len(inside))
    return question.passage[question.places[first][0] : question.places[last][1]]
