"""Client keys, read from a file and compared in constant time, and their rate limits."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from pathlib import Path

from precis_text.bounded_io import read_bounded
from precis_text.errors import UserError

_LARGEST = 1 << 20
_SHORTEST = 16
_ALLOWED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")


@dataclass(frozen=True)
class Key:
    """A key's name, which logs may show, and the digest of its secret."""

    name: str
    digest: bytes = field(repr=False)


@dataclass
class Keys:
    """All keys of a service, and the path of the file that they were read from."""

    keys: tuple[Key, ...]
    path: Path | None = None

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file with lines `name secret`. Empty lines and lines that start with # are ignored.

        Raises:
            UserError: if the file cannot be read, contains no key, or a line is invalid. Errors never show secrets.
        """
        try:
            lines = read_bounded(path, limit=_LARGEST).decode().splitlines()
        except UnicodeDecodeError:
            raise UserError(f"{path}: is not UTF-8 text; write a name and a secret on each line") from None
        keys: dict[str, Key] = {}
        for number, line in enumerate(lines, start=1):
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            if len(parts) != 2:
                raise UserError(f"{path}, line {number}: write a name, a space and a secret")
            name, secret = parts
            if len(secret) < _SHORTEST or not set(secret) <= _ALLOWED:
                raise UserError(
                    f"{path}, line {number}: a secret needs at least {_SHORTEST} letters, digits and -._~+/= "
                    "(openssl rand -hex 32 creates one)"
                )
            if name in keys:
                raise UserError(f"{path}, line {number}: duplicate name {name}; choose another one")
            keys[name] = Key(name, sha256(secret.encode()).digest())
        if not keys:
            raise UserError(f"{path}: contains no key; write a name, a space and a secret on a line")
        return cls(tuple(keys.values()), path)

    def reload(self) -> int:
        """Read the file again, and return the number of keys. All keys change at once, or none does.

        Raises:
            UserError: as `read`.
        """
        if self.path is not None:
            self.keys = Keys.read(self.path).keys
        return len(self.keys)

    def find(self, authorization: bytes) -> Key | None:
        """Return the key in an `Authorization` header. It always compares all keys."""
        scheme, _, secret = authorization.partition(b" ")
        digest = sha256(secret).digest()
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest):
                found = key
        return found if scheme.lower() == b"bearer" else None


class Rates:
    """A rate limiter for each key: `per_minute` requests at once, then one every 60 / `per_minute` seconds."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = per_minute, now
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, name: str) -> int:
        """Count one request of a key; return 0 if it is allowed, else the seconds to wait."""
        if not self._rate:
            return 0
        now = self._now()
        left, since = self._left.get(name, (float(self._rate), now))
        left = min(self._rate, left + (now - since) * self._rate / 60)
        self._left[name] = (left - 1 if left >= 1 else left, now)
        return 0 if left >= 1 else ceil((1 - left) * 60 / self._rate)
