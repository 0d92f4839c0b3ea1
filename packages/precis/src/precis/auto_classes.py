"""Registers the models with transformers' Auto classes on `import precis`, without loading transformers or torch.

transformers looks a model type up in a table of names, and imports the module `transformers.models.TYPE` to open a
folder of that type. We add our types to that table as soon as it exists. The modules that transformers then imports
return the names of `precis.models`, whose import registers the classes in full. Nothing is imported before a folder
needs it. This module imports no base classes: `importlib.abc` takes as long as the rest of `import precis`.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Protocol

_TABLE = "transformers.models.auto.configuration_auto"
_MODELS = "precis.models"
#: Model type -> the configuration's name in its module; transformers itself must not use that name.
_TYPES = {"zcodepp": "ZCodePPConfig", "precis-prophetnet": "PrecisProphetNetConfig"}
_CLASSES = {"ZCodePPConfig": "ZCodePPConfig", "PrecisProphetNetConfig": "ProphetNetConfig"}
_MODULES = {f"transformers.models.{kind.replace('-', '_')}": name for kind, name in _TYPES.items()}


class _Tables(Protocol):
    CONFIG_MAPPING_NAMES: dict[str, str]


def announce() -> None:
    """Add the model types to transformers' table, now or when transformers loads it."""
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
    """An import finder for the table's module and ours; other modules are left to the usual finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _MODULES:
            loader: Any = _OurModels()  # has a loader's methods
            return ModuleSpec(fullname, loader)
        if fullname != _TABLE:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _TableLoader(fullname, spec.origin)
        return spec


class _TableLoader(SourceFileLoader):
    """The usual loader of the table's module, which then adds the model types."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _enter(module)


class _OurModels:
    """The loader of a module that contains one of our configurations."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, for the default kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        name = _MODULES[module.__name__]
        setattr(module, name, getattr(importlib.import_module(_MODELS), _CLASSES[name]))
