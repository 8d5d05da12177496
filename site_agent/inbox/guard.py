"""Admission to the inbox: who may open a page, and which requests may change anything.

Other users of the machine can connect to its loopback address, and any page that the browser shows
can send requests there. A browser therefore needs three secrets. A one-time token in the address
that the terminal prints is exchanged for a cookie. A random folder in every address keeps the
cookie from other programs on the same machine, since browsers send cookies to all ports of a host.
A form also carries a token of its session.
"""

import hashlib
import hmac
import html
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
FORM = "inbox form"
"""Key of a request's scope for the fields of its form."""
SESSION_TOKEN = "inbox token"  # noqa: S105 - a key, not a token
"""Key of a request's scope for the token of the session's forms."""
_MOST_BODY = 1 << 16
_MOST_FIELDS = 40
_MOST_SESSIONS = 20
_FORM_TYPE = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send the origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex",
}


@dataclass
class Door:
    """Secrets of one running inbox, and the sessions that they opened."""

    port: int
    announce: Callable[[str], None]
    """Receives the address with a new one-time token, for the terminal."""
    read_only: bool = False
    base: str = field(default_factory=lambda: f"/{secrets.token_hex(16)}/")
    """Beginning of the path of every address."""
    _token: str = ""
    _sessions: dict[bytes, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Scheme, address and port, as browsers send them."""
        return f"http://{HOST}:{self.port}"

    @property
    def cookie(self) -> str:
        """Name of the cookie."""
        return f"inbox-{self.port}"

    def renew(self) -> str:
        """Draw a new token, announce its address, and return the address."""
        self._token = secrets.token_urlsafe(32)
        address = f"{self.origin}{self.base}?token={self._token}"
        self.announce(address)
        return address

    def exchange(self, token: str) -> str | None:
        """Return the cookie of a new session for the token, which is then spent; or None."""
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        cookie = secrets.token_urlsafe(32)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_key(cookie)] = secrets.token_urlsafe(32)
        self.renew()
        return cookie

    def session(self, cookie: str) -> str | None:
        """Return the token of a session's forms, or None if no session has the cookie."""
        return self._sessions.get(_key(cookie))


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


class RefusedRequestError(Exception):
    """A request to the inbox that is not admitted: the answer's status, and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Guard:
    """The inbox with its admission, as an ASGI application.

    Parameters
    ----------
    app : ASGI application
        The pages.
    door : Door
        Secrets and sessions.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before any page sees it."""
        if scope["type"] != "http":  # neither websockets nor start-up work
            return
        guarded = _with_headers(send)
        try:
            answer = await self._admit(scope, receive)
        except RefusedRequestError as error:
            answer = PlainTextResponse(f"{error.why}\n", error.status)
        await (answer or self._app)(scope, receive, guarded)

    async def _admit(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer to the exchange of a token; None for a request of a session."""
        door = self._door
        request = Request(scope, receive)
        _require_host(door, request)
        _require_folder(door, request)
        tokens = request.query_params.getlist("token")
        if tokens and request.method == "GET" and request.url.path == door.base:
            return _exchanged(door, tokens)
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RefusedRequestError(403, "The request comes from another page.")
        token = _session(door, request.headers)
        if token is None:
            raise RefusedRequestError(
                401, "Open the address that 'site-agent serve' printed last in its terminal."
            )
        scope[SESSION_TOKEN] = token
        if request.method == "POST":
            scope[FORM] = await _read_form(door, request, token)
        elif request.method not in ("GET", "HEAD"):
            raise RefusedRequestError(405, "Only GET and POST are answered.")
        return None


def _require_host(door: Door, request: Request) -> None:
    """Refuse a name, which anyone could point at this machine, instead of the loopback address."""
    if request.headers.getlist("host") != [f"{HOST}:{door.port}"]:
        raise RefusedRequestError(421, "This address is not served here.")


def _require_folder(door: Door, request: Request) -> None:
    """Refuse a path without the secret folder."""
    begin = request.scope["path"][: len(door.base)]
    if not hmac.compare_digest(begin.encode("utf-8", "surrogatepass"), door.base.encode()):
        raise RefusedRequestError(404, "There is nothing here.")


def _exchanged(door: Door, tokens: list[str]) -> Response:
    """Begin a session by a page of this origin: a redirect from another would lack the cookie."""
    cookie = door.exchange(tokens[0]) if len(tokens) == 1 else None
    if cookie is None:
        raise RefusedRequestError(
            403,
            "Each address with a token works once. Open the address that 'site-agent serve' "
            "printed last in its terminal.",
        )
    place = html.escape(door.base)
    page = HTMLResponse(
        '<!DOCTYPE html><html lang="en"><head><title>Inbox</title>'
        '<link rel="icon" href="data:,">'
        f'<meta http-equiv="refresh" content="0; url={place}"></head>'
        f'<body><p><a href="{place}">Open the inbox</a></p></body></html>'
    )
    page.set_cookie(door.cookie, cookie, path=door.base, httponly=True, samesite="strict")
    return page


def _session(door: Door, headers: Headers) -> str | None:
    """Return the token of the forms of a request's session, or None.

    Another program of this machine can add a cookie of the same name, which opens nothing.
    """
    for part in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = part.strip().partition("=")
        token = door.session(value) if name == door.cookie else None
        if token is not None:
            return token
    return None


async def _read_form(door: Door, request: Request, token: str) -> Mapping[str, str]:
    """Return the fields of a form of this session's own pages."""
    _require_writable(door)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != _FORM_TYPE:
        raise RefusedRequestError(415, "Only forms are accepted.")
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BODY:
                raise RefusedRequestError(413, "The form is too long.")
        pairs = parse_qs(body.decode(), True, True, max_num_fields=_MOST_FIELDS)
    except (ValueError, ClientDisconnect) as error:
        raise RefusedRequestError(400, "The form can't be read.") from error
    fields = {name: values[0] for name, values in pairs.items() if len(values) == 1}
    _require_own_page(door, request, fields, token)
    return fields


def _require_writable(door: Door) -> None:
    """Refuse every form of a read-only inbox."""
    if door.read_only:
        raise RefusedRequestError(403, "This inbox is read-only.")


def _require_own_page(door: Door, request: Request, fields: Mapping[str, str], token: str) -> None:
    """Refuse a form of a page of another origin, or of another session."""
    if request.headers.getlist("origin") != [door.origin]:
        raise RefusedRequestError(403, "The form comes from another page.")
    if not hmac.compare_digest(fields.get("token", "").encode(), token.encode()):
        raise RefusedRequestError(403, "The form is not of this session. Reload the page.")


def _with_headers(send: Send) -> Send:
    """Return a sender that adds the headers of every answer."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sender
