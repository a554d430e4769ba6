"""The routes: what each takes, what it does, what it answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from calibrant.journal import events
from calibrant.journal.events import Asked, Event, Told
from calibrant.journal.fold import Fold
from calibrant.journal.ledger import check_id
from calibrant.journal.store import Line
from calibrant.serve import findings, streams, structs, wire
from calibrant.serve.chronicle import chronicle_in
from calibrant.serve.desk import ONE, Desk, Way, entered, whole
from calibrant.serve.problems import Refused, problem_of, response_of

BINARY: Final = "application/octet-stream"
LINES: Final = "application/x-ndjson"
PARQUET: Final = "application/vnd.apache.parquet"
MOST_EVENTS: Final = 10_000
COUNT: Final = {"type": "integer", "minimum": 0}
WORST: Final = {"worst": COUNT | {"maximum": 100_000}}
FORMAT: Final = {"type": "string", "enum": ["lines", "parquet"]}
PART: Final = {"after": COUNT, "limit": COUNT | {"maximum": MOST_EVENTS}, "format": FORMAT}
LATE: Final = (404, 409, 410)
"""Statuses of what is told about a forecast."""
WAYS: Final[list[Way]] = []
"""Every route of the service."""
ANY_FAILS: Final = (400, 401, 403, 408, 413, 422, 429, 503)
"""Statuses that any route may give."""
way = partial(entered, WAYS)

forecasts_in = msgspec.json.Decoder(structs.ForecastsIn)
outcomes_in = msgspec.json.Decoder(structs.OutcomesIn)
stream_in = msgspec.json.Decoder(structs.StreamIn)
correction_in = msgspec.json.Decoder(structs.CorrectionIn)


# ------------------------------------------------------------------------- streams


@way("PUT", ONE, "admin", structs.StreamOut, structs.StreamIn, (404, 409), 201)
async def put_stream(desk: Desk, request: Request) -> Response:
    """Make a stream; repeating the same request does no harm."""
    name = request.path_params["name"]
    try:
        msgspec.convert(name, structs.Name)
    except msgspec.ValidationError as error:
        raise Refused("invalid", f"name must be as documented, got: {error}") from None
    asked = wire.decoded(stream_in, await wire.body_of(request, desk.options) or b"{}")
    made, new = await desk.run(lambda ledger: streams.put(ledger, name, asked))
    return wire.json_of(made, 201 if new else 200)


@way("GET", "/v1/streams", "read", list[structs.StreamOut])
async def get_streams(desk: Desk, request: Request) -> Response:
    """List the streams, deleted ones too."""
    ledger = desk.ledger
    return wire.json_of([streams.shown(ledger, line) for line in list(ledger.lines.values())])


@way("GET", ONE, "read", structs.StreamOut, fails=(404,))
async def get_stream(desk: Desk, request: Request) -> Response:
    """Show a stream."""
    return wire.json_of(streams.shown(desk.ledger, desk.stream(request)))


@way("DELETE", ONE, "admin", structs.StreamOut, fails=(404,))
async def delete_stream(desk: Desk, request: Request) -> Response:
    """Mark a stream as deleted: it can be restored."""
    name = request.path_params["name"]
    return wire.json_of(await desk.run(lambda ledger: streams.marked(ledger, name, True)))


@way("POST", f"{ONE}/restore", "admin", structs.StreamOut, fails=(404,))
async def restore_stream(desk: Desk, request: Request) -> Response:
    """Bring a deleted stream back."""
    name = request.path_params["name"]
    return wire.json_of(await desk.run(lambda ledger: streams.marked(ledger, name, False)))


# ------------------------------------------------------------------------- events


@way("POST", f"{ONE}/forecasts", "write", structs.ForecastsOut, structs.ForecastsIn, (404, 409))
async def post_forecasts(desk: Desk, request: Request) -> Response:
    """Announce calibrated forecasts for one or many raw ones."""
    line = desk.stream(request)
    asked = wire.decoded(forecasts_in, await wire.body_of(request, desk.options))
    own = line.number, events.FORECAST
    wanted = [
        Asked(*own, one.id, one.key, one.raw, one.time, groups=tuple(dict.fromkeys(one.groups)))
        for one in wire.batch_of(asked, desk.options)
    ]
    told = await desk.enter(wanted)
    # Only now: streams may have been made again from the log meanwhile.
    fold = desk.ledger.folds[line.number]
    return _answered(asked, told, lambda each: wire.forecast_of(fold, each.result()))


def _answered(asked: Any, told: list[Told], tell: Callable[[Told], Any]) -> Response:
    """Return what came of one event, or of each of many."""
    if isinstance(asked, list):
        pairs = zip(told, asked, strict=True)
        made = [problem_of(a.error, one.id) if a.error else tell(a) for a, one in pairs]
        return wire.json_of(made)
    if told[0].error is not None:
        return response_of(told[0].error, asked.id)
    return wire.json_of(tell(told[0]))


@way("POST", f"{ONE}/outcomes", "write", structs.OutcomesOut, structs.OutcomesIn, LATE)
async def post_outcomes(desk: Desk, request: Request) -> Response:
    """Report one or many outcomes; draws that were hidden until then are revealed."""
    line = desk.stream(request)
    asked = wire.decoded(outcomes_in, await wire.body_of(request, desk.options))
    wanted = [
        Asked(line.number, events.OUTCOME, one.id, None, one.outcome, one.time)
        for one in wire.batch_of(asked, desk.options)
    ]
    told = await desk.enter(wanted)
    shown = await _revealed(desk, line, told)
    return _answered(asked, told, lambda each: wire.outcome_of(each, shown))


async def _revealed(desk: Desk, line: Line, told: list[Told]) -> dict[str, structs.Revealed]:
    """Return the draws that some outcomes reveal, by id: they are on disk, and so is what shows."""
    if not desk.ledger.settings[line.number].hides:
        return {}
    names = [(line.number, events.FORECAST, one.event.id) for one in told if one.event is not None]
    found = await asyncio.to_thread(desk.ledger.store.find, names)
    fold = desk.ledger.folds[line.number]
    return {event.id: wire.revealed_of(fold, event.whole()) for event in found.values()}


@way("PUT", f"{ONE}/outcomes/{{id}}", "write", structs.CorrectionOut, structs.CorrectionIn, LATE)
async def put_outcome(desk: Desk, request: Request) -> Response:
    """Correct an outcome, once."""
    line = desk.stream(request)
    asked = wire.decoded(correction_in, await wire.body_of(request, desk.options))
    id = check_id(request.path_params["id"])
    (told,) = await desk.enter([Asked(line.number, events.CORRECTION, id, None, asked.outcome)])
    event, status = told.result(), told.status
    stands = desk.ledger.settings[line.number].told(int(event.x))
    return wire.json_of(structs.CorrectionOut(id, status, stands, event.seq))  # type: ignore[arg-type]


@way("DELETE", f"{ONE}/forecasts/{{id}}", "write", structs.Gone, fails=LATE)
async def delete_forecast(desk: Desk, request: Request) -> Response:
    """Drop a forecast whose outcome will never come."""
    line = desk.stream(request)
    id = check_id(request.path_params["id"])
    (told,) = await desk.enter([Asked(line.number, events.EXPIRY, id, None, 0)])
    return wire.json_of(structs.Gone(id, told.status, told.result().seq))  # type: ignore[arg-type]


@way("GET", f"{ONE}/forecasts/{{id}}", "read", structs.Known, fails=(404,))
async def get_forecast(desk: Desk, request: Request) -> Response:
    """Show a forecast and what became of it."""
    line = desk.stream(request)
    id, settings = check_id(request.path_params["id"]), desk.ledger.settings[line.number]
    if settings.hides:
        # Whatever shows a draw must be on disk first.
        found = await desk.run(lambda ledger: ledger.standing(line.number, id))
    else:
        found = await asyncio.to_thread(desk.ledger.standing, line.number, id)
    event, status, outcome = found
    shown, fold = not settings.hides or status != "open", desk.ledger.folds[line.number]
    return wire.json_of(wire.known_of(fold, event, status, settings.told(outcome), shown))


# ------------------------------------------------------------------------- findings


@way("GET", f"{ONE}/certificate", "read", dict[str, Any], fails=(404,))
async def get_certificate(desk: Desk, request: Request) -> Response:
    """Show what was measured and what is promised, in a stream without keys."""
    _, fold = desk.fold(request)
    model: Any = fold.model
    if fold.keyed:
        raise Refused("invalid", "certificate must be asked of a stream without keys; see keys")
    found = await asyncio.to_thread(model.certificate)
    return wire.json_of(found.to_dict())


@way("GET", f"{ONE}/keys", "read", list[structs.KeyOut], fails=(404,), query=WORST)
async def get_keys(desk: Desk, request: Request) -> Response:
    """Show what was measured and promised for each key, or for the worst."""
    _, fold = desk.fold(request)
    worst = whole(request, "worst", None, 100_000)
    return wire.json_of(await asyncio.to_thread(streams.keys_of, fold, worst))


WAYS.extend(findings.WAYS)


@way("GET", f"{ONE}/events", "read", LINES, fails=(404,), query=PART)
async def get_events(desk: Desk, request: Request) -> Response:
    """Return the events of a stream after a position: JSON Lines, or Parquet."""
    line, fold = desk.fold(request)
    after = whole(request, "after", 0, 1 << 62) or 0
    limit = whole(request, "limit", 1000, MOST_EVENTS) or 0
    found = await asyncio.to_thread(desk.ledger.store.events, line.number, after, limit)
    hidden: set[str] = set()
    if desk.ledger.settings[line.number].hides:
        # Asked while nothing waits to be written: whatever shows a draw is on disk.
        hidden = await desk.run(lambda ledger: _open(ledger.folds[line.number], found))
    rows = [wire.event_row(fold, event, hidden) for event in found]
    if request.query_params.get("format") == "parquet":
        more = chronicle_in(fold).kind.columns
        return Response(await asyncio.to_thread(parquet, rows, more), media_type=PARQUET)
    return Response(b"".join(wire.encode(row) + b"\n" for row in rows), media_type=LINES)


def _open(fold: Fold, found: Sequence[Event]) -> set[str]:
    """Return the ids whose outcome is waited for."""
    return {event.id for event in found if fold.waits(event.id)}


@way("GET", f"{ONE}/state", "admin", BINARY, fails=(404,))
async def get_state(desk: Desk, request: Request) -> Response:
    """Return the whole state, which `calibrant.load` takes; anyone who reads it knows the coins."""
    number = desk.stream(request).number
    state = await desk.run(lambda ledger: ledger.folds[number].model.to_bytes())
    return Response(state, media_type=BINARY)


@way("PUT", f"{ONE}/state", "admin", structs.Taken, BINARY, (404, 409))
async def put_state(desk: Desk, request: Request) -> Response:
    """Take over the state of a stream with the same settings from elsewhere."""
    line = desk.stream(request)
    body = await wire.body_of(request, desk.options, desk.options.largest_state)
    id = hashlib.blake2b(body, digest_size=16).hexdigest()
    (told,) = await desk.enter([Asked(line.number, events.STATE, id, None, 0, None, body)])
    return wire.json_of(structs.Taken(told.status, told.result().seq))  # type: ignore[arg-type]


# ------------------------------------------------------------------------- the service itself


@way("GET", "/healthz", None, structs.Health)
async def healthz(desk: Desk, request: Request) -> Response:
    """Say whether the process is alive."""
    return wire.json_of(structs.Health(desk.writer.ready, desk.trouble))


@way("GET", "/readyz", None, structs.Health)
async def readyz(desk: Desk, request: Request) -> Response:
    """Say whether requests can be met: not while recovering, nor from a failed commit on."""
    ready = desk.writer.ready
    return wire.json_of(structs.Health(ready, desk.trouble), 200 if ready else 503)


@way("GET", "/metrics", "read", "text/plain")
async def metrics(desk: Desk, request: Request) -> Response:
    """Show numbers for Prometheus."""
    return Response(desk.metrics.page(desk.writer), media_type="text/plain; version=0.0.4")


def parquet(rows: list[dict[str, Any]], more: dict[str, str]) -> bytes:
    """Return rows as a Parquet file; ``more`` says which columns there are besides the usual."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for row in rows:
        row["key"] = None if row["key"] is None else str(row["key"])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_columns(pa, more)), sink)
    return bytes(sink.getvalue().to_pybytes())


def _columns(pa: Any, more: dict[str, str]) -> Any:
    text, real = pa.string(), pa.float64()
    types = {"text": text, "texts": pa.list_(text), "reals": pa.list_(real)}
    kinds = pa.int64(), text, text, text, real, real, real, real, text
    names = "sequence", "kind", "id", "key", "x", "time", "forecast", "mean", "code"
    usual = list(zip(names, kinds, strict=True))
    return pa.schema(usual + [(name, types[kind]) for name, kind in more.items()])
