"""Many callers, one request: forecasts and outcomes that are asked for at once go together.

::

    a caller:   puts its row into the lane of its route, and waits for its own answer
    a lane:     is sent once ``size`` rows wait in it, or the first has waited ``seconds``
    an answer:  each row's own goes to its caller, a problem as an error
    a request that is refused as a whole because of what is in it is sent again in halves
"""

from __future__ import annotations

import asyncio
import threading
import time as clock
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, Self, TypeAlias

import msgspec

from calibrant.client import asking
from calibrant.client.asking import Call, Question, Read, ServiceError
from calibrant.client.clients import AsyncClient, Client
from calibrant.client.verbs import awaits, waits
from calibrant.core import check
from calibrant.errors import InvalidInput

WHOLE: Final = (400, 413, 422)
"""Statuses of a request that may be the fault of one row."""
CLOSED: Final = "batcher must be open to take more, got a closed one"


class Waiting(NamedTuple):
    """A row of a request, and who waits for its answer."""

    row: dict[str, Any]
    answer: Any


Lanes: TypeAlias = dict[str, list[Waiting]]


def taken(lanes: Lanes, path: str, size: int) -> list[Waiting]:
    """Take the next rows of a lane: an id at most once, and none that nobody waits for any more."""
    lane = [one for one in lanes.pop(path, []) if not one.answer.done()]
    names, part = set[str](), list[Waiting]()
    for one in lane[:size]:
        if one.row["id"] in names:
            break
        names.add(one.row["id"])
        part.append(one)
    if rest := lane[len(part) :]:
        lanes[path] = rest
    return part


def tell(part: Sequence[Waiting], content: bytes) -> None:
    """Give each row of an answer to who waits for it."""
    told = msgspec.json.decode(content, type=list[dict[str, Any]])
    for one, row in zip(part, told, strict=True):
        if one.answer.done():
            continue
        if "type" in row:
            refused = asking.refusal(row["status"], msgspec.json.encode(row))
            one.answer.set_exception(refused)
        else:
            one.answer.set_result(row)


def fail(part: Sequence[Waiting], error: BaseException) -> None:
    """Tell all who wait that there is no answer, each by an error that names its id."""
    for one in part:
        if not one.answer.done():
            own: BaseException = error
            if isinstance(error, ServiceError):
                more = error.more | {"id": one.row["id"]}
                own = ServiceError(str(error), error.status, error.type, **more)
            one.answer.set_exception(own)


