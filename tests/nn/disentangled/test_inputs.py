"""The record that every way is given, and position scores of a block of rows, by the equation."""

import pytest
import torch

from precis.nn.disentangled.inputs import (
    DocumentGroup,
    Tables,
    bands,
    documents_at_a_time,
    near_scores,
    room_for,
)
from tests.nn.disentangled.inputs import SCALE, make_bias, operands, padding, random_inputs


def some(factors: torch.Tensor | None) -> torch.Tensor:
    """The factors, which are there."""
    assert factors is not None
    return factors


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kept", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize("with_room", [False, True])
def test_eq4_near_scores_of_every_block_are_those_of_the_plain_path(
    kept: tuple[str, ...], with_room: bool
) -> None:
    inputs = random_inputs(50)
    given = operands(inputs, kept=kept)
    expected = make_bias(inputs, kept).rows(0, 50, *inputs[:2]).transpose(0, 1)
    tables, spans = Tables.of(given, block=12), bands(50, block=12, saturation=15)
    queries, keys, _ = given.heads_first(slice(0, 3))
    room = queries.new_empty(2 * 3 * room_for(spans)) if with_room else None
    for band in spans:
        out = torch.empty(2, 3, band.rows, band.near, dtype=torch.float64)
        near_scores(queries, keys, tables, band, out, room)
        torch.testing.assert_close(out, expected[:, :, band.asking, band.first : band.last])


@pytest.mark.parametrize("length", [1, 12, 50])
def test_bands_hold_each_row_once_and_all_keys_within_the_tables_reach(length: int) -> None:
    spans = bands(length, block=12, saturation=15)
    assert [row for band in spans for row in range(band.start, band.stop)] == list(range(length))
    for band in spans:
        near = {j for i in range(band.start, band.stop) for j in range(length) if abs(i - j) < 15}
        assert near <= set(range(band.first, band.last))


def test_groups_of_documents_hold_at_least_one_and_no_more_scores_than_allowed() -> None:
    assert documents_at_a_time(batch=5, per_document=10, most=25) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert documents_at_a_time(batch=2, per_document=99, most=25) == [slice(0, 1), slice(1, 2)]


def test_operands_know_whether_a_gradient_is_asked_for_and_their_types() -> None:
    inputs = random_inputs(4)
    assert not operands(inputs).is_learning
    assert operands(inputs).is_of_one_type
    learnt = [*inputs[:4], inputs[4].requires_grad_()]
    assert operands(learnt).is_learning
    assert not operands(learnt, kept=("c2p",)).is_learning
    with torch.no_grad():
        assert not operands(learnt).is_learning
    assert not operands([*inputs[:3], inputs[3].float(), inputs[4]]).is_of_one_type


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kept", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 9, 75])
def test_all_scores_of_a_block_are_those_of_the_plain_path(
    kept: tuple[str, ...], masked: bool, length: int
) -> None:
    """Near keys, far ones on both sides, contents and padding."""
    inputs = random_inputs(length, batch=4)
    valid = padding(length, batch=4) if masked else None
    given = operands(inputs, valid, kept)
    q, k, *_ = inputs
    expected = (q * SCALE) @ k.transpose(-1, -2) + make_bias(inputs, kept).rows(0, length, q, k)
    if valid is not None:
        expected = expected.masked_fill(~valid[:, None, None], torch.finfo(torch.float64).min)
    documents = slice(1, 4)
    group = DocumentGroup.of(given, documents, Tables.of(given, block=12), block=12)
    for band in group.spans:
        found = group.scores(band)
        torch.testing.assert_close(found.transpose(0, 1), expected[documents, :, band.asking])


def test_every_block_of_a_group_draws_dropout_of_its_own() -> None:
    given = operands(random_inputs(50), dropout=0.5)
    tables = Tables.of(given, block=12)
    groups = [DocumentGroup.of(given, slice(start, 3), tables, block=12) for start in (0, 2)]
    assert [group.seed for group in groups] == [0, 2 * len(groups[0].spans)]
    assert DocumentGroup.of(given, slice(2, 3), tables, block=12, seed=7).seed == 7 + groups[1].seed
    drawn, again = (
        [some(groups[0].factors(index, band)) for index, band in enumerate(groups[0].spans)] for _ in range(2)
    )
    assert all(map(torch.equal, drawn, again))
    assert not torch.equal(drawn[0], drawn[1])
    assert {0.0, 2.0} == {float(value) for factors in drawn for value in factors.unique()}
    without = DocumentGroup.of(operands(random_inputs(50)), slice(0, 3), tables, block=12)
    assert without.factors(0, without.spans[0]) is None
