"""The files of a request, read in the same bounded process as those of the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from precis.data.rows.row_files import known_endings
from precis.server.limits import ApiError, Limits
from precis_text.documents.passages import Passages
from precis_text.documents.reader import TooLateError, read_content, stop_reading
from precis_text.errors import UserError

_MOST_FIELDS = 20
_LONGEST_FIELD = 100_000  # bytes
_LONGEST_NAME = 200


@dataclass(frozen=True)
class FileRequest:
    """A request with files: their names and contents, in order, and the other fields as texts (`options`)."""

    files: list[tuple[str, bytes]]
    options: Mapping[str, str] = field(default_factory=dict)


class _Parser(MultiPartParser):
    """A parser that keeps files in memory, since no document is written to a disk."""

    spool_max_size = 1 << 40


class FileReader:
    """A reader of one file at a time; `limits` bound the number of files and the seconds to read one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="precis-files")

    async def form(self, request: Request) -> FileRequest:
        """Parse the body of a request with the type multipart/form-data.

        Raises:
            ApiError: it is another type, is not valid, carries no file, or names an option twice.
        """
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            problem = "send the files as multipart/form-data, each in a field named file"
            raise ApiError(422, "not_a_form", problem)
        most = self._limits.documents
        try:
            parser = _Parser(
                request.headers, request.stream(), max_files=most, max_fields=_MOST_FIELDS,
                max_part_size=_LONGEST_FIELD,
            )  # fmt: skip
            form = await parser.parse()
        except (MultiPartException, KeyError, ValueError) as error:
            problem = f"the form cannot be read: {getattr(error, 'message', None) or 'it names no boundary'}"
            raise ApiError(422, "bad_form", problem) from None
        try:
            return await _sorted(form.multi_items())
        finally:
            await form.close()

    async def read(self, files: list[tuple[str, bytes]]) -> list[Passages]:
        """Read files in order, in the bounded process; raise `ApiError` if one cannot be read in its seconds."""
        return [await self._read(name, content) for name, content in files]

    async def _read(self, name: str, content: bytes) -> Passages:
        if name.lower().endswith(tuple(known_endings())):
            raise _refused(name, "has a document in each row; send its documents as a list in the field text")
        seconds = self._limits.seconds
        work = partial(read_content, content, name=name, within=seconds)
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._thread, work)
            return await asyncio.wait_for(reading, seconds)
        except (TimeoutError, TooLateError):
            problem = f"{name}: was not read within {seconds:g} seconds"
            raise ApiError(503, "too_late", problem, retry_after=30) from None
        except UserError as error:
            raise _refused(name, str(error)) from None

    def stop(self) -> None:
        """End the reading process, and forget the files that wait."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        stop_reading()


async def _sorted(items: list[tuple[str, Any]]) -> FileRequest:
    """Return the files and the options of a form."""
    files: list[tuple[str, bytes]] = []
    options: dict[str, str] = {}
    for name, value in items:
        if isinstance(value, UploadFile):
            shown = (value.filename or "").replace("\\", "/").rpartition("/")[2][:_LONGEST_NAME]
            if name != "file":
                problem = f"{shown or 'the file'}: name the field of each file: file"
                raise ApiError(422, "bad_form", problem, param=name[:50])
            files.append((shown, await value.read()))
        elif name in options:
            raise ApiError(422, "bad_form", "the form gives this option twice", param=name[:50])
        else:
            options[name] = value
    if not files:
        raise ApiError(422, "no_file", "the form contains no file; put each in a field named file")
    return FileRequest(files, options)


def _refused(name: str, problem: str) -> ApiError:
    return ApiError(422, "unreadable_file", f"{name or 'the file'}: {problem}", param="file")
