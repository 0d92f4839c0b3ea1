"""Records of a TOML file in this package, read when the first of them is asked for."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar, final

from precis.errors import UserError

Record = TypeVar("Record")


@final
class Records(Mapping[str, Record]):
    """Records by name, in the order of the file.

    Args:
        file: name of a TOML file beside this module; each of its tables is a record.
        build: makes a record of its name, its table and all tables of the file.

    Raises:
        UserError: at the first use, naming file and record, where `build` refuses one or the file is no TOML.
    """

    def __init__(self, file: str, build: Callable[[str, dict[str, Any], Mapping[str, Any]], Record]) -> None:
        self._file, self._build = file, build

    def __getitem__(self, name: str) -> Record:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def _records(self) -> dict[str, Record]:
        try:
            tables = tomllib.loads(files(__package__).joinpath(self._file).read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{self._file}: is not TOML: {error}") from error
        records = {}
        for name, table in tables.items():
            try:
                records[name] = self._build(name, table, tables)
            except (UserError, TypeError) as error:
                raise UserError(f"{self._file}: [{name}]: {error}") from error
        return records
