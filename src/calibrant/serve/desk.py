"""What handlers work with, and what a route is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from calibrant.journal.events import Asked, Told
from calibrant.journal.fold import Fold
from calibrant.journal.ledger import Ledger
from calibrant.journal.store import Line
from calibrant.journal.writer import Writer
from calibrant.serve.metrics import Metrics
from calibrant.serve.options import Options
from calibrant.serve.problems import Refused
from calibrant.serve.tokens import Guard

Done = TypeVar("Done")


class Desk:
    """What handlers work with: the writer, who may ask, what is counted."""

    def __init__(self, writer: Writer, guard: Guard, metrics: Metrics, options: Options) -> None:
        self.writer, self.guard, self.metrics, self.options = writer, guard, metrics, options

    @property
    def ledger(self) -> Ledger:
        """All streams."""
        return self.writer.ledger

    @property
    def trouble(self) -> str:
        """What is wrong; where tokens are asked for, the log of the service alone says what."""
        told = self.writer.trouble
        return told if self.guard.open or not told else "trouble that the log of the service names"

    def stream(self, request: Request, *, gone: bool = False) -> Line:
        """Return the stream that a request is about."""
        return self.ledger.stream(request.path_params["name"], gone=gone)

    def fold(self, request: Request) -> tuple[Line, Fold]:
        """Return the stream that a request is about, and its state."""
        line = self.stream(request)
        return line, self.ledger.folds[line.number]

    async def enter(self, asked: Sequence[Asked]) -> list[Told]:
        """Enter events; return what is told of them once they are on disk."""
        told: list[Told] = await self._waited(lambda answer: self.writer.submit(asked, answer))
        self.metrics.answered(told)
        return told

    async def run(self, work: Callable[[Ledger], Done]) -> Done:
        """Do something while no event is applied."""
        return cast(Done, await self._waited(lambda answer: self.writer.run(work, answer)))

    async def _waited(self, ask: Callable[[Any], None]) -> Any:
        if not self.writer.ready:
            raise Refused("not-ready", f"service must be ready, got {self.trouble!r}")
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[Any] = loop.create_future()

        def settle(told: Any, error: Exception | None) -> None:
            if waits.cancelled():
                return
            if error is not None:
                waits.set_exception(error)
            else:
                waits.set_result(told)

        ask(lambda told, error: loop.call_soon_threadsafe(settle, told, error))
        return await waits


Handler = Callable[[Desk, Request], Awaitable[Response]]
ONE: Final = "/v1/streams/{name}"
"""Where a stream is."""


@dataclass(frozen=True)
class Way:
    """A route: how it is asked, who may, what it takes and gives.

    ``takes`` and ``gives`` are types, or the media type of a body that is not JSON; ``fails``
    lists the statuses of its errors beside those that any route may give, ``needs`` the parameters
    without which it cannot be asked.
    """

    handler: Handler
    method: str
    path: str
    scope: str | None
    gives: Any
    takes: Any = None
    fails: tuple[int, ...] = ()
    status: int = 200
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def entered(ways: list[Way], *asked: Any, **more: Any) -> Callable[[Handler], Handler]:
    """Return what enters a handler among some routes, with what :class:`Way` says of it."""

    def enter(handler: Handler) -> Handler:
        ways.append(Way(handler, *asked, **more))
        return handler

    return enter


def whole(request: Request, name: str, usual: int | None, most: int) -> int | None:
    """Return a whole number that a request asks for."""
    text = request.query_params.get(name)
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit()) or not 0 <= int(text[:30]) <= most:
        raise Refused("invalid", f"{name} must be a whole number up to {most}, got {text[:80]!r}")
    return int(text)
