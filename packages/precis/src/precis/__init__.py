"""precis: pre-train, adapt, evaluate and run summarizers.

The public names are imported on first use, so `import precis` costs nothing. `__init__.pyi` lists them, for this module
and for type checkers. After `import precis`, transformers' Auto classes open folders of these models, and threads of a
torch that is imported later wait as `precis.process` says.
"""

from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from precis.auto_classes import announce
from precis.process import bound_waiting
from precis.version import __version__ as __version__


@cache
def homes() -> dict[str, str]:
    """Return public name -> module of each import in `__init__.pyi`, which is read on first use."""
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    found = {name.name: str(node.module) for node in imports for name in node.names}
    return {name: module for name, module in found.items() if name != "__version__"}


announce()
bound_waiting()


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*homes()]
    if name.startswith("_") or name not in homes():
        raise AttributeError(f"module 'precis' does not have the attribute {name!r}")
    return _public(name)


@cache
def _public(name: str) -> Any:
    from precis.messages import in_python

    found = getattr(import_module(homes()[name]), name)
    return in_python(found) if isinstance(found, FunctionType) else found


def __dir__() -> list[str]:
    return [*homes(), "__version__"]
