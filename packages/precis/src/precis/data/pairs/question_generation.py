"""SQuAD 1.1 as question generation: the document is a passage and an answer in it, the summary is the question.

A source is written `squad-qg:PLACE` or `squad-qg-zhao:PLACE`; PLACE is a file, a folder or `hub:owner/name`. Its rows
may be paragraphs in this project's layout, the official JSON, or one question per row as on the hub:

    {"title": ..., "document" | "context": ..., "qas": [{"question": ..., "answers": [...]}]}
    {"data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [...]}]}]}
    {"title": ..., "context" | "paragraph": ..., "question": ..., "answers": {"text": [...]} | "answer": "..."}

If PLACE has train, dev and test files, they are the splits. SQuAD itself lacks a public test set: Du et al. (2017,
"Learning to Ask") use 44 articles of its training set as test set and keep its dev set as dev set. The file
`du_split_titles.json` in PLACE lists the articles: {"train": [title, ...], "test": [...]}. Zhao et al. (2018) report
on the same split with dev and test exchanged (ProphetNet, section 3.3).

The first of several answers is used. In dev and test, questions with the same passage and answer are one example. It
has several references, as in the evaluation scripts of Du et al. and UniLM. In train each question is an example.

`answer_rows` reads the same layouts as question answering, with every answer as a reference.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from precis_text.bounded_io import read_json
from precis_text.control_characters import join_parts
from precis_text.errors import UserError
from precis_text.row import Row, Unreadable, invalid_text, kind_of

DU, ZHAO = "squad-qg:", "squad-qg-zhao:"
TITLES = "du_split_titles.json"
_EXCHANGED = {DU: {}, ZHAO: {"dev": "test", "test": "dev"}}
_PASSAGE = ("context", "paragraph", "document")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The source of a split: a split of the files, and the articles that belong to it; if None, all articles do."""

    split: str
    titles: frozenset[str] | None = None


def splits_cut(scheme: str, place: str, own: Iterable[str]) -> dict[str, Cut]:
    """Return the splits of a source by name.

    Args:
        scheme: `DU` or `ZHAO`.
        place: the source without its scheme.
        own: the splits of its files.

    Raises:
        UserError: the source lacks both a test split and a list of articles from which to make it.
    """
    cuts = {name: Cut(split=name) for name in own}
    if "train" in cuts and "test" not in cuts:
        lists = _read_titles(Path(place) / TITLES, place)
        cuts |= {name: Cut(split="train", titles=titles) for name, titles in lists.items()}
    exchanged = _EXCHANGED[scheme]
    named = {exchanged.get(name, name): cut for name, cut in cuts.items()}
    order = {"train": 0, "dev": 1, "test": 2}
    return {name: named[name] for name in sorted(named, key=lambda name: order.get(name, 3))}


def question_rows(
    rows: Iterable[Row], *, titles: frozenset[str] | None = None, merge: bool = False, where: str = ""
) -> Iterator[Row]:
    """Yield rows with the default names of `precis.data.pairs.pair.Columns`, one for each question.

    Args:
        rows: rows in one of the layouts above.
        titles: the articles to keep; if None, all.
        merge: merge questions with the same passage and answer into one row, as references.
        where: name of the source, for messages.

    Raises:
        UserError: no row is about an article of `titles`.
    """
    questions: Iterator[Row] = (question for row in rows for question in _questions(row))
    if titles is not None:
        questions = _of_articles(questions, titles, where)
    if not merge:
        yield from (_example([question]) for question in questions)
        return
    for _, run in groupby(questions, key=lambda question: question.values.get("passage")):
        asked: dict[str, list[Row]] = {}
        for number, question in enumerate(run):
            key = f"{number} is bad" if question.problem else question.values["answer"]
            asked.setdefault(key, []).append(question)
        yield from map(_example, asked.values())


def answer_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows for question answering: the document is question and passage, the references are the answers."""
    for question in (question for row in rows for question in _questions(row)):
        if question.problem:
            yield question
            continue
        found = question.values
        document = join_parts(found["question"], found["passage"])
        values = {"id": found["id"] or None, "document": document, "summary": found["answer"]}
        yield Row(question.place, {**values, "summaries": found["answers"]})


def _example(questions: list[Row]) -> Row:
    """Convert the questions of one passage and answer to a pair's row."""
    first = questions[0]
    if first.problem:
        return first
    texts = list(dict.fromkeys(question.values["question"] for question in questions))
    values = {
        "id": first.values["id"] or None,
        "document": join_parts(first.values["answer"], first.values["passage"]),
        "summary": texts[0],
        "summaries": texts if len(texts) > 1 else None,
    }
    return Row(first.place, values)


