"""Logs as lines of JSON, without the text of documents and summaries or the paths of requests."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("precis.server")
_MOST_LINES = 10  # lines of one event in a second


class JsonFormatter(logging.Formatter):
    """A formatter of records as lines of JSON; `extra={"fields": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields |= where(record.exc_info[1])
        return json.dumps(fields, ensure_ascii=True)


class Bounded(logging.Filter):
    """A filter that lets through a few lines of each event in a second; the next line counts those left out.

    A record with `extra={"bounded": False}` is always let through: a line about work that a client was allowed.
    """

    def __init__(self, most: int = _MOST_LINES, *, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._now = most, now
        self._seen: dict[str, tuple[int, int]] = {}  # event -> second, lines in it
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line."""
        if not getattr(record, "bounded", True):
            return True
        event = str(record.msg)[:100]  # without its arguments, which a client may choose
        second = int(self._now())
        since, lines = self._seen.get(event, (second, 0))
        lines = lines + 1 if since == second else 1
        self._seen[event] = second, lines
        if lines > self._most:
            self._left_out[event] += 1
            return False
        if left_out := self._left_out.pop(event, 0):
            record.fields = {**getattr(record, "fields", {}), "left_out": left_out}
        return True


def where(error: BaseException) -> dict[str, Any]:
    """Return an exception's type and location, without its message, which may quote a document."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return {"error": type(error).__name__, "at": [f"{frame.name}:{frame.lineno}" for frame in frames]}


def fault(error: BaseException) -> None:
    """Log a bug of the service."""
    LOG.error("fault", extra={"fields": where(error)})


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the logs of the service, of uvicorn and of asyncio to standard error, bounded in lines a second."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(Bounded())
    for name in ("precis.server", "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
        logger.setLevel(level)
    for name in ("precis.server", "uvicorn", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").propagate = True
