"""Attention probes: mean matrices with prefix and input columns, and spectra of the prefix columns.

"Discourse-Aware Prompt Design for Text Generation": Figures 1 and 6 (sections 4 and A.4) average a layer's matrices
over heads; Figure 7 (sections 6.3 and A.7) takes singular values of the prefix columns. The paper does not state how it
averages texts of different length or treats padding. The docstrings below define both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

MOST = 0.9
"""The share of the spectrum that `Spectrum.rank` components contain."""


@final
@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The mean matrix of one attention.

    Attributes:
        weights: (i, p+j), prefix columns first, in [0, 1].
        documents: (i), the number of documents that each row averages.
        prefix: p, which may be 0.
    """

    weights: NDArray[np.float64]
    documents: NDArray[np.int64]
    prefix: int

    @property
    def prefix_share(self) -> float:
        """The share of all attention that goes to prefix columns, with equal weight for all tokens: 0 to 1."""
        mass = self.documents @ self.weights
        return float(mass[: self.prefix].sum() / mass.sum())


@final
class MeanAttention:
    """The average of one attention's matrices over heads and documents.

    A row averages the documents that have this query. A key that one of them lacks counts as 0, the weight of padding.
    Rows therefore sum to 1, as in each document (or to less if TruncSA drops weights, without renormalizing).
    Queries of padding are ignored.

    Args:
        prefix: number of prefix columns, p.
    """

    def __init__(self, prefix: int) -> None:
        self._prefix = prefix
        self._sum = np.zeros((0, prefix))
        self._documents = np.zeros(0, np.int64)

    def add(
        self, weights: Float[Tensor, "b h i pj"], *, queries: Int[Tensor, " b"], keys: Int[Tensor, " b"]
    ) -> None:
        """Add a batch.

        Args:
            queries: query tokens of each row; further rows are padding, or ProphetNet's predicting streams.
            keys: key tokens of each row, without the prefix.

        Raises:
            ValueError: a row has more tokens than its matrix.
        """
        _check(weights, queries, self._prefix + keys)
        means = weights.double().mean(1).cpu().numpy()
        self._grow(int(queries.max()), self._prefix + int(keys.max()))
        for mean, asking, columns in zip(
            means, queries.tolist(), (self._prefix + keys).tolist(), strict=True
        ):
            self._sum[:asking, :columns] += mean[:asking, :columns]
            self._documents[:asking] += 1

    def result(self) -> AttentionMap:
        """Return the mean of the added matrices."""
        return AttentionMap(self._sum / self._documents[:, None], self._documents.copy(), self._prefix)

    def _grow(self, rows: int, columns: int) -> None:
        more = max(0, rows - self._sum.shape[0]), max(0, columns - self._sum.shape[1])
        self._sum = np.pad(self._sum, ((0, more[0]), (0, more[1])))
        self._documents = np.pad(self._documents, (0, more[0]))


@final
@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of prefix attention, averaged over matrices (one per document, head and layer).

    Attributes:
        values: (p), largest first.
        cumulative: (p), the sum of the first k values as a share of all: Figure 7's y-axis, rising to 1. Each matrix is
            normalized before averaging.
        energy: (p), the same of squared values.
        matrices: number of matrices in the mean.
        empty: matrices without any weight on the prefix, which lack a spectrum and do not enter the mean.
    """

    values: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    energy: NDArray[np.float64]
    matrices: int
    empty: int = 0

    @property
    def rank(self) -> int | None:
        """Number of components that hold 90% of the spectrum; None without matrices."""
        if not self.matrices:
            return None
        return int(np.argmax(self.cumulative >= MOST - 1e-12)) + 1


@final
class MeanSpectrum:
    """The average of one attention's spectra over heads and documents.

    A text with fewer tokens than prefix columns gives fewer singular values; the missing ones count as 0.

    Args:
        prefix: number of prefix columns, at least 1.
    """

    def __init__(self, prefix: int) -> None:
        self._prefix = prefix
        self._sums = np.zeros((3, prefix))  # values, cumulative, energy
        self._matrices = self._empty = 0

    def add(self, weights: Float[Tensor, "b h i pj"], *, queries: Int[Tensor, " b"]) -> None:
        """Add a batch, see `MeanAttention.add`; raise `ValueError` if a row has more tokens than its matrix."""
        _check(weights, queries, torch.full_like(queries, self._prefix))
        for matrix, asking in zip(weights, queries.tolist(), strict=True):
            values = singular_values(matrix[:, :asking, : self._prefix])
            seen = values[values[:, 0] > 0]
            self._empty += len(values) - len(seen)
            self._matrices += len(seen)
            self._sums += np.stack([seen, cumulative(seen), cumulative(seen**2)]).sum(1)

    def result(self) -> Spectrum:
        """Return the mean of the added spectra."""
        values, shares, energy = self._sums / max(1, self._matrices)
        return Spectrum(values, shares, energy, matrices=self._matrices, empty=self._empty)


def singular_values(matrices: Float[Tensor, "h i p"]) -> NDArray[np.float64]:
    """Compute (h, p) singular values of each matrix, largest first; zeros if i is less than p."""
    found = torch.linalg.svdvals(matrices.double()).cpu().numpy()
    return np.pad(found, ((0, 0), (0, matrices.shape[-1] - found.shape[-1])))


def cumulative(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute sums of the first 1, 2, ... values of each row (r p) as shares of their sum, which must not be 0."""
    return values.cumsum(-1) / values.sum(-1, keepdims=True)


def pooled(spectra: Sequence[Spectrum]) -> Spectrum:
    """Combine the spectra of several layers' prefixes, all of one length: the mean over all their matrices."""
    matrices = sum(spectrum.matrices for spectrum in spectra)

    def mean(of: str) -> NDArray[np.float64]:
        total = sum(spectrum.matrices * getattr(spectrum, of) for spectrum in spectra)
        return np.asarray(total) / max(1, matrices)

    return Spectrum(
        mean("values"),
        mean("cumulative"),
        mean("energy"),
        matrices=matrices,
        empty=sum(spectrum.empty for spectrum in spectra),
    )


def _check(weights: Tensor, rows: Tensor, columns: Tensor) -> None:
    batch, _, most_rows, most_columns = weights.shape
    fits = len(rows) == len(columns) == batch
    if not fits or int(rows.max()) > most_rows or int(columns.max()) > most_columns:
        raise ValueError(
            f"matrices of shape {tuple(weights.shape)} for {rows.tolist()} queries and {columns.tolist()} columns"
        )
