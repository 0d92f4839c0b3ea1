"""Studies for tests: small invented texts, and verdicts that follow a rule."""

import json
from collections.abc import Callable
from pathlib import Path

from precis_judge.judging_study import JudgingStudy, new_study
from precis_judge.protocols import protocol
from precis_judge.study_design import Comparison, Design
from precis_judge.system_summaries import JudgedDocument
from precis_judge.verdicts import VerdictStore

INJECTED = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title='taken over'\">"
_TOWNS = ("Arlen", "Bruk", "Corvo", "Delm", "Eastry", "Farrow", "Gant", "Hove", "Ilm", "Jura")


def invented(count: int, systems: tuple[str, ...] = ("first", "second")) -> list[JudgedDocument]:
    """Documents about a ferry each; every system's summary says its own number of things."""
    documents = []
    for n in range(count):
        town, year = _TOWNS[n % len(_TOWNS)], 1900 + n
        text = (
            f"The ferry of {town} 🛥️ was built in {year}. It carried {n + 20} people every day.\n\n"
            "Ann steered it for a long time, and Bob sold the tickets. In the end a bridge took its place. "
            f"The mayor of {town} kept the bell."
        )
        summaries = {
            name: f"The ferry of {town} carried {n + 20} people. A bridge took its place. Version {k}."
            for k, name in enumerate(systems)
        }
        documents.append(JudgedDocument(id=f"doc-{n}", document=text, summaries=summaries))
    return documents


def study_in(
    folder: Path,
    *,
    documents: list[JudgedDocument] | int = 10,
    judges: tuple[str, ...] = ("Ann", "Ben"),
    asked: str = "discourse",
    **design: float,
) -> JudgingStudy:
    """A study of invented documents."""
    texts = invented(documents) if isinstance(documents, int) else documents
    return new_study(folder, texts, Design(judges=judges, **design), protocol(asked))  # type: ignore[arg-type]


def judge_all(study: JudgingStudy, prefers: Callable[[str, Comparison, str], float]) -> None:
    """Give every page a verdict; `prefers(judge, item, criterion)` is 1, 0.5 or 0 for the item's first summary."""
    with VerdictStore.opened(study) as store:
        for judge, pages in study.layout.pages.items():
            for number, page in enumerate(pages):
                choices = {}
                for key in study.protocol.keys:
                    won = prefers(judge, study.layout.items[page.item], key)
                    sides = ("left", "right") if page.first_left else ("right", "left")
                    choices[key] = "same" if won == 0.5 else sides[int(won == 0)]
                store.add({"judge": judge, "page": number, "choices": choices, "reasons": {}, "seconds": 30})


def lines(path: Path) -> list[dict]:
    """The records of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()][1:]