def halves(part: Sequence[Waiting], error: BaseException) -> list[Sequence[Waiting]]:
    """Return what to send instead of a request that was refused: nothing, or its halves."""
    if len(part) < 2 or not isinstance(error, ServiceError) or error.status not in WHOLE:
        return []
    return [part[: len(part) // 2], part[len(part) // 2 :]]


def row_of(call: Call[Any]) -> tuple[str, dict[str, Any]]:
    """Return where the only row of a call goes, and the row."""
    (asked,) = call.questions
    return asked.path, asked.body[0] if isinstance(asked.body, list) else asked.body


def question(path: str, part: Sequence[Waiting]) -> Question:
    """Return the request of some rows."""
    return Question("POST", path, [one.row for one in part])


class _Sizes:
    """What both batchers are told."""

    def __init__(self, size: int, seconds: float, most: int) -> None:
        self._size = check.whole(size, "size", low=1, high=asking.BATCH)
        self._seconds = check.real(seconds, "seconds", low=0.0, rule="0 or more")
        self._most = check.whole(most, "most", low=1)
        self._lanes: Lanes = {}
        self._closed = False


class Batcher(_Sizes):
    """Lets the calls of many threads share requests; each gets its own answer, or its own error.

    Parameters
    ----------
    client
        Who sends.  What it says of retries holds: a request is sent again under the same ids.
    size, seconds
        Rows go together once that many wait, or the first of them has waited that long.
    most
        How many rows may wait for an answer; further callers wait until there is room.

    Notes
    -----
    A call returns once the service has answered, so what was answered is on its disk.  A call that
    raises :class:`ServiceError` with status 0 got no answer after all tries: the row may be stored
    or not, and asking again under the same id, ``error.more["id"]``, is safe.  Nothing waits on
    disk here: that is what :class:`.Spool` does for outcomes.

    Rows of a stream are sent in the order in which callers came.  One request is under way at a
    time; whoever comes meanwhile goes with the next.

    A batcher belongs to the process that made it.
    """

    def __init__(
        self, client: Client, *, size: int = 100, seconds: float = 0.01, most: int = 10_000
    ) -> None:
        super().__init__(size, seconds, most)
        self._client, self._waiting, self._first = client, 0, 0.0
        self._turn = threading.Condition()
        self._sender = threading.Thread(target=self._run, daemon=True)
        self._sender.start()

    forecast = waits(asking.forecast)
    outcome = waits(asking.outcome)

    def _done(self, call: Call[Read]) -> Read:
        made: Read = call.read_row(self._answer(*row_of(call)))
        return made

    def _answer(self, path: str, row: dict[str, Any]) -> dict[str, Any]:
        answer: Future[dict[str, Any]] = Future()
        with self._turn:
            self._turn.wait_for(lambda: self._closed or self._waiting < self._most)
            if self._closed:
                raise InvalidInput(CLOSED)
            if not self._lanes:
                self._first = clock.monotonic()
            self._lanes.setdefault(path, []).append(Waiting(row, answer))
            self._waiting += 1
            self._turn.notify_all()
        return answer.result()

    def _run(self) -> None:
        """Send lanes that are due, until the batcher is closed and nothing waits."""
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._closed or self._lanes)
                if not self._lanes:
                    return
                left = self._first + self._seconds - clock.monotonic()
                self._turn.wait_for(self._due, max(left, 0.0))
                path = max(self._lanes, key=lambda path: len(self._lanes[path]))
                part = taken(self._lanes, path, self._size)
            self._send(path, part)
            with self._turn:
                self._waiting -= len(part)
                self._turn.notify_all()

    def _due(self) -> bool:
        return self._closed or any(len(lane) >= self._size for lane in self._lanes.values())

    def _send(self, path: str, part: Sequence[Waiting]) -> None:
        try:
            tell(part, self._client.ask(question(path, part)))
        except BaseException as error:
            # Whatever it was, nobody may wait for ever.
            for half in halves(part, error):
                self._send(path, half)
            fail(part, error)

    def close(self) -> None:
        """Send what waits, and take no more."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        self._sender.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncBatcher(_Sizes):
    """Lets the calls of many tasks share requests; otherwise as :class:`Batcher`.

    Several requests may be under way at a time.  A caller that is cancelled before its row is sent
    takes it back; afterwards the row may be stored.
    """

    def __init__(
        self, client: AsyncClient, *, size: int = 100, seconds: float = 0.01, most: int = 10_000
    ) -> None:
        super().__init__(size, seconds, most)
        self._client, self._room = client, asyncio.Semaphore(self._most)
        self._tasks = set[asyncio.Task[None]]()

    forecast = awaits(asking.forecast)
    outcome = awaits(asking.outcome)

    async def _done(self, call: Call[Read]) -> Read:
        made: Read = call.read_row(await self._answer(*row_of(call)))
        return made

    async def _answer(self, path: str, row: dict[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        async with self._room:
            if self._closed:
                raise InvalidInput(CLOSED)
            answer: asyncio.Future[dict[str, Any]] = loop.create_future()
            lane = self._lanes.setdefault(path, [])
            lane.append(Waiting(row, answer))
            if len(lane) >= self._size:
                self._begin(path)
            elif len(lane) == 1:
                loop.call_later(self._seconds, self._begin, path)
            return await answer

    def _begin(self, path: str) -> None:
        """Send what waits in a lane."""
        while part := taken(self._lanes, path, self._size):
            task = asyncio.get_running_loop().create_task(self._send(path, part))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, path: str, part: Sequence[Waiting]) -> None:
        try:
            tell(part, await self._client.ask(question(path, part)))
        except BaseException as error:
            for half in halves(part, error):
                await self._send(path, half)
            fail(part, error)
            if isinstance(error, asyncio.CancelledError):
                raise

    async def close(self) -> None:
        """Send what waits, and take no more."""
        self._closed = True
        for path in list(self._lanes):
            self._begin(path)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
