"""Who may use the page: the token, the cookie, and the checks of where a request comes from.

The page is meant for the people who were given its link. A request must carry the token, first in the link and then in
a cookie that scripts cannot read and other sites cannot send. Its Host must be a name of this machine, or else a
stranger's name that leads here (DNS rebinding) could read along. What changes something must come from the page itself.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 10_000  # bytes of a request
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def new_token() -> str:
    """A secret that cannot be guessed."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Lets a request through to the app, or says why not.

    Parameters
    ----------
    app : ASGI application
    token : str
    host : str
        The address that the server listens on.
    port : int
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host, self.port = app, token, host, port
        self.cookie = f"pairmargin-{port}"  # cookies know no ports: two sessions must not share one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = Request(scope)
        refused = self._refusal(request)
        came_with_link = self._fits(request.query_params.get("token"))

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = dict(_names(message["headers"]))
                extra: dict[str, str] = {k: v for k, v in HEADERS.items() if k.lower() not in headers}
                if "cache-control" not in headers:
                    extra["Cache-Control"] = "no-store"
                if came_with_link and not refused:
                    extra["Set-Cookie"] = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in extra.items())]
            await send(message)

        if refused is not None:
            await refused(scope, receive, dressed)
        else:
            await self.app(scope, _limited(receive), dressed)

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        if not self.is_own_host(headers.get("host", "")):
            return _refuse(421, "This page is not known by that name; use the link that the command printed.")
        if not (self._fits(request.query_params.get("token")) or self._fits(request.cookies.get(self.cookie))):
            return _refuse(401, "Open the link that the command printed: it has the token.")
        if request.method not in ("GET", "HEAD", "POST"):
            return _refuse(405, "Only GET and POST are understood.")
        if request.method == "POST":
            return self._post_refusal(headers)
        return None

    def _post_refusal(self, headers: Mapping[str, str]) -> Response | None:
        is_own = headers.get("origin") == f"http://{headers.get('host')}"
        if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse(403, "Only the page itself may send answers.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refuse(415, "Answers are sent as application/json.")
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10) or int(length) > LARGEST_BODY:
            return _refuse(413, f"A request has at most {LARGEST_BODY} bytes, and says how many.")
        return None

    def _fits(self, token: str | None) -> bool:
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())

    def is_own_host(self, value: str) -> bool:
        """Whether a Host header is a name of this machine: none that a stranger can give it."""
        name, _, port = value.rpartition(":") if re.search(r":\d+$", value) else (value, "", "80")
        if port != str(self.port):  # browsers leave out that of HTTP
            return False
        name = name.removeprefix("[").removesuffix("]").lower()
        if is_loopback(self.host):
            return is_loopback(name)
        try:
            ipaddress.ip_address(name)  # a name leads anywhere, a number does not
        except ValueError:
            return name in {"localhost", self.host.lower(), socket.gethostname().lower()}
        return True


def _refuse(status: int, why: str) -> Response:
    return PlainTextResponse(why + "\n", status)


def _names(headers: Any) -> Any:
    return ((name.decode().lower(), value) for name, value in headers)


def _limited(receive: Receive) -> Receive:
    """The body of a request, cut off where it is longer than it said."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            return {"type": "http.disconnect"}
        return message

    return limited
