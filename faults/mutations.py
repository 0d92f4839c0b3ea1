"""20,000 mutated input files, each read as a command would: rows, named problems, or one line. Nothing else may happen.

    python -m faults.mutations [--quick] [--files N] [--seed S]

Whole files of every kind (pairs, texts, predictions, records, seals) are cut and flipped, or filled with brackets,
surrogates, NUL bytes, long numbers and doubled parts. The functions behind the commands then read them. A reader may
give values, a `UserError` of one line, or an error that its callers turn into one (a damaged seal).
"""

import argparse
import gzip
import io
import json
import lzma
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.report import Tally, header, verdict
from precis.data.packs.text_sources import read_texts, text_files
from precis.data.pairs.pair_reader import ReadReport, read_pairs
from precis.phases.data.pair_checks import check_data
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.measure.evaluation_inputs import given_predictions
from precis.phases.run_folder import recorded_vocab_size
from precis.storage.seal import DamagedError, check_seal, write_folder
from precis.training.callbacks import read_metrics
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

FILES, QUICK_FILES = 20_000, 1_000
_SLOW = 10.0  # seconds

ROWS: list[dict[str, Any]] = [
    {
        "id": f"r{number}",
        "document": f'Ada: The {number}th ferry is late.\nBruno: I see, "again"; žluťoučký 港 🙂.',
        "summary": f"Ferry {number} is late.",
        "summaries": ["One.", "Two."] if number % 3 else None,
        "score": number / 7,
    }
    for number in range(12)
]
Content = bytes | dict[str, bytes]  # of a file, or of the files of a folder


def _jsonl() -> bytes:
    return b"".join(
        json.dumps(row, ensure_ascii=number % 2 == 0).encode() + b"\n" for number, row in enumerate(ROWS)
    )


def _separated(separator: str) -> bytes:
    import csv

    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(ROWS[0])
    writer.writerows(
        [json.dumps(value) if isinstance(value, list) else value for value in row.values()] for row in ROWS
    )
    return text.getvalue().encode()


def _parquet(compression: str) -> bytes:
    import datetime

    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = [
        {**row, "day": datetime.date(2001, 2, 3), "when": datetime.datetime(2001, 2, 3, 4)} for row in ROWS
    ]
    stream = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(rows), stream, compression=compression, row_group_size=5)
    return stream.getvalue()


def _questions() -> bytes:
    asked = [{"id": "q1", "question": "Who is late?", "answers": [{"text": "The ferry", "answer_start": 5}]}]
    paragraphs = [{"context": "The ferry is late.", "qas": asked}]
    return json.dumps({"data": [{"title": "Ferries", "paragraphs": paragraphs}]}).encode() + b"\n"


def _predictions() -> bytes:
    from precis.evaluation.predictions import PredictionWriter

    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "p.jsonl")
        with PredictionWriter(path, _pairs(), made_by={"model": "m", "beams": 4}) as writer:
            for pair in _pairs():
                writer.append(pair.summary, document_tokens=9, tokens_read=9)
        return path.read_bytes()


def _pairs() -> list[Any]:
    from precis.data.pairs.pair import Columns, pair_of
    from precis_text.row import Row

    return [pair_of(Row("", row), Columns(), need_summary=True) for row in ROWS]


def _sealed() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "sealed")
        write_folder(folder, lambda new: (new / "a.bin").write_bytes(b"abc"))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def _read_pairs(path: Path) -> None:
    for skip_bad in (False, True):
        try:
            for pair in read_pairs(path, skip_bad=skip_bad, report=ReadReport()):
                json.dumps([pair.id, pair.document, *pair.all_references], ensure_ascii=False).encode()
        except UserError as error:
            if skip_bad:
                raise
            _one_line(error)


def _check(path: Path) -> None:
    check_data(NamedPairs(data=str(path)).part())


def _read_questions(path: Path) -> None:
    list(read_pairs(f"squad-qg:{path}", skip_bad=True))


def _read_texts(path: Path) -> None:
    list(read_texts(text_files([path]), column="document", skip_bad=True))


def _read_predictions(path: Path) -> None:
    for text in given_predictions(path, _pairs()):
        text.encode()


def _read_record(path: Path) -> None:
    recorded_vocab_size(path.parent)
    read_json(path)


def _read_seal(folder: Path) -> None:
    try:
        check_seal(folder, thorough=True)
    except DamagedError as error:
        _one_line(error)


def _read_metrics(path: Path) -> None:
    try:
        read_metrics(path)
    except ValueError as error:  # as its callers expect
        _one_line(error)


def _one_line(error: Exception) -> None:
    line = str(error)
    if not line or "\n" in line or len(line) > 2_000:
        raise AssertionError(f"not one line of a few words: {line[:200]!r}")


