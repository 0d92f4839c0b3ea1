"""Where the C++ kernel comes from: built once where it can be, else torch alone, said in one line; in wheels."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from precis.nn.disentangled import cpp_build, cpp_loader
from precis.nn.disentangled.cpp_loader import Wish
from precis_text.errors import UserError
from tests.nn.disentangled.test_cpp_attention import needs_compiler, needs_processor

PROJECT = Path(__file__).parents[3] / "packages" / "precis"
TINY = 'extern "C" int answer() { return 42; }'
ATTEND = """
import torch
from precis.nn.attention import attend
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.relative_positions import LogBuckets, OffsetRows
q = torch.randn(1, 2, 40, 16)
table = torch.randn(2, 64, 16)
for _ in range(2):
    attend(q, q, q, bias=DisentangledBias(table, table, OffsetRows(LogBuckets(32, 64))))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of kernels, and a process that has decided nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cpp_loader, "_loaded", {})
    cpp_loader._is_ready.cache_clear()
    cpp_loader._tell_once.cache_clear()
    yield tmp_path / "cache" / "precis" / "kernels"
    cpp_loader._is_ready.cache_clear()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a shell script in the place of the compiler."""

    def put(*lines: str, name: str = "compiler") -> Path:
        script = tmp_path / name
        script.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        return script

    return put


GNU = 'case "$*" in *--version*) echo "Free Software Foundation"; exit 0;; *" -E "*) exit 0;; esac'


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "where_possible"),
        ("", "where_possible"),
        ("auto", "where_possible"),
        ("0", "never"),
        ("False", "never"),
        ("off", "never"),
        ("1", "always"),
    ],
)
def test_how_the_kernel_is_asked_for(value: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_COMPILE", raising=False)
    if value is not None:
        monkeypatch.setenv("PRECIS_COMPILE", value)
    assert cpp_loader.wish() is cpp_loader.Wish[wanted]


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """By default: torch's ways, and one line. Insisted on: an error of one line. Gives the line."""
    assert not cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.startswith("precis: attention uses only torch, which is slower")
    with pytest.raises(UserError, match=r"PRECIS_COMPILE: .*GCC 10 or newer") as error:
        cpp_loader.is_ready("disentangled", cpp_loader.Wish.always)
    assert "\n" not in str(error.value)
    return line + str(error.value)


@needs_processor
def test_without_a_compiler(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert refused(capsys).count("no-such-compiler") == 2


@needs_processor
def test_with_another_compiler_than_gcc(
    cache: Path, program: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program("echo clang version 19.1.7")
    assert refused(capsys).count("compiler is not GCC") == 2


@needs_processor
def test_with_a_compiler_that_has_no_headers(
    cache: Path, program: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program(
        'case "$*" in *--version*) echo "Free Software Foundation"; exit 0;; esac',
        'echo "<stdin>:1:10: fatal error: vector: No such file or directory" >&2; exit 1',
    )
    assert refused(capsys).count("vector: No such file") == 2


@needs_processor
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CXX", "g++ 'x", "give the C++ compiler's name"),
        ("XDG_CACHE_HOME", "/dev/null", "set XDG_CACHE_HOME to a writable folder"),
    ],
)
def test_a_wrong_environment_is_named(
    name: str,
    value: str,
    message: str,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    assert refused(capsys).count(message) == 2


@needs_processor
def test_a_cache_that_cannot_be_written_to(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpp_loader.os, "access", lambda *_: False)  # type: ignore[attr-defined]
    assert refused(capsys).count("is not writable") == 2


@needs_processor
def test_a_damaged_library_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpp_build, "check_compiler", lambda: None)
    monkeypatch.setattr(cpp_build, "build", lambda command, library: library.write_bytes(b"no library"))
    monkeypatch.setattr(cpp_loader, "_tell_building", lambda library: None)
    assert refused(capsys).count("start again") == 2


@pytest.mark.parametrize("place", ["linux without glibc", "another processor"])
def test_where_there_is_no_kernel_nothing_is_said_of_it(
    place: str, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if place == "another processor":
        monkeypatch.setattr(cpp_loader.platform, "machine", lambda: "aarch64")  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(cpp_loader.platform, "libc_ver", lambda: ("", ""))  # type: ignore[attr-defined]
    assert not cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match="x86-64 Linux with glibc"):
        cpp_loader.is_ready("disentangled", cpp_loader.Wish.always)


@needs_processor
def test_what_failed_is_not_tried_again_until_the_compiler_changes_or_somebody_insists(
    cache: Path, program: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script() -> Path:
        return program(GNU, f"echo tried >> {tmp_path}/tries", "echo 'error: no room' >&2; exit 3")

    def tries() -> int:
        return len((tmp_path / "tries").read_text().splitlines())

    def another_process() -> bool:
        cpp_loader._is_ready.cache_clear()
        return cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)

    script()
    assert not another_process()
    said = capsys.readouterr().err.splitlines()
    assert ["building" in said[0], "error: no room" in said[1], len(said)] == [True, True, 2]
    assert not another_process()
    assert (tries(), capsys.readouterr().err) == (1, "")
    with pytest.raises(UserError, match="error: no room"):
        cpp_loader.load("disentangled")
    assert tries() == 2
    os.utime(script(), (1, 1))
    assert not another_process()
    assert tries() == 3
    assert not list(cache.glob("*.so"))


@needs_processor
def test_a_reason_that_two_kernels_share_is_printed_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not any(cpp_loader.is_ready(name, cpp_loader.Wish.where_possible) for name in cpp_loader.KERNELS)
    assert capsys.readouterr().err.count("\n") == 1


def test_every_source_of_a_kernel_is_known() -> None:
    sources = (Path(cpp_loader.__file__).parent / "cpp").glob("*.cpp")
    assert {source.stem for source in sources} == set(cpp_loader.KERNELS)


@needs_processor
def test_a_process_decides_once(
    cache: Path, program: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program("exit 1")
    assert not cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)
    program(GNU, "exit 0")
    assert not cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)
    assert capsys.readouterr().err.count("only torch") == 1


