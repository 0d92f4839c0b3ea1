"""Where attention goes: mean matrices with prefix and input columns, and spectra of the prefix columns.

"Discourse-Aware Prompt Design for Text Generation": Figures 1 and 6 (sections 4 and A.4) average a layer's matrices
over heads; Figure 7 (sections 6.3 and A.7) takes singular values of the prefix columns. The paper prints neither how
texts of different length are averaged nor what padding does; each is said below.
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
"""The share of the spectrum that `Spectrum.rank` counts components for."""


@final
@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The mean matrix of one attention.

    Attributes:
        weights: (i, p+j), prefix columns first, in [0, 1].
        documents: (i), how many documents each row is the mean of.
        prefix: p, which may be 0.
    """

    weights: NDArray[np.float64]
    documents: NDArray[np.int64]
    prefix: int

    @property
    def prefix_share(self) -> float:
        """The part of all attention that goes to prefix columns, each token of each document alike: 0 to 1."""
        mass = self.documents @ self.weights
        return float(mass[: self.prefix].sum() / mass.sum())


@final
class MeanAttention:
    """Averages one attention's matrices over heads and documents.

    A row of the mean is taken over the documents that have this query. A key that one of them has not counts as 0
    there, which is the weight that padding has: so rows sum to 1, as those of each document do (to less where TruncSA
    cuts weights off and renormalises nothing). Queries of padding are left out.

    Args:
        prefix: number of prefix columns, p.
    """

    def __init__(self, prefix: int) -> None:
        self._prefix = prefix
        self._sum = np.zeros((0, prefix))
        self._documents = np.zeros(0, np.int64)

    def add(
        self,
        weights: Float[Tensor, "b h i p+j"],
        *,
        queries: Int[Tensor, " b"],
        keys: Int[Tensor, " b"],
    ) -> None:
        """Take a batch.

        Args:
            queries: tokens of each row that ask; there may be more rows: padding, or ProphetNet's predicting streams.
            keys: tokens of each row that are attended to, the prefix not counted.

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
        """The mean of what was added."""
        return AttentionMap(self._sum / self._documents[:, None], self._documents.copy(), self._prefix)

    def _grow(self, rows: int, columns: int) -> None:
        more = max(0, rows - self._sum.shape[0]), max(0, columns - self._sum.shape[1])
        self._sum = np.pad(self._sum, ((0, more[0]), (0, more[1])))
        self._documents = np.pad(self._documents, (0, more[0]))


@final
@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of prefix attention, means over matrices (one a document, head and layer).

    Attributes:
        values: (p), largest first.
        cumulative: (p), the sum of the first k values as a share of all: Figure 7's y-axis, rising to 1. Each matrix is
            normalised before the mean is taken.
        energy: (p), the same of squared values.
        matrices: how many they are means of.
        empty: matrices without any weight on the prefix, which have no spectrum and are in no mean.
    """

    values: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    energy: NDArray[np.float64]
    matrices: int
    empty: int = 0

    @property
    def rank(self) -> int | None:
        """Components that hold 90% of the spectrum; None if no matrix has one."""
        if not self.matrices:
            return None
        return int(np.argmax(self.cumulative >= MOST - 1e-12)) + 1


@final
class MeanSpectrum:
    """Averages the spectra of one attention over heads and documents.

    A text of fewer tokens than the prefix has columns gives fewer singular values; those that it lacks count as 0.

    Args:
        prefix: number of prefix columns, at least 1.
    """

    def __init__(self, prefix: int) -> None:
        self._prefix = prefix
        self._sums = np.zeros((3, prefix))  # values, cumulative, energy
        self._matrices = self._empty = 0

    def add(self, weights: Float[Tensor, "b h i p+j"], *, queries: Int[Tensor, " b"]) -> None:
        """Take a batch; `queries` as `MeanAttention.add` has it.

        Raises:
            ValueError: a row has more tokens than its matrix.
        """
        _check(weights, queries, torch.full_like(queries, self._prefix))
        for matrix, asking in zip(weights, queries.tolist(), strict=True):
            values = singular_values(matrix[:, :asking, : self._prefix])
            seen = values[values[:, 0] > 0]
            self._empty += len(values) - len(seen)
            self._matrices += len(seen)
            self._sums += np.stack([seen, cumulative(seen), cumulative(seen**2)]).sum(1)

    def result(self) -> Spectrum:
        """The mean of what was added."""
        values, shares, energy = self._sums / max(1, self._matrices)
        return Spectrum(values, shares, energy, matrices=self._matrices, empty=self._empty)


def singular_values(matrices: Float[Tensor, "h i p"]) -> NDArray[np.float64]:
    """(h, p), largest first, of each matrix; zeros where i is less than p."""
    found = torch.linalg.svdvals(matrices.double()).cpu().numpy()
    return np.pad(found, ((0, 0), (0, matrices.shape[-1] - found.shape[-1])))


def cumulative(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first 1, 2, ... values of each row (r p) as shares of their sum, which is not 0."""
    return values.cumsum(-1) / values.sum(-1, keepdims=True)


def pooled(spectra: Sequence[Spectrum]) -> Spectrum:
    """Several layers as one: the mean over all their matrices.

    Args:
        spectra: spectra of equally long prefixes, at least one.
    """
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
