"""The live page of a service: who may look, and how a browser says who it is.

A browser cannot send a token with each request, so a form takes the token once and gives a cookie:
random, for twelve hours, that only this page gets and no script reads.  What is behind the cookie
is looked up each time, so that a revoked token sees nothing more.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from calibrant.journal.store import Pass
from calibrant.live import Door, Source, routes
from calibrant.live.app import HEADERS, POLICY
from calibrant.live.fragments import NEEDS
from calibrant.report.page import filled
from calibrant.serve.desk import Desk
from calibrant.serve.problems import Refused, response_of
from calibrant.serve.tokens import Guard, hash_in, hashed, streams_of
from calibrant.serve.wire import body_of

AT: Final = "/live"
COOKIE: Final = "calibrant"
HOURS: Final = 12
MOST: Final = 1000
"""Browsers that may be logged in; the first of more are forgotten."""
LARGEST: Final = 4096
"""Bytes of a form."""
OWN: Final = (None, "same-origin", "none")
"""What a browser says of a form of this very page."""


class Sessions:
    """Who is logged in: for each cookie, of which only a hash is kept, the hash of a token."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[bytes, float]] = {}

    def begin(self, token: bytes) -> str:
        """Return a new cookie for a token."""
        cookie = secrets.token_urlsafe(32)
        self._known[_digest(cookie)] = token, self._clock() + 3600.0 * HOURS
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return cookie

    def token(self, cookie: str | None) -> bytes | None:
        """Return the token behind a cookie, if that is not too old."""
        token, end = self._known.get(_digest(cookie or ""), (None, 0.0))
        return token if self._clock() < end else None

    def end(self, cookie: str | None) -> None:
        """Forget a cookie."""
        self._known.pop(_digest(cookie or ""), None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).digest()


class Entry(Door):
    """Lets those look who have a token, at the streams that the token is for."""

    def __init__(self, guard: Guard, ended: Callable[[], bool]) -> None:
        self.guard, self.sessions, self._ended = guard, Sessions(), ended
        self.leave = None if guard.open else "/login"

    def ended(self) -> bool:
        """Say whether the service is about to stop."""
        return self._ended()

    def look(self, request: Request) -> frozenset[str] | Response | None:
        """Return the streams that may be seen; send whoever is not known to the form."""
        if self.guard.open:
            return None
        try:
            return streams_of(self.holder(request))
        except Refused as error:
            if "/events" in request.url.path or "authorization" in request.headers:
                return response_of(error)
            return RedirectResponse(f"{AT}/login", 303, HEADERS)

    def holder(self, request: Request) -> Pass:
        """Return the token with which somebody looks, by a header or by a cookie."""
        header = request.headers.get("authorization")
        given = self.sessions.token(request.cookies.get(COOKIE))
        if header is not None or given is None:
            given = hash_in(header)
        return self.guard.known(given)


class Forms:
    """The forms to log in and out."""

    def __init__(self, desk: Desk, entry: Entry) -> None:
        self.desk, self.entry = desk, entry

    async def show(self, request: Request) -> Response:
        """Show the form to log in, or out."""
        try:
            return _form(holder=self.entry.holder(request).name)
        except Refused:
            return _form()

    async def log_in(self, request: Request) -> Response:
        """Take a token, and give a cookie."""
        try:
            _refuse_others(request)
            form = parse_qs((await body_of(request, self.desk.options, LARGEST)).decode("latin-1"))
            token = hashed(form.get("token", [""])[0].strip())
            self.entry.guard.known(token)
        except Refused as error:
            return _form(error.told.status, wrong=f"{error}."[:1].upper() + f"{error}."[1:])
        made = RedirectResponse(f"{AT}/", 303, HEADERS)
        made.set_cookie(
            COOKIE,
            self.entry.sessions.begin(token),
            path=AT,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return made

    async def log_out(self, request: Request) -> Response:
        """Forget a cookie."""
        try:
            _refuse_others(request)
        except Refused as error:
            return response_of(error)
        self.entry.sessions.end(request.cookies.get(COOKIE))
        made = RedirectResponse(f"{AT}/login", 303, HEADERS)
        made.delete_cookie(COOKIE, path=AT)
        return made


def _form(status: int = 200, *, holder: str | None = None, wrong: str | None = None) -> Response:
    policy = POLICY.replace("form-action 'none'", "form-action 'self'")
    told = {"root": AT, "holder": holder, "wrong": wrong}
    text = filled(NEEDS, "calibrant.live", "login.html", extra="serve", **told)
    headers = {**HEADERS, "Content-Security-Policy": policy}
    return Response(text, status, headers, "text/html; charset=utf-8")


def _refuse_others(request: Request) -> None:
    """Refuse a form that another site sends."""
    site = request.headers.get("sec-fetch-site")
    if site not in OWN:
        raise Refused("forbidden", f"form must be sent by this page, got one from {site[:80]!r}")


def page_routes(desk: Desk, source: Source, ended: Callable[[], bool]) -> list[BaseRoute]:
    """Return the routes of the live page, and of the forms to log in and out."""
    entry = Entry(desk.guard, ended)
    forms = Forms(desk, entry)

    async def lead(request: Request) -> Response:
        return RedirectResponse(f"{AT}/", 303, HEADERS)

    own: list[BaseRoute] = [
        Route("/login", forms.show, methods=["GET"]),
        Route("/login", forms.log_in, methods=["POST"]),
        Route("/logout", forms.log_out, methods=["POST"]),
    ]
    how = desk.options
    shown = routes(source, quick=how.quick, slow=how.slow, door=entry)
    mounted = Mount(AT, routes=[*own, *shown])
    return [Route("/", lead), Route(AT, lead), mounted]
