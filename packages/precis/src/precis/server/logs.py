"""Logs as lines of JSON, without the text of documents and summaries or the paths of requests."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("precis.server")


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


def where(error: BaseException) -> dict[str, Any]:
    """Return an exception's type and location, without its message, which may quote a document."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return {"error": type(error).__name__, "at": [f"{frame.name}:{frame.lineno}" for frame in frames]}


def fault(error: BaseException) -> None:
    """Log a bug of the service."""
    LOG.error("fault", extra={"fields": where(error)})


def log_to_stderr() -> None:
    """Send the logs of the service and of uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("precis.server", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
        logger.setLevel(logging.INFO)
    for name in ("precis.server", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("uvicorn.error").propagate = True
