"""A client that waits, and one that does not block."""

from __future__ import annotations

import asyncio
import os
import random
import time
from typing import Any, Self

from calibrant.client import asking
from calibrant.client.asking import AGAIN, Call, Question, Read, ServiceError
from calibrant.client.verbs import awaits, waits
from calibrant.errors import needed

httpx: Any = needed("httpx", "the client needs httpx", "client")

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

    put_stream = waits(asking.put_stream)
    forecast = waits(asking.forecast)
    forecasts = waits(asking.forecasts)
    outcome = waits(asking.outcome)
    outcomes = waits(asking.outcomes)
    correct = waits(asking.correct)
    expire = waits(asking.expire)
    get = waits(asking.get)
    preview = waits(asking.preview)
    state = waits(asking.state)

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

    put_stream = awaits(asking.put_stream)
    forecast = awaits(asking.forecast)
    forecasts = awaits(asking.forecasts)
    outcome = awaits(asking.outcome)
    outcomes = awaits(asking.outcomes)
    correct = awaits(asking.correct)
    expire = awaits(asking.expire)
    get = awaits(asking.get)
    preview = awaits(asking.preview)
    state = awaits(asking.state)

    async def _done(self, call: Call[Read]) -> Read:
        return call.read([await self.ask(question) for question in call.questions])

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
