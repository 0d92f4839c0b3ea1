"""Signals and closed streams: one line or silence, and the exit code that a shell expects."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PRECIS = f"{sys.executable} -m precis"
WAITING = """
import sys, time, typer
from precis.cli import run_app
from precis.cli.framework.command_class import Commands
app = Commands()
@app.command()
def wait():
    print("waits", flush=True)
    time.sleep(60)
@app.callback()
def options(early: bool = typer.Option(False, callback=lambda early: wait() if early else None)):
    pass
sys.exit(run_app("precis", lambda: typer.main.get_command(app), sys.argv[1:]))
"""
LOADING = """
import sys
from precis.cli import run_app
def loading(*_, **__):
    try:
        raise KeyboardInterrupt
    except BaseException as error:
        raise ModuleNotFoundError("Could not import module 'PreTrainedModel'") from error
sys.exit(run_app("precis", lambda: loading, []))
"""


def started(*words: str, ignored: int | None = None) -> subprocess.Popen[str]:
    """Start a command that waits, and return when it does."""

    def set_signals() -> None:
        for each in (
            signal.SIGINT,
            signal.SIGHUP,
        ):  # a job in the background or under nohup inherits "ignored"
            signal.signal(each, signal.SIG_DFL)
        if ignored is not None:
            signal.signal(ignored, signal.SIG_IGN)

    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, *words, "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=set_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    return process


@pytest.mark.parametrize("words", [[], ["--early"]])  # in the command, or while its words are parsed
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_a_command_with_one_line_and_the_code_of_the_shell(name: str, words: list[str]) -> None:
    process = started(*words)
    process.send_signal(getattr(signal, name))
    _, error = process.communicate(timeout=30)
    word = "interrupted" if name == "SIGINT" else f"ended by {name}"
    assert error.startswith(f"error: {word}")
    assert error.count("\n") == 1
    assert process.returncode == 128 + getattr(signal, name)


def test_a_command_under_nohup_goes_on() -> None:
    process = started(ignored=signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.kill()
    process.communicate()


def test_ctrl_c_while_a_library_loads_is_no_fault() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        ("data list >&-", 2, "error: standard output is closed; send it to a file, a pipe or /dev/null"),
        ("summarize <&-", 2, "error: standard input is closed; name a file, or pipe a document in"),
        ("data check nothing 2>&-", 2, ""),
        ("data list <&- >/dev/null 2>&-", 0, ""),
    ],
)
def test_closed_streams_are_named_or_are_not_needed(command: str, code: int, line: str) -> None:
    done = subprocess.run(f"{PRECIS} {command}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (code, line)


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import os, sys; from precis.cli.framework.standard_output import open_closed_streams as o; o()\n"
        f"file = open({str(tmp_path / 'file')!r}, 'w'); os._exit(file.fileno())"
    )
    command = f"exec {sys.executable} -c {shlex.quote(code)} <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, check=False).returncode > 2
