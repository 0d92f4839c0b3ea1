"""What tasks are answered with, and how a classifier reads their texts."""

import pytest

from precis.data.pairs.glue import GLUE, as_parts, glue_rows
from precis.data.pairs.pair import Pair
from precis.data.tasks.label_schema import answers_of
from precis.data.text.encoding import encode_documents
from precis_text.control_characters import join_parts, readable
from precis_text.errors import UserError
from precis_text.row import Row
from tests.tiny_models import our_tokenizer


def test_a_pair_of_texts_is_read_as_the_tokenizer_reads_a_pair() -> None:
    document = answers_of("mnli").read("premise: Ann sings in the hall. hypothesis: Ann is silent.")
    (ids,) = encode_documents([document], our_tokenizer())
    assert ids == our_tokenizer()("Ann sings in the hall.", "Ann is silent.")["input_ids"]


def test_a_premise_that_names_the_hypothesis_is_read_whole() -> None:
    one, two = "Our working hypothesis: it rains.", "it snows, hypothesis: none."
    read = Row("row 1", {"premise": one, "hypothesis": two, "label": 2})
    [row] = glue_rows([read], GLUE["mnli"])
    document = row.values["document"]
    assert as_parts(document, GLUE["mnli"]) == join_parts(one, two)
    assert readable(document) == f"premise: {one} hypothesis: {two}"
    (marked, plain) = encode_documents([document, readable(document)], our_tokenizer())
    assert marked == plain


def test_one_text_is_read_without_its_name() -> None:
    assert as_parts("sentence: Ann sings.", GLUE["sst2"]) == "Ann sings."
    assert answers_of("sst2").read("Ann sings.") == "Ann sings."


def test_classes_are_in_the_order_of_the_hubs_numbers() -> None:
    answers = answers_of("mnli-mm")
    assert [answers.value(Pair("", label)) for label in ("entailment", "contradiction")] == [0, 2]
    assert answers.settings["id2label"] == {0: "entailment", 1: "neutral", 2: "contradiction"}
    assert answers.settings["problem_type"] == "single_label_classification"


def test_a_similarity_is_the_number_of_the_data_and_not_the_fifth_that_is_written() -> None:
    answers = answers_of("stsb")
    assert answers.value(Pair("", "1.4", ("1.333",))) == 1.333
    assert answers.settings["problem_type"] == "regression"
    assert answers.tensor([1.25]).tolist() == [1.25]


@pytest.mark.parametrize(
    ("name", "said"), [("samsum", "the answers of samsum are texts"), (None, "name the --task")]
)
def test_tasks_whose_answers_are_texts_have_no_head(name: str | None, said: str) -> None:
    with pytest.raises(UserError, match=f"--answer head: {said}.*tasks with labels are cola, sst2"):
        answers_of(name)


def test_a_label_that_the_task_has_not_is_refused() -> None:
    with pytest.raises(
        UserError, match="unknown label 'perhaps'; the labels of the task are entailment, not_entailment"
    ):
        answers_of("rte").value(Pair("", "perhaps"))
