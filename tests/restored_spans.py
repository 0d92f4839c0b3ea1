"""The text before its spans were moved to the target: what shows that nothing is lost."""

import numpy as np

from precis.data.batches.corruption import IGNORE


def restore_spans(
    input_ids: np.ndarray,
    labels: np.ndarray,
    *,
    first_sentinel: int,
    num_sentinels: int,
    eos_id: int,
    pad_id: int,
) -> list[list[int]]:
    """The rows as they were before `corrupt_spans` or `gap_sentences`."""

    def is_sentinel(token: int) -> bool:
        return first_sentinel <= token < first_sentinel + num_sentinels

    rows = []
    for source, target in zip(input_ids.tolist(), labels.tolist(), strict=True):
        *wanted, end = (token for token in target if token != IGNORE)
        assert end == eos_id
        spans: list[list[int]] = []
        for token in wanted:
            if is_sentinel(token):
                spans.append([])
            else:
                spans[-1].append(token)
        row: list[int] = []
        for token in source:
            if is_sentinel(token):
                row += spans[token - first_sentinel]
            elif token != pad_id:
                row.append(token)
        rows.append(row)
    return rows
