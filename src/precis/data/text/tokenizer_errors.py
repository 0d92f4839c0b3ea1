"""What the tokenizers library raises, in one line: its panics too, which are no `Exception`."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from precis.data.rows.hub import first_line
from precis.errors import UserError

_PANIC = "PanicException"  # pyo3's, which cannot be imported
READING = "this tokenizer cannot read the text"


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Whatever the library raises, as a `UserError` that begins with `what`.

    A regular expression that goes back over a text without end is given up after ten million steps, by a panic.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the library passes on whatever its parsers raise
        raise UserError(f"{what}: {_reason(error)}") from error
    except BaseException as error:
        raise_panic(error, what)


@contextmanager
def panics_in_one_line() -> Iterator[None]:
    """Around calls with texts of a user: a panic alone is made a `UserError`; other errors are the caller's."""
    try:
        yield
    except BaseException as error:
        raise_panic(error, READING)


def raise_panic(error: BaseException, what: str) -> None:
    """Raise a panic as a `UserError`, everything else as it is."""
    if type(error).__name__ != _PANIC:
        raise error
    raise UserError(
        f"{what}: the tokenizers library broke off: {first_line(error)}; make the tokenizer anew"
    ) from None


def _reason(error: Exception) -> str:
    """Why, in one line. A SentencePiece file that it cannot read transformers takes for one of tiktoken's."""
    reason = first_line(error)
    if not any(name in reason.lower() for name in ("tiktoken", "sentencepiece")):
        return reason
    if find_spec("sentencepiece") is None:
        return "reading its SentencePiece file takes another package: pip install sentencepiece"
    return "its SentencePiece file cannot be read; make or download it again"
