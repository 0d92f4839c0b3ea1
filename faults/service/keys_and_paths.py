"""Keys and paths that should open nothing. The same ones at each call.

The right key is among them, but never as a single `Authorization: Bearer KEY`: it is under another scheme, in another
place, or there twice.
"""

from __future__ import annotations

import random
import string
from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5, sha256
from itertools import product

from faults.service.payload import SHUT, TEXT, each, request

_VALUES = """
|KEY|NAME KEY|Bearer|Bearer NAME|Bearer NAME KEY|Bearer NAME:KEY|Basic KEY|Digest KEY|Token KEY|ApiKey KEY|JWT KEY|* KEY
|Basic PAIR|Bearer PAIR|Negotiate KEY|Bearer  KEY|BearerKEY|Bearer:KEY|Bearer=KEY|Bearer,KEY|Bearer: KEY|Bearer%20KEY
|Bearer+KEY|Bearer\tKEY|Bearer=\tKEY|Bearer\x0bKEY|Bearer\xa0KEY|Bearer\u2003KEY|Bearer\u200b KEY|B\u0435arer KEY
|Bearer KEY,|Bearer KEY;|Bearer KEY#|Bearer KEY,KEY|Bearer KEY KEY|Bearer KEY, Bearer KEY|Bearer KEY\x00|Bearer KEY%00
|Bearer "KEY"|Bearer 'KEY'|Bearer `KEY`|Bearer %22KEY%22|Bearer \\KEY|Bearer <KEY>|Bearer token=KEY|Bearer Bearer KEY
|Bearer null|Bearer undefined|Bearer None|Bearer true|Bearer 0|Bearer *|Bearer %|Bearer []|Bearer {}|Bearer ' OR 1=1 --
"""
_HEADERS = """
X-API-Key|Api-Key|X-Auth-Token|X-Authorization|X-Forwarded-Authorization|Proxy-Authorization|Authorisation|Authorization-
|Authorization_|Authorization | Authorization|Authorization\t|Auth\x00orization|X: y\x0bAuthorization|Cookie|From
"""
_TRUSTED = (
    "X-Forwarded-For|X-Real-IP|X-Client-IP|True-Client-IP|X-Forwarded-Host|X-Remote-Addr|Via|X-Remote-User"
)
_REWRITTEN = "X-Original-URL|X-Rewrite-URL|X-Original-URI|Referer|X-Forwarded-Prefix|X-Forwarded-Path"
_INSERTED = (
    "\u200b",
    "\u00ad",
    "\u0301",
    "\ufeff",
    "\x00",
    "\u202e",
    "%00",
    " ",
)  # most of them cannot be seen
_ALIKE = {
    "a": "\u0430",
    "e": "\u0435",
    "o": "\u043e",
    "c": "\u0441",
    "A": "\u0391",
    "B": "\u0392",
    "E": "\u0395",
}
_TURNS = """
{}|//{}|/./{}|{}/|{}//|{}?x=/health|{}#/health|{};/health|{}/../health|{}/%2e%2e/health|{}%00|{}%20|{}%2f|{}%23|{}%3f
|/page.css/..{}|/health/../{}|/health%2f..{}|/ready\\..{}|/%2e{}|/%2f{}|/.{}|/..{}|/%252e%252e{}|/%c0%ae{}|/\u2215{}
|/health{}|/health?{}|/health/{}|/health;{}|/health%0d%0aX:{}|/health%09{}|{}.css|{}.json|{}/page.css|{}%5c..%5chealth
|http://localhost{}|https://health{}|http://x/health{}|{}\u200b|{}%e2%80%8b|{}\t|{}\x0b
"""
_OTHERS = (
    "*||/docs|/redoc|/v1|/v1/|/admin|/debug|/.env|/.git/config|/server-status|/index.html|/page.py|/app.py"
)
_UPS = "/..|/%2e%2e|/..%2f|/%252e%252e|/..\\|/%5c..|/....//|/..;|/%c0%ae%c0%ae|/.%00.|/\uff0e\uff0e"


def schemes(key: str, name: str) -> Iterator[bytes]:
    """Yield the right key under other schemes, twice, or as a digest, and words that are not keys."""
    encoded = key.encode()
    pair = b64encode(f"{name}:{key}".encode()).decode()
    digests = [sha256(encoded).hexdigest(), md5(encoded).hexdigest(), b64encode(encoded).decode()]
    values = [one.replace("KEY", key).replace("NAME", name).replace("PAIR", pair) for one in each(_VALUES)]
    for value in [*values, *(f"Bearer {digest}" for digest in digests)]:
        yield request("/v1/models", f"Authorization: {value}")
    yield request("/v1/models", b"Authorization: Bearer " + sha256(encoded).digest())
    yield request("/v1/models", b"Authorization: Bearer " + key.encode("utf-16"))
    wrong, right = "Authorization: Bearer " + "0" * len(key), f"Authorization: Bearer {key}"
    for both in ((wrong, right), (right, wrong), (right, right)):
        yield request("/v1/models", *both)


