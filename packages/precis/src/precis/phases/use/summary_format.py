"""Formats a summary: a line of JSON, a text, and a line about how much of the document was read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from textwrap import shorten
from typing import Any

from precis.generation.summary import Summary
from precis.phases.use.summarization import Result
from precis_text.abbreviations import meanings_in
from precis_text.documents.passages import Place
from precis_text.row import pluralize
from precis_text.support.marks import HINT
from precis_text.words import length_in_words

_BEGINNING = 72  # characters of a chosen sentence that are repeated

#: Formats a record (`Result.to_dict`).
Render = Callable[[Mapping[str, Any]], str]


def describe_result(result: Result, *, max_source: int | None) -> str:
    """Return a line about how much of the document was read and the summary's length."""
    summary, name = result.summary, result.document.name
    if summary is None or result.problem:
        return f"{name}: no summary: {result.problem}"
    total = pluralize(summary.document_tokens, "token")
    if summary.kept:
        notes = "".join(f"; {note}" for note in result.document.passages.notes)
        return f"{name}: returned unchanged: no longer than a summary would be ({total}){notes}"
    read = {
        "whole": f"read all {total}" if not summary.truncated else _left_out(summary, total),
        "passages": f"read {summary.tokens_read:,} of {total}, the passages chosen for the model",
        "fie": f"read all {total} by fusion-in-encoder, more than the {max_source} of training",
        "chunk": f"read all {total} in {summary.pieces} pieces"
        + ("" if summary.mode == "extract" else ", then summarized their summaries"),
        "truncate": f"read only the first {summary.tokens_read:,} of {total}",
    }[summary.how]
    words = length_in_words(summary.text)
    ending = "" if summary.finished else ", cut off mid-sentence"
    chosen = ", chosen word for word" if summary.mode == "extract" and summary.answered else ""
    chosen += _origins(summary)
    passages = result.document.passages
    places = passages.describe_places(start for start, _ in summary.places)
    notes = "".join(f"; {note}" for note in passages.notes)
    return (
        f"{name}: {read}; {pluralize(words, 'word')}{chosen}{ending}{f' ({places})' if places else ''}{notes}"
    )


def _left_out(summary: Summary, total: str) -> str:
    return f"read {summary.tokens_read:,} of {total}, without sentences that speak to a model"


def _origins(summary: Summary) -> str:
    """Return how many sentences of a writer's summary are written and quoted, and whether an adapter was used."""
    counts = Counter(each.origin for each in summary.sentences)
    told = [f"{counts[origin]} {origin}" for origin in ("written", "quoted") if counts[origin]]
    adapted = ", with the adapter for short summaries" if summary.adapted else ""
    return f", sentences: {' and '.join(told)}{adapted}" if told else ""


def renderer(*, json_lines: bool, alone: bool) -> Render:
    """Return the formatter of summaries: lines of JSON, or text, without a name for a single document."""
    if json_lines:
        return as_json
    return as_text_alone if alone else as_text


def as_json(record: Mapping[str, Any]) -> str:
    """Format a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=False) + "\n"


def as_text(record: Mapping[str, Any]) -> str:
    """Format a summary under its document's name."""
    text = record.get("summary") or f"(no summary: {record['error']})"
    return f"{record['name']}\n{text}\n{support_text(record)}\n"


def as_text_alone(record: Mapping[str, Any]) -> str:
    """Format the summary of a single document."""
    return f"{record['summary']}\n{support_text(record)}"


def support_text(record: Mapping[str, Any]) -> str:
    """Format a summary's sentences with their source sentences and marks, to print below it; "" if not requested."""
    if "support" not in record:
        return ""
    support = record["support"]
    if record["mode"] == "extract":
        chosen = [_chosen(*each) for each in enumerate(support["sentences"], start=1)]
        return "\n".join(["", *chosen, ""])
    lines = [""]
    for number, sentence in enumerate(support["sentences"], start=1):
        lines.append(f"[{number}] {sentence['text']}")
        shares = zip(("words", "pairs", "triples"), sentence["ngrams"], strict=True)
        found = ", ".join(f"{name} {share:.0%}" for name, share in shares if share is not None)
        lines.append("    " + ("word for word" if sentence["copied"] else f"in the source: {found}"))
        if not sentence["copied"]:
            lines += [f"    source{_where(p)}: {p['text']}" for p in sentence["aligned"]]
        inside = [m for m in support["marks"] if sentence["start"] <= m["start"] < sentence["end"]]
        lines += [f"    ? {mark['kind']} {mark['text']!r}: {mark['reason']}" for mark in inside]
    lines += [f"not checked: {kind}s, as {reason}" for kind, reason in support["unchecked"].items()]
    return "\n".join([*lines, f"({HINT})", ""])


def _chosen(number: int, sentence: Mapping[str, Any]) -> str:
    """Format a chosen sentence's place and beginning: the whole was just printed, and nothing in it is marked."""
    source = sentence["aligned"][0] if sentence["aligned"] else None
    added = [words for words in meanings_in(sentence["text"]) if source and words not in source["text"]]
    told = f", but for {', '.join(added)}" if added else ""
    place = _where(source) if source else ""
    return (
        f"[{number}] word for word{told}{place}: {shorten(sentence['text'], _BEGINNING, placeholder=' ...')}"
    )


def _where(passage: Mapping[str, Any]) -> str:
    """Format a passage's place: its page, heading or time, or its line in a format without these."""
    if "place" not in passage:
        return f", line {passage['line']:,}"
    place = str(Place(**passage["place"]))
    return f", {place}" if place else ""
