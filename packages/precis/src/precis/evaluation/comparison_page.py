"""A comparison of models as one HTML file: the tables, then each document next to its summaries, with their marks.

Quoted sentences and marks have a word next to them, so that nothing depends on colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from precis.evaluation.comparison import ComparedSummary, Comparison
from precis.evaluation.offline_page import offline_page, table_of
from precis_text.control_characters import readable
from precis_text.row import counted
from precis_text.support.marks import SentenceSupport, Support


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    count = len(comparison.pairs)
    title = f"{counted(len(comparison.summaries), 'model')}, {counted(count, 'document')}"
    machine = "".join(f'<p class="soft">{escape(line)}</p>' for line in comparison.machine)
    tables = "".join(map(table_of, comparison.tables()))
    documents = "".join(_document(comparison, row) for row in range(count))
    return offline_page(title, f"{machine}{tables}<h2>Documents</h2>{documents}")


def _document(comparison: Comparison, row: int) -> str:
    """Return a document with all its summaries; the first is open."""
    pair = comparison.pairs[row]
    summaries = "".join(
        _summary(name, found[row], comparison.support(name, row))
        for name, found in comparison.summaries.items()
    )
    given = [text for text in pair.all_references if text]
    references = "".join(f"<h3>Reference</h3><p>{escape(text)}</p>" for text in given)
    return (
        f"<section><details{' open' if row == 0 else ''}><summary>{escape(pair.id)}</summary>"
        f'<div class="pair"><div><h3>Document</h3><p class="document" tabindex="0">'
        f"{escape(readable(pair.document))}</p></div><div>{summaries}{references}</div></div></details></section>"
    )


def _summary(name: str, found: ComparedSummary, support: Support) -> str:
    if found.error:
        return f'<h3>{escape(name)}</h3><p class="soft">no summary: {escape(found.error)}</p>'
    notes = [f"{found.seconds:.2f} s"]
    notes += [] if found.is_whole else ["not all of the document was read"]
    notes += [] if found.finished else ["cut off"]
    text = " ".join("".join(_sentence(found, support, each)) for each in support.sentences)
    return f'<h3>{escape(name)} <span class="tag">{escape(", ".join(notes))}</span></h3><p>{text}</p>'


def _sentence(found: ComparedSummary, support: Support, sentence: SentenceSupport) -> Iterator[str]:
    """Yield a sentence as HTML: its marks, each with its reason, and whether it is quoted."""
    place = sentence.start
    for mark in support.marks:
        if sentence.start <= mark.start < sentence.end:
            yield escape(found.text[place : mark.start])
            reason = escape(f"{mark.kind}: {mark.reason}")
            yield f'<mark>{escape(mark.text)}</mark> <span class="tag">? {reason}</span>'
            place = mark.end
    yield escape(found.text[place : sentence.end])
    if sentence.copied:
        reason = found.reasons.get(sentence.text, "")
        told = f"quoted, since {reason}" if reason else "quoted"
        yield f' <span class="tag">{escape(told)}</span>'
