"""A client that waits, and one that does not block."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from calibrant.client import asking
from calibrant.client.asking import AGAIN, Forecast, Question, ServiceError, path_of
from calibrant.errors import needed

httpx: Any = needed("httpx", "the client needs httpx", '"calibrant[client]"')

Ids = Sequence[str] | None
Keys = Sequence[str | int] | None


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
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tries, self._dice = tries, random.Random()
        self._options = {
            "base_url": address,
            "headers": headers,
            "timeout": timeout,
            "transport": transport,
        }

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
    """

    def __init__(self, address: str, token: str | None = None, **options: Any) -> None:
        super().__init__(address, token, **options)
        self._http = httpx.Client(**self._options)

    def ask(self, question: Question) -> bytes:
        """Send a request until it is answered; return the body of the answer."""
        content = asking.body_of(question)
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
        return asking.read(self.ask(Question("PUT", path_of(stream), settings)), dict[str, Any])

    def forecast(
        self,
        stream: str,
        raw: float,
        *,
        id: str | None = None,
        key: str | int | None = None,
        time: float | None = None,
    ) -> Forecast:
        """Return the calibrated forecast for a raw one."""
        columns = ([value] if value is not None else None for value in (id, key, time))
        return self.forecasts(stream, [raw], *columns)[0]  # type: ignore[arg-type]

    def forecasts(
        self,
        stream: str,
        raw: Sequence[float],
        ids: Ids = None,
        keys: Keys = None,
        times: Sequence[float] | None = None,
    ) -> list[Forecast]:
        """Return the calibrated forecasts for many raw ones."""
        asked = asking.forecasts(stream, raw, ids, keys, times)
        return [one for part in asked for one in asking.read_forecasts(self.ask(part))]

    def outcome(self, stream: str, id: str, outcome: int) -> dict[str, Any]:
        """Tell an outcome; return what became of it."""
        asked = Question("POST", path_of(stream, "outcomes"), {"id": id, "outcome": int(outcome)})
        return asking.read(self.ask(asked), dict[str, Any])

    def outcomes(self, stream: str, told: Mapping[str, int]) -> list[dict[str, Any]]:
        """Tell many outcomes by id; return what became of each, problems too."""
        parts = (self.ask(part) for part in asking.outcomes(stream, told))
        return [one for part in parts for one in asking.read(part, list[dict[str, Any]])]

    def correct(self, stream: str, id: str, outcome: int) -> dict[str, Any]:
        """Replace an outcome, once."""
        asked = Question("PUT", path_of(stream, "outcomes", id), {"outcome": int(outcome)})
        return asking.read(self.ask(asked), dict[str, Any])

    def expire(self, stream: str, id: str) -> dict[str, Any]:
        """Say that a forecast's outcome will never come."""
        asked = Question("DELETE", path_of(stream, "forecasts", id))
        return asking.read(self.ask(asked), dict[str, Any])

    def get(self, stream: str, *rest: str) -> Any:
        """Return a stream, or what is asked of it: ``"certificate"``, ``"forecasts", id``."""
        return asking.read(self.ask(Question("GET", path_of(stream, *rest))), object)

    def state(self, stream: str) -> bytes:
        """Return the whole state, for :func:`calibrant.load`."""
        return self.ask(Question("GET", path_of(stream, "state")))

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
        told = await self.ask(Question("PUT", path_of(stream), settings))
        return asking.read(told, dict[str, Any])

    async def forecasts(
        self,
        stream: str,
        raw: Sequence[float],
        ids: Ids = None,
        keys: Keys = None,
        times: Sequence[float] | None = None,
    ) -> list[Forecast]:
        """Return the calibrated forecasts for many raw ones."""
        made = list[Forecast]()
        for part in asking.forecasts(stream, raw, ids, keys, times):
            made += asking.read_forecasts(await self.ask(part))
        return made

    async def forecast(
        self, stream: str, raw: float, *, id: str | None = None, key: str | int | None = None
    ) -> Forecast:
        """Return the calibrated forecast for a raw one."""
        ids, keys = None if id is None else [id], None if key is None else [key]
        return (await self.forecasts(stream, [raw], ids, keys))[0]

    async def outcomes(self, stream: str, told: Mapping[str, int]) -> list[dict[str, Any]]:
        """Tell many outcomes by id; return what became of each, problems too."""
        made = list[dict[str, Any]]()
        for part in asking.outcomes(stream, told):
            made += asking.read(await self.ask(part), list[dict[str, Any]])
        return made

    async def get(self, stream: str, *rest: str) -> Any:
        """Return a stream, or what is asked of it."""
        return asking.read(await self.ask(Question("GET", path_of(stream, *rest))), object)

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
