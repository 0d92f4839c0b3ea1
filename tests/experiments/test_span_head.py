"""The span head: where answers are found, what the head may choose, and that it learns."""

from pathlib import Path

import pytest
import torch

from precis.data.pairs.pair import Pair
from precis.data.text.encoding import encode_documents
from precis.training import Lowest, TrainSettings
from precis_experiments.span_head import (
    LONGEST_ANSWER,
    Question,
    SpanReader,
    _answer,
    answers,
    read_question,
    train_reader,
)
from precis_text.control_characters import join_parts
from tests.tiny_models import our_tokenizer, tiny

TOWNS = ("Arlen", "Bruk", "Corvo", "Delm", "Eastry", "Farrow")
PASSAGE = "Ann sang in {town}. Bob heard the song."


def asked(town: str) -> Pair:
    return Pair(join_parts("Where did Ann sing?", PASSAGE.format(town=town)), town)


def test_a_question_is_read_as_documents_of_two_parts_are_and_its_answer_is_found() -> None:
    tokenizer = our_tokenizer()
    for town in TOWNS:
        pair = asked(town)
        question = read_question(pair, tokenizer, most=512)
        assert question.ids == encode_documents([pair.document], tokenizer)[0]
        first, last = question.span
        begin, end = question.places[first][0], question.places[last][1]
        assert question.passage[begin:end].strip() == town


def test_answers_that_the_passage_lacks_or_that_are_cut_off_have_no_span() -> None:
    tokenizer, pair = our_tokenizer(), asked("Arlen")
    whole = read_question(pair, tokenizer, most=512)
    assert read_question(pair, tokenizer, most=whole.span[1]).span == (-100, -100)
    assert read_question(Pair(pair.document, "Paris"), tokenizer, most=512).span == (-100, -100)


def test_the_best_span_starts_before_it_ends_inside_the_passage_and_is_short() -> None:
    passage = "abcdefghijklmnopqrstuvwxyz" * 2
    places = [(0, 0), *((n, n + 1) for n in range(50))]
    question = Question(list(range(51)), passage, places, (1, 1))
    scores = torch.full((2, 51), -9.0)
    scores[0, 5], scores[1, 3] = 0.0, 0.0  # the end before the start
    scores[0, 0], scores[1, 0] = 5.0, 5.0  # the question
    scores[0, 2], scores[1, 7] = -1.0, -1.0
    assert _answer(question, scores) == passage[1:7]
    far = torch.full((2, 51), -9.0)
    far[0, 1], far[1, 1 + LONGEST_ANSWER] = 0.0, 0.0
    assert len(_answer(question, far)) <= LONGEST_ANSWER


def test_it_learns_to_point_at_the_town(tmp_path: Path) -> None:
    model, tokenizer = tiny("zcodepp")[0], our_tokenizer()
    pad = tokenizer.pad_token_id
    questions = [read_question(asked(town), tokenizer, most=64) for town in TOWNS]
    settings = TrainSettings(
        steps=60, learning_rate=3e-3, warmup_steps=1, weight_decay=0.0, select=Lowest(), precision="fp32"
    )
    width = model.config.hidden_size
    before = SpanReader(model.get_encoder(), width)
    untrained = answers(before, questions, pad=pad)
    reader, result = train_reader(
        model.get_encoder(), width, questions, pad=pad, settings=settings, folder=tmp_path, identity={}
    )
    assert result.step == 60
    trained = [text.strip() for text in answers(reader, questions, pad=pad)]
    assert sum(map(str.__eq__, trained, TOWNS)) >= 5
    assert sum(text.strip() == town for text, town in zip(untrained, TOWNS, strict=True)) < 3


@pytest.mark.parametrize("rows", [1, 3])
def test_padding_changes_no_answer(rows: int) -> None:
    model, tokenizer = tiny("zcodepp")[0], our_tokenizer()
    torch.manual_seed(0)
    reader, pad = SpanReader(model.get_encoder(), model.config.hidden_size), tokenizer.pad_token_id
    longer = Pair(
        join_parts("Where?", f"{PASSAGE.format(town='Hove')} It rained all day in the town."), "Hove"
    )
    questions = [read_question(pair, tokenizer, most=512) for pair in (asked("Arlen"), longer, asked("Bruk"))]
    together = answers(reader, questions, pad=pad)
    assert answers(reader, questions[:rows], pad=pad) == together[:rows]
