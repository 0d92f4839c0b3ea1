"""Checks a sealed folder before it is read: each file is as it was sealed, and none that would be read came later.

Checkpoints have their own check in `training/sealed.py`.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from precis.errors import UserError
from precis.files import SEAL, DamagedError, check_seal, has_seal, unsealed_names

_logger = logging.getLogger("precis.files")
_READ = (".json", ".safetensors", ".jinja", ".model", ".bin")
_READ_NAMES = ("vocab.txt", "merges.txt")


def check_sealed(folder: Path) -> None:
    """Refuse a folder that was sealed and has changed since; a folder without a seal is taken as it is.

    Files that came later are named in a warning, and refused if transformers would read them.

    Raises:
        UserError: if it has changed; the message begins with the folder, and names the file.
    """
    if not has_seal(folder):
        return
    try:
        check_seal(folder)
        later = unsealed_names(folder)
    except DamagedError as damage:
        raise UserError(
            f"{folder}: {damage}; copy it again or recreate it. If you changed it on purpose, remove {SEAL}"
        ) from None
    read = [name for name in later if name.endswith(_READ) or name in _READ_NAMES]
    if read:
        raise UserError(
            f"{folder}: {read[0]} was not there when it was sealed; remove it, or, if it belongs there, remove {SEAL}"
        )
    if later:
        _logger.warning("%s: %s was not there when it was sealed; it is not read", folder, ", ".join(later))


@contextmanager
def checking_sealed(folder: Path) -> Iterator[None]:
    """Run `check_sealed` in a thread while the block reads the folder, since digests take one core of several.

    Nothing that the block made may be used before it ends. If the block fails and the folder has changed, the change is
    raised, because it explains the failure.

    Raises:
        UserError: as `check_sealed`.
    """
    if not has_seal(folder):
        yield
        return
    with ThreadPoolExecutor(max_workers=1) as threads:
        check = threads.submit(check_sealed, folder)
        try:
            yield
        finally:
            check.result()
