"""Summaries as JSON: sentences with their offsets and supporting passages, and the share of the document read."""

from __future__ import annotations

from typing import Any

from precis.generation.summarizer import Summary
from precis.phases.use.summarization import chosen_support
from precis_text.control_characters import SEPARATOR, UNIT_MARK
from precis_text.support.marks import SourceText, Support
from precis_text.units import extraction_units
from precis_text.words import length_in_words


def plain(text: str) -> str:
    """Replace precis's own marks in a document by spaces, so that all offsets stay valid."""
    return text.replace(SEPARATOR, " ").replace(UNIT_MARK, " ")  # `translate` takes 400 times as long


def answer(index: int, document: str, summary: Summary, *, support: bool, other: str = "") -> dict[str, Any]:
    """Return one summary as JSON, see `OneSummary`; `other` is a sentence on an unknown language, for the note."""
    note = " ".join(filter(None, (read_note(summary), other)))
    return {
        "index": index, "summary": summary.text, **_sentences(document, summary, support=support),
        "mode": summary.mode, "type": summary.form, "answered": summary.answered,
        "read": {
            "document_tokens": summary.document_tokens, "tokens_read": summary.tokens_read,
            "complete": not summary.truncated, "how": summary.how, "pieces": summary.pieces, "note": note,
        },
        "words": length_in_words(summary.text), "summary_tokens": summary.summary_tokens,
        "finished": summary.finished, "kept": summary.kept,
    }  # fmt: skip


def read_note(summary: Summary) -> str:
    """Return a sentence for users about how much of the document was read."""
    total, read = summary.document_tokens, summary.tokens_read
    if summary.kept:
        return "The document is no longer than a summary would be, so it is returned unchanged."
    if summary.truncated:
        return f"Only {read:,} of the document's {total:,} tokens were read; {total - read:,} were not."
    how = {"fie": " in connected chunks", "chunk": f" in {summary.pieces} pieces"}.get(summary.how, "")
    return f"All {total:,} tokens of the document were read{how}."


def _sentences(document: str, summary: Summary, *, support: bool) -> dict[str, Any]:
    """Return the sentences, and with `support` their passages and marks; only this function adds them."""
    if summary.lines or not summary.answered:
        return _lines(document, summary, support=support)
    if summary.sentences:
        return _origins(document, summary, support=support)
    if support and (summary.places or summary.kept):
        return _supported(chosen_support(document, summary))
    return sentences_of(summary.text, SourceText(document) if support else None)


def sentences_of(text: str, source: SourceText | None) -> dict[str, Any]:
    """Return the sentences of a summary, and with a document their passages, their marks and the skipped checks."""
    if source is None:
        units = extraction_units(text)
        return {"sentences": [{"start": u.start, "end": u.stop, "text": u.text} for u in units]}
    return _supported(source.support(text))


def _supported(found: Support) -> dict[str, Any]:
    """Return the sentences with their passages and marks, and the skipped checks."""

    def with_support(sentence: Any) -> dict[str, Any]:
        marks = [mark.to_dict() for mark in found.marks if sentence.start <= mark.start < sentence.end]
        return {**_placed(sentence), "support": [*map(_placed, sentence.aligned)], "marks": marks}

    return {"sentences": [*map(with_support, found.sentences)], "unchecked": found.unchecked}


def _placed(part: Any) -> dict[str, Any]:
    return {"start": part.start, "end": part.end, "text": part.text}


def _origins(document: str, summary: Summary, *, support: bool) -> dict[str, Any]:
    """Return the sentences of a writer, each with its origin and the reason of a quotation; and `adapted`."""
    found = sentences_of(summary.text, SourceText(document) if support else None)
    for sentence in found["sentences"]:
        text = sentence["text"]
        own = next((each for each in summary.sentences if each.text in text or text in each.text), None)
        if own is not None:
            sentence |= {"origin": own.origin} | ({"reason": own.reason} if own.reason else {})
    return found | {"adapted": summary.adapted}


def _lines(document: str, summary: Summary, *, support: bool) -> dict[str, Any]:
    """Return the lines of a form: each is from one place of the document, word for word."""
    sentences, end = [], 0
    for line in summary.lines:
        left = summary.text[end:]
        shown = line.shown if line.shown in left else left.strip()  # the cap cut the only line
        begin = summary.text.index(shown, end)
        end = begin + len(shown)
        facts = {name: value for name, value in line.to_dict().items() if name not in ("text", "place")}
        passage = {"start": line.start, "end": line.stop, "text": document[line.start : line.stop]}
        passages = {"support": [passage], "marks": []} if support else {}
        sentences.append({"start": begin, "end": end, "text": shown, **passages, **facts})
    if not summary.answered:
        told: dict[str, Any] = {"start": 0, "end": len(summary.text), "text": summary.text}
        sentences = [told | ({"support": [], "marks": []} if support else {})]
    return {"sentences": sentences} | ({"unchecked": {}} if support else {})
