"""A signal is a wish to stop soon; a second Ctrl-C is an order to stop now."""

import os
import signal
import sys
import threading

import pytest

from precis.training.interruption import StopRequested, finished_first, interruptions


def _send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_a_signal_is_remembered_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with interruptions() as interruption:
        assert not interruption.requested
        _send(signal.SIGTERM)
        assert interruption.requested

    assert signal.getsignal(signal.SIGTERM) == before


def test_only_work_that_may_be_aborted_is() -> None:
    with interruptions() as interruption:
        with pytest.raises(StopRequested), interruption.may_abort():
            _send(signal.SIGTERM)
        _send(signal.SIGTERM)
        with pytest.raises(StopRequested), interruption.may_abort():
            pytest.fail("work began although a stop had been asked for")


def test_a_second_ctrl_c_interrupts_at_once_and_a_second_sigterm_does_not() -> None:
    with interruptions():
        _send(signal.SIGTERM)
        _send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            _send(signal.SIGINT)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP")
def test_a_closed_terminal_stops_the_run_unless_nohup_has_it_ignored() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with interruptions() as ignoring:
            _send(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with interruptions() as listening:
            _send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (ignoring.requested, listening.requested) == (False, True)


def test_off_the_main_thread_nothing_is_caught_and_nothing_breaks() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[bool] = []

    def work() -> None:
        with interruptions() as interruption:
            seen.append(interruption.requested)
            seen.append(signal.getsignal(signal.SIGTERM) is before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [False, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_takes_effect_after_what_is_finished_first_and_says_so(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []

    def work() -> None:
        with finished_first("the model was written"):
            _send(number)
            done.append(number)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [number]
    assert "stopped by a signal after the model was written" in caplog.text


def test_without_a_signal_nothing_is_said_and_an_error_passes(caplog: pytest.LogCaptureFixture) -> None:
    with finished_first("x"):
        pass
    with pytest.raises(ZeroDivisionError), finished_first("x"):
        print(1 / 0)
    assert caplog.text == ""
