"""Inputs share a batch if they are read and limited alike and are not too many; texts come back in order."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from precis.generation.decoder_batches import BatchDecoder, Generate, Job, _batches, _CountReporter, padded
from precis.generation.input_plan import Encoded
from precis.generation.summary import How
from precis_text.decoding_settings import GenerationSettings
from tests.tiny_models import tiny

SHORT = GenerationSettings(max_tokens=9)


def job(length: int, *, how: How = "whole", settings: GenerationSettings = SHORT) -> Job:
    return Job(Encoded((), tuple(range(length)), ()), settings, how)


def test_shorter_inputs_come_first_and_those_read_or_limited_otherwise_come_apart() -> None:
    other = replace(SHORT, max_tokens=8)
    jobs = [job(5), job(3, how="fie"), job(9), job(2), job(1, settings=other), job(4)]
    assert [*_batches(jobs, 2)] == [[1], [4], [3, 5], [0, 2]]
    assert [*_batches(jobs, 9)] == [[1], [4], [3, 5, 0, 2]]
    assert [*_batches([], 9)] == []


@pytest.mark.parametrize(
    ("length", "sizes"), [(8192, [4, 1]), (8193, [3, 2]), (32_768, [1] * 5), (40_000, [1] * 5)]
)
def test_a_batch_has_32768_positions_at_most_or_one_input(length: int, sizes: list[int]) -> None:
    jobs: list[Any] = [SimpleNamespace(encoded=range(length), settings=SHORT, how="whole")] * 5
    assert [len(rows) for rows in _batches(jobs, 16)] == sizes


def test_rows_are_padded_on_the_right_under_a_mask() -> None:
    ids, mask = padded([[5, 6, 7], [8]], 3)
    assert ids.tolist() == [[5, 6, 7], [8, 3, 3]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_every_16th_token_is_told_without_the_start_token() -> None:
    told: list[tuple[int, int, int]] = []
    report = _CountReporter(lambda *heard: told.append(heard), 2, 7)
    for length in range(1, 35):
        report(torch.zeros(1, length, dtype=torch.long), torch.zeros(1, 4))
    assert told == [(2, 7, 16), (2, 7, 32)]


@pytest.mark.parametrize(
    ("most", "least", "limits"), [(500, 500, (62, 62)), (62, 9, (62, 9)), (63, 9, (62, 9))]
)
def test_both_limits_of_length_stay_within_the_positions(
    most: int, least: int, limits: tuple[int, int]
) -> None:
    decoder = BatchDecoder(*tiny("bart", positions=64))
    found = decoder._within_positions(GenerationSettings(min_tokens=least, max_tokens=most))
    assert (found.max_tokens, found.min_tokens) == limits
    relative = BatchDecoder(*tiny("t5"))
    assert relative._within_positions(SHORT) == SHORT


@pytest.mark.parametrize(
    ("at", "forced_at", "ended"), [(3, None, True), (3, 3, False), (3, 4, True), (0, None, False)]
)
def test_an_end_mark_ends_a_text_unless_it_is_the_start_or_was_forced(
    at: int, forced_at: int | None, ended: bool
) -> None:
    model, tokenizer = tiny("bart")
    word = tokenizer("pool", add_special_tokens=False)["input_ids"][0]
    row = [word] * 5
    row[at] = tokenizer.eos_token_id
    found = BatchDecoder(model, tokenizer)._written(row, [tokenizer.eos_token_id], forced_at)
    assert (found.tokens, found.ended) == (4, ended)


def test_generate_is_told_which_token_of_led_attends_to_all() -> None:
    given = BatchDecoder(*tiny("led"), loop=Generate())._inputs([[5, 6, 7], [8]])
    assert given["global_attention_mask"].tolist() == [[1, 0, 0], [1, 0, 0]]
    assert "global_attention_mask" not in BatchDecoder(*tiny("bart"))._inputs([[5]])
