"""The application: routes with their guards, errors in one shape, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from calibrant.errors import CalibrantError
from calibrant.journal.apart import snapshots_apart
from calibrant.journal.sql import Store
from calibrant.journal.store import Snapshot
from calibrant.journal.writer import Writer
from calibrant.serve.chronicle import catch_up, chronicle_of
from calibrant.serve.desk import Desk, Way
from calibrant.serve.metrics import Metrics
from calibrant.serve.openapi import document
from calibrant.serve.options import Options
from calibrant.serve.page import page_routes
from calibrant.serve.problems import Refused, response_of
from calibrant.serve.routes import WAYS
from calibrant.serve.source import Streams
from calibrant.serve.tokens import Guard
from calibrant.serve.wire import JSON, body_of

audit = logging.getLogger("calibrant.audit")
log = logging.getLogger("calibrant")

APART: Final = "calibrant.serve.apart"
"""What makes snapshots, in a process of its own."""
EVERY: Final = 0.5
"""Seconds after which what was noted is worked off."""

SOON: Final = 200
"""Rounds after which machine code is made for a stream that is slow without."""

Ends = Callable[[Request], Awaitable[Response]]


def make_app(store: Store, options: Options | None = None, agents: Any = None) -> Starlette:
    """Return the application over a store that this process owns.

    Streams are made from their log here; an error of that is raised.  ``agents`` answers the
    Model Context Protocol at ``/mcp/{stream}``, if it shall be answered, and runs as long as the
    application does.
    """
    options = Options() if options is None else options
    metrics = Metrics()
    writer = Writer(
        store,
        watch=metrics.committed,
        every=options.every,
        witnesses=partial(chronicle_of, fast=options.fast),
        apart=_apart(options),
    )
    guard = Guard(store, open=options.open, rate=options.rate)
    desk = Desk(writer, guard, metrics, options)
    text = msgspec.json.encode(document(WAYS))

    async def openapi(request: Request) -> Response:
        return Response(text, media_type=JSON)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        following = asyncio.create_task(_follow(writer, options.fast))
        async with agents.run() if agents else nullcontext():
            yield
        following.cancel()
        writer.close()

    # What is asked all the time is looked for first.
    routes = [route_of(desk, way) for way in sorted(WAYS, key=lambda way: way.method != "POST")]
    page = page_routes(desk, Streams(lambda: writer.ledger), lambda: app.state.ending())
    spoken = [Route("/mcp/{name}", Spoken(desk, agents), methods=["POST"])] if agents else []
    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi), *page, *spoken],
        lifespan=lifespan,
        exception_handlers={HTTPException: _no_route, Exception: _internal},
    )
    app.router.redirect_slashes = False
    app.state.desk, app.state.ending = desk, lambda: False
    return app


async def _follow(writer: Writer, fast: bool) -> None:
    """Work off what chronicles have noted, so that nobody who asks waits for it."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            folds = list(writer.ledger.folds.values())
            await asyncio.to_thread(catch_up, folds)
            for fold in [fold for fold in folds if fast and fold.form.slow]:
                await asyncio.to_thread(fold.quicken, SOON)
        except Exception:
            # Of one round: what comes after it is to be seen.
            log.exception("error in what is seen of a stream")


def _apart(options: Options) -> Callable[[int], list[Snapshot]] | None:
    """Return what has another process make snapshots, if one shall."""
    if options.apart is None:
        return None
    return partial(snapshots_apart, options.apart, APART, secret_file=options.secret_file)


def route_of(desk: Desk, way: Way) -> Route:
    """Return a route whose requests are guarded, counted, and refused in one shape."""
    path = way.path.replace("{id}", "{id:path}")
    return Route(path, _guarded(desk, way), methods=[way.method], name=way.handler.__name__)


def _guarded(desk: Desk, way: Way) -> Ends:
    label, handler, scope = f"{way.method} {way.path}", way.handler, way.scope

    async def answer(request: Request) -> Response:
        try:
            if scope is not None:
                name = request.path_params.get("name")
                who = desk.guard.check(request.headers.get("authorization"), scope, name)
                if scope == "admin":
                    audit.info("%s by %r: %s", label, who, request.path_params)
            made = await handler(desk, request)
        except CalibrantError as error:
            made = response_of(error)
        desk.metrics.requests.labels(label, made.status_code).inc()
        return made

    return answer


class Spoken:
    """Lets messages of agents in, under a token that may see the stream, and within limits."""

    def __init__(self, desk: Desk, agents: Any) -> None:
        self.desk, self.agents = desk, agents

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a message on once it is whole, or refuse it."""
        request = Request(scope, receive)
        try:
            name = request.path_params["name"]
            self.desk.guard.check(request.headers.get("authorization"), "read", name)
            self.desk.stream(request)
            told = [{"type": "http.request", "body": await body_of(request, self.desk.options)}]
        except CalibrantError as error:
            await response_of(error)(scope, receive, send)
        else:

            async def again() -> Any:
                return told.pop() if told else await receive()

            await self.agents(scope, again, send)


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    name = "method-not-allowed" if status == 405 else "not-found"
    headers = dict(getattr(error, "headers", None) or {})
    return response_of(Refused(name, "route must be a documented one", headers))


async def _internal(request: Request, error: Exception) -> Response:
    log.exception("error in %s %s", request.method, request.url.path)
    return response_of(Refused("internal", "an error of the service itself; see its log"))
