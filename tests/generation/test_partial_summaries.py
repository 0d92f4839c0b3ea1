"""Sentences that are told while a summary is written are those that it begins with in the end."""

import pytest
import torch

from precis.generation import partial_summaries as streaming
from precis.generation.decoder_batches import Fast, Generate, _TokenReporter
from precis.generation.fast.fast_decoder import TOKENS_EVERY
from precis.generation.partial_summaries import PartialSummaries, sure_beginning
from precis.generation.summarizer import Summarizer
from precis_text.decoding_settings import GenerationSettings
from precis_text.forms.form import FormType
from precis_text.length import Length, Sentences, Words, trim
from precis_text.words import length_in_words
from tests.tiny_models import documents, tiny

TEXTS = [
    "Dr. Ames met J. Henders on Monday. He paid No. 5 of the U.S. The offer of 3.5 million was not taken. It rains.",
    "Wait... what? She left!\nNobody knew. A storm came (it was late). End of story.",
    "港は月曜日に閉鎖された。嵐が来た。二台のクレーンが壊れた。修理には一週間かかる。",
    "no end at all and no mark either",
]
LENGTHS = [
    Length(short="write"),
    Length(cap=Words(count=9), short="write"),
    Length(cap=Words(count=2), short="write"),
    Length(cap=Sentences(count=2), short="write"),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_nothing_that_follows_changes_what_is_sure(text: str, length: Length) -> None:
    whole = trim(text, length.cap, ended=True).text
    for stop in range(len(text)):
        sure = sure_beginning(text[:stop].strip(), length, more=99, most=0)
        assert whole.startswith(sure), (text[:stop], sure)


def test_a_sentence_is_sure_when_words_stand_behind_it() -> None:
    length = Length(short="write")
    assert sure_beginning("Ann sings. Bob", length, more=9, most=0) == ""
    assert sure_beginning("Ann sings. Bob listens to", length, more=9, most=0) == "Ann sings."
    assert (
        sure_beginning("Ann sings. It rains. Bob listens to", length, more=9, most=0)
        == "Ann sings. It rains."
    )


def test_nothing_is_sure_while_the_document_may_still_be_given_back() -> None:
    text = "Ann sings. Bob listens to"
    assert sure_beginning(text, Length(), more=9, most=10) == ""
    assert sure_beginning(text, Length(), more=9, most=11) == "Ann sings."
    assert sure_beginning(text, Length(cap=Words(count=9)), more=9, most=2) == "Ann sings."
    assert sure_beginning(text, Length(cap=Words(count=9)), more=9, most=1) == ""


def test_each_beginning_is_told_once() -> None:
    told = []
    notify = PartialSummaries([(7, "a b c", 50)], Length(short="write"), lambda *heard: told.append(heard))
    for text in ("Ann sings.", "Ann sings. Bob goes on", "Ann sings. Bob goes on and"):
        notify(0, text)
    assert told == [(7, "Ann sings.")]


@pytest.mark.parametrize(("kind", "loop"), [("zcodepp", Fast()), ("zcodepp", Generate()), ("t5", Generate())])
def test_a_greedy_search_tells_each_document_how_its_summary_begins(
    kind: str, loop: Fast | Generate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_fours(text: str) -> list[str]:  # a random model writes no full stops
        words = text.split()
        return [" ".join(words[start : start + 4]) for start in range(0, len(words), 4)]

    monkeypatch.setattr(streaming, "split_sentences", by_fours)
    model, tokenizer = tiny(kind)
    summarizer = Summarizer(model, tokenizer, loop=loop, max_source=60)
    heard: dict[int, list[str]] = {}
    made = summarizer.summarize(
        ["", *documents(3)],
        settings=GenerationSettings(beams=1, max_tokens=60, no_repeat_ngram=2),
        batch_size=2,
        short="write",
        long="truncate",
        skip_empty=True,
        on_partial=lambda place, text: heard.setdefault(place, []).append(text),
    )
    for place, summary in enumerate(made):
        told = heard.get(place, [])
        assert len(told) > 1 or length_in_words(summary.text) < 20
        assert sorted(told, key=len) == told
        assert all(summary.text.startswith(text) for text in told)
    assert len(heard) > 1


@pytest.mark.parametrize(("beams", "type_"), [(2, "paragraph"), (1, "key-points")])
def test_beams_and_forms_tell_nothing_because_what_is_written_may_change(beams: int, type_: FormType) -> None:
    heard = []
    Summarizer(*tiny("zcodepp")).summarize(
        documents(2),
        settings=GenerationSettings(beams=beams, max_tokens=40),
        type=type_,
        short="write",
        on_partial=lambda *said: heard.append(said),
    )
    assert heard == []


def test_the_tokens_of_all_rows_are_told_every_few_steps() -> None:
    told: list[tuple[int, int]] = []
    report = _TokenReporter(lambda row, tokens: told.append((row, len(tokens))))
    for length in range(1, 2 * TOKENS_EVERY + 2):
        scores = torch.zeros(2, 5)
        assert report(torch.ones(2, length, dtype=torch.long), scores) is scores
    assert told == [(row, times * TOKENS_EVERY) for times in (1, 2) for row in (0, 1)]
