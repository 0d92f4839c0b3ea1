"""Longest common subsequences as rouge-score finds them, by bit-parallel rows instead of a Python table.

Hyyrö (2004), "Bit-parallel LCS-length computation revisited". Column j of the usual table is bit j of one
integer, so a row costs one addition however long the candidate is: texts of 300 words are scored
about ten times faster. Which of several longest subsequences is read out decides the union of ROUGE-Lsum,
so the read-out takes rouge-score's turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Tokens = Sequence[str]


def lcs_length(reference: Tokens, candidate: Tokens) -> int:
    """The length of the longest common subsequence."""
    rows = _rows(reference, _positions(candidate), len(candidate))
    return len(candidate) - rows[-1].bit_count()


def union_hits(references: Sequence[Tokens], candidates: Sequence[Tokens]) -> int:
    """The matches of summary-level LCS (Lin 2004, section 3.2) between sentences of a reference and of a
    candidate.

    For each reference sentence the union of its longest common subsequences with every candidate sentence,
    where no token of either side is counted twice (ROUGE-1.5.5 and rouge-score).
    """
    left_in_reference = Counter(token for sentence in references for token in sentence)
    left_in_candidate = Counter(token for sentence in candidates for token in sentence)
    positions = [_positions(candidate) for candidate in candidates]
    hits = 0
    for reference in references:
        union: set[int] = set()
        for candidate, bits in zip(candidates, positions, strict=True):
            union |= _read_out(reference, candidate, bits)
        for index in sorted(union):
            token = reference[index]
            if left_in_candidate[token] > 0 and left_in_reference[token] > 0:
                hits += 1
                left_in_candidate[token] -= 1
                left_in_reference[token] -= 1
    return hits


def _positions(candidate: Tokens) -> dict[str, int]:
    """For each token the bits of the places where it stands."""
    bits: dict[str, int] = {}
    for place, token in enumerate(candidate):
        bits[token] = bits.get(token, 0) | 1 << place
    return bits


def _rows(reference: Tokens, positions: Mapping[str, int], width: int) -> list[int]:
    """Row i of the table t for the first i reference tokens; bit j is 0 where t[i][j + 1] = t[i][j] + 1."""
    full = (1 << width) - 1
    rows = [full]
    for token in reference:
        row = rows[-1]
        matched = row & positions.get(token, 0)
        rows.append(((row + matched) | (row - matched)) & full)
    return rows


def _read_out(reference: Tokens, candidate: Tokens, positions: Mapping[str, int]) -> set[int]:
    """The reference indices of the subsequence that rouge-score's `_backtrack_norec` finds."""
    if positions.keys().isdisjoint(reference):
        return set()
    rows = _rows(reference, positions, len(candidate))
    i, j = len(reference), len(candidate)
    chosen = set()
    while i > 0 and j > 0:
        below = (1 << j) - 1
        if reference[i - 1] == candidate[j - 1]:
            chosen.add(i - 1)
            i, j = i - 1, j - 1
        # t[i][j - 1] > t[i - 1][j]: more zeros, so fewer ones beside the one column less.
        elif j - 1 - (rows[i] & (below >> 1)).bit_count() > j - (rows[i - 1] & below).bit_count():
            j -= 1
        else:
            i -= 1
    return chosen
