"""How a kernel is compiled: names that fit what was compiled, and why it could not be."""

from pathlib import Path

import pytest

from precis.nn.disentangled import cpp_build


def test_libraries_of_a_wheel_have_names_that_fit_one_source_level_and_release_of_torch(
    tmp_path: Path,
) -> None:
    source = tmp_path / "some.cpp"
    source.write_text("int one;")
    first = cpp_build.prebuilt(source, "AVX2", "2.13.0+cpu")
    assert first.parent == tmp_path / "prebuilt"
    assert cpp_build.prebuilt(source, "AVX2", "2.13.0+cu130") == first
    others = {cpp_build.prebuilt(source, "AVX512", "2.13.0"), cpp_build.prebuilt(source, "AVX2", "2.13.1")}
    source.with_name("some.h").write_text("int two;")
    others.add(cpp_build.prebuilt(source, "AVX2", "2.13.0"))
    assert len({first, *others}) == 4


def test_a_digest_follows_the_source_its_headers_and_the_flags(tmp_path: Path) -> None:
    source = tmp_path / "some.cpp"
    source.write_text("int one;")
    first = cpp_build.digest(source, "-O3")
    assert cpp_build.digest(source, "-O3") == first
    others = [cpp_build.digest(source, "-O2")]
    (tmp_path / "some.h").write_text("int two;")
    others.append(cpp_build.digest(source, "-O3"))
    source.write_text("int three;")
    others.append(cpp_build.digest(source, "-O3"))
    assert len({first, *others}) == 4


@pytest.mark.parametrize(("given", "called"), [("", ["c++"]), ("ccache g++-12", ["ccache", "g++-12"])])
def test_the_compiler_is_cxx_or_else_the_usual_one(
    given: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", given)
    assert cpp_build.compiler() == called


def test_what_a_full_disk_stops_may_pass_and_a_missing_compiler_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(cpp_build.KernelError) as missing:
        cpp_build.build(["no-such-compiler"], tmp_path / "some.so")
    assert not missing.value.passing
    full = tmp_path / "full"
    full.write_text("#!/bin/sh\necho 'error: No space left on device' >&2; exit 1\n")
    full.chmod(0o755)
    with pytest.raises(cpp_build.KernelError, match="No space left") as stopped:
        cpp_build.build([str(full)], tmp_path / "some.so")
    assert stopped.value.passing
    assert not (tmp_path / "some.so").exists()
