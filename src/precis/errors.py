"""The two ways a run ends early, each said in one line, and what a library's exception says in one line."""

import json

DISTRIBUTION = "precis-summarizer"
"""What pip calls this package; `precis` on PyPI is another project."""

# Messages of libraries whose first line alone is no help, and what to say in their place.
_IN_OUR_WORDS = {
    "For details look at the above report": (
        "its tensors have other shapes than its config.json says; take both from one model"
    ),
    "Couldn't instantiate the backend tokenizer": (
        "no file in it holds the tokenizer's pieces; copy tokenizer.json from where the model is from"
    ),
    "did not match any variant of untagged enum": "it is of a form that the tokenizers library does not know",
}
_ABOUT_ITS_OWN_CODE = ("object has no attribute", "object cannot be interpreted as", "is not subscriptable")


class UserError(ValueError):
    """Something the user can mend: the message names what, where and how. The command line exits with 2."""


class RunError(RuntimeError):
    """A run that could not go on (divergence, a full disk). The command line exits with 1."""


class DivergedError(RunError):
    """Training that left no usable model: its loss, gradient or weights were not finite."""


def missing_extra(extra: str, *, wanted_by: str = "this") -> UserError:
    """The error to raise where the packages of an extra are not installed.

    Args:
        extra: its name in pyproject.toml, such as "serve".
        wanted_by: what needs them, as the user calls it, such as "precis serve".
    """
    return UserError(
        f"{wanted_by} needs packages that are not installed: pip install '{DISTRIBUTION}[{extra}]'"
    )


def first_line(error: BaseException) -> str:
    """One line that says what a library's exception is about."""
    lines = str(error).strip().splitlines()
    line = lines[0].strip().rstrip(".") if lines else type(error).__name__
    if isinstance(error, KeyError):  # its text is the key alone
        return f"{line} is missing in it"
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON: {line}"
    if any(words in line for words in _ABOUT_ITS_OWN_CODE):
        return f"it is not of the form that is expected there ({line})"
    return next((ours for theirs, ours in _IN_OUR_WORDS.items() if theirs in line), line)
