"""The number of processes leaves no mark on the curve, whether each has the whole model or a piece of it."""

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from precis.nn import vocabulary_scores
from precis.nn.vocabulary_scores import VocabularyScores
from precis.objectives.losses import InTurn, Loss, smoothed_cross_entropy
from precis.training import JsonLines, TrainSettings, load_weights, processes
from precis.training.callbacks import read_metrics
from precis.training.optimizer import build_optimizer
from precis.training.processes import (
    Pieces,
    layers_of,
    main_process_first,
    shard,
    sharding_is_asked_for,
    wait_for_everyone,
    whole,
)
from precis.training.state_tensors import optimizer_tensors
from precis_text.errors import UserError
from tests.devices import ON_THE_CPU, keep_to_the_cpu
from tests.training import tiny

SETTINGS: dict[str, Any] = {"steps": 6, "gradient_accumulation": 2, "log_every": 1, "validate_every": 3}
#: What `accelerate launch` sets for FSDP2.
PIECES = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}


class Layered(tiny.TinyModel):
    """A tied table, a list of layers as transformers' models have them, and a way to train table and layers apart."""

    def __init__(self) -> None:
        super().__init__(dropout=0.0, width=6)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(2))
        self.hidden.requires_grad_(False)
        self.bias = nn.Parameter(torch.zeros(tiny.VOCABULARY))  # read by the head alone

    def forward(  # type: ignore[override]
        self, inputs: Tensor, *, only_table: bool = False, keep_table: bool = False, make_logits: bool = True
    ) -> Tensor | VocabularyScores:
        table = self.embedding.weight.detach() if keep_table else self.embedding.weight
        states = nn.functional.embedding(inputs, table)
        if not only_table:
            for layer in self.layers:
                states = states + layer(self.hidden(states))
            states = self.norm(states)
        if not make_logits:
            return VocabularyScores.of(states, table, self.bias)
        return nn.functional.linear(states, table, self.bias)


def _table_first(model: nn.Module, batch: tiny.Rows, _: Any) -> Loss:
    return smoothed_cross_entropy(model(batch.inputs, only_table=True), batch.labels)


def _layers_then(model: nn.Module, batch: tiny.Rows, _: Any) -> Loss:
    return smoothed_cross_entropy(model(batch.inputs, keep_table=True), batch.labels)


@contextmanager
def _five_rows_at_a_time() -> Iterator[None]:
    """The logits of a batch are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary_scores, "LOGITS_BYTES", 4 * tiny.VOCABULARY * 5)
        yield


def _in_pieces(model: nn.Module, batch: tiny.Rows, carried: Any = None, **options: Any) -> Loss:
    with _five_rows_at_a_time():
        scores = model(batch.inputs, make_logits=False, **options)
        assert scores.made is None
        return smoothed_cross_entropy(scores, batch.labels, smoothing=0.1)


OBJECTIVES: dict[str, Any] = {
    "at once": tiny.objective,
    "in turn": InTurn((_table_first, _layers_then)),
    "in turn, without logits": InTurn(
        (partial(_in_pieces, only_table=True), partial(_in_pieces, keep_table=True))
    ),
}


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs: a machine has perhaps one card, and curves are compared."""
    keep_to_the_cpu(monkeypatch)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _train(folder: Path, objective: str, batches: tiny.RowSource, **settings: Any) -> None:
    tiny.run(
        folder,
        model=Layered(),
        batches=batches,
        loss=OBJECTIVES[objective],
        validate=tiny.validation_loss,
        callbacks=[JsonLines()],
        **{**SETTINGS, **settings},
    )


