"""Tokens a second of making a pack, by number of processes, and of reading blocks from it.

    python benchmarks/packing.py [FILES ...] [--megabytes 20] [--workers 1 2 4] [--vocab-size 8000] [--seconds 3]

FILES as `precis data pack` takes them, read up to so many millions of characters; without any, synthetic documents.
They are in memory and the tokenizer is trained before the clock starts; finding duplicates and starting the processes
(some seconds each) are measured, so give enough text. Reading is of 32 rows of 512 tokens in training order, with three
random numbers a token, as corruption takes.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from precis.data.packs.mixture import PackedRows
from precis.data.packs.pack_writer import pack
from precis.data.packs.packed_text import PackedText
from precis.data.packs.text_sources import read_texts, sample_texts, text_files
from precis.data.synthetic.corpus import make_pairs
from precis.data.text.unigram_tokenizer import train_tokenizer

ROWS, LENGTH = 32, 512


def documents(files: list[str], *, characters: float) -> Iterator[str]:
    texts: Iterable[str] = read_texts(text_files(files), skip_bad=True) if files else synthetic()
    read = 0
    for text in texts:
        yield text
        read += len(text)
        if read >= characters:
            return


def synthetic() -> Iterator[str]:
    seed = 0
    while True:
        yield from (pair.document for pair in make_pairs(1000, seed=seed))
        seed += 1


def make(texts: list[str], words: Path, folder: Path, *, workers: list[int]) -> None:
    megabytes = sum(map(len, texts)) / 1e6
    print(f"making a pack of {len(texts):,} documents, {megabytes:.1f} million characters")
    print(f"{'workers':>7}{'seconds':>9}{'tokens/s':>12}{'MB/s':>7}{'times 1':>9}")
    first = None
    for number in workers:
        began = time.perf_counter()
        counts = pack(texts, words, folder / str(number), workers=number, dev_share=0.0)
        seconds = time.perf_counter() - began
        first = seconds if first is None else first
        speed = f"{counts.tokens / seconds:>12,.0f}{megabytes / seconds:>7.1f}{first / seconds:>9.2f}"
        print(f"{number:>7}{seconds:>9.1f}{speed}")
    digests = {PackedText.open(folder / str(number)).digest for number in workers}
    print("the packs are the same" if len(digests) == 1 else "THE PACKS DIFFER")


def read(corpus: PackedText, *, seconds: float) -> None:
    rows = PackedRows([(corpus.blocks(LENGTH), 1.0)], seed=1)
    times: list[float] = []
    while sum(times) < seconds:
        positions = np.arange(len(times) * ROWS, (len(times) + 1) * ROWS)
        began = time.perf_counter()
        rows.rows(positions)
        rows.uniforms(positions, 3 * LENGTH)
        times.append(time.perf_counter() - began)
    batch = statistics.median(times)
    print(f"reading blocks: {ROWS / batch:,.0f} rows/s, {ROWS * LENGTH / batch:,.0f} tokens/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="files, folders, patterns")
    parser.add_argument("--megabytes", type=float, default=20.0, help="millions of characters at most")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=3.0, help="of measuring how fast blocks are read")
    arguments = parser.parse_args()
    texts = list(documents(arguments.files, characters=arguments.megabytes * 1e6))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sample = sample_texts(texts, characters=5_000_000, longest=100_000)
        train_tokenizer(sample, vocab_size=arguments.vocab_size).save_pretrained(folder / "tokenizer")
        make(texts, folder / "tokenizer", folder, workers=arguments.workers)
        read(PackedText.open(folder / str(arguments.workers[0])), seconds=arguments.seconds)


if __name__ == "__main__":
    main()
