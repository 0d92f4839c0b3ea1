"""What libraries say of themselves is kept away, but not how far a download is."""

from types import SimpleNamespace

import pytest

from precis.cli.framework import library_logging


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_download_shows_how_far_it_is_on_a_terminal_alone(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = SimpleNamespace(isatty=lambda: is_terminal)
    monkeypatch.setattr(library_logging, "sys", SimpleNamespace(stderr=stream))
    assert ("HF_HUB_DISABLE_PROGRESS_BARS" in library_logging._quiet_variables()) is not is_terminal
