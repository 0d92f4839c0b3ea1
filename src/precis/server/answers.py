"""Summaries as JSON: sentences with their places, what supports them, and how much of a document was read."""

from __future__ import annotations

from typing import Any

from precis.data.text.marks import SEPARATOR, UNIT_MARK
from precis.data.text.units import extraction_units
from precis.data.text.words import length_in_words
from precis.evaluation.faithfulness.marks import SourceText
from precis.generation.summarizer import Summary


def plain(text: str) -> str:
    """A document without the marks that mean something to precis alone; no character moves."""
    return text.replace(SEPARATOR, " ").replace(UNIT_MARK, " ")  # `translate` takes 400 times as long


def answer(index: int, document: str, summary: Summary, *, support: bool) -> dict[str, Any]:
    """What is said of one summary; see `precis.server.schemas.OneSummary`."""
    return {
        "index": index,
        "summary": summary.text,
        **_sentences(document, summary, support=support),
        "mode": summary.mode,
        "read": {
            "document_tokens": summary.document_tokens,
            "tokens_read": summary.tokens_read,
            "complete": not summary.truncated,
            "how": summary.how,
            "pieces": summary.pieces,
            "note": read_note(summary),
        },
        "words": length_in_words(summary.text),
        "summary_tokens": summary.summary_tokens,
        "finished": summary.finished,
        "kept": summary.kept,
    }


def read_note(summary: Summary) -> str:
    """How much was read, in a sentence for people."""
    total, read = summary.document_tokens, summary.tokens_read
    if summary.kept:
        return "The document is no longer than a summary would be, so it is given back as it is."
    if summary.truncated:
        return f"Only {read:,} of the document's {total:,} tokens were read. {total - read:,} were not read."
    how = {"fie": " in connected chunks", "chunk": f" in {summary.pieces} pieces"}.get(summary.how, "")
    return f"All {total:,} tokens of the document were read{how}."


def _sentences(document: str, summary: Summary, *, support: bool) -> dict[str, Any]:
    """The sentences, and with `support` their passages and marks: the one place that adds such facts."""
    if support and summary.places:
        return {"sentences": _chosen(document, summary), "unchecked": {}}
    return sentences_of(summary.text, SourceText(document) if support else None)


def sentences_of(text: str, source: SourceText | None) -> dict[str, Any]:
    """The sentences of what is written, and with a document their passages, their marks and what was not checked."""
    if source is None:
        units = extraction_units(text)
        return {"sentences": [{"start": u.start, "end": u.stop, "text": u.text} for u in units]}
    found = source.support(text)
    return {
        "sentences": [
            {
                "start": sentence.start,
                "end": sentence.end,
                "text": sentence.text,
                "support": [
                    {"start": passage.start, "end": passage.end, "text": passage.text}
                    for passage in sentence.aligned
                ],
                "marks": [
                    mark.to_dict() for mark in found.marks if sentence.start <= mark.start < sentence.end
                ],
            }
            for sentence in found.sentences
        ],
        "unchecked": found.unchecked,
    }


def _chosen(document: str, summary: Summary) -> list[dict[str, Any]]:
    """Sentences that the model chose: each is its own passage, word for word."""
    sentences = []
    texts = [" ".join(document[start:stop].split()) for start, stop in summary.places]
    end = 0
    for (start, stop), text in zip(summary.places, texts, strict=True):
        begin = end + summary.text[end : end + 1].isspace()
        shown = summary.text[begin : begin + len(text)]
        if not shown:  # the cap cut it off
            continue
        end = begin + len(shown)
        sentences.append(
            {
                "start": begin,
                "end": end,
                "text": shown,
                "support": [{"start": start, "end": stop, "text": text}],
                "marks": [],
            }
        )
    return sentences
