"""Every file of `nn` has a test file of its name."""

from pathlib import Path

import precis.nn

SOURCE, TESTS = Path(precis.nn.__file__).parent, Path(__file__).parent


def test_every_file_of_nn_has_a_test_file_of_its_name() -> None:
    files = [file.relative_to(SOURCE) for file in SOURCE.rglob("*.py") if file.read_text()]
    missing = [f"{file}" for file in files if not (TESTS / file.parent / f"test_{file.name}").exists()]
    assert files
    assert missing == []
