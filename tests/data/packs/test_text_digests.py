"""Claims about digests of documents: what counts as a duplicate, and that a sample is fair and small."""

import hashlib
import random
import unicodedata

import pytest

from precis.data.packs.text_sources import sample_texts, text_digest


@pytest.mark.parametrize(
    "text", ["", " \n", "word", " two  words\u3000", "cafe\u0301 \u0301x\u2000y\n" * 40, "a" * 99]
)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_a_long_text_is_digested_in_pieces_that_leave_no_mark(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.data.packs.text_sources._PIECE", size)
    whole = " ".join(unicodedata.normalize("NFC", text).split())
    assert text_digest(text) == hashlib.blake2b(whole.encode(), digest_size=16).digest()


def test_white_space_and_composed_letters_make_no_difference_and_words_do() -> None:
    assert text_digest(" caf\u00e9\n au  lait ") == text_digest("cafe\u0301 au lait")
    assert text_digest("a b") != text_digest("ab")
    assert text_digest("A") != text_digest("a")


TEXTS = [f"document {n} " + "word " * (n % 17) for n in range(3000)]


def test_a_sample_is_drawn_evenly_keeps_the_order_and_fits() -> None:
    sample = sample_texts(TEXTS, characters=15_000, longest=1000)
    assert 14_000 < sum(map(len, sample)) <= 15_000
    places = [TEXTS.index(text) for text in sample]
    assert places == sorted(places)
    thirds = [sum(low <= place < low + 1000 for place in places) for low in (0, 1000, 2000)]
    assert min(thirds) > len(sample) / 5


def test_a_sample_does_not_depend_on_the_order_of_the_documents() -> None:
    shuffled = random.Random(3).sample(TEXTS, len(TEXTS))
    first, second = (sample_texts(texts, characters=15_000, longest=1000) for texts in (TEXTS, shuffled))
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_small_corpus_is_its_own_sample_without_duplicates_and_cut() -> None:
    assert sample_texts(["one", "two", " one "], characters=100, longest=10) == ["one", "two"]
    assert sample_texts(["abcdef", "x"], characters=100, longest=4) == ["abcd", "x"]
    assert sample_texts(["longer than it all"], characters=4, longest=10) == ["longer tha"]