def start(code: str, cache_home: Path, **variables: str) -> subprocess.Popen[str]:
    """Another process."""
    environment = {k: v for k, v in os.environ.items() if k != "PRECIS_COMPILE"}
    environment |= {"XDG_CACHE_HOME": str(cache_home), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@needs_compiler
def test_of_processes_that_start_at_once_one_builds_and_the_others_wait(tmp_path: Path) -> None:
    (tmp_path / "cpp").mkdir()
    (tmp_path / "cpp" / "tiny.cpp").write_text(TINY)
    compiler = tmp_path / "slow"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *" -o "*) echo built >> {tmp_path}/builds; sleep 2;; esac\nexec c++ "$@"\n'
    )
    compiler.chmod(0o755)
    code = (
        "import ctypes; from precis.nn.disentangled import cpp_loader\n"
        f"cpp_loader.__file__ = {str(tmp_path / 'kernels.py')!r}\n"
        "assert cpp_loader.is_ready('tiny'); print(ctypes.CDLL(str(cpp_loader.load('tiny'))).answer())"
    )
    processes = [start(code, tmp_path / "cache", CXX=str(compiler)) for _ in range(3)]
    answers = [process.communicate(timeout=300) for process in processes]
    assert [out.strip() for out, _ in answers] == ["42"] * 3, answers
    assert (tmp_path / "builds").read_text() == "built\n"
    assert sorted(err.count("building") for _, err in answers) == [0, 0, 1]


@pytest.mark.long
@needs_processor
def test_without_a_compiler_attention_is_computed_all_the_same_and_one_line_says_how(tmp_path: Path) -> None:
    lines = []
    for _ in range(2):
        process = start(ATTEND, tmp_path, CXX="no-such-compiler")
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        lines.append(error.splitlines())
    assert len(lines[0]) == 1
    assert "no-such-compiler" in lines[0][0]
    assert lines[1] == []


@needs_processor
@pytest.mark.slow
def test_the_command_that_builds_ends_well_without_a_compiler_unless_the_kernel_is_insisted_on(
    tmp_path: Path,
) -> None:
    run = "import runpy; runpy.run_module('precis.nn.disentangled.cpp_loader', run_name='__main__')"
    process = start(run, tmp_path, CXX="no-such-compiler")
    assert "no-such-compiler" in process.communicate(timeout=300)[1]
    assert process.returncode == 0
    insisting = start(run, tmp_path, CXX="no-such-compiler", PRECIS_COMPILE="1")
    insisting.communicate(timeout=300)
    assert insisting.returncode == 2


@pytest.mark.parametrize(
    "capability", ["AVX2", "AVX512"]
)  # torch may be told to compute as an older processor does
def test_the_level_is_that_of_torchs_own_kernels(capability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_loader.torch.backends.cpu, "get_cpu_capability", lambda: capability)  # type: ignore[attr-defined]
    assert cpp_loader._level() == capability
    assert capability in cpp_build.LEVELS


