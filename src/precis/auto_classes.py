"""transformers' Auto classes know the models from `import precis` on, which loads neither transformers nor torch.

transformers finds a model type in a table of names and imports the module `transformers.models.TYPE` when a folder of
that type is opened. Our types are entered in that table as soon as it exists; the modules that it then asks for give
the names of `precis.models`, whose import registers the classes in full. Nothing is imported before a folder needs it,
and nothing here for its base classes: `importlib.abc` alone would take as long as the rest of `import precis`.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Protocol

_TABLE = "transformers.models.auto.configuration_auto"
_MODELS = "precis.models"
#: Model type -> the name that its module gives the configuration; no name that transformers has itself.
_TYPES = {"zcodepp": "ZCodePPConfig", "precis-prophetnet": "PrecisProphetNetConfig"}
_CLASSES = {"ZCodePPConfig": "ZCodePPConfig", "PrecisProphetNetConfig": "ProphetNetConfig"}
_MODULES = {f"transformers.models.{kind.replace('-', '_')}": name for kind, name in _TYPES.items()}


class _Tables(Protocol):
    CONFIG_MAPPING_NAMES: dict[str, str]


def announce() -> None:
    """Enter the model types in transformers' table, now if it is loaded, else when it is."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    loaded = sys.modules.get(_TABLE)
    if loaded is not None:
        _enter(loaded)


def _enter(table: Any) -> None:
    tables: _Tables = table
    for kind, name in _TYPES.items():
        tables.CONFIG_MAPPING_NAMES.setdefault(kind, name)


class _Finder:
    """Knows the table's module and ours, and leaves every other to the usual finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _MODULES:
            loader: Any = _OurModels()  # a loader by its methods
            return ModuleSpec(fullname, loader)
        if fullname != _TABLE:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _TableLoader(fullname, spec.origin)
        return spec


class _TableLoader(SourceFileLoader):
    """Loads the table's module as ever, and enters the model types."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _enter(module)


class _OurModels:
    """Loads a module that holds one configuration of ours."""

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        name = _MODULES[module.__name__]
        setattr(module, name, getattr(importlib.import_module(_MODELS), _CLASSES[name]))