def _kinds() -> dict[str, tuple[Content, tuple[Callable[[Path], None], ...]]]:
    """Map the name of each file or folder to its content and its readers."""
    rows, pairs = _jsonl(), (_read_pairs, _check, _read_texts)
    texts = {"a.txt": b"Ein Text.\nZwei.", "a.summary.txt": b"One.", "b.txt": b"Two.", "b.summary.txt": b"2."}
    record = {"run": {"model": {"vocab_size": 8000}, "lr": 1e-4}, "versions": {"torch": "2"}}
    return {
        "a.jsonl": (rows, pairs),
        "a.json": (rows, pairs),
        "a.csv": (_separated(","), pairs),
        "semicolons.csv": (_separated(";"), pairs),
        "a.tsv": (_separated("\t"), pairs),
        "a.parquet": (_parquet("snappy"), pairs),
        "zstd.parquet": (_parquet("zstd"), pairs),
        "a.jsonl.gz": (gzip.compress(rows), pairs),
        "a.csv.gz": (gzip.compress(_separated(",")), pairs),
        "a.jsonl.xz": (lzma.compress(rows), pairs),
        "a.txt": (b"Some text.\nMore of it \xc3\xa9.\n" * 9, (_read_texts,)),
        "texts": (texts, (_read_pairs, _check, _read_texts)),
        "splits": (
            {"train.jsonl": rows, "dev.csv": _separated(","), "test.tsv": _separated("\t")},
            (_check,),
        ),
        "questions.json": (_questions(), (_read_questions,)),
        "predictions.jsonl": (_predictions(), (_read_predictions,)),
        "predictions.txt": ("\n".join(row["summary"] for row in ROWS).encode(), (_read_predictions,)),
        "precis.json": (json.dumps(record, indent=2).encode(), (_read_record,)),
        "metrics.jsonl": (b'{"step": 1, "loss": 2.5}\n' * 5, (_read_metrics,)),
        "sealed": (_sealed(), (_read_seal,)),
    }


_PIECES = (
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"[" * 60,
    b"]",
    b"{",
    b"}",
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 5_000,
    b"null",
    b"true",
    b"\\ud800",
    b"\\udfff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xe9",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\xff" * 8,
    b"\0" * 64,
    b"PAR1",
    b"\x1f\x8b",
    b"nan",
    b"../x",
    b"document",
    b"summary",
    b'"document":1,',
    b'"document":"b",',
    b'"id":["x"],',
    b'"id":"\\ud800",',
    b'"summaries":5,',
    b'"summaries":[[]],',
    b'"summaries":"' + b"[" * 2_000 + b'",',
    b"-1",
    b"0",
    b"99999999999999999999",
)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Make one to four changes, each at a random place."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, end = sorted((rng.randint(0, len(found)), rng.randint(0, len(found))))
        kind = rng.randrange(8)
        if kind == 0 and found:
            found[min(place, len(found) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found = found[:place]
        elif kind == 2:
            del found[place : min(end, place + rng.choice((1, 4, 40, 4_000)))]
        elif kind == 3:
            found[place:place] = found[place:end][:2_000]
        elif kind == 4 and found:
            found[min(place, len(found) - 1)] = rng.randrange(256)
        elif kind == 5:
            found[place:end] = bytes(rng.randrange(256) for _ in range(min(end - place, 40)))
        else:
            found[place:place] = rng.choice(_PIECES)
    return bytes(found)


def _damaged(name: str, content: Content, rng: random.Random) -> Content:
    if isinstance(content, dict):
        chosen = rng.choice(sorted(content))
        return {**content, chosen: mutate(content[chosen], rng)}
    packer: Any = {".gz": gzip, ".xz": lzma}.get(Path(name).suffix)
    if packer is not None and rng.random() < 0.5:  # a whole archive of damaged text
        return packer.compress(mutate(packer.decompress(content), rng))
    return mutate(content, rng)


def _write(place: Path, content: Content) -> None:
    if isinstance(content, bytes):
        place.write_bytes(content)
        return
    place.mkdir()
    for name, inner in content.items():
        (place / name).write_bytes(inner)


def main() -> int:
    """Mutate files, read them, and count the outcomes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--files", type=int, help="how many; 20,000, or 1,000 with --quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="kinds whose names hold this")
    options = parser.parse_args()
    files = options.files or (QUICK_FILES if options.quick else FILES)
    header(f"{files:,} mutated input files", seed=options.seed)
    tally, outcomes = Tally(), Counter[str]()
    kinds = [(name, made) for name, made in sorted(_kinds().items()) if (options.only or "") in name]
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(files):
            name, (content, readers) = kinds[number % len(kinds)]
            rng = random.Random(f"{options.seed} {number}")
            place = Path(scratch, str(number), name)
            place.parent.mkdir()
            _write(place, _damaged(name, content, rng))
            reader = rng.choice(readers)
            outcome, error = _outcome(reader, place)
            outcomes[outcome] += 1
            tally.hold(not error, f"file {number}: {name} by {reader.__name__.strip('_')}: {error}")
            shutil.rmtree(place.parent)
    print(", ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.most_common()))
    return verdict("mutated files: values, named problems or one line", tally)


def _outcome(reader: Callable[[Path], None], place: Path) -> tuple[str, str]:
    """Read a file; return the outcome, and the error if it should not have happened."""
    started = time.perf_counter()
    try:
        reader(place)
        outcome, error = "read", ""
    except UserError as found:
        outcome, error = "one line", ""
        try:
            _one_line(found)
        except AssertionError as problem:
            outcome, error = "uncaught", str(problem)
    except Exception as found:
        outcome, error = "uncaught", f"{type(found).__name__}: {found}"[:300]
    seconds = time.perf_counter() - started
    return (outcome, error) if seconds < _SLOW else ("slow", f"{seconds:.0f} seconds")


if __name__ == "__main__":
    sys.exit(main())
