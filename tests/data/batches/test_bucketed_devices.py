"""A copy to a GPU goes through pinned memory and does not make the host wait."""

from typing import Any

import pytest
import torch
from torch import Tensor

from precis.data.batches.length_buckets import Batch, on_device
from precis.data.batches.pretraining_batches import PreTrainingBatch


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is done to tensors on their way to a GPU that is not there."""
    done: list[tuple[Any, ...]] = []

    def pin_memory(self: Tensor) -> Tensor:
        done.append(("pin", tuple(self.shape)))
        return self

    def to(self: Tensor, device: Any, *, non_blocking: bool = False) -> Tensor:
        done.append(("to", str(device), non_blocking))
        return self

    monkeypatch.setattr(Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(Tensor, "to", to)
    return done


def test_a_tensor_is_pinned_and_then_copied_without_waiting(copies: list[tuple[Any, ...]]) -> None:
    on_device(torch.zeros(2, 3), torch.device("cuda", 1))

    assert copies == [("pin", (2, 3)), ("to", "cuda:1", True)]


def test_elsewhere_nothing_is_pinned_and_a_copy_is_complete(copies: list[tuple[Any, ...]]) -> None:
    """A copy to the host that nobody waits for is read before it is there."""
    on_device(torch.zeros(2), "cpu")
    on_device(torch.zeros(2, device="meta"), torch.device("cuda"))

    assert copies == [("to", "cpu", False), ("to", "cuda", False)]


def test_every_tensor_of_a_batch_goes_this_way(copies: list[tuple[Any, ...]]) -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    Batch(ids, ids, ids, source_segments=ids).to("cuda")
    assert len(copies) == 2 * 4
    copies.clear()

    names = ("original_ids", "masked_ids", "places", "input_ids", "decoder_input_ids", "span_labels")
    PreTrainingBatch(**dict.fromkeys(names, ids), draws=ids.double(), attention_mask=None).to("cuda")  # type: ignore[arg-type]
    assert copies == [("pin", (2, 3)), ("to", "cuda", True)] * 7


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_batch_arrives_whole_on_a_gpu() -> None:
    ids = torch.arange(600_000).view(2, -1)
    moved = [Batch(ids + n, ids, ids).to("cuda") for n in range(8)]  # pinned blocks are handed out again

    for n, batch in enumerate(moved):
        assert torch.equal(batch.input_ids.cpu(), ids + n)
