"""Our contenders twice: as they are installed, with the C++ kernel of attention where it can be had, and without."""

from dataclasses import replace

from benchmarks.compare.contenders import Contender
from precis.nn.disentangled.cpp_loader import COMPILE

#: What `both_ways` of the contender "precis" are called: each is compared with the others.
WITHOUT = "precis, no kernel"
OURS = ("precis", WITHOUT)


def without_kernel(contender: Contender) -> Contender:
    """Return the contender in a process that computes with torch only."""
    return replace(contender, environment={**contender.environment, COMPILE: "0"})


def both_ways(contender: Contender) -> list[Contender]:
    """Return the contender as it is installed, and a copy without the kernel."""
    return [contender, replace(without_kernel(contender), name=f"{contender.name}, no kernel")]
