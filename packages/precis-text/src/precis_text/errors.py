"""The two errors that end a run early, and one-line messages for the exceptions of libraries."""

import json
from importlib.metadata import PackageNotFoundError, requires

DISTRIBUTIONS = ("precis-summarizer", "precis-text", "precis-judge")
"""The names of the installed packages whose metadata list the extras; no index has these names yet."""

# Part of a library's unhelpful message -> the message to show instead.
_IN_OUR_WORDS = {
    "For details look at the above report": (
        "its tensors do not have the shapes of its config.json; take both from one model"
    ),
    "Couldn't instantiate the backend tokenizer": (
        "none of its files contains the tokenizer's vocabulary; copy tokenizer.json from the original model"
    ),
    "did not match any variant of untagged enum": "the tokenizers library does not know this format",
}
_ABOUT_ITS_OWN_CODE = ("no attribute '", "object cannot be interpreted as", "is not subscriptable")


class UserError(ValueError):
    """An error that the user can fix: the message names what, where and how. The command line exits with 2.

    Examples:
        >>> try:
        ...     pairs = list(precis.read_pairs("no such file.jsonl"))
        ... except UserError as error:
        ...     print(str(error).partition(";")[0])
        no such file.jsonl: no such file
    """


class RunError(RuntimeError):
    """A run that could not continue (divergence, a full disk). The command line exits with 1.

    Examples:
        >>> def attempt(train):
        ...     try:
        ...         return train()
        ...     except RunError as error:
        ...         return f"failed: {error}"
        >>> attempt(lambda: "trained")
        'trained'
    """


class DivergedError(RunError):
    """Training without a usable model: its loss, gradient or weights were not finite."""


def missing_extra(extra: str, *, wanted_by: str = "this") -> UserError:
    """Return the error to raise if the packages of an extra are not installed.

    The message names the packages themselves. The name of this distribution is not registered at any index yet, so a
    stranger could register it and have other code installed.

    Args:
        extra: its name in pyproject.toml, such as "serve".
        wanted_by: the feature that needs them, in the user's terms, such as "precis serve".
    """
    return UserError(f"{wanted_by} needs packages that are not installed: {install_line(extra)}")


def install_line(extra: str) -> str:
    """Return the command that installs the packages of an extra, as the installed metadata list them.

    Examples:
        >>> install_line("search")
        "pip install 'optuna<6,>=5'"
    """
    wanted = sorted({name for each in DISTRIBUTIONS for name in _packages(each, extra)})
    return " ".join(["pip install", *map(repr, wanted)]) if wanted else f"install the extra {extra}"


def _packages(distribution: str, extra: str) -> list[str]:
    """Return the requirements of an extra, or all of the package that has its name (`precis-judge`)."""
    try:
        listed = requires(distribution) or []
    except PackageNotFoundError:
        return []
    whole = distribution == f"precis-{extra}"
    parts = [line.partition(";") for line in listed]
    found = [
        name.strip() for name, _, marker in parts if f'extra == "{extra}"' in marker or (whole and not marker)
    ]
    return [name for name in found if not name.startswith("precis-")]


def first_line(error: BaseException) -> str:
    """Return a one-line description of a library's exception."""
    lines = str(error).strip().splitlines()
    line = lines[0].strip().rstrip(".") if lines else type(error).__name__
    if isinstance(error, KeyError):  # its text is only the key
        return f"{line} is missing in it"
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON: {line}"
    if any(words in line for words in _ABOUT_ITS_OWN_CODE):
        return f"it does not have the expected format ({line})"
    return next((ours for theirs, ours in _IN_OUR_WORDS.items() if theirs in line), line)
