"""Pairs are tokenized on all cores, to the same ids in the same order."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase

from precis.data.batches import token_arrays
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.synthetic.corpus import make_pairs
from precis.data.text import encoding
from precis.data.text.encoding import all_cores, one_thread
from precis.data.text.unigram_tokenizer import train_tokenizer
from precis_text.control_characters import join_parts
from precis_text.errors import UserError

VARIABLE = "TOKENIZERS_PARALLELISM"


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    made = list(make_pairs(60, seed=1))
    made[7] = Pair(document=join_parts("what", made[7].document), summary=made[7].summary)
    made[11] = Pair(document=" ", summary="nothing to read")
    return made


@pytest.fixture(scope="module")
def words(pairs: list[Pair]) -> PreTrainedTokenizerBase:
    return train_tokenizer([pair.document for pair in pairs], vocab_size=400)


def ids_of(
    pairs: Any, words: PreTrainedTokenizerBase, **options: Any
) -> tuple[list[tuple[list[int], list[int]]], list[int], tuple[int, int]]:
    skipped: list[int] = []
    limits = {"max_source": 60, "max_target": 12, "decoder_start_token_id": 1}
    data = TokenizedPairs.from_pairs(
        pairs, words, **{**limits, "skip": lambda index, _: skipped.append(index), **options}
    )
    rows = [(data.sources[i].tolist(), data.targets[i].tolist()) for i in range(len(data))]
    return rows, skipped, (data.truncated_sources, data.truncated_targets)


@pytest.mark.parametrize("instruction", ["", "Shorten this:"])
@pytest.mark.parametrize(("together", "characters"), [(1, 10**9), (7, 10**9), (60, 10**9), (1000, 900)])
def test_how_many_pairs_are_tokenized_together_leaves_no_mark(
    pairs: list[Pair],
    words: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    characters: int,
    instruction: str,
) -> None:
    expected = ids_of(pairs, words, instruction=instruction)
    monkeypatch.setattr(encoding, "_TOGETHER", together)
    monkeypatch.setattr(token_arrays, "_CHARACTERS", characters)

    assert ids_of(iter(pairs), words, instruction=instruction) == expected
    assert expected[1] == [11]


def test_the_next_pairs_are_encoded_while_python_is_busy_and_no_more_than_these(
    pairs: list[Pair], words: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_TOGETHER", 10)
    read, threads = [0], set()
    encode = token_arrays._encode

    def watched(chunk: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name)
        return encode(chunk, **options)

    def counted() -> Iterator[Pair]:
        for pair in pairs:
            read[0] += 1
            yield pair

    ahead: list[int] = []
    monkeypatch.setattr(token_arrays, "_encode", watched)
    ids_of(counted(), words, skip=lambda index, _: ahead.append(read[0] - index))

    assert all(name.startswith("tokenizer") for name in threads)
    assert ahead == [30 - 11]  # its own ten, and the ten behind them


def test_with_a_segmenter_the_tokenizer_is_asked_by_one_thread_at_a_time(
    pairs: list[Pair], words: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_TOGETHER", 10)
    busy = threading.Lock()
    encode = token_arrays._encode

    def watched(chunk: Any, **options: Any) -> Any:
        with busy:
            return encode(chunk, **options)

    class Words:
        def units(self, document: str) -> list[int]:
            assert busy.acquire(blocking=False), "two threads at once"
            count = len(words(document)["input_ids"])
            busy.release()
            return [0] * count

        def segments(self, units: Any) -> list[int]:
            return [*units]

    monkeypatch.setattr(token_arrays, "_encode", watched)
    plain = [pair for index, pair in enumerate(pairs) if index not in (7, 11)]
    assert ids_of(plain, words, segmenter=Words()) == ids_of(plain, words)


def test_an_error_in_a_pair_leaves_the_environment_as_it_was(
    pairs: list[Pair], words: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UserError, match="pair 12: the document gives no tokens"):
        ids_of(pairs, words, skip=None)

    assert VARIABLE not in os.environ
    assert not [t for t in threading.enumerate() if t.name.startswith("tokenizer")]


@pytest.mark.parametrize(("given", "expected"), [(None, "true"), ("false", "false"), ("true", "true")])
def test_all_cores_are_taken_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    if given is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, given)

    with all_cores():
        assert os.environ[VARIABLE] == expected
        with one_thread():
            assert os.environ[VARIABLE] == "false"
        assert os.environ[VARIABLE] == expected

    assert os.environ.get(VARIABLE) == given


_COUNT = """
import os, sys
from pathlib import Path
from precis.data.pairs.pair import Pair
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.text.unigram_tokenizer import load_tokenizer

count = lambda: len(os.listdir("/proc/self/task"))
before = count()  # a tokenizer is tried when it is loaded
words = load_tokenizer(Path(sys.argv[1]))
pairs = [Pair(document="a text of some words " * 50, summary="words")] * 200
TokenizedPairs.from_pairs(pairs, words, max_source=99, max_target=9, decoder_start_token_id=1)
print(count() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
@pytest.mark.parametrize(("said", "threads"), [(None, range(8, 10)), ("false", range(2))])
def test_the_library_works_with_as_many_threads_as_it_may(
    words: PreTrainedTokenizerBase, tmp_path: Path, said: str | None, threads: range
) -> None:
    """One more may be counted: the thread of ours that hands chunks on, which ends in its own time."""
    words.save_pretrained(tmp_path)
    variables = {name: value for name, value in os.environ.items() if name != VARIABLE}
    variables |= {"RAYON_NUM_THREADS": "8"} | ({} if said is None else {VARIABLE: said})

    told = subprocess.run(
        [sys.executable, "-c", _COUNT, str(tmp_path)],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(told.stdout.split()[-1]) in threads
