"""Batches: every row once an epoch, any step at once, the same for any number of processes, little waste."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from precis.data.batches.corruption import IGNORE
from precis.data.batches.length_buckets import Batch, BucketedBatches, collate, in_order
from precis.data.batches.token_arrays import Ragged, TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.encoding import with_instruction
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer

WORDS = [f"w{i}" for i in range(20)]


def dataset(rows: int, *, seed: int = 0, longest: int = 40) -> TokenizedPairs:
    """Row i holds the token 10 + i in its source and its target."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=(rows, 2)).tolist()
    return TokenizedPairs(
        sources=Ragged.of([[10 + i] * s for i, (s, _) in enumerate(lengths)]),
        targets=Ragged.of([[10 + i] * t for i, (_, t) in enumerate(lengths)]),
    )


def targets(batch: Batch) -> int:
    return int((batch.labels != IGNORE).sum())


def sizes() -> st.SearchStrategy[dict[str, int]]:
    rows = st.integers(1, 9).map(lambda n: {"batch_size": n})
    return rows | st.integers(80, 600).map(lambda n: {"batch_tokens": n})


def tokenizer(style: str) -> PreTrainedTokenizerFast:
    """A word tokenizer with the control tokens of a family of models."""
    names = {"ours": "[PAD] [CLS] [SEP] [UNK]", "bart": "<s> <pad> </s> <unk>", "t5": "<pad> </s> <unk>"}[
        style
    ]
    vocabulary = {word: i for i, word in enumerate([*names.split(), *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=names.split()[-1]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    first, last = {"ours": ("[CLS]", "[SEP]"), "bart": ("<s>", "</s>"), "t5": ("", "</s>")}[style]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}".strip(),
        special_tokens=[(name, vocabulary[name]) for name in (first, last) if name],
    )
    marks = {"bos_token": first} if first else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=last, pad_token="<pad>" if style != "ours" else "[PAD]", **marks
    )


def tokenize(style: str, pairs: Sequence[Pair], **options: Any) -> TokenizedPairs:
    start = {"ours": 1, "bart": 2, "t5": 0}[style]
    defaults = {"max_source": 50, "max_target": 50, "decoder_start_token_id": start}
    return TokenizedPairs.from_pairs(pairs, tokenizer(style), **{**defaults, **options})


def words(ids: Sequence[int], style: str) -> str:
    return " ".join(tokenizer(style).convert_ids_to_tokens(list(map(int, ids))))


