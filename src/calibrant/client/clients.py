"""A client that waits, and one that does not block."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from calibrant.client import asking
from calibrant.client.asking import (
    AGAIN,
    Call,
    Forecast,
    Previewed,
    Question,
    Read,
    ServiceError,
)
from calibrant.errors import needed

httpx: Any = needed("httpx", "the client needs httpx", '"calibrant[client]"')

Id: TypeAlias = str | None
Ids: TypeAlias = Sequence[str] | None
Key: TypeAlias = str | int | None
Keys: TypeAlias = Sequence[str | int] | None
Time: TypeAlias = float | None
Times: TypeAlias = Sequence[float] | None
Raw: TypeAlias = float | Sequence[float]
Names: TypeAlias = Sequence[str] | None
Outcome: TypeAlias = int | str

_inherited: list[Any] = []
"""Connections of processes from which this one was forked: theirs to close."""


class _Settings:
    """What both clients are told."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        tries: int = 8,
        timeout: float = 30.0,
        transport: Any = None,
    ) -> None:
        self._given: dict[str, Any] = {"address": address, "token": token, "tries": tries}
        self._given |= {"timeout": timeout, "transport": transport}
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tries, self._dice = tries, random.Random()
        self._options = {
            "base_url": address,
            "headers": headers,
            "timeout": timeout,
            "transport": transport,
        }

    def __getstate__(self) -> dict[str, Any]:
        # Connections stay here: what is loaded elsewhere makes its own.
        return self._given

    def __setstate__(self, given: dict[str, Any]) -> None:
        self.__init__(**given)  # type: ignore[misc]

    def __deepcopy__(self, memo: object) -> Self:
        # Whoever copies a model with its client wants the same service, not more connections.
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given['address']!r})"

    def _judged(self, answer: Any, tries: int) -> float | None:
        """Return how long to wait before another try, or None; raise what is final."""
        if answer.status_code < 400:
            return None
        if answer.status_code not in AGAIN or tries + 1 >= self._tries:
            raise asking.refusal(answer.status_code, answer.content)
        return asking.pause(tries, answer.headers.get("retry-after"), self._dice.random())

    def _lost(self, error: Exception, tries: int) -> float:
        """Return how long to wait for a service that did not answer; raise after the last try."""
        if tries + 1 >= self._tries:
            raise ServiceError(f"service must answer, got {error!r}") from error
        return asking.pause(tries, None, self._dice.random())


