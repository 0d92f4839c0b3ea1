"""Units of a text and the segments of its tokens."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import BertTokenizerLegacy, PreTrainedTokenizerBase

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import (
    Paragraphs,
    Sentences,
    Turns,
    UnitSegmenter,
    document_units,
    segments_of_units,
    token_units,
)
from precis_text.control_characters import unit_starts
from precis_text.errors import UserError
from tests.tiny_models import our_tokenizer

TEXT = "The mill closed. Dr. Ames left on Monday!  Nobody knew why.\n\nA year later it reopened."
CHAT = "Mia: are you in?\nTom: yes\nand the dog too\nMia: good: see you"


def pieces(text: str, starts: Sequence[int]) -> list[str]:
    ends = [*starts[1:], len(text)][: len(starts)]
    return [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]


def test_sentences_begin_where_the_splitter_says() -> None:
    assert pieces(TEXT, Sentences().starts(TEXT)) == [
        "The mill closed.",
        "Dr. Ames left on Monday!",
        "Nobody knew why.",
        "A year later it reopened.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, ["The mill closed. Dr. Ames left on Monday!  Nobody knew why.", "A year later it reopened."]),
        ("one\ntwo\n three", ["one", "two", "three"]),
        ("one\nstill one\n \n\ntwo", ["one\nstill one", "two"]),
        ("  one  \n\n", ["one"]),
        ("\n\none\n\ntwo", ["one", "two"]),
        ("", []),
    ],
)
def test_paragraphs_are_between_blank_lines_or_else_lines(text: str, expected: list[str]) -> None:
    assert pieces(text, Paragraphs().starts(text)) == expected


def test_a_turn_goes_on_until_the_next_speaker() -> None:
    assert pieces(CHAT, Turns().starts(CHAT)) == [
        "Mia: are you in?",
        "Tom: yes\nand the dog too",
        "Mia: good: see you",
    ]
    assert pieces("[10:30] call\n" + CHAT, Turns().starts("[10:30] call\n" + CHAT))[0] == "[10:30] call"
    assert Turns().starts("No turns here.\nAt all") == (0,)


def test_given_units_may_be_tokenized_and_leave_out_speakers() -> None:
    text = "Ann: I (really) don't know. Bo: Me neither, though."
    units = ["I ( really ) do n't know .", "Me neither ,", "though ."]
    assert pieces(text, unit_starts(text, units)) == [
        "Ann: I (really) don't know.",
        "Bo: Me neither,",
        "though.",
    ]


@pytest.mark.parametrize(
    ("units", "words"),
    [
        (["The mill", "opened ."], r"unit 2 of 2 is 'opened \.', but the text continues with 'closed\."),
        (["The mill closed."], "the 1 units end before the text: no unit contains"),
    ],
)
def test_units_that_are_not_the_texts_are_refused(units: list[str], words: str) -> None:
    text = (
        "The mill closed. "
        + "It was a long winter for all who had worked there, and a cold one too, by any measure."
    )
    with pytest.raises(UserError, match=words):
        unit_starts(text, units)


def token_segments(
    text: str, tokenizer: PreTrainedTokenizerBase, *, starts: Sequence[int], segments: int
) -> list[int]:
    units = max(1, len(starts))
    return [unit * segments // units for unit in token_units(text, tokenizer, starts=starts)]


@pytest.mark.parametrize("kind", [Sentences(), Paragraphs()])
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_each_token_has_the_segment_of_the_unit_it_stands_in(
    kind: Sentences | Paragraphs, segments: int
) -> None:
    tokenizer = our_tokenizer()
    starts = kind.starts(TEXT)
    found = token_segments(TEXT, tokenizer, starts=starts, segments=segments)
    read = tokenizer(TEXT, return_offsets_mapping=True)
    assert len(found) == len(read["input_ids"])
    units = len(starts)
    for segment, (begin, end) in zip(found, read["offset_mapping"], strict=True):
        if TEXT[begin:end].strip():
            place = begin + len(TEXT[begin:end]) - len(TEXT[begin:end].lstrip())
            unit = max(k for k in range(units) if starts[k] <= place)
            assert segment == unit * segments // units
    assert found == sorted(found)
    assert max(found) == (units - 1) * segments // units


def test_the_space_before_a_word_does_not_pull_its_token_into_the_unit_before() -> None:
    tokenizer = our_tokenizer()
    text = "It rained. It stopped."
    found = token_segments(text, tokenizer, starts=(0, 11), segments=2)
    read = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    first = next(k for k, (begin, end) in enumerate(read) if begin <= 11 < end)
    assert found[first] == 1
    assert found[first - 1] == 0


def test_control_tokens_belong_to_their_neighbours() -> None:
    tokenizer = our_tokenizer()
    found = token_segments("One. Two.", tokenizer, starts=(0, 5), segments=2)
    specials = tokenizer("One. Two.", return_special_tokens_mask=True)["special_tokens_mask"]
    assert specials[0] == specials[-1] == 1
    assert found[0] == 0
    assert found[-1] == 1


def test_fewer_units_than_segments_leave_segments_empty() -> None:
    found = token_segments("One. Two.", our_tokenizer(), starts=(0, 5), segments=3)
    assert set(found) == {0, 1}
    assert set(token_segments("One.", our_tokenizer(), starts=(), segments=3)) == {0}


def test_a_tokenizer_without_offsets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\n")
    slow = BertTokenizerLegacy(str(tmp_path / "vocab.txt"))
    with pytest.raises(UserError, match="BertTokenizerLegacy gives no character offsets"):
        token_segments("one", slow, starts=(0,), segments=1)


def test_an_instruction_belongs_to_the_first_unit() -> None:
    tokenizer, text = our_tokenizer(), "It rained. It stopped."
    plain = document_units(text, tokenizer, Sentences())
    found = document_units(text, tokenizer, Sentences(), instruction="Summarize this.")
    assert len(found) == len(tokenizer(f"Summarize this. {text}")["input_ids"])
    assert found[-len(plain) + 1 :] == plain[1:]
    assert set(found[: -len(plain) + 1]) == {0}


def test_a_document_of_two_parts_has_no_units() -> None:
    with pytest.raises(UserError, match="use equal parts"):
        document_units("answer\x1fpassage", our_tokenizer(), Sentences())


@pytest.mark.parametrize(
    ("units", "segments", "expected"),
    [
        ([0, 0, 1, 2, 3, 3], 2, [0, 0, 0, 1, 1, 1]),
        ([4, 5, 5, 6], 3, [0, 1, 1, 2]),  # a piece from the middle of a document
        ([7, 7], 3, [0, 0]),
        ([], 2, []),
    ],
)
def test_the_units_that_are_there_share_the_segments(
    units: list[int], segments: int, expected: list[int]
) -> None:
    assert segments_of_units(units, segments) == expected


def test_segments_are_cut_where_the_tokens_are() -> None:
    """What is left shares the segments, and the end mark goes with the last of it."""
    tokenizer, text = our_tokenizer(), "It rained. It stopped. It rained again. It stopped again."
    whole = document_units(text, tokenizer, Sentences())
    limit = whole.index(2) + 1  # [CLS], two sentences, [SEP]
    pairs = TokenizedPairs.from_pairs(
        [Pair(document=text, summary="Rain.")],
        tokenizer,
        max_source=limit,
        max_target=9,
        decoder_start_token_id=tokenizer.bos_token_id,
        segmenter=UnitSegmenter(Sentences(), 2, tokenizer),
    )
    assert pairs.truncated_sources == 1
    assert pairs.sources[0][-1] == tokenizer.eos_token_id
    assert pairs.segments is not None
    assert pairs.segments[0].tolist() == [*whole[: limit - 1], 1]
