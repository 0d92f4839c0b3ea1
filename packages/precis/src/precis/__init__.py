"""precis: pre-train, adapt, evaluate and run abstractive summarizers.

The public names are imported on first use, so `import precis` costs nothing. `__init__.pyi` lists them, for this module
and for type checkers. After `import precis`, transformers' Auto classes open folders of these models.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from precis.auto_classes import announce
from precis.version import __version__ as __version__


def _homes() -> dict[str, str]:
    """Return name -> module of each import in `__init__.pyi`."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


_HOMES = {name: home for name, home in _homes().items() if name != "__version__"}
__all__ = [*_HOMES]

announce()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'precis' does not have the attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
