"""Processes of a pool, workers of a batch and the server run as many threads as their quota of cores allows."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.tiny_models import save

LIMITS = {  # quota and period in microseconds -> threads
    "half a core": (50_000, 1),
    "one core": (100_000, 1),
    "two of many": (200_000, 2),
}
PRINTED = "from precis_text.cores import default_threads; print(default_threads())"
QUOTA = "import torch; from precis_text import cores; cores.core_quota = lambda root=None: 1.0\n"
STARTS = {
    "a server": """
from precis.cli import main
from precis.server import server_run
server_run.serve = lambda pool, **_: (pool.load_all(), print(torch.get_num_threads()))
sys.exit(main(["serve", "--model", sys.argv[1], "--port", "0"]))
""",
    "a batch worker": """
from pathlib import Path
from precis.batch.batch_worker import Worker
from precis.phases.use.summary_job import SummaryJob
from precis_text.length import make_length
Worker(SummaryJob(model=sys.argv[1], length=make_length(words=5)), Path(sys.argv[1]), "now")
print(torch.get_num_threads())
""",
    "Python": """
from precis import Summarizer
Summarizer.from_pretrained(sys.argv[1])
print(torch.get_num_threads())
""",
}


def unsaid() -> dict[str, str]:
    """Return the environment without a number of threads."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


@pytest.fixture
def group() -> Iterator[Callable[[int], Path]]:
    """Return a maker of a control group with a quota: the file for its processes."""
    version_1 = Path("/sys/fs/cgroup/cpu")
    place = (version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")) / f"precis-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")

    def limited(quota: int) -> Path:
        try:
            if place.parent == version_1:
                (place / "cpu.cfs_quota_us").write_text(f"{quota}\n")
            else:
                (place / "cpu.max").write_text(f"{quota} 100000\n")
        except OSError as error:
            pytest.skip(f"the processor time of a control group cannot be limited here: {error}")
        return place / "cgroup.procs"

    yield limited
    place.rmdir()


@pytest.mark.parametrize("limit", LIMITS)
def test_a_process_in_a_real_control_group_gets_the_threads_of_its_quota(
    group: Callable[[int], Path], limit: str
) -> None:
    quota, threads = LIMITS[limit]
    procs = group(quota)
    command = ["sh", "-c", f'echo $$ > {procs} && exec "$@"', "sh", sys.executable, "-c", PRINTED]
    done = subprocess.run(command, env=unsaid(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == min(threads, len(os.sched_getaffinity(0)))


@pytest.mark.long
@pytest.mark.parametrize("start", STARTS)
def test_what_starts_under_a_quota_of_a_core_runs_one_thread(start: str, tmp_path: Path) -> None:
    model = save("zcodepp", tmp_path / "tiny")
    code = f"import sys\n{QUOTA}assert torch.get_num_threads() == {len(os.sched_getaffinity(0))}\n{STARTS[start]}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)], env=unsaid(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def threads_with_a_summarizer(model: str) -> tuple[int, int, str]:
    """Return this process, its threads when it has a model, and what the model writes."""
    import torch

    from precis import Summarizer

    (summary,) = Summarizer.from_pretrained(model).summarize(["Ann sings. Bob listens."], words=5)
    return os.getpid(), torch.get_num_threads(), summary.text


@pytest.mark.long
def test_four_processes_of_a_pool_have_a_summarizer_and_a_thread_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {*os.environ} - {*unsaid()}:
        monkeypatch.delenv(name)
    model = str(save("zcodepp", tmp_path / "tiny"))
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        found = [*pool.map(threads_with_a_summarizer, [model] * 8)]
    assert [threads for _, threads, _ in found] == [1] * 8
    assert len({process for process, _, _ in found}) > 1
    assert len({text for _, _, text in found}) == 1
