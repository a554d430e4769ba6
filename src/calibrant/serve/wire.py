"""Bodies in, bodies out: limits, validation, and what an event looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from calibrant.journal.commitment import commitment
from calibrant.journal.events import CORRECTION, FORECAST, KINDS, OUTCOME, Event, Told, read_key
from calibrant.journal.fold import Fold, salt_in
from calibrant.serve.chronicle import chronicle_in
from calibrant.serve.options import Options
from calibrant.serve.problems import Refused
from calibrant.serve.structs import ForecastOut, Known, Mixture, OutcomeOut, Revealed

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


def mixture_of(found: Any) -> Mixture:
    """Return a mixture as data."""
    return Mixture(list(found.values), list(found.weights))


def expected_of(fold: Fold, ticket: Any) -> dict[str, Any]:
    """Return what was known of a forecast before the coins were thrown, by name."""
    book = chronicle_in(fold)
    said: dict[str, Any] = book.kind.expected(ticket, book.names)
    said["mixture"] = mixture_of(said["mixture"])
    return said


def committed(forecast: Event, drawn: dict[str, Any]) -> dict[str, str]:
    """Return the commitment to a draw that is told with the outcome; nothing for others."""
    salt = salt_in(forecast)
    if not salt:
        return {}
    numbers = [x for each in drawn.values() for x in (each if isinstance(each, list) else [each])]
    return {"commitment": commitment(salt, forecast.id, numbers)}


def forecast_of(fold: Fold, event: Event) -> ForecastOut:
    """Return what a forecast announced, the same as often as it is asked for."""
    ticket = fold.ticket(event)
    said = expected_of(fold, ticket)
    drawn = chronicle_in(fold).kind.drawn(ticket)
    said |= drawn if event.more is None else committed(event, drawn) or drawn
    return ForecastOut(id=event.id, sequence=event.seq, **said)


def outcome_of(told: Told, shown: dict[str, Revealed]) -> OutcomeOut:
    """Return what came of an outcome, with the draw that it reveals, if it does."""
    event = told.result()
    status: Any = told.status
    return OutcomeOut(event.id, status, event.seq, shown.get(event.id, msgspec.UNSET))


def revealed_of(fold: Fold, forecast: Event) -> Revealed:
    """Return a draw that there was a commitment to."""
    drawn = chronicle_in(fold).kind.drawn(fold.ticket(forecast))
    return Revealed(salt=salt_in(forecast).hex(), **drawn)


def known_of(
    fold: Fold, forecast: Event, status: str, outcome: int | str | None, shown: bool
) -> Known:
    """Return a forecast and what became of it; its draw only if that may be shown."""
    ticket = fold.ticket(forecast)
    kind, salt = chronicle_in(fold).kind, salt_in(forecast)
    drawn = kind.drawn(ticket)
    said = kind.asked(ticket) | expected_of(fold, ticket) | committed(forecast, drawn)
    if shown:
        said |= drawn | ({"salt": salt.hex()} if salt else {})
    facts: dict[str, Any] = {"status": status, "sequence": forecast.seq, "outcome": outcome}
    key, time = read_key(forecast.key), forecast.time
    return Known(id=forecast.id, key=key, time=time, **facts, **said)


def event_row(fold: Fold, event: Event, hidden: Container[str] = ()) -> dict[str, Any]:
    """Return an event as a row of columns; draws of some ids are hidden."""
    book = chronicle_in(fold)
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
    row |= dict.fromkeys(book.kind.columns)
    if event.kind == FORECAST:
        row |= book.kind.row(fold.ticket(event), book.names, event.id not in hidden)
    elif event.kind in (OUTCOME, CORRECTION):
        row |= book.kind.told(int(event.x), book.names)
    return row
