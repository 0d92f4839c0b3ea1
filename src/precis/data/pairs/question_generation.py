"""SQuAD 1.1 as question generation: a passage and an answer in it are the document, the question is the summary.

A source is written `squad-qg:PLACE` or `squad-qg-zhao:PLACE`; PLACE is a file, a folder or `hub:owner/name`. Its rows
may be the paragraphs of this project's layout, the official JSON, or a question a row as on the hub:

    {"title": ..., "document" | "context": ..., "qas": [{"question": ..., "answers": [...]}]}
    {"data": [{"title": ..., "paragraphs": [{"context": ..., "qas": [...]}]}]}
    {"title": ..., "context" | "paragraph": ..., "question": ..., "answers": {"text": [...]} | "answer": "..."}

If PLACE has train, dev and test files, they are the splits. SQuAD itself has no public test set: Du et al. (2017,
"Learning to Ask") take 44 articles of its training set as test set and keep its dev set as dev set. The articles are
listed in `du_split_titles.json` beside the files: {"train": [title, ...], "test": [...]}. Zhao et al. (2018) report on
the same split with dev and test exchanged (ProphetNet, section 3.3).

The first of several answers is taken. In dev and test, questions with the same passage and answer are one example with
several references, as in the evaluation scripts of Du et al. and UniLM. In train each question is an example.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from precis.data.rows.row import Row, Unreadable, invalid_text, kind_of
from precis.data.text.marks import join_parts
from precis.errors import UserError
from precis.untrusted import read_json

DU, ZHAO = "squad-qg:", "squad-qg-zhao:"
TITLES = "du_split_titles.json"
_EXCHANGED = {DU: {}, ZHAO: {"dev": "test", "test": "dev"}}
_PASSAGE = ("context", "paragraph", "document")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Where a split lies: a split of the files, and the articles that belong to it; if None, all articles do."""

    split: str
    titles: frozenset[str] | None = None


def split_scheme(source: str) -> tuple[str, str]:
    """Divide a source into (scheme, place); the scheme is "" if the source is not read as questions."""
    for scheme in (DU, ZHAO):
        if source.startswith(scheme):
            return scheme, source.removeprefix(scheme)
    return "", source


def splits_cut(scheme: str, place: str, own: Iterable[str]) -> dict[str, Cut]:
    """The splits of a source by name, and where each lies.

    Args:
        scheme: `DU` or `ZHAO`.
        place: the source without its scheme.
        own: the splits of its files.

    Raises:
        UserError: there is no test split, and no list of articles from which to make it.
    """
    own = list(own)
    if "test" in own:
        cuts = {name: Cut(split=name) for name in own}
    else:
        cuts = {name: Cut(split=name) for name in own if name != "train"}
        if "train" in own:
            titles = _read_titles(Path(place) / TITLES, place)
            cuts["train"] = Cut(split="train", titles=titles["train"])
            cuts["test"] = Cut(split="train", titles=titles["test"])
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
        merge: make one row of the questions with the same passage and answer, as references.
        where: name of the source, for messages.

    Raises:
        UserError: no row is about an article of `titles`.
    """
    questions = _wanted(rows, titles, where)
    if not merge:
        yield from map(_example, questions)
        return
    for _, run in groupby(questions, key=lambda question: question.passage):
        inputs: dict[str, list[_Question]] = {}
        for number, question in enumerate(run):
            key = f"{number} is bad" if question.problem else question.answer
            inputs.setdefault(key, []).append(question)
        yield from (_example(*asked) for asked in inputs.values())


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question about an answer in a passage, or the problem with it."""

    place: str
    title: Any = None
    id: str = ""
    passage: str = ""
    answer: str = ""
    text: str = ""
    problem: str = ""


def _example(first: _Question, *others: _Question) -> Row:
    if first.problem:
        return Row(first.place, problem=first.problem)
    texts = list(dict.fromkeys(question.text for question in (first, *others)))
    return Row(
        first.place,
        {
            "id": first.id or None,
            "document": join_parts(first.answer, first.passage),
            "summary": first.text,
            "summaries": texts if len(texts) > 1 else None,
        },
    )


