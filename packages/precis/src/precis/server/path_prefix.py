"""A path in front of all paths of an application, for a proxy that shows several services under one name."""

from __future__ import annotations

from precis.server.asgi_request import App, Receive, Scope, Send


def under(prefix: str, app: App) -> App:
    """Return the application under a prefix, as "/precis"; its paths without the prefix stay.

    A request of the prefix itself is sent to the prefix with a slash, so that relative links of the page hold.
    """

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path == prefix:
            headers = [(b"location", f"{prefix}/".encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        if path.startswith(f"{prefix}/"):
            rest = path[len(prefix) :]
            scope = {**scope, "path": rest, "raw_path": rest.encode()}
        await app(scope, receive, send)

    return asked
