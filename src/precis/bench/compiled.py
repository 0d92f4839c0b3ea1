"""Our contenders twice: as they are, and with the C++ kernel of attention."""

from dataclasses import replace

from precis.bench.contenders import Contender
from precis.nn.kernels import COMPILE, compiler

#: What `both_ways` of the contender "precis" are called: each is compared with the others.
OURS = ("precis", "precis, compiled")


def both_ways(contender: Contender) -> list[Contender]:
    """The contender without the kernel and with it."""
    return [
        contender,
        replace(
            contender,
            name=f"{contender.name}, compiled",
            environment={**contender.environment, COMPILE: "1"},
            program=compiler()[0],
        ),
    ]
