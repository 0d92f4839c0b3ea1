"""Logs are lines of JSON, and nobody without a key can fill a disk with them."""

import json
import logging

import pytest

from precis.server.logs import Bounded, JsonFormatter, log_to_stderr


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


def test_an_exception_is_told_by_its_type_and_last_places_without_its_message() -> None:
    def fall(depth: int) -> None:
        if depth:
            fall(depth - 1)
        raise ValueError("Zanzibar")

    try:
        fall(20)
    except ValueError as error:
        line = JsonFormatter().format(record("fault", exc_info=(ValueError, error, error.__traceback__)))
    told = json.loads(line)
    assert (told["error"], told["event"], told["level"]) == ("ValueError", "fault", "info")
    assert [place.partition(":")[0] for place in told["at"]] == ["fall"] * 8
    assert "Zanzibar" not in line
    assert "error" not in json.loads(JsonFormatter().format(record("fault", exc_info=(None, None, None))))


def test_a_line_is_ascii_with_its_time_to_the_millisecond() -> None:
    line = JsonFormatter().format(record("größe", created=1.5))
    assert line.isascii()
    assert json.loads(line)["time"] == "1970-01-01T00:00:01.500+00:00"


def test_ten_lines_of_an_event_are_written_in_a_second() -> None:
    bounded = Bounded(now=lambda: 0.0)
    assert sum(bounded.filter(record("a")) for _ in range(30)) == 10


def test_events_are_told_apart_by_their_first_100_letters() -> None:
    bounded = Bounded(1, now=lambda: 0.0)
    same, other = "a" * 100, "a" * 99
    events = [f"{same}1", f"{same}2", f"{other}1", f"{other}2"]
    assert [bounded.filter(record(event)) for event in events] == [True, False, True, True]


def test_logs_of_the_service_and_of_its_server_go_to_standard_error_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("precis.server", "uvicorn", "uvicorn.error", "asyncio")
    loggers = [logging.getLogger(name) for name in names]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    try:
        log_to_stderr()
        for name in names:
            logging.getLogger(name).info("of %s", name)
            logging.getLogger(name).debug("nothing of %s", name)
    finally:
        for each, (handlers, propagate, level) in zip(loggers, before, strict=True):
            each.handlers, each.propagate, each.level = handlers, propagate, level
    told = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert told == [f"of {name}" for name in names]