def places(key: str, name: str) -> Iterator[bytes]:
    """Yield the right key where keys do not belong, and headers that some servers trust."""
    for header in each(_HEADERS):
        yield request("/v1/models", f"{header}: Bearer {key}")
        yield request("/v1/models", f"{header}: {key}")
    yield request("/v1/models", "X: y", f" Authorization: Bearer {key}")
    yield request("/v1/models", f"Cookie: authorization=Bearer {key}; key={key}; token={key}")
    for field in ("key", "api_key", "apikey", "token", "access_token", "authorization"):
        yield request(f"/v1/models?{field}={key}")
        yield request(f"/v1/models?{field}=Bearer%20{key}")
        body = b'{"%s":"%s",%s' % (field.encode(), key.encode(), TEXT[1:])
        yield request("/v1/summarize", method="POST", body=body)
    for path in (
        "/KEY/v1/models",
        "/v1/models/KEY",
        "/v1/models;key=KEY",
        "http://ann:KEY@localhost/v1/models",
    ):
        yield request(path.replace("KEY", key))
    for header, value in product(each(_TRUSTED), ("127.0.0.1", "localhost", "::1", name)):
        yield request("/metrics", f"{header}: {value}")
    for header, path in product(each(_REWRITTEN), ("/health", "/")):
        yield request("/metrics", f"{header}: {path}")
        yield request(path, f"{header}: /metrics")
    for host in ("127.0.0.1", "[::1]", "localhost:80", "health", "localhost/health", "\u2100"):
        yield request("/metrics", host=host)


def keys(key: str) -> Iterator[bytes]:
    """Yield keys that are almost right: cut, longer, in another case or script, or with a character changed."""
    made = [key.upper(), key.lower(), key.swapcase(), key.title(), key[::-1], key * 2]
    made += [key[:count] for count in range(len(key))] + [key[count:] for count in range(1, len(key))]
    made += [key + mark for mark in string.printable if mark not in " \t\r\n"]
    for place, letter in enumerate(key):
        before, after = key[:place], key[place + 1 :]
        full_width = chr(ord(letter) + 0xFEE0)
        for other in (
            letter.swapcase(),
            chr(ord(letter) ^ 1),
            "",
            full_width,
            f"%{ord(letter):02x}",
            f"&#{ord(letter)};",
        ):
            made.append(before + other + after)
        made += [before + mark + key[place:] for mark in _INSERTED if place or mark != " "]
    made += [key.replace(latin, other) for latin, other in _ALIKE.items()]
    rng = random.Random(0)
    made += ["".join(rng.choices(string.ascii_letters + string.digits, k=len(key))) for _ in range(100)]
    for wrong in dict.fromkeys(made):
        if wrong != key:
            yield request("/v1/models", f"Authorization: Bearer {wrong}")


def paths() -> Iterator[bytes]:
    """Yield closed paths in other spellings and behind open ones."""
    for turn, path in product(each(_TURNS), SHUT):
        yield request(turn.format(path))
        yield request(turn.format(path.upper()))
    for path in SHUT:
        yield request(path.replace("/v1", "/%76%31").replace("metrics", "%6detrics"))
        yield request(path[1:])
    for path in each(_OTHERS):
        yield request(path)


def files() -> Iterator[bytes]:
    """Yield paths of files next to the page, or elsewhere on the machine."""
    begins = ("", "/page.css", "/page.js", "/page", "/static", "/openapi.json")
    for begin, up, count, end in product(
        begins, each(_UPS), (1, 6), ("/keys.py", "///etc/passwd", "/run/keys.txt")
    ):
        yield request(begin + up * count + end)
    for path in ("/page.css%00.py", "/page.css/", "/page.js.map", "file:///etc/passwd", "//etc/passwd"):
        yield request(path)


_HOSTS = """evil.example|evil.example:80|localhost.evil.example|127.0.0.1.evil.example|localhost@evil.example
|evil.example/localhost|evil.example#localhost|evil.example?localhost|localhost,evil.example|localhost evil.example
|10.0.0.1|[::ffff:10.0.0.1]|[fe80::1]|localhos|ocalhost|localhost.|.localhost||.|[|]|%6cocalhost|\u2113ocalhost"""
_ORIGINS = """http://evil.example|https://evil.example|null|http://localhost.evil.example|http://localhost:1
|http://localhost@evil.example|http://evil.example/localhost|file://|//evil.example|localhost|http://127.0.0.1
|chrome-extension://abc|http://localhost evil.example|http://localhost,http://evil.example"""


def strangers() -> Iterator[bytes]:
    """Yield requests that a page of another site can make a browser send to a server without keys."""
    for path in SHUT:
        for method, body in (("GET", b""), ("HEAD", b""), ("POST", TEXT), ("OPTIONS", b"")):
            for host in each(_HOSTS):
                yield request(path, method=method, host=host, body=body)
                yield request(
                    path, "X-Forwarded-Host: localhost", "Origin: http://localhost", method=method, host=host
                )
            for origin in each(_ORIGINS):
                yield request(path, f"Origin: {origin}", method=method, body=body)
                yield request(path, f"Origin: {origin}", "Access-Control-Request-Method: POST", method=method)
            yield request(
                path, "Origin: http://localhost", "Origin: http://evil.example", method=method, body=body
            )
            yield request(path, "Host: evil.example", method=method, body=body)
