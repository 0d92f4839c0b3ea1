"""Logs are lines of JSON, and nobody without a key can fill a disk with them."""

import json
import logging

from precis.server.logs import Bounded, JsonFormatter


def record(event: str, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": event, "levelname": "INFO"})
    made.__dict__.update(extra)
    return made


def test_lines_of_one_event_are_bounded_and_those_left_out_are_counted() -> None:
    now = [0.0]
    bounded = Bounded(2, now=lambda: now[0])
    assert [bounded.filter(record("a")) for _ in range(5)] == [True, True, False, False, False]
    assert bounded.filter(record("b"))  # another event has lines of its own
    now[0] = 1.0
    late = record("a", fields={"status": 401})
    assert bounded.filter(late)
    assert json.loads(JsonFormatter().format(late))["left_out"] == 3
    assert "left_out" not in json.loads(JsonFormatter().format(record("a")))


def test_lines_about_work_that_a_key_allowed_are_never_left_out() -> None:
    bounded = Bounded(1, now=lambda: 0.0)
    assert all(bounded.filter(record("request", bounded=False)) for _ in range(9))


def test_events_with_arguments_of_a_client_are_one_event() -> None:
    bounded = Bounded(1, now=lambda: 0.0)
    lines = [record("refused %s", args=(number,)) for number in range(5)]
    assert sum(map(bounded.filter, lines)) == 1