@needs_processor
def test_a_wheels_library_that_cannot_be_loaded_here_leaves_it_to_the_compiler(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was made for a newer system, say."""
    library = tmp_path / "prebuilt.so"
    library.write_bytes(b"no library")
    monkeypatch.setattr(cpp_build, "prebuilt", lambda *_: library)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert refused(capsys).count("no-such-compiler") == 2


def wheel_of(folder: Path, tmp_path: Path, **variables: str) -> Path:
    """A wheel of a copy of the project, without network."""
    for name in ("src", "setup.py", "pyproject.toml", "README.md"):
        source = PROJECT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    shutil.rmtree(folder / "src" / "precis_summarizer.egg-info", ignore_errors=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PRECIS_COMPILE", "PYTHONPATH")}
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run(
        [*command, "--wheel-dir", str(tmp_path / "dist"), str(folder)],
        env={**environment, **variables},
        check=True,
        capture_output=True,
        timeout=900,
    )
    (wheel,) = (tmp_path / "dist").iterdir()
    return wheel


@pytest.mark.slow
@needs_compiler
def test_a_wheel_brings_kernels_for_every_level_and_needs_no_compiler_where_it_is_installed(
    tmp_path: Path,
) -> None:
    (tmp_path / "copy").mkdir()
    wheel = wheel_of(tmp_path / "copy", tmp_path)
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path / "site"),
    ]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=300)
    libraries = list((tmp_path / "site" / "precis" / "nn" / "disentangled" / "cpp" / "prebuilt").glob("*.so"))
    assert len(libraries) == len(cpp_build.LEVELS) * len(cpp_loader.KERNELS)
    code = ATTEND + "\nfrom precis.nn.disentangled import cpp_loader; print(cpp_loader.load('disentangled'))"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "CXX": "/bin/false"}
    process = start(code, tmp_path / "empty", **environment)
    out, error = process.communicate(timeout=300)
    assert (process.returncode, error) == (0, "")
    assert Path(out.strip()) in libraries
    assert not (tmp_path / "empty").exists()


@pytest.mark.slow
def test_a_wheel_made_without_a_compiler_is_pure(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    assert wheel_of(tmp_path / "copy", tmp_path, CXX="no-such-compiler").name.endswith("-py3-none-any.whl")


def test_a_library_that_others_could_have_put_there_is_not_run(
    cache: Path, program: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program(GNU, 'echo "no kernel today: error" >&2', "exit 1")
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    library = cache / "some.so"
    library.touch()
    with pytest.raises(cpp_build.KernelError, match=r"can be written by others"):
        cpp_loader._refuse_what_others_can_write(library)
    cache.chmod(0o755)
    library.chmod(0o666)
    with pytest.raises(cpp_build.KernelError, match=r"some\.so can be written by others"):
        cpp_loader._refuse_what_others_can_write(library)
    library.chmod(0o755)
    cpp_loader._refuse_what_others_can_write(library)


@needs_processor
def test_a_cache_that_cannot_even_be_looked_at(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forbidden(*_: object) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(cache))

    monkeypatch.setattr(cpp_loader, "_prebuilt", lambda *_: None)
    monkeypatch.setattr(cpp_loader, "_built", lambda *_, **__: forbidden())
    assert "Permission denied" in refused(capsys)


@needs_processor
@pytest.mark.parametrize(
    "said", ["c++: fatal error: Killed signal terminated program cc1plus", "error: No space left on device"]
)
def test_what_may_pass_is_tried_again(
    said: str, cache: Path, program: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    program(GNU, f'echo "{said}" >&2', "exit 1")
    assert not cpp_loader.is_ready("disentangled", cpp_loader.Wish.where_possible)
    assert said.split(":")[-1].strip() in capsys.readouterr().err
    assert not list(cache.glob("*.failed"))


@pytest.mark.parametrize("note", ["{}", "null", "[]", "not json"])
def test_a_damaged_note_is_no_refusal(note: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.failed"
    file.write_text(note)
    cpp_loader._Refusal(file, "c++").heed(since=0.0)


@needs_processor
def test_the_lock_of_a_build_neither_follows_a_link_nor_empties_a_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    thesis = tmp_path / "thesis"
    thesis.write_text("three years")
    cache.mkdir(parents=True)
    with cpp_loader._alone(cache / "first.lock"):
        pass
    (cache / "second.lock").symlink_to(thesis)
    (cache / "third.lock").hardlink_to(thesis)
    for name in ("second", "third"):
        with cpp_loader._alone(cache / f"{name}.lock"):
            pass
    assert thesis.read_text() == "three years"


@needs_processor
def test_nothing_is_built_where_others_write_or_below(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = []
    monkeypatch.setattr(cpp_build, "build", lambda command, library: built.append(library))
    cache.mkdir(parents=True)
    for shared in (cache, cache.parent, cache.parent.parent):
        shared.chmod(0o777)
        with pytest.raises(UserError, match=f"{shared} can be written by others"):
            cpp_loader.load("disentangled")
        assert list(cache.iterdir()) == []
        shared.chmod(0o755)
    assert built == []
    cache.parent.chmod(0o1777)  # as /tmp: nobody renames what belongs to others
    cpp_loader._refuse_what_others_can_write(cache)


@pytest.mark.parametrize("wanted", [cpp_loader.Wish.where_possible, cpp_loader.Wish.always])
def test_a_kernel_that_was_loaded_is_ready(
    wanted: Wish, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpp_loader, "_load", lambda name, *, again: Path(name))
    assert cpp_loader.is_ready("disentangled", wanted) is True
    assert cpp_loader.is_ready("disentangled", cpp_loader.Wish.never) is False


@pytest.mark.parametrize(
    ("mode", "own_group", "writable"),
    [
        (0o755, False, False),
        (0o775, True, False),
        (0o775, False, True),
        (0o757, True, True),
        (0o755, True, False),
    ],
)
def test_ones_own_group_is_nobody_else(
    mode: int, own_group: bool, writable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = os.stat_result((mode, 0, 0, 1, 0, 7, 0, 0, 0, 0))
    monkeypatch.setattr(os, "getgid", lambda: 7 if own_group else 8)
    assert cpp_loader._others_write(state) == writable
