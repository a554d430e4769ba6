"""The live page as an ASGI application: pages, server-sent events, script and style."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

from calibrant.errors import UnknownName, needed
from calibrant.live.fragments import Fragment
from calibrant.live.packed import PACKED, VARY, accepts, packed, packed_events
from calibrant.live.pages import QUICK, SLOW, Pages
from calibrant.live.source import Source

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
AGAIN: Final = 2000
"""Milliseconds after which a browser tries again to connect."""


class Door:
    """Who may look, at which streams, and until when: here everybody, at all, for ever."""

    leave: str | None = None
    """Where one logs in and out, below where the page is mounted; None if nobody does."""

    def look(self, request: Request) -> frozenset[str] | Response | None:
        """Return the streams that may be seen, None for all of them; or a refusal."""
        return None

    def ended(self) -> bool:
        """Say whether connections that are open shall end now."""
        return False


def app(source: Source, *, quick: float = QUICK, slow: float = SLOW) -> Starlette:
    """Return the live page of a source as an application of its own, or to be mounted.

    Parameters
    ----------
    source
        What there is to see.
    quick, slow
        Seconds between updates of counts, scores and alarms, and of what takes a summary.

    Examples
    --------
    >>> from calibrant.live import Memory
    >>> [route.path for route in app(Memory()).routes][:3]
    ['/', '/streams/{name:path}', '/events']
    """
    applications = _starlette("applications")
    made = applications.Starlette(routes=routes(source, quick=quick, slow=slow))
    return cast("Starlette", made)


def routes(
    source: Source, *, quick: float = QUICK, slow: float = SLOW, door: Door | None = None
) -> list[BaseRoute]:
    """Return the routes of the live page, for ``starlette.routing.Mount``.

    ``door`` says who may look; without one, everybody may.
    """
    door = Door() if door is None else door
    page = _Page(Pages(source, quick=quick, slow=slow, leave=door.leave), door)
    Route = _starlette("routing").Route
    return [
        Route("/", page.overview),
        Route("/streams/{name:path}", page.stream),
        Route("/events", page.events),
        Route("/events/{name:path}", page.events),
        Route("/live.css", page.style),
        Route("/live.js", page.script),
    ]


def _starlette(part: str) -> Any:
    told = "the live page needs starlette, which is not installed"
    return needed(f"starlette.{part}", told, "serve")


def event(part: Fragment) -> str:
    """Return a fragment as a server-sent event.

    >>> event(Fragment("facts", "", "<p>1</p>"))
    'event: fragment\\ndata: {"id": "facts", "html": "<p>1</p>"}\\n\\n'
    """
    return f"event: fragment\ndata: {json.dumps({'id': part.key, 'html': part.html})}\n\n"


class _Page:
    """The answers to requests."""

    def __init__(self, pages: Pages, door: Door) -> None:
        self.pages, self.door = pages, door

    async def overview(self, request: Request) -> Response:
        seen = self.door.look(request)
        if not (seen is None or isinstance(seen, frozenset)):
            return seen
        return await self._html(request, lambda: self.pages.overview(_root(request), seen))

    async def stream(self, request: Request) -> Response:
        seen, window = self.door.look(request), request.query_params.get("window")
        if not (seen is None or isinstance(seen, frozenset)):
            return seen
        name, root = request.path_params["name"], _root(request)
        return await self._html(request, lambda: self.pages.stream(name, root, window, seen))

    async def style(self, request: Request) -> Response:
        return self._answer(request, self.pages.style(), "text/css")

    async def script(self, request: Request) -> Response:
        text = resources.files("calibrant.live").joinpath("static/live.js").read_text("utf-8")
        return self._answer(request, text, "text/javascript")

    async def events(self, request: Request) -> Response:
        """Answer with fragments as they change, until the browser goes."""
        name, window = request.path_params.get("name"), request.query_params.get("window")
        root, seen = _root(request), self.door.look(request)
        if not (seen is None or isinstance(seen, frozenset)):
            return seen
        if name is None:
            made = lambda: self.pages.all_streams(root, seen)  # noqa: E731
        else:
            made = lambda: self.pages.one_stream(name, root, window, seen)  # noqa: E731
        if (missing := await self._refused(request, made)) is not None:
            return missing
        responses = _starlette("responses")
        allowed = lambda: self.door.look(request) == seen and not self.door.ended()  # noqa: E731
        changes: AsyncIterator[Any] = self._changes(made, allowed)
        small = accepts(request.headers)
        told = HEADERS | (PACKED if small else VARY)
        sent = packed_events(changes) if small else changes
        answer = responses.StreamingResponse(sent, media_type="text/event-stream", headers=told)
        return cast("Response", answer)

    async def _changes(
        self, made: Callable[[], list[Fragment]], allowed: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Yield fragments that differ from those before; a comment where none does."""
        import anyio

        yield f"retry: {AGAIN}\n\n"
        sent: dict[str, str] = {}
        while allowed():
            try:
                parts = await anyio.to_thread.run_sync(made)
            except UnknownName:
                # The stream was deleted.
                return
            new = [part for part in parts if sent.get(part.key) != part.html]
            sent |= {part.key: part.html for part in new}
            yield "".join(map(event, new)) or ": nothing new\n\n"
            await anyio.sleep(self.pages.quick)

    async def _refused(self, request: Request, made: Callable[[], Any]) -> Response | None:
        import anyio

        try:
            await anyio.to_thread.run_sync(made)
        except UnknownName as problem:
            return self._answer(request, f"{problem}\n", "text/plain", 404)
        return None

    async def _html(self, request: Request, made: Callable[[], str]) -> Response:
        import anyio

        try:
            text = await anyio.to_thread.run_sync(made)
        except UnknownName as problem:
            return self._answer(request, f"{problem}\n", "text/plain", 404)
        return self._answer(request, text, "text/html")

    def _answer(self, request: Request, text: str, kind: str, status: int = 200) -> Response:
        responses = _starlette("responses")
        body, told = packed(text, request.headers)
        kind = f"{kind}; charset=utf-8"
        return cast("Response", responses.Response(body, status, HEADERS | told, kind))


def _root(request: Request) -> str:
    """Return where the application is mounted."""
    return str(request.scope.get("root_path", "")).rstrip("/")
