"""Bodies in, bodies out: limits, validation, and what an event looks like."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from calibrant.core.ticket import Ticket
from calibrant.journal.events import FORECAST, KINDS, Event, Told, read_key
from calibrant.journal.fold import Fold
from calibrant.serve.options import Options
from calibrant.serve.problems import Refused, problem_of
from calibrant.serve.structs import ForecastOut, Mixture, OutcomeOut, Problem

JSON: Final = "application/json"
Read = TypeVar("Read")

encode = msgspec.json.Encoder().encode


async def body_of(request: Request, options: Options, largest: int | None = None) -> bytes:
    """Return the body of a request, if it is not too large and comes in time."""
    most = options.largest_body if largest is None else largest
    told = request.headers.get("content-length", "0")
    if told.isdigit() and int(told) > most:
        raise Refused("too-large", f"body must be at most {most} bytes, got {told}")
    try:
        async with asyncio.timeout(options.body_seconds):
            return await _read(request, most)
    except TimeoutError:
        rule = f"body must be here within {options.body_seconds:g} seconds"
        raise Refused("timeout", f"{rule}, got a part of it", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refused("malformed", "body must be whole, got a part of it") from None


async def _read(request: Request, most: int) -> bytes:
    parts, size = list[bytes](), 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > most:
            raise Refused("too-large", f"body must be at most {most} bytes, got more")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decoded(decoder: msgspec.json.Decoder[Read], body: bytes) -> Read:
    """Return what a body says, if it is of the type that is asked for."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refused("invalid", f"body must be as documented, got: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused("malformed", f"body must be JSON, got: {error}") from None


def batch_of(asked: Any, options: Options) -> list[Any]:
    """Return one or many as a list, if they are not too many."""
    if not isinstance(asked, list):
        return [asked]
    if len(asked) > options.largest_batch:
        rule = f"events of a request must be at most {options.largest_batch}"
        raise Refused("too-large", f"{rule}, got {len(asked)}")
    return asked


def json_of(made: Any, status: int = 200) -> Response:
    """Return data as a response."""
    return Response(encode(made), status, media_type=JSON)


def mixture_of(ticket: Ticket) -> Mixture:
    """Return a ticket's mixture as data."""
    found = ticket.mixture
    return Mixture(list(found.values), list(found.weights))


def forecast_of(fold: Fold, event: Event) -> ForecastOut:
    """Return what a forecast announced."""
    ticket = fold.ticket(event)
    return ForecastOut(event.id, ticket.value, ticket.mean, mixture_of(ticket), event.seq)


def told_forecast(fold: Fold, told: Told, id: str) -> ForecastOut | Problem:
    """Return what came of a forecast."""
    if told.event is None:
        return problem_of(told.error, id)  # type: ignore[arg-type]
    return forecast_of(fold, told.event)


def told_outcome(told: Told, id: str) -> OutcomeOut | Problem:
    """Return what came of an outcome."""
    if told.event is None:
        return problem_of(told.error, id)  # type: ignore[arg-type]
    return OutcomeOut(id, told.status, told.event.seq)  # type: ignore[arg-type]


def event_row(fold: Fold, event: Event) -> dict[str, Any]:
    """Return an event as a row of columns."""
    row: dict[str, Any] = {
        "sequence": event.seq,
        "kind": KINDS[event.kind],
        "id": event.id,
        "key": read_key(event.key),
        "x": event.x,
        "time": event.time,
        "forecast": None,
        "mean": None,
        "code": f"{event.code:012x}",
    }
    if event.kind == FORECAST:
        ticket = fold.ticket(event)
        row |= {"forecast": ticket.value, "mean": ticket.mean}
    return row
