"""Do exported models write what torch writes, and how fast? Counts documents whose greedy tokens differ.

    python -m benchmarks.export.onnx --model MODEL [--documents FOLDER] [--count 200] [--threads 1]
        [--tokens N] [--int8] [--exported FOLDER]

MODEL is a folder, or `default`, which chooses sentences. Documents are the .txt files of a folder, else those of the
synthetic corpus, seed 0. Torch's tokens come from transformers' `generate`, one document at a time, in fp32. The
speed is that of `Summarizer`, also one document at a time, on the first 50 documents (an extractor: on all): torch and
onnxruntime take turns, so that what else the machine does slows both. Each has one document before to warm up.
"""

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import precis_onnx
from precis.data.synthetic.corpus import make_pairs
from precis.extract.extractor_opening import open_extractor
from precis.generation.generation_settings import end_marks, generation_config
from precis.generation.input_plan import DocumentEncoder, choose, reading
from precis.generation.model_location import default_model
from precis.generation.model_metadata import load_use
from precis.generation.summarizer import Summarizer
from precis.phases.use.onnx_export import export_onnx

_TIMED = 50


def texts(folder: Path | None, count: int) -> list[str]:
    """Read the documents of a folder, or make synthetic ones."""
    if folder is None:
        return [pair.document for pair in make_pairs(count, seed=0)]
    files = sorted(folder.rglob("*.txt"))[:count]
    return [text for file in files if (text := file.read_text(encoding="utf-8", errors="replace")).strip()]


@torch.no_grad()
def torch_tokens(summarizer: Summarizer, documents: Sequence[str]) -> list[tuple[int, ...]]:
    """Generate ids with `generate` by greedy search, up to the end mark."""
    model: Any = summarizer.model
    config = generation_config(summarizer.settings, model, summarizer.tokenizer)
    encode, marks = DocumentEncoder(summarizer.tokenizer, summarizer.instruction), end_marks(config)
    found = []
    for document in documents:
        ids = torch.tensor([encode(document).ids])
        how = choose(ids.shape[1], summarizer.max_source, long=None, fusion_limit=summarizer.fusion_limit)
        with reading(model, how):
            row = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)[
                0
            ].tolist()
        end = next((place for place, token in enumerate(row[1:], 1) if token in marks), len(row) - 1)
        found.append(tuple(row[: end + 1]))
    return found


class Clock:
    """Summarizes one document at a time, and adds up what each took: wall and processor seconds."""

    def __init__(self, summarize: Callable[[list[str]], list[Any]]) -> None:
        self._summarize = summarize
        self.documents, self.wall, self.processor = 0, 0.0, 0.0

    def __call__(self, document: str) -> Any:
        """Summarize a document and add its time to the totals."""
        wall, processor = time.perf_counter(), time.process_time()
        (made,) = self._summarize([document])
        self.documents += 1
        self.wall += time.perf_counter() - wall
        self.processor += time.process_time() - processor
        return made

    def __str__(self) -> str:
        each = 1000 * self.processor / self.documents
        return f"{self.documents / self.wall:.2f} documents a second, {each:.0f} ms of a processor each"


def main() -> int:
    """Print the counts, and return 1 if a document differs in fp32."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="default")
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, help="new tokens at most; default: as the model says")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--exported", type=Path, help="what `precis export onnx` wrote of the model before")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    source = default_model() if given.model == "default" else Path(given.model)
    documents = texts(given.documents, given.count)
    with tempfile.TemporaryDirectory() as place:
        folder = given.exported or Path(place) / "onnx"
        if given.exported is None:
            start = time.perf_counter()
            export_onnx(source, folder, int8=given.int8)
            print(f"export: {time.perf_counter() - start:.0f} s")
        size = sum(file.stat().st_size for file in folder.glob("*.onnx")) / 1e6
        weights = sum(file.stat().st_size for file in source.glob("*.safetensors")) / 1e6
        print(f"ONNX files {size:,.1f} MB, safetensors {weights:,.1f} MB")
        theirs: Any = precis_onnx.Summarizer.from_folder(folder, threads=given.threads)
        extracts = load_use(source).modes[0] == "extract"
        ours: Any = (open_extractor if extracts else Summarizer.from_pretrained)(source, device="cpu")
        if given.tokens is not None and not extracts:
            ours.settings = replace(ours.settings, max_tokens=given.tokens)
            theirs.settings = replace(theirs.settings, max_tokens=given.tokens)
        clocks = [
            Clock(lambda one, maker=maker: maker.summarize(one, short="write"))  # type: ignore[misc]
            for maker in (ours, theirs)
        ]
        for maker in (ours, theirs):
            maker.summarize([documents[0]], short="write")
        mine, found = [], []
        for number, document in enumerate(documents):
            if extracts or number < _TIMED:
                mine.append(clocks[0](document))
                found.append(clocks[1](document))
            else:
                found += theirs.summarize([document], short="write")
    if extracts:
        same = [a.places == b.places and a.text == b.text for a, b in zip(mine, found, strict=True)]
    else:
        whole = [document for document, one in zip(documents, found, strict=True) if not one.truncated]
        kept = [one for one in found if not one.truncated]
        same = [a == b.tokens for a, b in zip(torch_tokens(ours, whole), kept, strict=True)]
        written = sum(len(one.tokens) - 1 for one in kept)
        print(f"tokens written: {written:,}; cut documents left out: {len(found) - len(kept)}")
    what = "the same units and text" if extracts else "the same tokens"
    print(f"{sum(same)} of {len(same)} documents have {what} ({'int8' if given.int8 else 'fp32'})")
    for name, clock in zip(("torch", "onnxruntime"), clocks, strict=True):
        print(f"{name}: {clock}, {given.threads} thread(s)")
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, one run")
    return 0 if given.int8 or all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
