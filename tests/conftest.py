"""Shared by all tests: `tests/` importable (conformance suite, tiny models), no network, and one thread a process, so
that parallel workers do not fight over the cores (`PRECIS_TEST_THREADS=2`: two, which adds up in another order).
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("PRECIS_TEST_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", os.environ["PRECIS_TEST_THREADS"])
if os.environ.get("ATEN_CPU_CAPABILITY") in ("default", "avx2"):
    # No processor without AVX-512 has its bf16: without this, oneDNN offers bf16 and torch's attention raises
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
sys.path.insert(0, str(Path(__file__).parent))

from tests.shape_checks import PLACES  # the import hook needs it before precis is imported

# isort: split
import jaxtyping
import pytest
import torch

from precis.nn.disentangled import cpp_loader
from precis.training.curves import Curves
from precis_text import unit_worth

torch.set_num_threads(int(os.environ["PRECIS_TEST_THREADS"]))
if cpp_loader.wish() is not cpp_loader.Wish.never:
    # now, not in the middle of a test that looks at what is printed
    cpp_loader.is_ready("disentangled")


@pytest.fixture(scope="session", autouse=True)
def draw_curves_no_more() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A run draws its curves, half a second each time: in tests only within the context that this gives."""
    draw = Curves._draw

    @contextmanager
    def drawn() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Curves, "_draw", draw)
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curves, "_draw", lambda self: None)
        yield drawn


@pytest.fixture(autouse=True)
def draw_where_it_is_looked_at(
    request: pytest.FixtureRequest, draw_curves_no_more: Callable[[], AbstractContextManager[None]]
) -> Iterator[None]:
    with draw_curves_no_more() if "draws" in request.keywords else nullcontext():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shapes", choices=["checked", "elsewhere"], help="the tests with checked shapes, or all others"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Divide the tests among the two runs of `make test`: checking shapes takes four times as long."""
    wanted = config.getoption("--shapes")
    if wanted is None:
        return
    chosen = [item for item in items if _has_shapes(item) == (wanted == "checked")]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def _has_shapes(item: pytest.Item) -> bool:
    inner = item.path.relative_to(Path(__file__).parent)
    unchecked = {"many_steps", "traced"}
    return any(map(inner.is_relative_to, PLACES)) and unchecked.isdisjoint(item.keywords)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check no shapes where torch traces the code: it cannot trace the checks. `make test` says where they are on."""
    jaxtyping.config.update("jaxtyping_disable", "traced" in item.keywords)


@pytest.fixture
def everybody_understands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only the rules of a choice; tests/text/test_standalone.py has what readers understand."""
    monkeypatch.setattr(unit_worth, "_STANDALONE", (0, 0))
