"""Checks a sealed folder before use: its files are unchanged, and no file that would be read was added.

Checkpoints have their own check in `storage/checkpoint_folder.py`.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from precis.storage.atomic import SEAL, DamagedError, check_seal, has_seal, unsealed_names
from precis_text.errors import UserError

_logger = logging.getLogger("precis.storage.atomic")
_READ = (".json", ".safetensors", ".jinja", ".model", ".bin")
_READ_NAMES = ("vocab.txt", "merges.txt")


def check_sealed(folder: Path) -> None:
    """Refuse a folder that has changed since it was sealed; accept a folder without a seal.

    Added files lead to a warning, and to an error if transformers would read them.

    Raises:
        UserError: if it has changed; the message names the folder first, then the file.
    """
    if not has_seal(folder):
        return
    try:
        check_seal(folder)
        later = unsealed_names(folder)
    except DamagedError as damage:
        raise UserError(
            f"{folder}: {damage}; copy or create the folder again. If you changed it on purpose, remove {SEAL}"
        ) from None
    read = [name for name in later if name.endswith(_READ) or name in _READ_NAMES]
    if read:
        raise UserError(
            f"{folder}: {read[0]} was added after sealing; remove it or, if it belongs there, remove {SEAL}"
        )
    if later:
        _logger.warning("%s: %s was added after sealing and is ignored", folder, ", ".join(later))


@contextmanager
def checking_sealed(folder: Path) -> Iterator[None]:
    """Run `check_sealed` in a thread while the block reads the folder, since checksums use only one core.

    Use nothing that the block made before the block ends. If the block fails and the folder has changed, the error is
    about the change, which explains the failure.

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