class TestTokenizedPairs:
    pairs = (Pair("w1 w2 w3", "w4 w5", id="a"), Pair("w6", "w7"))

    @pytest.mark.parametrize(
        ("style", "source", "labels"),
        [
            ("ours", "[CLS] w1 w2 w3 [SEP]", "w4 w5 [SEP]"),
            ("bart", "<s> w1 w2 w3 </s>", "<s> w4 w5 </s>"),
            ("t5", "w1 w2 w3 </s>", "w4 w5 </s>"),
        ],
    )
    def test_labels_leave_out_the_token_that_the_decoder_starts_with(
        self, style: str, source: str, labels: str
    ) -> None:
        data = tokenize(style, self.pairs)
        assert words(data.sources[0], style) == source  # type: ignore[arg-type]
        assert words(data.targets[0], style) == labels  # type: ignore[arg-type]
        assert len(data) == 2
        assert data.sources.lengths.tolist() == [len(data.sources[0]), len(data.sources[1])]
        assert data.targets.lengths.tolist() == [len(data.targets[0]), len(data.targets[1])]
        assert (data.truncated_sources, data.truncated_targets) == (0, 0)
        assert data.sources[0].dtype == np.int32

    @pytest.mark.parametrize("style", ["ours", "bart", "t5"])
    def test_cutting_is_counted_and_keeps_the_end_mark(self, style: str) -> None:
        pairs = [Pair("w1 w2 w3 w4 w5 w6 w7", "w1 w2 w3 w4 w5 w6"), Pair("w1", "w2")]
        data = tokenize(style, pairs, max_source=5, max_target=4)
        end = "[SEP]" if style == "ours" else "</s>"
        assert len(data.sources[0]) == 5
        assert words(data.sources[0], style).endswith(f" {end}")  # type: ignore[arg-type]
        assert len(data.targets[0]) == 4
        assert words(data.targets[0], style).endswith(f" {end}")  # type: ignore[arg-type]
        assert (data.truncated_sources, data.truncated_targets) == (1, 1)

    def test_a_text_that_just_fits_is_not_cut(self) -> None:
        data = tokenize("ours", [Pair("w1 w2 w3", "w1 w2 w3")], max_source=5, max_target=4)
        assert (data.truncated_sources, data.truncated_targets) == (0, 0)
        assert words(data.targets[0], "ours") == "w1 w2 w3 [SEP]"  # type: ignore[arg-type]

    def test_the_instruction_comes_before_every_document(self) -> None:
        data = tokenize("t5", self.pairs, instruction="w9 w8")
        assert words(data.sources[1], "t5") == "w9 w8 w6 </s>"  # type: ignore[arg-type]
        assert with_instruction("text", "") == "text"
        assert with_instruction("text", "Do:") == "Do: text"

    def test_a_text_without_tokens_is_named(self) -> None:
        with pytest.raises(UserError, match=r"pair 2 \(id x\): the summary gives no tokens"):
            tokenize("ours", [Pair("w1", "w2"), Pair("w1", " ", id="x")])
        with pytest.raises(UserError, match="pair 1: the document gives no tokens"):
            tokenize("ours", [Pair("", "w2")])

    def test_unknown_words_are_text_and_are_cut_as_text(self) -> None:
        words = bert_tokenizer()
        data = TokenizedPairs.from_pairs(
            [Pair("ann sings ☃ ☃ ☃", "☃ ann")],
            words,
            max_source=4,
            max_target=4,
            decoder_start_token_id=words.cls_token_id,
        )
        assert words.convert_ids_to_tokens(data.sources[0].tolist()) == ["[CLS]", "ann", "sings", "[SEP]"]
        assert words.convert_ids_to_tokens(data.targets[0].tolist()) == ["[UNK]", "ann", "[SEP]"]

    def test_a_document_without_tokens_is_named_behind_an_instruction_too(self) -> None:
        with pytest.raises(UserError, match="pair 2: the document gives no tokens"):
            tokenize("ours", [Pair("w1", "w2"), Pair("", "w2")], instruction="w9 w8")

    def test_nothing_to_tokenize_and_tiny_limits_are_refused(self) -> None:
        with pytest.raises(UserError, match="zero pairs to tokenize"):
            tokenize("ours", [])
        with pytest.raises(UserError, match="max_target=1: both must be 2 or more"):
            tokenize("ours", self.pairs, max_target=1)

    def test_more_pairs_than_a_chunk_keep_their_order(self) -> None:
        many = [Pair(WORDS[i % 20], WORDS[i % 7]) for i in range(2300)]
        data = tokenize("t5", many)
        assert [words(data.sources[i][:1], "t5") for i in range(2300)] == [pair.document for pair in many]  # type: ignore[arg-type]

    def test_pairs_without_tokens_are_left_out_and_told_where_that_is_wanted(self) -> None:
        pairs = [Pair("w1", "w2"), Pair("w1", " ", id="x"), Pair("", "w2"), Pair("w3", "w4")]
        told: list[tuple[int, str]] = []
        data = tokenize("ours", pairs, skip=lambda index, message: told.append((index, message)))
        assert [words(data.sources[i], "ours") for i in range(len(data))] == [  # type: ignore[arg-type]
            words(tokenize("ours", [pair]).sources[0], "ours")  # type: ignore[arg-type]
            for pair in (pairs[0], pairs[3])
        ]
        assert [len(data.targets.lengths), len(data.sources.lengths)] == [2, 2]
        assert told == [
            (1, "pair 2 (id x): the summary gives no tokens"),
            (2, "pair 3: the document gives no tokens"),
        ]


def test_collate_pads_on_the_right_and_ignores_padding() -> None:
    data = TokenizedPairs(sources=Ragged.of([[5, 6, 7], [8]]), targets=Ragged.of([[9], [4, 3]]))
    batch = collate(data, [1, 0], pad_token_id=0)
    assert batch.input_ids.tolist() == [[8, 0, 0], [5, 6, 7]]
    assert batch.attention_mask.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert batch.labels.tolist() == [[4, 3], [9, IGNORE]]
    assert batch.indices == (1, 0)
    assert {t.dtype for t in (batch.input_ids, batch.attention_mask, batch.labels)} == {torch.int64}


