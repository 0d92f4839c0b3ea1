"""Regression trees as lists of numbers.

A comparison of two numbers is all that a tree does, so that its result does not depend on the processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 2048  # rows that go through all trees together


@dataclass(frozen=True)
class Trees:
    """Regression trees, flat: node `n` asks whether `x[feature[n]] <= threshold[n]`.

    Attributes:
        feature: (nodes,) column that a node compares; -1 for a leaf.
        threshold: (nodes,) number that it compares with; the value of a leaf.
        yes, no: (nodes,) the next node for either answer; a leaf leads to itself.
        roots: (trees,) the first node of each tree.
        depth: most comparisons from a root to a leaf.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    yes: NDArray[np.int32]
    no: NDArray[np.int32]
    roots: NDArray[np.int32]
    depth: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], columns: int) -> Trees:
        """Read trees, and check that each comparison leads to a later node, so that none goes round in circles.

        Raises:
            ValueError: they are not trees over `columns` features.
        """
        feature, yes, no, roots = (
            np.array(values[name], dtype=np.int32).reshape(-1) for name in ("feature", "yes", "no", "roots")
        )
        threshold = np.array(values["threshold"], dtype=np.float64).reshape(-1)
        own = np.arange(len(feature))
        leaf = feature == -1
        ahead = np.where(leaf, (yes == own) & (no == own), (yes > own) & (no > own))
        inside = (yes < len(own)) & (no < len(own)) & (feature >= -1) & (feature < columns)
        if not (len(roots) and len(own) == len(threshold) == len(yes) == len(no)):
            raise ValueError("its lists differ in length")
        if not (np.all(ahead & inside) and np.isfinite(threshold).all() and (roots >= 0).all()):
            raise ValueError("its nodes are not trees")
        if roots.max() >= len(own):
            raise ValueError("a tree starts outside of its nodes")
        depth, here = 0, roots
        while (feature[here] >= 0).any():
            here = np.unique(np.concatenate([yes[here], no[here]]))
            depth += 1
        return cls(feature, threshold, yes, no, roots, depth)

    def __call__(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the (rows,) sums of the leaves that each of the (rows, features) reaches."""
        parts = [self._some(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]
        return np.concatenate([np.zeros(0), *parts])

    def _some(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        here = np.tile(self.roots, (len(rows), 1))
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            is_yes = rows[row, self.feature[here]] <= self.threshold[here]
            here = np.where(is_yes, self.yes[here], self.no[here])
        found: NDArray[np.float64] = self.threshold[here].sum(1)
        return found
