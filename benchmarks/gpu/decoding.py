"""Stage "decoding": our fast loop, our `generate` and BART's, 512 wide, 6 + 6 layers, in bf16 and fp32.

400 tokens in, exactly 64 out, no trigram twice, random weights: the models of `compare decode`, longer documents.
Weights and states are in the number format named; nothing is under autocast.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.compare.decode import exact_config, model_of
from benchmarks.gpu.machine import SEED
from benchmarks.gpu.race import Build, StageRun, race
from precis.generation.fast.fast_decoder import FastDecoder
from precis.generation.fast.packed_linear import AsGiven

FAST, GENERATE, BART = "precis, fast loop", "precis, generate", "BART, generate"
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
SIZES, TOY_SIZES = ((1, 1), (1, 5), (32, 5)), ((1, 1), (2, 2))  # documents, beams
_SOURCE, _TOKENS, _LAYERS = 400, 64, 6
_TOY_SOURCE, _TOY_TOKENS, _TOY_LAYERS = 12, 4, 1
_VOCABULARY = 32_000


def cell(dtype: str, batch: int, beams: int) -> str:
    """Return the name of a cell's rows."""
    return f"{dtype}, batch {batch}, {'greedy' if beams == 1 else f'beam {beams}'}"


def stage(run: StageRun) -> None:
    """Time every format and size; models live as long as their format's cells."""
    torch.set_float32_matmul_precision("highest")
    sizes = TOY_SIZES if run.dry else SIZES
    for number, dtype in enumerate(DTYPES):
        models = _Models(run, DTYPES[dtype])
        for place, (batch, beams) in enumerate(sizes):
            to_come = len(sizes) * (len(DTYPES) - number) - place
            race(
                cell(dtype, batch, beams),
                models.builds(batch, beams),
                run,
                seconds=max(0.0, run.left) / to_come / 2,
                about={"dtype": dtype, "batch": batch, "beams": beams, "new_tokens": models.tokens},
            )


class _Models:
    """Ours and BART in one number format, built when they are first asked for."""

    def __init__(self, run: StageRun, dtype: torch.dtype) -> None:
        self._device, self._dtype = run.device.kind, dtype
        self._source = _TOY_SOURCE if run.dry else _SOURCE
        self.tokens = _TOY_TOKENS if run.dry else _TOKENS
        self._layers = _TOY_LAYERS if run.dry else _LAYERS
        self._made: dict[str, Any] = {}
        self._loop: FastDecoder | None = None

    def builds(self, batch: int, beams: int) -> dict[str, Build]:
        draw = torch.Generator().manual_seed(SEED)
        ids = torch.randint(10, _VOCABULARY, (batch, self._source), generator=draw).to(self._device)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        config = exact_config(beams, tokens=self.tokens)

        def fast() -> Callable[[], object]:
            loop = self._fast()

            def one_pass() -> object:
                loop.check()  # as the `Summarizer` does
                return loop(inputs, config)

            return one_pass

        def by_generate(kind: str) -> Callable[[], object]:
            model = self._model(kind)
            return lambda: model.generate(**inputs, generation_config=config).tolist()

        return {FAST: fast, GENERATE: lambda: by_generate("zcodepp"), BART: lambda: by_generate("bart")}

    def _fast(self) -> FastDecoder:
        if self._loop is None:
            self._loop = FastDecoder(self._model("zcodepp"), AsGiven())
        return self._loop

    def _model(self, kind: Any) -> Any:
        if kind not in self._made:
            self._made[kind] = model_of(kind, self._layers).to(self._device, self._dtype)
        return self._made[kind]
