"""Names on the Hugging Face hub, and the rows of its data sets, read through `datasets`.

    hub:owner/name[:config][@revision]

`datasets` no longer runs loading scripts. For data sets that are still scripts the hub keeps a converted copy
under the revision `refs/convert/parquet`, with one folder per configuration. precis reads it only if the source
names it.
"""

import gc
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from precis_text.bounded_io import suggest
from precis_text.errors import UserError, first_line
from precis_text.row import Row

PREFIX = "hub:"
_NAME = re.compile(r"(?:[\w][\w.-]*/)?[\w][\w.-]*", re.ASCII)
CONVERTED = "refs/convert/parquet"
_PATIENCE = 10  # seconds for the hub to answer
_NOT_PUBLIC = (401, 403, 404)  # the hub's status codes for a missing or private model


def read_hub(source: str, split_names: Sequence[str], *, stream: bool = False) -> Iterator[Row]:
    """Read the first split of `split_names` that the data set has, or its only split if no names are given.

    All splits are downloaded once, before the first row, and kept in the cache of `datasets`. With `stream`, rows are
    downloaded on demand and nothing is kept, which suits a caller that needs only the first rows.

    Raises:
        UserError: the hub cannot be reached, or lacks this data set, configuration or split.
    """
    splits = _load(source, stream=stream)
    if not split_names and len(splits) == 1:
        split_names = list(splits)
    name = next((name for name in split_names if name in splits), None)
    if name is None:
        wanted = f"no split {split_names[0]!r}" if split_names else "name the split to read"
        raise UserError(f"{source}: {wanted}; it has {', '.join(map(str, splits))}")
    try:
        with _in_one_line(source):
            for number, values in enumerate(splits[name], start=1):
                yield Row(f"{name} row {number}", values)
    finally:
        if stream:
            # Arrow's reader aborts the process if it is unfinished when the interpreter exits (apache/arrow#45214).
            del splits
            gc.collect()


def hub_splits(source: str) -> list[str]:
    """List a data set's splits without downloading a row; raise `UserError` if the hub lacks it or is away."""
    return [str(name) for name in _load(source, stream=True)]


def hub_name(source: str | Path) -> str | None:
    """Return the `owner/name` on the hub that a source means; None if it means a local path.

    `hub:owner/name` always means the hub. A bare `owner/name` does if neither it nor a folder `owner` exists locally:
    if a folder `runs` exists, `runs/first` is a missing local folder.
    """
    text = str(source)
    if text.startswith(PREFIX):
        name = text.removeprefix(PREFIX)
        return name if _is_name(name) else None
    owner, slash, _ = text.partition("/")
    if not _is_name(text) or text.startswith("~") or Path(text).exists() or (slash and Path(owner).exists()):
        return None
    return text


def refuse_absent(name: str, *files: str) -> None:
    """Ask the hub once, since its client retries a hopeless request for almost a minute.

    Args:
        files: a model has at least one of these.

    Raises:
        UserError: the hub has none of them or does not answer, and no earlier download is there.
    """
    import huggingface_hub

    if any(isinstance(huggingface_hub.try_to_load_from_cache(name, file), str) for file in files):
        return
    for file in files:
        try:
            huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(name, file), timeout=_PATIENCE)
            return
        except Exception as error:
            if isinstance(error, huggingface_hub.errors.RemoteEntryNotFoundError) and file != files[-1]:
                continue
            problem = f"the Hugging Face hub cannot be reached: {first_line(error)}"
            if getattr(getattr(error, "response", None), "status_code", None) in _NOT_PUBLIC:
                problem = "no such public model on the Hugging Face hub"
            raise UserError(f"{name}: no such folder, and {problem}{suggest(name)}") from error


def hub_hint(source: str | Path) -> str:
    """Return the end of a "no such folder" message: how to name a hub model, if this could be one."""
    text = str(source).removeprefix(PREFIX)
    if str(source).startswith(PREFIX):
        return "; write hub:owner/name"
    return f"; write {PREFIX}{text} for the Hugging Face hub" if _is_name(text) else ""


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and ".." not in text


def _load(source: str, *, stream: bool) -> Mapping[str, Any]:
    import datasets

    name, config, revision = _parts(source)
    options: dict[str, Any] = {"revision": revision} if revision else {}
    if revision == CONVERTED:
        # The converted copy has folders instead of named configurations.
        options["data_dir"] = config or "default"
    elif config:
        options["name"] = config
    if stream:
        options["streaming"] = True
    client = logging.getLogger("huggingface_hub")
    level = client.level
    client.setLevel(logging.ERROR)  # it reports every retry; our one line at the end is enough
    try:
        with _in_one_line(source):
            return datasets.load_dataset(name, **options)
    finally:
        client.setLevel(level)


@contextmanager
def _in_one_line(source: str) -> Iterator[None]:
    """Turn what the library raises into a `UserError` about this source."""
    import datasets

    try:
        yield
    except datasets.exceptions.DatasetNotFoundError as error:
        raise UserError(f"{source}: the hub does not have this data set, or it is not public") from error
    except ConnectionError as error:
        reason = first_line(error)
        raise UserError(
            f"{source}: the hub cannot be reached ({reason}); check the network or give files with --data"
        ) from error
    except Exception as error:  # the library passes on whatever its parsers raise
        if isinstance(error, RuntimeError) and "scripts are no longer supported" in str(error):
            told = f"is a loading script, which is never run; add @{CONVERTED} to read the converted copy"
        else:
            told = f"cannot be loaded: {first_line(error)}"
        raise UserError(f"{source}: {told}") from error


def _parts(source: str) -> tuple[str, str, str]:
    """Split `hub:owner/name[:config][@revision]` into (owner/name, config, revision)."""
    path, _, revision = source.removeprefix(PREFIX).partition("@")
    name, _, config = path.partition(":")
    if not name or name.count("/") > 1:
        raise UserError(f"{source}: write hub:owner/name, hub:owner/name:config or hub:owner/name@revision")
    return name, config, revision
