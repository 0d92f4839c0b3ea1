"""The guide lists every folder that a study reads."""

import re
from pathlib import Path

import pytest

from precis.data.pairs.dataset_adapters import prefix_of
from precis.data.tasks.tasks import TASKS
from precis_experiments.ngram_study import QUESTIONS
from precis_experiments.scales import (
    CORPORA,
    DIALOGUES,
    FACTS,
    FACTS_SCALES,
    LANGUAGES_SCALES,
    PREFIX_SCALES,
    PROPHET_SCALES,
    SCALES,
)

_GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "reproduce.md"
_ALL = "all four"


def rows() -> dict[tuple[str, str], list[str]]:
    """(study, scale) -> raw text, pairs to learn from, pairs to train and test on."""
    (table,) = re.findall(r"^\| study \| scale \|.*?(?=^$)", _GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    found, study = {}, ""
    for line in table.splitlines()[2:]:
        first, scale, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        study = first or study
        found[study, scale] = cells
    return found


def told(corpora: tuple[str, ...]) -> str:
    return _ALL if corpora == CORPORA else ", ".join(corpora)


def folders(tasks: tuple[str, ...]) -> str:
    """Where the tasks' files are: question answering and GLUE have folders of several tasks."""
    return ", ".join("glue" if prefix_of(TASKS[t].scheme) else TASKS[t].folder or t for t in tasks)


@pytest.mark.parametrize("name", SCALES)
def test_of_the_comparisons_of_zcodepp(name: str) -> None:
    scale = SCALES[name]
    learnt = ", ".join(scale.grounding_tasks)
    assert rows()["zcodepp-fewshot", name] == [told(scale.corpora), learnt, folders(scale.tasks)]
    assert rows()["zcodepp-ablation", name] == [told(scale.corpora), "", folders(scale.judged_on)]


@pytest.mark.parametrize("name", PROPHET_SCALES)
def test_of_prophetnet(name: str) -> None:
    scale = PROPHET_SCALES[name]
    (questions,) = {TASKS[task].folder for task in QUESTIONS}
    assert rows()["prophetnet", name] == [told(scale.corpora), "", f"{scale.task}, {questions}"]


@pytest.mark.parametrize("name", PREFIX_SCALES)
def test_of_prefixes(name: str) -> None:
    assert PREFIX_SCALES[name].base == SCALES[name]
    sets = folders((FACTS, DIALOGUES, *PREFIX_SCALES[name].other_facts))
    assert rows()["discourse-prefix", name] == ["as zcodepp-fewshot", "as zcodepp-fewshot", sets]


@pytest.mark.parametrize("name", FACTS_SCALES)
def test_of_structure_to_text(name: str) -> None:
    assert rows()["structure-to-text", "all"] == ["", "", folders(FACTS_SCALES[name].tasks)]


@pytest.mark.parametrize("name", LANGUAGES_SCALES)
def test_of_several_languages(name: str) -> None:
    scale = LANGUAGES_SCALES[name]
    sets = ", ".join(dict.fromkeys(folders((task,)) for task in scale.tasks))
    assert rows()["multilingual", name] == [told(scale.corpora), "", sets]


def test_the_four_texts_are_named() -> None:
    assert all(f"`{name}`" in _GUIDE.read_text() for name in CORPORA)