def test_lengths_are_told_to_models_that_take_them_and_move_along() -> None:
    rows, options = dataset(7), {"batch_size": 3, "seed": 0, "pad_token_id": 0}
    for step in range(3):
        batch = BucketedBatches(rows, **options, tell_lengths=True).batch(step)
        assert batch.source_lengths == tuple(batch.attention_mask.sum(-1).tolist())
        assert batch.to("meta").source_lengths == batch.source_lengths
        assert BucketedBatches(rows, **options).batch(step).source_lengths is None  # type: ignore[arg-type]
    lone = BucketedBatches(rows, **options, tell_lengths=True, rank=3, world_size=4)
    assert lone.batch(0).source_lengths == (1,)  # a row of padding that is looked at


def test_a_batch_moves_with_its_indices() -> None:
    moved = collate(dataset(3), [2, 1], pad_token_id=0).to("meta")
    assert {t.device.type for t in (moved.input_ids, moved.attention_mask, moved.labels)} == {"meta"}
    assert moved.indices == (2, 1)


def test_in_order_gives_every_row_once_by_length() -> None:
    data = dataset(23)
    batches = list(in_order(data, batch_size=5, pad_token_id=0))
    assert sorted(i for batch in batches for i in batch.indices) == list(range(23))
    lengths = [int(data.sources.lengths[i]) for batch in batches for i in batch.indices]
    assert lengths == sorted(lengths)


def rows_of(batch: Batch) -> Iterator[int]:
    """The row numbers that `dataset` wrote into the tokens, checked against the labels and the indices."""
    for i, index in enumerate(batch.indices):
        assert set(batch.input_ids[i][batch.attention_mask[i].bool()].tolist()) == {10 + index}
        assert set(batch.labels[i][batch.labels[i] != IGNORE].tolist()) == {10 + index}
        yield index


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 120), size=sizes(), seed=st.integers(0, 2**31))
def test_every_row_comes_exactly_once_an_epoch(rows: int, size: dict[str, int], seed: int) -> None:
    batches = BucketedBatches(dataset(rows), seed=seed, pad_token_id=0, **size)  # type: ignore[arg-type]
    for epoch in (0, 1, 5):
        first, after = batches.first_step(epoch), batches.first_step(epoch + 1)
        seen = Counter(index for step in range(first, after) for index in rows_of(batches.batch(step)))
        assert seen == Counter(range(rows))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 90),
    size=sizes(),
    seed=st.integers(0, 99),
    steps=st.lists(st.integers(0, 400), max_size=6),
)
def test_any_step_can_be_asked_for_in_any_order(
    rows: int, size: dict[str, int], seed: int, steps: list[int]
) -> None:
    """What a resumed training sees is what an uninterrupted one would have seen."""
    walked = BucketedBatches(dataset(rows), seed=seed, pad_token_id=0, **size)  # type: ignore[arg-type]
    expected = [walked.batch(step) for step in range(max(steps, default=0) + 1)]
    resumed = BucketedBatches(dataset(rows), seed=seed, pad_token_id=0, **size)  # type: ignore[arg-type]
    for step in steps:
        batch = resumed.batch(step)
        assert batch.indices == expected[step].indices
        assert torch.equal(batch.input_ids, expected[step].input_ids)
        assert torch.equal(batch.labels, expected[step].labels)


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 60), size=sizes(), world=st.integers(1, 5), step=st.integers(0, 60))
def test_ranks_partition_the_batch_that_one_process_would_see(
    rows: int, size: dict[str, int], world: int, step: int
) -> None:
    whole = BucketedBatches(dataset(rows), seed=1, pad_token_id=0, **size).batch(step)  # type: ignore[arg-type]
    parts = [
        BucketedBatches(dataset(rows), seed=1, pad_token_id=0, rank=rank, world_size=world, **size).batch(  # type: ignore[arg-type]
            step
        )
        for rank in range(world)
    ]
    for rank, part in enumerate(parts):
        assert part.indices == whole.indices[rank::world]
        if not part.indices:  # a stand-in that takes part in the step and counts for nothing
            assert targets(part) == 0
            assert part.attention_mask.all()
            assert part.input_ids.tolist() == [[0]]
    assert sum(map(targets, parts)) == targets(whole)


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 200), tokens=st.integers(80, 2000))
def test_no_batch_exceeds_batch_tokens(rows: int, tokens: int) -> None:
    data = dataset(rows)
    batches = BucketedBatches(data, batch_tokens=tokens, seed=0, pad_token_id=0)
    for step in range(batches.first_step(2)):
        batch = batches.batch(step)
        assert len(batch.indices) * (batch.input_ids.shape[1] + batch.labels.shape[1]) <= tokens


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 90), size=sizes(), step=st.integers(0, 300))
def test_locate_agrees_with_the_epoch_plans(rows: int, size: dict[str, int], step: int) -> None:
    batches = BucketedBatches(dataset(rows), seed=2, pad_token_id=0, **size)  # type: ignore[arg-type]
    epoch, position = batches.locate(step)
    assert batches.first_step(epoch) + position == step < batches.first_step(epoch + 1)
    assert tuple(batches.epoch_plan(epoch)[position]) == batches.batch(step).indices