def _worker(
    rank: int, port: int, folder: Path, objective: str, stop_at: int | None, variables: dict[str, str]
) -> None:
    os.environ |= {
        **variables,
        **ON_THE_CPU,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    torch.set_num_threads(1)

    class Source(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            if rank == 1 and step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().batch(step)

    _train(folder, objective, Source(rank=rank, world_size=2))
    torch.distributed.destroy_process_group()


def _two(folder: Path, objective: str, variables: dict[str, str], *, stop_at: int | None = None) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["precis.training", "torch._dynamo"])
    arguments = (_free_port(), folder, objective, stop_at, variables)
    workers = [context.Process(target=_worker, args=(rank, *arguments)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0


def _saved(folder: Path) -> set[str]:
    return {path.name for path in (folder / "checkpoints").glob("step-*")}


def _assert_same_curve(folder: Path, other: Path) -> None:
    one, two = (read_metrics(place / "metrics.jsonl") for place in (folder, other))
    assert [r["step"] for r in one] == [r["step"] for r in two]
    for alone, together in zip(one, two, strict=True):
        assert together["loss"] == pytest.approx(alone["loss"], abs=1e-5)
        assert together.get("tokens") == alone.get("tokens")
        assert together.get("gradient_norm", 0) == pytest.approx(alone.get("gradient_norm", 0), rel=1e-4)


#: The others take two seconds each: make test-slow.
USUAL = {("copies", "at once"), ("pieces", "in turn")}


@pytest.mark.long
@pytest.mark.parametrize(
    ("objective", "variables"),
    [
        pytest.param(
            objective,
            variables,
            id=f"{kind}-{objective}",
            marks=[] if (kind, objective) in USUAL else pytest.mark.slow,
        )
        for kind, variables in (("copies", {}), ("pieces", PIECES))
        for objective in OBJECTIVES
    ],
)
def test_two_processes_give_the_curve_of_one_and_a_signal_to_one_stops_both(
    tmp_path: Path, objective: str, variables: dict[str, str]
) -> None:
    _train(tmp_path / "one", objective, tiny.RowSource())

    _two(tmp_path / "two", objective, variables, stop_at=6)
    # The source's micro-batch 6 belongs to the fourth step.
    assert max(_saved(tmp_path / "two")) == "step-00000004"
    _two(tmp_path / "two", objective, variables)

    _assert_same_curve(tmp_path / "one", tmp_path / "two")


@pytest.mark.long
def test_what_was_saved_in_pieces_is_taken_up_by_one_process_and_the_other_way_round(tmp_path: Path) -> None:
    class StoppedAtThree(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            if step == 3:
                signal.raise_signal(signal.SIGTERM)
            return super().batch(step)

    _train(tmp_path / "one", "in turn", tiny.RowSource())

    _two(tmp_path / "joined", "in turn", PIECES, stop_at=3)
    assert _saved(tmp_path / "joined") == {"step-00000002"}
    _train(tmp_path / "joined", "in turn", tiny.RowSource())
    _assert_same_curve(tmp_path / "one", tmp_path / "joined")

    _train(tmp_path / "cut", "in turn", StoppedAtThree())
    assert _saved(tmp_path / "cut") == {"step-00000002"}
    _two(tmp_path / "cut", "in turn", PIECES)
    _assert_same_curve(tmp_path / "one", tmp_path / "cut")
    one, cut = Layered(), Layered()
    for model, folder in ((one, "one"), (cut, "cut")):
        load_weights(model, tmp_path / folder / "checkpoints" / "step-00000006")
    for name, value in one.named_parameters():
        torch.testing.assert_close(cut.get_parameter(name), value, atol=1e-5, rtol=0)


def test_processes_that_keep_to_the_cpu_of_a_machine_with_a_gpu_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Accelerate's own barrier asks the CPU's processes for a group of the GPU."""
    rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**rank, "MASTER_PORT": str(_free_port())}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch._C, "_get_accelerator", lambda: torch.device("cuda"))
    accelerator = Accelerator()
    try:
        wait_for_everyone(accelerator)
        with main_process_first(accelerator):
            pass
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"FSDP_VERSION": "1"}, "fsdp_version: 2"),
        ({"FSDP_OFFLOAD_PARAMS": "true"}, "fsdp_offload_params is on"),
        ({"FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}, "fsdp_cpu_ram_efficient_loading is on"),
        ({"FSDP_ACTIVATION_CHECKPOINTING": "true"}, "fsdp_activation_checkpointing is on"),
    ],
)
def test_a_way_of_sharding_that_the_loop_does_not_go_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    assert not sharding_is_asked_for()
    for name, value in PIECES.items():
        monkeypatch.setenv(name, value)
    assert sharding_is_asked_for()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        sharding_is_asked_for()


def test_a_parameter_that_is_not_sharded_gets_the_whole_value() -> None:
    value = torch.arange(4.0)
    assert torch.equal(processes._piece_of(value, like=torch.zeros(4)), value)


@pytest.fixture
def alone() -> Iterator[Any]:
    """The accelerator of a group of one process, without a port."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    yield SimpleNamespace(device=torch.device("cpu"), num_processes=1, is_main_process=True)
    torch.distributed.destroy_process_group()


def test_state_goes_from_the_whole_model_to_its_shards_and_back_in_the_main_process_alone(alone: Any) -> None:
    model, trained = Layered(), TrainSettings(steps=9)
    optimizer = build_optimizer(model, trained)

    def step(stepped: torch.optim.Optimizer) -> None:
        for group in stepped.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.full_like(parameter, 0.5)
        stepped.step()

    step(optimizer)
    sharded = shard(model, alone)
    stepped = build_optimizer(sharded, trained)
    pieces = Pieces(model, optimizer, pieces=sharded, pieces_optimizer=stepped, accelerator=alone)

    pieces.scatter()
    assert not optimizer.state  # it is held once
    assert {id(each) for each in stepped.state} == {id(p) for p in sharded.parameters() if p.requires_grad}

    step(stepped)
    with pieces.state_gathered():
        after = optimizer_tensors(model, optimizer)
        trainable = {p for p in model.parameters() if p.requires_grad}
        assert optimizer.state.keys() == trainable  # what is frozen has none
    assert not optimizer.state
    assert after["step/layers.0.0.bias"].item() == 2.0
    torch.testing.assert_close(after["exp_avg/bias"], torch.full((tiny.VOCABULARY,), 0.5 * (1 - 0.9**2)))
    tiny.assert_identical(
        tiny.weights(model), {name: whole(each) for name, each in sharded.state_dict().items()}
    )
    alone.is_main_process = False
    with pieces.state_gathered():
        assert not optimizer.state


@pytest.mark.parametrize("frees", [True, False])
def test_layers_are_freed_after_their_forward_if_asked_and_the_rest_stays_whole(
    frees: bool, alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[type[nn.Module], bool]] = []

    def noted(module: nn.Module, *, mesh: Any, reshard_after_forward: bool) -> None:
        asked.append((type(module), reshard_after_forward))

    monkeypatch.setattr(processes, "fully_shard", noted)
    if not frees:
        monkeypatch.setenv("FSDP_RESHARD_AFTER_FORWARD", "false")
    model = nn.Sequential(Layered(), nn.Identity()).eval()
    made = shard(model, alone)
    assert asked == [(nn.Sequential, frees), (nn.Sequential, frees), (nn.Sequential, False)]
    assert (made.training, model.training) == (True, False)
    assert len([*layers_of(model)]) == 2


@pytest.mark.parametrize("is_main", [True, False])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_main_process_goes_first_and_the_others_wait_for_it(is_main: bool, device: str) -> None:
    done: list[str] = []
    accelerator: Any = SimpleNamespace(
        device=torch.device(device), is_main_process=is_main, wait_for_everyone=lambda: done.append("wait")
    )
    with main_process_first(accelerator):
        done.append("work")
    if device == "cpu":  # no group of processes, and none to wait for
        assert done == ["work"]
    else:
        assert done == (["work", "wait"] if is_main else ["wait", "work"])
