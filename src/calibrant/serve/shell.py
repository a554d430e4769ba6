"""What answers while streams are made from their log: alive, not ready, and why.

1. The server begins at once, with nothing behind it but this.
2. A thread makes the application, which plays the tail of the log.
3. The application takes over, and whatever is asked goes to it.

A service that is told to stop before that lets go of the log, of which nothing was written.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from starlette.applications import Starlette
from starlette.responses import Response

from calibrant.serve.problems import Refused, response_of
from calibrant.serve.structs import Health
from calibrant.serve.wire import json_of

WHY: Final = "streams that are being rebuilt from their log"
SLOW: Final = 0.5
"""Seconds after which it is said that this takes its time."""


class Shell:
    """An application that stands for another until that is made.

    Parameters
    ----------
    make
        Makes the other one, in a thread of its own.
    leave
        Lets ``make`` end early, with an error.
    ready, slow, failed
        What is to be done once the other one has taken over, if that takes its time, and if it
        cannot be made.
    grace
        Seconds to wait for ``make`` to end early.

    Attributes
    ----------
    app
        The other one, once it has taken over.
    error
        Why it could not be made, or not be ended in order.
    stuck
        Whether ``make`` still ran when the service ended.
    """

    def __init__(
        self,
        make: Callable[[], Starlette],
        leave: Callable[[], None],
        *,
        ready: Callable[[Starlette], None],
        slow: Callable[[], None],
        failed: Callable[[], None],
        grace: float,
    ) -> None:
        self._make, self._leave, self._grace = make, leave, grace
        self._ready, self._slow, self._failed = ready, slow, failed
        self.app: Starlette | None = None
        self.error: BaseException | None = None
        self.stuck = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or hand it on; begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self.app is not None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await _answer(scope["path"])(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        made, ends = self._begun(), asyncio.ensure_future(receive())
        await asyncio.wait({made, ends}, return_when=asyncio.FIRST_COMPLETED)
        left = not made.done()
        if left:
            self._leave()
            await asyncio.wait({made}, timeout=self._grace)
        self.stuck = not made.done()
        try:
            if not self.stuck:
                await self._lend(made.result(), ends)
        except BaseException as error:
            if not left:
                self.error = error
                self._failed()
        await ends
        await send({"type": "lifespan.shutdown.complete"})

    async def _lend(self, app: Starlette, ends: asyncio.Future[Any]) -> None:
        """Let the application answer until the end, which it notices."""
        async with app.router.lifespan_context(app):
            if not ends.done():
                self.app = app
                self._ready(app)
            await ends

    def _begun(self) -> asyncio.Future[Starlette]:
        """Begin to make the application."""
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[Starlette] = loop.create_future()
        hint = loop.call_later(SLOW, self._slow)

        def settle(app: Starlette | None, error: BaseException | None) -> None:
            hint.cancel()
            if app is not None:
                waits.set_result(app)
            else:
                waits.set_exception(error or RuntimeError("nothing was made"))

        def run() -> None:
            told: tuple[Starlette | None, BaseException | None]
            try:
                told = self._make(), None
            except BaseException as error:
                told = None, error
            # The loop is closed where nobody waited any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, *told)

        threading.Thread(target=run, name="calibrant recover", daemon=True).start()
        return waits


def _answer(path: str) -> Response:
    """Return what is said of a service that is not ready yet."""
    if path in ("/healthz", "/readyz"):
        return json_of(Health(False, WHY), 200 if path == "/healthz" else 503)
    return response_of(Refused("not-ready", f"service must be ready, got {WHY}"))
