"""The files in examples/accelerate say what `accelerate launch` understands and the loop accepts."""

from pathlib import Path
from typing import Any

import pytest
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env

from precis.training.processes import sharding_is_asked_for

FOLDER = Path(__file__).parents[2] / "examples" / "accelerate"
PROCESSES = {"one_gpu.yaml": 1, "eight_gpus.yaml": 8, "two_nodes_fsdp2.yaml": 16}


def _launched(name: str, *more: str) -> Any:
    words = ["--config_file", str(FOLDER / name), *more, "-m", "precis", "pretrain"]
    return _validate_launch_command(launch_command_parser().parse_args(words))[0]


def test_there_is_a_file_for_each_of_the_guides_set_ups() -> None:
    assert {path.name for path in FOLDER.glob("*.yaml")} == set(PROCESSES)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_file_starts_its_processes_and_leaves_precision_and_compiling_to_the_run(name: str) -> None:
    launched = _launched(name)
    assert launched.num_processes == PROCESSES[name]
    assert launched.mixed_precision == "no"
    assert launched.dynamo_backend == "no"
    assert launched.multi_gpu == (name == "eight_gpus.yaml")


def test_the_file_for_two_machines_asks_for_pieces_in_the_way_that_the_loop_makes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched = _launched("two_nodes_fsdp2.yaml", "--machine_rank", "1", "--main_process_ip", "10.0.0.1")
    assert (launched.num_machines, launched.machine_rank) == (2, 1)
    for variable, value in prepare_multi_gpu_env(launched).items():
        if variable.startswith(("FSDP_", "ACCELERATE_")):
            monkeypatch.setenv(variable, value)
    assert sharding_is_asked_for()
