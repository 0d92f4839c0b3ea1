"""Claims about the order of blocks and about mixtures: pure functions of a position."""

import numpy as np
import pytest

from precis.data.packs.mixture import Mixture, Order, PackedRows
from precis_text.errors import UserError


class Numbers:
    """Blocks that say which they are."""

    length = 4

    def __init__(self, size: int, *, mark: int = 0) -> None:
        self._size, self._mark = size, mark

    def __len__(self) -> int:
        return self._size

    def rows(self, indices: np.ndarray) -> np.ndarray:
        return np.stack([np.full(len(indices), self._mark), indices, indices, indices], axis=1)

    def sentence_starts(self, index: int) -> np.ndarray:
        return np.array([index])


@pytest.mark.long
def test_every_epoch_is_a_permutation_whatever_the_size() -> None:
    for size in (*range(1, 301), 1000, 4095, 4096, 4097, 100_003):
        order = Order(size, seed=5)
        for epoch in (0, 7):
            items = order.at(epoch * size + np.arange(size))
            assert (np.sort(items) == np.arange(size)).all(), size


def test_epochs_and_seeds_differ_and_are_repeatable() -> None:
    positions = np.arange(1000)
    first = Order(1000, seed=1).at(positions)
    assert (Order(1000, seed=1).at(positions) == first).all()
    for other in (Order(1000, seed=2).at(positions), Order(1000, seed=1).at(positions + 1000)):
        assert (other == first).mean() < 0.02


def test_any_position_is_found_without_those_before_it() -> None:
    order = Order(10**9, seed=3)
    far = np.array([5 * 10**11 + 17])
    assert order.at(far) == order.at(np.arange(5 * 10**11, 5 * 10**11 + 20))[17]


def test_a_permutation_passes_for_random() -> None:
    """Where an item lands is spread evenly, and neighbours are not kept together."""
    size = 64
    landed = np.stack([Order(size, seed=seed).at(np.arange(size)) for seed in range(2000)])
    counts = np.stack([np.bincount(landed[:, place], minlength=size) for place in range(size)])
    expected = 2000 / size
    chi = ((counts - expected) ** 2 / expected).sum(axis=1)  # 63 degrees of freedom: mean 63, deviation 11.2
    assert abs(chi.mean() - 63) < 6
    assert abs((np.diff(landed, axis=1) == 1).mean() - 1 / size) < 0.003


def test_a_mixture_keeps_its_weights_and_uses_every_position_of_a_corpus_once() -> None:
    mixture = Mixture([5.0, 3.0, 0.5], seed=1)
    corpora, within = mixture.at(np.arange(20_000))
    shares = np.bincount(corpora) / 20_000
    assert np.allclose(shares, np.array([5, 3, 0.5]) / 8.5, atol=1e-3)
    for number in range(3):
        assert within[corpora == number].tolist() == list(range(int((corpora == number).sum())))


def test_any_stretch_of_a_mixture_keeps_the_weights() -> None:
    corpora, _ = Mixture([5.0, 3.0, 0.5], seed=1).at(np.arange(50_000))
    shares = np.array([5, 3, 0.5]) / 8.5
    for number, share in enumerate(shares):
        for length in (1000, 4000):
            counted = np.convolve(corpora == number, np.ones(length), mode="valid")
            # within a cycle the count strays like a draw without replacement; between cycles it does not add up
            assert np.abs(counted - share * length).max() < 5 * (1000 * share * (1 - share)) ** 0.5, (
                number,
                length,
            )


def test_a_mixture_is_random_access() -> None:
    mixture = Mixture([1.0, 2.0], seed=4)
    corpora, within = mixture.at(np.arange(3000))
    some = np.array([2999, 17, 1000, 999])
    assert (mixture.at(some)[0] == corpora[some]).all()
    assert (mixture.at(some)[1] == within[some]).all()


@pytest.mark.parametrize("weights", [[], [1.0, 0.0], [1.0, -1.0], [1.0, 1e-5]])
def test_impossible_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(UserError):
        Mixture(weights, seed=0)


def test_processes_divide_the_positions_of_the_same_rows() -> None:
    rows = PackedRows([(Numbers(30, mark=1), 2.0), (Numbers(7, mark=2), 1.0)], seed=9)  # type: ignore[list-item]
    together, _ = rows.rows(np.arange(60))
    for rank in range(3):
        assert (rows.rows(np.arange(rank, 60, 3))[0] == together[rank::3]).all()


def test_each_epoch_of_a_corpus_shows_every_block() -> None:
    rows = PackedRows([(Numbers(30, mark=1), 2.0), (Numbers(7, mark=2), 1.0)], seed=9)  # type: ignore[list-item]
    ids, corpora = rows.rows(np.arange(2000))
    for number, size in enumerate((30, 7)):
        shown = ids[corpora == number][:, 1]
        assert sorted(shown[:size].tolist()) == list(range(size))
        assert shown[:size].tolist() != shown[size : 2 * size].tolist()
    assert rows.sentence_starts(np.arange(5)) == [np.array([i]) for i in ids[:5, 1]]


def test_random_numbers_are_uniform_and_belong_to_a_position() -> None:
    rows = PackedRows([(Numbers(30), 1.0)], seed=9)  # type: ignore[list-item]
    numbers = rows.uniforms(np.arange(400), 256)
    assert (rows.uniforms(np.array([123, 7]), 256) == numbers[[123, 7]]).all()
    assert (rows.uniforms(np.arange(400), 100) == numbers[:, :100]).all()
    assert 0.0 <= numbers.min() < numbers.max() < 1.0
    counts, _ = np.histogram(numbers, bins=100, range=(0, 1))
    assert abs(((counts - 1024) ** 2 / 1024).sum() - 99) < 60  # 99 degrees of freedom: deviation 14
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.01


def test_a_corpus_without_a_block_is_refused() -> None:
    with pytest.raises(UserError, match="does not fill a single block"):
        PackedRows([(Numbers(0), 1.0)], seed=0)  # type: ignore[list-item]
