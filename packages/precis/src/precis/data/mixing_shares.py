"""Mixture shares from the sizes of the parts, flattened by a temperature.

    p_m = min(n_m, limit)^(1/T) / sum over all parts

T = 1 is examples-proportional mixing with a limit, a large T makes all parts equal (T5, arXiv:1910.10683, section
3.5.2). mT5 (arXiv:2010.11934, section 3.2) writes the exponent as alpha = 0.3, which is T = 3.33. Z-Code++ uses mT5's
data and vocabulary for many languages (section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from precis_text.config import Settings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class BySize(Settings):
    """Shares by size.

    Attributes:
        temperature: T, 1 or more.
        limit: larger sizes count as this size; None for no limit.

    Raises:
        UserError: the temperature is below 1 or not finite.
    """

    temperature: float = 1.0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not (self.temperature >= 1 and math.isfinite(self.temperature)):
            raise UserError(
                f"--temperature {self.temperature:g}: use 1 (by size) or more, such as 3.33; 100 makes all parts equal"
            )

    def shares(self, sizes: Sequence[int]) -> tuple[float, ...]:
        """Return the share of each part, 0 to 1, in their order; sizes are above 0."""
        counted = [min(size, self.limit or size) ** (1 / self.temperature) for size in sizes]
        return tuple(part / sum(counted) for part in counted)

    def counts(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the items of each part in a mixture in which the largest part counts once; small parts repeat."""
        shares, largest = self.shares(sizes), min(max(sizes), self.limit or max(sizes))
        return tuple(round(largest * share / max(shares)) for share in shares)
