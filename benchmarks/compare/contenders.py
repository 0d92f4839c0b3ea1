"""The input of `benchmarks.compare.harness`: contenders, cells, and settings such as the number of rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from precis_text.config import Settings

# glibc keeps big blocks instead of returning them to the system after every operation
KEEP_BLOCKS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way of doing a cell's work.

    Args:
        make: "module:function", called in the contender's process with `arguments` and the cell's.
        environment: variables of its process, such as `KEEP_BLOCKS`.
        requires: a package without which it is left out.
        program: a program without which it is left out.
        missing: why it is left out on this machine; None: it is not.
        skip: cells that it sits out, by name, with the reason (too slow, not supported).
        in_torch: whether torch's allocator sees its tensors; their memory is not measured else.
    """

    name: str
    make: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    requires: str | None = None
    program: str | None = None
    missing: str | None = None
    skip: Mapping[str, str] = field(default_factory=dict)
    in_torch: bool = True


def blocks_kept(contender: Contender) -> Contender:
    """Return the contender under `KEEP_BLOCKS`, to show the effect of memory allocation on its speed."""
    return replace(
        contender, name=f"{contender.name}, blocks kept", environment={**contender.environment, **KEEP_BLOCKS}
    )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table: the arguments that all contenders get, under a name that is unique.

    Args:
        tokens: tokens of a pass without padding, for cells whose tokens a second are of interest.
        neighbours: numbers of spinning processes next to which it is timed, each in every round.
    """

    name: str
    arguments: Mapping[str, Any]
    tokens: int | None = None
    neighbours: tuple[int, ...] = (0,)

    def beside(self, neighbours: int) -> str:
        """Return the row name for this number of neighbours."""
        return f"{self.name}, with {neighbours} spinning" if neighbours else self.name

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of all that is measured in it."""
        return tuple(map(self.beside, self.neighbours))


@dataclass(frozen=True, kw_only=True)
class BenchSettings(Settings):
    """The amount of measuring.

    Args:
        rounds: turns of each contender in each cell.
        seconds: duration of the passes within a turn; a pass that takes longer is run once.
        threads: CPU threads of every contender.
        quiet: CPUs busy with other work above which a sample counts as loaded.
        memory: whether memory is measured too.
    """

    rounds: int = 7
    seconds: float = 0.5
    threads: int = 2
    quiet: float = 0.2
    memory: bool = True
