"""The default number of threads follows affinity, quotas of control groups, and what the user says."""

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from precis_text import cores
from precis_text.cores import available_cores, core_quota, default_threads


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files of a tree of control groups."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "50000 100000\n"}, 0.5),
        ({"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/b/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                f"{V2}/a/b/cpu.max": "400000 100000\n",
                f"{V2}/a/cpu.max": "150000 100000\n",
            },
            1.5,
        ),
        ({"proc/self/cgroup": "0::/of/the/host\n", f"{V2}/cpu.max": "100000 100000\n"}, 1.0),
        ({"proc/self/cgroup": "0::/../outside\n", f"{V2}/cpu.max": "100000 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "damaged\n"}, None),
        (
            {
                "proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a\n",
                f"{V1}/a/cpu.cfs_quota_us": "300000\n",
                f"{V1}/a/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a\n",
                f"{V1}/a/cpu.cfs_quota_us": "-1\n",
                f"{V1}/a/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        (
            {
                "proc/self/cgroup": "4:cpuacct,cpu:/docker/x\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
    ],
)
def test_the_smallest_quota_on_the_way_to_the_root_applies(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    assert core_quota(write(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("quota", "cores_of_it"), [("50000", 1), ("100000", 1), ("200000", 2), ("290000", 2), ("max", 64)]
)
def test_a_quota_gives_whole_cores_of_those_that_affinity_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores_of_it: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    write(tmp_path, {"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": f"{quota} 100000\n"})
    assert available_cores(tmp_path) == cores_of_it


def test_affinity_limits_a_process_of_its_own() -> None:
    if sys.platform != "linux":
        pytest.skip("affinity of a command is set by taskset, a program of Linux")
    code = "from precis_text.cores import available_cores; print(available_cores())"
    cpu = str(min(os.sched_getaffinity(0)))
    done = subprocess.run(["taskset", "-c", cpu, sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"1\n"


@pytest.mark.parametrize(("said", "threads"), [("3", 3), ("2,4", 2), ("0", 7), ("many", 7), ("", 7)])
def test_a_variable_sets_the_default(monkeypatch: pytest.MonkeyPatch, said: str, threads: int) -> None:
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr(cores, "available_cores", lambda: 7)
    assert default_threads() == threads


def test_a_process_of_a_pool_gets_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cores, "available_cores", lambda: 7)
    assert default_threads() == 7
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(default_threads).result() == 1