@pytest.mark.parametrize("size", [{"batch_size": 32}, {"batch_tokens": 4000}])
def test_padding_is_below_a_fifth_where_random_batches_pad_half(size: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    sources, targets = (
        np.minimum(rng.lognormal(mean, 0.7, 8000).astype(int) + 2, 400) for mean in (4.5, 3.0)
    )
    data = TokenizedPairs(
        sources=Ragged.of([[1] * int(n) for n in sources]), targets=Ragged.of([[1] * int(n) for n in targets])
    )
    real = int(sources.sum() + targets.sum())

    def padded(plan: list[np.ndarray]) -> int:
        return sum(len(rows) * int(sources[rows].max() + targets[rows].max()) for rows in plan)

    batches = BucketedBatches(data, seed=0, pad_token_id=0, **size)  # type: ignore[arg-type]
    assert 1 - real / padded(batches.epoch_plan(0)) < 0.2
    assert 1 - real / padded(np.array_split(rng.permutation(8000), 250)) > 0.5


def test_epochs_and_seeds_differ_and_short_rows_do_not_come_first() -> None:
    data = dataset(600)
    batches = BucketedBatches(data, batch_size=4, seed=0, pad_token_id=0)
    plans = [[tuple(rows) for rows in batches.epoch_plan(epoch)] for epoch in (0, 1)]
    assert set(plans[0]) != set(plans[1])
    other = BucketedBatches(data, batch_size=4, seed=1, pad_token_id=0)
    assert [tuple(rows) for rows in other.epoch_plan(0)] != plans[0]
    widths = [max(data.sources.lengths[list(rows)]) for rows in plans[0]]
    assert abs(np.corrcoef(np.arange(len(widths)), widths)[0, 1]) < 0.3


def test_a_rank_without_a_row_gets_one_of_the_same_kind() -> None:
    """Where rows have segments the stand-in has them too: a prefix of units refuses to guess."""
    rows = dataset(3)
    for segments in (None, Ragged.of([[0] * int(length) for length in rows.sources.lengths])):
        given = replace(rows, segments=segments)
        last = BucketedBatches(given, batch_size=3, seed=0, pad_token_id=0, rank=3, world_size=4).batch(0)
        assert (last.labels == IGNORE).all()
        assert (last.source_segments is None) == (segments is None)


def test_batches_per_epoch_counts_the_last_small_batch() -> None:
    assert BucketedBatches(dataset(10), batch_size=4, seed=0, pad_token_id=0).batches_per_epoch == 3
    tokens = BucketedBatches(dataset(100), batch_tokens=500, seed=0, pad_token_id=0)
    assert tokens.batches_per_epoch == len(tokens.epoch_plan(0))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "give either batch_size"),
        ({"batch_size": 2, "batch_tokens": 900}, "give either batch_size"),
        ({"batch_size": 0}, "batch_size=0 must be 1 or more"),
        ({"batch_tokens": 3}, r"batch_tokens=3 cannot hold the longest row; use \d+ or more"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, int], says: str) -> None:
    with pytest.raises(UserError, match=says):
        BucketedBatches(dataset(5), seed=0, pad_token_id=0, **options)  # type: ignore[arg-type]


def test_words_of_labels_share_batches_whatever_their_lengths() -> None:
    """A batch of one label teaches nothing but that label; sorted by target, each would be one."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 4, size=600).tolist()  # three labels, of 1, 2 and 3 tokens
    rows = TokenizedPairs(
        sources=Ragged.of([[5] * int(n) for n in rng.integers(5, 60, size=600)]),
        targets=Ragged.of([[9] * n for n in words]),
    )
    batches = BucketedBatches(rows, batch_size=20, seed=0, pad_token_id=0)
    kinds = [{words[i] for i in batches.batch(step).indices} for step in range(batches.batches_per_epoch)]
    assert all(kind == {1, 2, 3} for kind in kinds)
