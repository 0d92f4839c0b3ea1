"""How a step is captured, with a device that only takes notes; on a real one: `test_static_graph_gpu.py`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
import torch

from precis.generation.fast.static_shapes import Replayed

DEVICE = torch.device("cuda", 0)


class Device:
    """Streams, graphs and what was done on which; stands in for `torch.cuda`."""

    def __init__(self) -> None:
        self.present = "default"
        self.notes: list[str] = []
        self.pools = 0

    def step(self) -> None:
        self.notes.append(f"step on {self.present}")

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in = self

        class Stream:
            def __init__(self, name: str = "side") -> None:
                self.name = name

            def wait_stream(self, other: "Stream") -> None:
                stand_in.notes.append(f"{self.name} waits for {other.name}")

        class Graph:
            def replay(self) -> None:
                stand_in.notes.append("replay")

        @contextmanager
        def stream(of: Stream) -> Iterator[None]:
            before, stand_in.present = stand_in.present, of.name
            yield
            stand_in.present = before

        @contextmanager
        def graph(graph: Graph, *, pool: int, stream: Stream, capture_error_mode: str) -> Iterator[None]:
            stand_in.present = stream.name
            stand_in.notes.append(f"capture into pool {pool}, {capture_error_mode}")
            yield  # as torch's own, it does not come back to the stream before if the step fails
            stand_in.notes.append("captured")
            stand_in.present = "default"

        def device(of: torch.device) -> AbstractContextManager[None]:
            assert of == DEVICE
            return nullcontext()

        def new_pool() -> int:
            self.pools += 1
            return self.pools

        def set_stream(of: Stream) -> None:
            self.present = of.name

        parts = {
            "Stream": Stream,
            "CUDAGraph": Graph,
            "stream": stream,
            "graph": graph,
            "device": device,
            "graph_pool_handle": new_pool,
            "set_stream": set_stream,
            "current_stream": lambda: Stream(self.present),
        }
        for name, part in parts.items():
            monkeypatch.setattr(torch.cuda, name, part)


def test_a_step_is_warmed_up_beside_captured_once_and_then_only_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device()
    device.install(monkeypatch)
    replayed = Replayed()
    replay = replayed(device.step, DEVICE)
    expected = [
        "side waits for default",
        "step on side",
        "step on side",
        "default waits for side",
        "capture into pool 1, thread_local",
        "step on side",
        "captured",
    ]
    assert device.notes == expected
    replay()
    replay()
    assert device.notes == [*expected, "replay", "replay"]
    replayed(device.step, DEVICE)
    assert "capture into pool 1, thread_local" in device.notes[len(expected) + 2 :]
    assert device.present == "default"


def test_a_capture_that_fails_leaves_the_stream_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    device.install(monkeypatch)

    def step() -> None:
        device.step()
        if "capture into pool 1, thread_local" in device.notes:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted"):
        Replayed()(step, DEVICE)
    assert device.present == "default"


def test_graphs_are_for_cuda_alone() -> None:
    assert Replayed().takes(DEVICE)
    assert not Replayed().takes(torch.device("cpu"))
