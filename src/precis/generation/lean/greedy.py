"""Greedy search, row by row what `generate` writes; documents that ended take no more part."""

from __future__ import annotations

import torch

from precis.generation.lean.rules import TokenRules
from precis.generation.lean.steps import Steps
from precis.generation.lean.top import highest


def greedy_search(
    steps: Steps, rules: TokenRules, *, documents: int, device: torch.device
) -> list[list[int]]:
    """The tokens of each document from the start token to the end mark, or to the limit."""
    written = torch.full((documents, 1), rules.start, device=device)
    results: dict[int, list[int]] = {}
    rows = list(range(documents))  # which document each row is
    while len(results) < documents:
        logits = steps.logits(written[:, -1:], None).squeeze(1)
        tokens = highest(rules.apply(written, logits), 1)[1]  # (b 1)
        written = torch.cat([written, tokens], dim=1)
        ended = rules.ends(tokens.squeeze(1), written.shape[1] - 1).tolist()
        for row, document in enumerate(rows):
            if ended[row] and document not in results:
                results[document] = written[row].tolist()
        open_rows = still_open(rows, results)
        if worth_dropping(open_rows, rows):
            kept = torch.tensor(open_rows, device=device)
            steps.keep(kept)
            written, rows = written[kept], [rows[row] for row in open_rows]
    return [results[document] for document in range(documents)]


def still_open(rows: list[int], results: dict[int, list[int]]) -> list[int]:
    """The rows whose documents have no result yet."""
    return [row for row, document in enumerate(rows) if document not in results]


def worth_dropping(open_rows: list[int], rows: list[int]) -> bool:
    """Dropping rows copies the caches of the others, as dear as a step or two: done when a quarter has ended."""
    return 0 < len(open_rows) <= 0.75 * len(rows)
