"""The headers of every answer, which keep pages of other sites out."""

from __future__ import annotations

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def page_headers() -> dict[str, str]:
    """Return the headers by name; a page shows only images in its own text, such as its empty icon."""
    return {
        "x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store", "content-security-policy": _POLICY,
    }  # fmt: skip
