"""Pictures that were drawn before: half the time of a tiny training run is matplotlib's.

A picture of the same points is copied from the undisturbed run, and written in the same pieces. So the disk has the
same events. Any other picture is drawn.
"""

import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any


class Pictures:
    """The pieces in which matplotlib wrote each picture, by what it shows."""

    def __init__(self, file: Path) -> None:
        """Keep them in a file, since a child draws them; it must be outside the disk that fails."""
        self._file = file
        self._pieces: dict[str, list[bytes | None]] = {}

    def take_up(self) -> None:
        """Read what a child kept."""
        if self._file.exists():
            self._pieces |= pickle.loads(self._file.read_bytes())

    def keep(self) -> None:
        """Draw in pieces and keep them from now on, for the child of an undisturbed run."""
        drawn: dict[str, list[bytes | None]] = {}

        def draw(figure: Any, file: Any, savefig: Callable[..., None], options: dict[str, Any]) -> None:
            pieces = drawn[_shown(figure, options)] = []
            savefig(figure, _Pieces(pieces), **options)
            _write(pieces, file)
            self._file.write_bytes(pickle.dumps(drawn))

        _draw_with(draw)

    def use(self) -> None:
        """Write known pictures from now on, for the other children."""

        def draw(figure: Any, file: Any, savefig: Callable[..., None], options: dict[str, Any]) -> None:
            known = self._pieces.get(_shown(figure, options))
            savefig(figure, file, **options) if known is None else _write(known, file)

        _draw_with(draw)


class _Pieces:
    def __init__(self, pieces: list[bytes | None]) -> None:
        self._pieces = pieces

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        self._pieces.append(None)


def _write(pieces: list[bytes | None], file: Any) -> None:
    for piece in pieces:
        file.flush() if piece is None else file.write(piece)


def _draw_with(draw: Callable[..., None]) -> None:
    from matplotlib.figure import Figure

    usual = Figure.savefig
    Figure.savefig = lambda figure, file, **options: draw(figure, file, usual, options)  # type: ignore[method-assign]


def _shown(figure: Any, options: dict[str, Any]) -> str:
    """Return a digest of all that the curves of a run differ in: texts, points and how they look."""
    texts = [figure.get_suptitle(), tuple(figure.get_size_inches()), sorted(options.items())]
    for axes in figure.axes:
        texts += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.get_visible()]
        for line in axes.lines:
            looks = (line.get_label(), line.get_color(), line.get_linestyle(), line.get_marker())
            texts += [line.get_xdata(orig=True), line.get_ydata(orig=True), looks]
    return sha256(repr(texts).encode()).hexdigest()
