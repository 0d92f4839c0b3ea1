"""Claims of the training of the unit ranker that need no trees: gains, examples, and the form of the file."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.scripts.unit_ranker import (
    OTHER_ROUGE,
    ROUGE,
    Examples,
    flat,
    gains,
    length_data,
    ranking_data,
    read,
)
from precis_experiments.open_sets import OTHER_LANGUAGES, SETS, pairs_of
from precis_text.ranking_features import ASKED, FEATURES
from precis_text.regression_trees import Trees
from precis_text.units import extraction_units


class FakeBooster:
    """Two trees as lightgbm dumps them."""

    def dump_model(self) -> dict[str, Any]:
        first = {
            "split_feature": 1,
            "threshold": 0.5,
            "left_child": {"leaf_value": 1.0},
            "right_child": {
                "split_feature": 0,
                "threshold": 2.0,
                "left_child": {"leaf_value": 10.0},
                "right_child": {"leaf_value": 20.0},
            },
        }
        return {"tree_info": [{"tree_structure": first}, {"tree_structure": {"leaf_value": 0.25}}]}


def test_trees_of_lightgbm_become_the_lists_that_the_ranker_reads() -> None:
    trees = Trees.from_dict(json.loads(json.dumps(flat(FakeBooster()))), columns=2)
    rows = np.array([[9.0, 0.5], [2.0, 0.6], [2.1, 0.6]], dtype=np.float32)
    assert trees(rows).tolist() == [1.25, 10.25, 20.25]


def test_the_gain_of_a_unit_counts_words_and_pairs_for_its_length() -> None:
    units = extraction_units("The old bridge closes. Nobody knows what it will ever cost.")
    found = gains(units, ["The bridge closes.", "The old bridge closes."], ROUGE)
    assert found[0] == pytest.approx(np.mean([3 / 2 + 1, 4 / 2 + 3]) / 8)
    assert found[1] == 0


def test_examples_become_groups_of_documents(tmp_path: Path) -> None:
    import lzma

    folder = tmp_path / SETS[0].place
    folder.mkdir(parents=True)
    document = "The bridge closes in May. It rains. Nobody came to the meeting. A cat sleeps on the wall."
    rows = [
        {"document": document, "summary": "The bridge closes."},
        {"document": "One. Two.", "summary": "One."},
    ]
    with lzma.open(folder / "train.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    examples = read(SETS[0], data=tmp_path, cap=10)
    assert isinstance(examples, Examples)
    assert len(examples.words) == 2
    found = ranking_data({"made": examples})
    assert found["group"] == [4]  # a document of two sentences has nothing to order
    assert found["data"].shape == (4, len(FEATURES) + len(ASKED))
    assert found["label"].tolist()[0] == max(found["label"])
    assert length_data({"made": examples})["label"].tolist() == pytest.approx(
        sorted(np.log([3, 1]), reverse=bool(examples.words[0] == 3))
    )


def test_words_of_other_languages_count_with_their_letters() -> None:
    units = extraction_units("Мост закрыт. Идёт дождь.")
    assert gains(units, ["Мост закрыт."], ROUGE).tolist() == [0, 0]
    assert gains(units, ["Мост закрыт."], OTHER_ROUGE).tolist() == pytest.approx([2 / 6, 0])


def test_a_pair_of_another_language_says_which_one(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [
        {"document": ["Die Brücke ist zu.", "Es regnet."], "summary": ["Die", "Brücke."]},
        {"document": "Il pleut.", "summary": "Pluie.", "lang": "fr"},
    ]
    with gzip.open(folder / "train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    german, french = pairs_of(OTHER_LANGUAGES[0], folder, "train")
    assert german == {
        "document": "Die Brücke ist zu.\nEs regnet.",
        "summaries": ["Die Brücke."],
        "language": "de",
    }
    assert french["language"] == "fr"