def _of_articles(questions: Iterable[Row], titles: frozenset[str], where: str) -> Iterator[Row]:
    seen = found = False
    for question in questions:
        seen = True
        title = question.values.get("title")
        if question.problem:
            yield question
        elif not isinstance(title, str):
            found = True
            yield Row(question.place, problem=f"no title, which {TITLES} needs to split the rows")
        elif title in titles:
            found = True
            yield question
    if seen and not found:
        raise UserError(f"{where}: contains no article that {TITLES} lists for this split")


def _questions(row: Row) -> Iterator[Row]:
    """Yield a row for each question, with its title, id, passage, answer and question, or with its problem."""
    articles = row.values.get("data")
    if row.problem:
        yield row
    elif not isinstance(articles, list):
        yield from _of_paragraph(row.place, row.values)
    else:
        for count, article in enumerate(map(_mapping, articles), start=1):
            title, paragraphs = article.get("title"), article.get("paragraphs")
            if not isinstance(paragraphs, list):
                yield Row(f"{row.place}, article {count}", problem="lacks a list of 'paragraphs'")
                continue
            for number, paragraph in enumerate(paragraphs, start=1):
                place = f"{row.place}, article {title!r}, paragraph {number}"
                yield from _of_paragraph(place, {"title": title, **_mapping(paragraph)})


def _of_paragraph(place: str, values: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the questions of a row: a paragraph with its `qas`, or a single question."""
    asked, paragraph = values.get("qas"), values.get("id")
    if asked is None:
        yield _question(place, values, values, str(paragraph or ""))
    elif not isinstance(asked, list):
        yield Row(place, problem="column 'qas' must hold a list of questions")
    else:
        for number, entry in enumerate(map(_mapping, asked), start=1):
            name = entry.get("id") or (f"{paragraph}-{number}" if paragraph else "")
            yield _question(f"{place}, question {number}", values, entry, str(name))


def _question(place: str, paragraph: Mapping[str, Any], entry: Mapping[str, Any], name: str) -> Row:
    column = next((column for column in _PASSAGE if column in paragraph), None)
    if column is None or "question" not in entry:
        have = ", ".join(repr(key) for key in {**paragraph, **entry}) or "none"
        problem = f"not a SQuAD row: it needs 'context', 'question' and 'answers', but has {have}"
        return Row(place, problem=problem)
    answers = _answers(entry.get("answers", entry.get("answer")))
    texts = {
        "passage": paragraph[column],
        "question": entry["question"],
        "answer": answers[0] if answers else None,
    }
    for what, text in texts.items():
        if problem := _problem(text):
            return Row(place, problem=f"the {what} {problem}")
    stripped = {what: text.strip() for what, text in texts.items()}
    every = [text.strip() for text in answers if isinstance(text, str)]
    return Row(place, {"title": paragraph.get("title"), "id": name, "answers": every, **stripped})


def _answers(answers: Any) -> list[Any]:
    """Return the answers from a list of texts or of `{"text": ...}`, from `{"text": [...]}`, or from a text."""
    if isinstance(answers, Mapping):
        answers = answers.get("text")
    several = answers if isinstance(answers, list) else [answers]
    return [answer.get("text") if isinstance(answer, Mapping) else answer for answer in several]


def _problem(text: Any) -> str:
    if text is None or (isinstance(text, str) and not text.strip()):
        return "is missing or empty"
    if isinstance(text, Unreadable):
        return text.why
    return invalid_text(text) if isinstance(text, str) else f"must be text, not {kind_of(text)}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read_titles(file: Path, place: str) -> dict[str, frozenset[str]]:
    if not file.is_file():
        raise UserError(
            f"{place}: lacks a test split; add {TITLES} with the articles to take from the training set "
            '({"train": [...], "test": [...]}, Du et al. 2017)'
        )
    lists = read_json(file)
    try:
        return {name: frozenset(map(str, lists[name])) for name in ("train", "test")}
    except (KeyError, TypeError) as error:
        raise UserError(f'{file}: must be a JSON object {{"train": [titles], "test": [titles]}}') from error
