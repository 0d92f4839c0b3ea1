"""Build steps that pyproject.toml cannot express: a wheel made with torch and GCC contains the C++ kernels.

It has a kernel for each level of processors and for the installed torch (CPU or CUDA). Other wheels are pure, and the
kernels are built at first use. PRECIS_COMPILE=0 makes a pure wheel; PRECIS_COMPILE=1 makes a missing kernel an error.
"""

import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

DISENTANGLED = Path(__file__).parent / "src" / "precis" / "nn" / "disentangled"
KERNELS = DISENTANGLED / "cpp"


def cpp_build() -> ModuleType:
    """Load `precis.nn.disentangled.cpp_build` without the package, which is not built yet."""
    spec = importlib.util.spec_from_file_location("cpp_build", DISENTANGLED / "cpp_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WithKernels(build_py):
    """The build step of a wheel; an editable installation has its kernels in the user's cache."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.build_kernels(Path(self.build_lib) / KERNELS.relative_to(Path(__file__).parent / "src"))

    def build_kernels(self, place: Path) -> None:
        wish = os.environ.get("PRECIS_COMPILE", "").lower()
        if wish in ("0", "false", "no", "off"):
            return
        tools = cpp_build()
        try:
            made = build_all(tools, place)
        except tools.KernelError as problem:
            if wish not in ("", "auto"):
                raise SystemExit(f"PRECIS_COMPILE: no C++ kernels in this wheel ({problem})") from None
            print(f"precis: a pure wheel, without C++ kernels ({problem})", file=sys.stderr)
            return
        print(f"precis: {made} C++ kernels are in this wheel", file=sys.stderr)


def build_all(tools: ModuleType, place: Path) -> int:
    """Build every kernel for every level of processors; return their number."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise tools.KernelError("they are for x86-64 Linux")
    try:
        import torch
    except ImportError:
        raise tools.KernelError(
            "torch is not there; install it and build with --no-build-isolation"
        ) from None
    tools.check_compiler()
    wanted = {
        place / tools.prebuilt(source, level, torch.__version__).relative_to(KERNELS): (source, level)
        for source in sorted(KERNELS.glob("*.cpp"))
        for level in tools.LEVELS
    }
    for old in set(place.glob("prebuilt/*.so")) - set(wanted):  # of an earlier build in this folder
        old.unlink()
    for library, (source, level) in wanted.items():
        library.parent.mkdir(parents=True, exist_ok=True)
        if not library.exists():
            tools.build(tools.command(source, level, Path(torch.__file__).parent), library)
    return len(wanted)


class Platform(bdist_wheel):
    """Named for this platform where there are kernels inside, and for any Python 3: none of them knows Python."""

    def get_tag(self) -> tuple[str, str, str]:
        if any(Path(self.bdist_dir).rglob("prebuilt/*.so")):
            self.root_is_pure = False
            return "py3", "none", self.plat_name.replace("-", "_").replace(".", "_")
        return super().get_tag()


setup(cmdclass={"build_py": WithKernels, "bdist_wheel": Platform})