class Client(_Settings):
    """Asks a service, and waits for its answers.

    A request that gets no answer, or one that says to try again, is sent again under the same
    ids, so that nothing happens twice.

    Parameters
    ----------
    address
        Where the service is, as ``http://127.0.0.1:8000``.
    token
        What it asks for.
    tries
        How often a request is sent, at most.
    timeout
        Seconds to wait for an answer.
    transport
        How requests are sent, for tests; one of httpx.

    Notes
    -----
    A client may be used after a fork and pickled, and has connections of its own then.  A pickle
    of it holds the token.
    """

    def __init__(self, address: str, token: str | None = None, **options: Any) -> None:
        super().__init__(address, token, **options)
        self._http, self._process = httpx.Client(**self._options), os.getpid()

    def ask(self, question: Question) -> bytes:
        """Send a request until it is answered; return the body of the answer."""
        content = asking.body_of(question)
        self._after_fork()
        for tries in range(self._tries):
            try:
                answer = self._http.request(question.method, question.path, content=content)
                wait = self._judged(answer, tries)
            except httpx.TransportError as error:
                wait = self._lost(error, tries)
            if wait is None:
                made: bytes = answer.content
                return made
            time.sleep(wait)
        raise ServiceError("tries must be at least 1, got 0")

    def put_stream(self, stream: str, **settings: Any) -> dict[str, Any]:
        """Make a stream, unless it is there with the same settings."""
        return self._done(asking.put_stream(stream, settings))

    def forecast(
        self,
        stream: str,
        raw: Raw,
        *,
        id: Id = None,
        key: Key = None,
        time: Time = None,
        groups: Names = None,
    ) -> Forecast:
        """Return the calibrated forecast for a raw one, or for one of each class."""
        return self._done(asking.forecast(stream, raw, id, key, time, groups))

    def forecasts(
        self,
        stream: str,
        raw: Sequence[Raw],
        ids: Ids = None,
        keys: Keys = None,
        times: Times = None,
        groups: Sequence[Sequence[str]] | None = None,
    ) -> list[Forecast]:
        """Return the calibrated forecasts for many raw ones."""
        return self._done(asking.forecasts(stream, raw, ids, keys, times, groups))

    def outcome(
        self, stream: str, id: str, outcome: Outcome, *, time: Time = None
    ) -> dict[str, Any]:
        """Tell an outcome, and in seconds when it became known; return what became of it."""
        return self._done(asking.outcome(stream, id, outcome, time))

    def outcomes(
        self, stream: str, told: Mapping[str, Outcome], *, time: Time = None
    ) -> list[dict[str, Any]]:
        """Tell many outcomes by id; return what became of each, problems too."""
        return self._done(asking.outcomes(stream, told, time))

    def correct(self, stream: str, id: str, outcome: Outcome) -> dict[str, Any]:
        """Replace an outcome, once."""
        return self._done(asking.correct(stream, id, outcome))

    def expire(self, stream: str, id: str) -> dict[str, Any]:
        """Say that a forecast's outcome will never come."""
        return self._done(asking.expire(stream, id))

    def get(self, stream: str, *rest: str) -> Any:
        """Return a stream, or what is asked of it: ``"certificate"``, ``"forecasts", id``."""
        return self._done(asking.get(stream, *rest))

    def preview(self, stream: str, raw: float) -> Previewed:
        """Return what a forecast would be drawn from now; nothing changes."""
        return self._done(asking.preview(stream, raw))

    def state(self, stream: str) -> bytes:
        """Return the whole state, for :func:`calibrant.load`."""
        return self._done(asking.state(stream))

    def _done(self, call: Call[Read]) -> Read:
        return call.read([self.ask(question) for question in call.questions])

    def _after_fork(self) -> None:
        """Make connections of its own in a forked process: those of the other one are in use."""
        if self._process != os.getpid():
            _inherited.append(self._http)
            self._http, self._process = httpx.Client(**self._options), os.getpid()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Settings):
    """Asks a service without blocking; otherwise as :class:`Client`."""

    def __init__(self, address: str, token: str | None = None, **options: Any) -> None:
        super().__init__(address, token, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def ask(self, question: Question) -> bytes:
        """Send a request until it is answered; return the body of the answer."""
        content = asking.body_of(question)
        for tries in range(self._tries):
            try:
                answer = await self._http.request(question.method, question.path, content=content)
                wait = self._judged(answer, tries)
            except httpx.TransportError as error:
                wait = self._lost(error, tries)
            if wait is None:
                made: bytes = answer.content
                return made
            await asyncio.sleep(wait)
        raise ServiceError("tries must be at least 1, got 0")

    async def put_stream(self, stream: str, **settings: Any) -> dict[str, Any]:
        """Make a stream, unless it is there with the same settings."""
        return await self._done(asking.put_stream(stream, settings))

    async def forecast(
        self,
        stream: str,
        raw: Raw,
        *,
        id: Id = None,
        key: Key = None,
        time: Time = None,
        groups: Names = None,
    ) -> Forecast:
        """Return the calibrated forecast for a raw one, or for one of each class."""
        return await self._done(asking.forecast(stream, raw, id, key, time, groups))

    async def forecasts(
        self,
        stream: str,
        raw: Sequence[Raw],
        ids: Ids = None,
        keys: Keys = None,
        times: Times = None,
        groups: Sequence[Sequence[str]] | None = None,
    ) -> list[Forecast]:
        """Return the calibrated forecasts for many raw ones."""
        return await self._done(asking.forecasts(stream, raw, ids, keys, times, groups))

    async def outcome(
        self, stream: str, id: str, outcome: Outcome, *, time: Time = None
    ) -> dict[str, Any]:
        """Tell an outcome, and in seconds when it became known; return what became of it."""
        return await self._done(asking.outcome(stream, id, outcome, time))

    async def outcomes(
        self, stream: str, told: Mapping[str, Outcome], *, time: Time = None
    ) -> list[dict[str, Any]]:
        """Tell many outcomes by id; return what became of each, problems too."""
        return await self._done(asking.outcomes(stream, told, time))

    async def correct(self, stream: str, id: str, outcome: Outcome) -> dict[str, Any]:
        """Replace an outcome, once."""
        return await self._done(asking.correct(stream, id, outcome))

    async def expire(self, stream: str, id: str) -> dict[str, Any]:
        """Say that a forecast's outcome will never come."""
        return await self._done(asking.expire(stream, id))

    async def get(self, stream: str, *rest: str) -> Any:
        """Return a stream, or what is asked of it: ``"certificate"``, ``"forecasts", id``."""
        return await self._done(asking.get(stream, *rest))

    async def preview(self, stream: str, raw: float) -> Previewed:
        """Return what a forecast would be drawn from now; nothing changes."""
        return await self._done(asking.preview(stream, raw))

    async def state(self, stream: str) -> bytes:
        """Return the whole state, for :func:`calibrant.load`."""
        return await self._done(asking.state(stream))

    async def _done(self, call: Call[Read]) -> Read:
        return call.read([await self.ask(question) for question in call.questions])

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
