"""Mean attention and spectra equal their plain definitions."""

import numpy as np
import pytest
import torch
from torch import Tensor

from precis.evaluation.probes import (
    MeanAttention,
    MeanSpectrum,
    Spectrum,
    cumulative,
    pooled,
    singular_values,
)

PREFIX = 3
QUERIES, KEYS = torch.tensor([4, 6]), torch.tensor([5, 2])


def attention(*, seed: int = 0, more: int = 0) -> Tensor:
    """Weights of two padded documents, 4 queries by 5 keys and 6 by 2, two heads; `more` rows that are no query."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 2, 6 + more, PREFIX + 5, generator=generator)
    scores[1, :, :, PREFIX + 2 :] = -torch.inf
    return scores.softmax(-1)


def spectrum(*values: float, matrices: int = 1) -> Spectrum:
    found = np.array([values])
    return Spectrum(found[0], cumulative(found)[0], cumulative(found**2)[0], matrices)


def test_a_mean_row_is_the_plain_mean_of_the_documents_that_have_it() -> None:
    weights = attention()
    mean = MeanAttention(PREFIX)
    mean.add(weights, queries=QUERIES, keys=KEYS)
    found = mean.result()
    heads = weights.double().numpy().mean(1)
    assert found.documents.tolist() == [2, 2, 2, 2, 1, 1]
    np.testing.assert_allclose(found.weights[:4], (heads[0, :4] + heads[1, :4]) / 2, atol=1e-12)
    np.testing.assert_allclose(found.weights[4:], heads[1, 4:], atol=1e-12)


def test_rows_of_the_mean_sum_to_one_whatever_the_lengths() -> None:
    mean = MeanAttention(PREFIX)
    mean.add(attention(), queries=QUERIES, keys=KEYS)
    mean.add(attention(seed=1), queries=QUERIES, keys=KEYS)
    np.testing.assert_allclose(mean.result().weights.sum(1), 1.0, atol=1e-6)


def test_the_mean_does_not_depend_on_batches_nor_on_rows_that_are_no_queries() -> None:
    whole, apart = MeanAttention(PREFIX), MeanAttention(PREFIX)
    weights = attention(more=2)
    whole.add(weights, queries=QUERIES, keys=KEYS)
    for row in (1, 0):
        length = int(KEYS[row]) + PREFIX
        own = weights[row : row + 1, :, : int(QUERIES[row]), :length]
        apart.add(own, queries=QUERIES[row : row + 1], keys=KEYS[row : row + 1])
    np.testing.assert_allclose(whole.result().weights, apart.result().weights, atol=1e-12)
    assert whole.result().weights.shape == (6, PREFIX + 5)


def test_the_prefix_share_counts_every_token_alike() -> None:
    weights = attention()
    mean = MeanAttention(PREFIX)
    mean.add(weights, queries=QUERIES, keys=KEYS)
    masses = weights[..., :PREFIX].sum(-1).mean(1)
    tokens = torch.cat([masses[0, :4], masses[1, :6]])
    assert mean.result().prefix_share == pytest.approx(float(tokens.mean()), abs=1e-6)


def test_without_a_prefix_its_share_is_zero() -> None:
    mean = MeanAttention(0)
    mean.add(torch.full((1, 1, 2, 2), 0.5), queries=torch.tensor([2]), keys=torch.tensor([2]))
    assert mean.result().prefix_share == 0.0


def test_more_tokens_than_the_matrix_has_are_refused() -> None:
    with pytest.raises(ValueError, match="queries"):
        MeanAttention(PREFIX).add(attention(), queries=torch.tensor([4, 7]), keys=KEYS)
    with pytest.raises(ValueError, match="columns"):
        MeanAttention(PREFIX).add(attention(), queries=QUERIES, keys=torch.tensor([6, 2]))
    with pytest.raises(ValueError, match="queries"):
        MeanSpectrum(PREFIX).add(attention(), queries=torch.tensor([4, 7]))


def test_attention_of_rank_one_has_one_singular_value() -> None:
    row = torch.tensor([0.5, 0.2, 0.1, 0.2])
    weights = row.expand(1, 2, 5, 4)  # every query attends alike
    mean = MeanSpectrum(PREFIX)
    mean.add(weights, queries=torch.tensor([5]))
    found = mean.result()
    assert found.rank == 1
    expected = 5**0.5 * float(row[:PREFIX].norm())
    np.testing.assert_allclose(found.values, [expected, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(found.cumulative, 1.0, atol=1e-6)


def test_singular_values_are_roots_of_the_gram_matrix_s_eigenvalues() -> None:
    matrix = attention()[0, :1, :, :PREFIX].double()
    gram = (matrix.mT @ matrix)[0].numpy()
    expected = np.sqrt(np.linalg.eigvalsh(gram)[::-1])
    np.testing.assert_allclose(singular_values(matrix)[0], expected, atol=1e-10)


def test_a_spectrum_is_the_mean_of_each_matrix_s_normalised_sums() -> None:
    weights = attention()
    mean = MeanSpectrum(PREFIX)
    mean.add(weights, queries=QUERIES)
    found = mean.result()
    values = [
        np.linalg.svd(weights[row, head, : QUERIES[row], :PREFIX].double().numpy(), compute_uv=False)
        for row in range(2)
        for head in range(2)
    ]
    assert found.matrices == 4
    np.testing.assert_allclose(found.values, np.mean(values, 0), atol=1e-10)
    np.testing.assert_allclose(found.cumulative, np.mean([v.cumsum() / v.sum() for v in values], 0))
    np.testing.assert_allclose(found.energy, np.mean([(v**2).cumsum() / (v**2).sum() for v in values], 0))
    assert found.cumulative[-1] == pytest.approx(1.0)


def test_padding_is_no_part_of_a_spectrum() -> None:
    weights = attention()
    changed = weights.clone()
    changed[0, :, 4:] = 0.125  # document 0 has four queries
    means = MeanSpectrum(PREFIX), MeanSpectrum(PREFIX)
    for mean, seen in zip(means, (weights, changed), strict=True):
        mean.add(seen, queries=QUERIES)
    np.testing.assert_array_equal(means[0].result().values, means[1].result().values)


def test_a_text_shorter_than_the_prefix_lacks_singular_values() -> None:
    mean = MeanSpectrum(PREFIX)
    mean.add(attention(), queries=torch.tensor([2, 2]))
    found = mean.result()
    assert found.values[2] == 0.0
    assert found.cumulative[1] == pytest.approx(1.0)


def test_matrices_without_weight_are_counted_and_in_no_mean() -> None:
    weights = attention()
    weights[0, 1, :, :PREFIX] = 0.0
    mean = MeanSpectrum(PREFIX)
    mean.add(weights, queries=QUERIES)
    assert (mean.result().matrices, mean.result().empty) == (3, 1)
    nothing = MeanSpectrum(PREFIX)
    nothing.add(torch.zeros(1, 2, 6, PREFIX + 1), queries=torch.tensor([6]))
    assert (nothing.result().rank, nothing.result().empty) == (None, 2)


def test_pooled_layers_weigh_by_their_matrices() -> None:
    found = pooled([spectrum(2.0, 0.0, matrices=3), spectrum(1.0, 1.0, matrices=1)])
    np.testing.assert_allclose(found.values, [1.75, 0.25])
    np.testing.assert_allclose(found.cumulative, [0.875, 1.0])
    assert found.matrices == 4


def test_a_single_matrix_is_its_own_mean() -> None:
    mean = MeanSpectrum(PREFIX)
    mean.add(attention()[:1, :1], queries=QUERIES[:1])
    expected = np.linalg.svd(attention()[0, 0, :4, :PREFIX].double().numpy(), compute_uv=False)
    np.testing.assert_allclose(mean.result().values, expected, atol=1e-10)
    np.testing.assert_allclose(pooled([mean.result()]).values, expected, atol=1e-10)


def test_the_rank_counts_components_up_to_nine_tenths() -> None:
    assert spectrum(9.0, 1.0).rank == 1
    assert spectrum(8.0, 1.0, 1.0).rank == 2


def test_a_spectrum_has_no_empty_matrices_unless_it_says_so() -> None:
    assert spectrum(9.0, 1.0).empty == 0
    assert pooled([spectrum(9.0, 1.0), spectrum(8.0, 2.0)]).empty == 0
