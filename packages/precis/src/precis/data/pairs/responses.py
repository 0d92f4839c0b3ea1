"""Dialogue response (PersonaChat, Zhang et al., 2018): the document is a persona and a history, the summary the answer.

A row is a conversation or, as on the hub, an utterance. The lists `train` and `valid` of the ConvAI2 file from
transfer-learning-conv-ai hold conversations (`jq -c '.train[]' FILE > train.jsonl`). The last candidate is the real
answer; the others are distractors and are not read.

    {"personality": [...], "utterances": [{"history": [...], "candidates": [..., answer]}, ...]}
    {"personality": [...], "history": [...], "candidates": [..., answer], "conv_id": 7, "utterance_idx": 0}

The document has the sentences about the speaker, one per line, a mark, and the turns so far, one per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from precis_text.control_characters import join_parts
from precis_text.row import Row, invalid_text, kind_of


def response_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows with the default names of `precis.data.pairs.pair.Columns`, one for each answer."""
    for row in rows:
        utterances = row.values.get("utterances")
        if row.problem:
            yield row
        elif utterances is None:
            yield _answer(row.place, row.values, row.values)
        elif not isinstance(utterances, list):
            yield Row(row.place, problem="column 'utterances' must hold a list")
        else:
            for number, utterance in enumerate(utterances, start=1):
                said = utterance if isinstance(utterance, Mapping) else {}
                yield _answer(f"{row.place}, utterance {number}", row.values, said)


def _answer(place: str, conversation: Mapping[str, Any], utterance: Mapping[str, Any]) -> Row:
    texts: dict[str, Any] = {
        "personality": conversation.get("personality"),
        "history": utterance.get("history"),
        "candidates": utterance.get("candidates"),
    }
    for column, value in texts.items():
        if problem := _problem(value, may_be_empty=column == "history"):
            return Row(place, problem=f"column {column!r} {problem}")
    persona, history, candidates = texts.values()
    name = "-".join(str(conversation[key]) for key in ("conv_id", "utterance_idx") if key in conversation)
    document = join_parts("\n".join(persona), "\n".join(history))
    return Row(place, {"id": name or None, "document": document, "summary": candidates[-1]})


def _problem(texts: Any, *, may_be_empty: bool) -> str:
    """Return the reason why a value is not a list of texts; empty if it is one."""
    if not isinstance(texts, list):
        return f"must hold a list of texts, not {kind_of(texts)}"
    if not texts and not may_be_empty:
        return "must hold at least one text"
    if any(not isinstance(text, str) for text in texts):
        return "must hold only texts"
    return next(filter(None, map(invalid_text, texts)), "")