def _wanted(rows: Iterable[Row], titles: frozenset[str] | None, where: str) -> Iterator[_Question]:
    found = titles is None
    seen = False
    for question in (question for row in rows for question in _questions(row)):
        seen = True
        if titles is None or question.problem:
            yield question
        elif not isinstance(question.title, str):
            found = True
            yield _Question(place=question.place, problem=f"no title, and the split is cut by {TITLES}")
        elif question.title in titles:
            found = True
            yield question
    if seen and not found:
        raise UserError(f"{where}: no article of this split's list in {TITLES} is in it")


def _questions(row: Row) -> Iterator[_Question]:
    if row.problem:
        yield _Question(place=row.place, problem=row.problem)
        return
    articles = row.values.get("data")
    if isinstance(articles, list):
        for count, article in enumerate(articles, start=1):
            title, paragraphs = _mapping(article).get("title"), _mapping(article).get("paragraphs")
            if not isinstance(paragraphs, list):
                yield _Question(place=f"{row.place}, article {count}", problem="has no list of 'paragraphs'")
                continue
            for number, paragraph in enumerate(paragraphs, start=1):
                place = f"{row.place}, article {title!r}, paragraph {number}"
                yield from _of_paragraph(place, {"title": title, **_mapping(paragraph)})
    else:
        yield from _of_paragraph(row.place, row.values)


def _of_paragraph(place: str, values: Mapping[str, Any]) -> Iterator[_Question]:
    """Yield the questions of a row that is a paragraph with its `qas`, or a single question."""
    asked = values.get("qas")
    if asked is None:
        yield _question(place, values, values, str(values.get("id") or ""))
        return
    if not isinstance(asked, list):
        yield _Question(place=place, problem="column 'qas' must hold a list of questions")
        return
    for number, entry in enumerate(asked, start=1):
        entry = _mapping(entry)
        paragraph = values.get("id")
        name = entry.get("id") or (f"{paragraph}-{number}" if paragraph else "")
        yield _question(f"{place}, question {number}", values, entry, str(name))


def _question(place: str, paragraph: Mapping[str, Any], entry: Mapping[str, Any], name: str) -> _Question:
    column = next((column for column in _PASSAGE if column in paragraph), None)
    if column is None or "question" not in entry:
        have = ", ".join(repr(key) for key in {**paragraph, **entry}) or "none"
        return _Question(
            place=place,
            problem=f"not a SQuAD row: it needs 'context', 'question' and 'answers', and has {have}",
        )
    texts = {
        "passage": paragraph[column],
        "question": entry["question"],
        "answer": _first_answer(entry.get("answers", entry.get("answer"))),
    }
    for what, text in texts.items():
        problem = _problem(text)
        if problem:
            return _Question(place=place, problem=f"the {what} {problem}")
    return _Question(
        place=place,
        title=paragraph.get("title"),
        id=name,
        passage=texts["passage"].strip(),
        answer=texts["answer"].strip(),
        text=texts["question"].strip(),
    )


def _first_answer(answers: Any) -> Any:
    """The first answer of a list of texts or of `{"text": ...}`, of `{"text": [...]}`, or of a text."""
    if isinstance(answers, Mapping):
        answers = answers.get("text")
    if isinstance(answers, list):
        answers = answers[0] if answers else None
    return answers.get("text") if isinstance(answers, Mapping) else answers


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
            f"{place}: has no test split, and no {TITLES} that names the articles to take from the training set "
            '({"train": [...], "test": [...]}, Du et al. 2017)'
        )
    lists = read_json(file)
    try:
        return {name: frozenset(map(str, lists[name])) for name in ("train", "test")}
    except (KeyError, TypeError) as error:
        raise UserError(f'{file}: must be a JSON object {{"train": [titles], "test": [titles]}}') from error
