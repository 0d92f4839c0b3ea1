"""The text before its spans were moved to the target: what shows that nothing is lost."""

import numpy as np

from precis.data.batches.corruption import IGNORE, CorruptionIds


def restore_spans(input_ids: np.ndarray, labels: np.ndarray, words: CorruptionIds) -> list[list[int]]:
    """The rows as they were before `corrupt_spans` or `gap_sentences`."""

    def is_sentinel(token: int) -> bool:
        return words.first_sentinel <= token < words.first_sentinel + words.sentinels

    rows = []
    for source, target in zip(input_ids.tolist(), labels.tolist(), strict=True):
        *wanted, end = (token for token in target if token != IGNORE)
        assert end == words.sep
        spans: list[list[int]] = []
        for token in wanted:
            if is_sentinel(token):
                spans.append([])
            else:
                spans[-1].append(token)
        row: list[int] = []
        for token in source:
            if is_sentinel(token):
                row += spans[token - words.first_sentinel]
            elif token != words.pad:
                row.append(token)
        rows.append(row)
    return rows
