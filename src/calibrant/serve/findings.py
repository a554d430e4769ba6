"""Routes that only look: report, curve, alarms, and what the next forecast would be."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from calibrant.errors import UnknownName
from calibrant.journal.fold import Fold
from calibrant.live.packed import packed
from calibrant.metrics import CalibrationCurve
from calibrant.recalibrate import Table
from calibrant.recalibrate.keyed import Key
from calibrant.recalibrate.preview import Preview
from calibrant.serve import structs
from calibrant.serve.chronicle import chronicle_in
from calibrant.serve.desk import ONE, Desk, Way, entered
from calibrant.serve.problems import Refused
from calibrant.serve.source import board_of, glance_of, story_of
from calibrant.serve.wire import json_of, mixture_of

HTML: Final = "text/html"
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A report holds its own style and pictures, and no script."""
FORMATS: Final = ("json", "html")
SERIES: Final = ("raw", "forecast", "mean")
FORMAT: Final = {"format": {"type": "string", "enum": list(FORMATS)}}
CHANCE: Final = {"type": "number", "minimum": 0, "maximum": 1}
RAW: Final = {"raw": CHANCE, "key": {"type": "string"}}
WAYS: Final[list[Way]] = []
way = partial(entered, WAYS)
_drawing = threading.Lock()
"""Pictures of reports are drawn one at a time."""


@way("GET", f"{ONE}/report", "read", dict[str, Any], fails=(404, 501), query=FORMAT)
async def get_report(desk: Desk, request: Request) -> Response:
    """Return the summary of all outcomes so far: as JSON, or a report to read as HTML."""
    _, fold = desk.fold(request)
    if _wanted(request) == "html":
        body, told = await asyncio.to_thread(lambda: packed(_page(fold), request.headers))
        told["Content-Security-Policy"] = POLICY
        return Response(body, 200, told, f"{HTML}; charset=utf-8")
    return json_of(await asyncio.to_thread(lambda: story_of(fold).to_dict()))


def _wanted(request: Request) -> str:
    """Return in which form a report is asked for."""
    told = request.query_params.get("format")
    if told is None:
        return "html" if HTML in request.headers.get("accept", "") else "json"
    if told not in FORMATS:
        raise Refused("invalid", f"format must be 'json' or 'html', got {told[:80]!r}")
    return told


def _page(fold: Fold) -> str:
    from calibrant.report.page import render

    with _drawing:
        return render([story_of(fold)])


@way("GET", f"{ONE}/curve", "read", structs.CurveOut, fails=(404,))
async def get_curve(desk: Desk, request: Request) -> Response:
    """Show how often it happened against how likely it was said to be, before and after."""
    _, fold = desk.fold(request)
    seen = await asyncio.to_thread(glance_of, fold)
    rows = {name: _rows(seen.curves[name]) for name in SERIES}
    return json_of(structs.CurveOut(seen.rounds, seen.curves["raw"].confidence, **rows))


def _rows(curve: CalibrationCurve) -> list[structs.Bucket]:
    means = curve.mean_forecast, curve.mean_outcome
    columns = curve.lower, curve.upper, curve.count, *means, curve.band_low, curve.band_high
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [structs.Bucket(*row) for row in rows if row[2]]


@way("GET", f"{ONE}/alarms", "read", structs.AlarmsOut, fails=(404,))
async def get_alarms(desk: Desk, request: Request) -> Response:
    """Show the alarms that have rung, and the assumptions under which they hold."""
    _, fold = desk.fold(request)
    board, watch = await asyncio.to_thread(board_of, fold), chronicle_in(fold).watch
    alarms = [structs.AlarmOut(**asdict(alarm)) for alarm in board.alarms]
    counts = board.judged, board.missing, watch.waiting, watch.horizon
    told = board.learning, *counts, list(board.assumptions), alarms
    return json_of(structs.AlarmsOut(board.alpha or 0.0, *told))


@way("GET", f"{ONE}/preview", "read", structs.PreviewOut, fails=(404,), query=RAW, needs=("raw",))
async def get_preview(desk: Desk, request: Request) -> Response:
    """Show what a forecast would be drawn from now, but not the draw, which must stay secret."""
    _, fold = desk.fold(request)
    raw = probability(request, "raw")
    return json_of(await asyncio.to_thread(_previewed, fold, raw, request.query_params.get("key")))


def _previewed(fold: Fold, raw: float, key: str | None) -> structs.PreviewOut:
    model: Any = fold.model
    if chronicle_in(fold).kind.parts is not None:
        told = chronicle_in(fold).kind.plural
        raise Refused("invalid", f"preview must be asked of a stream without {told}")
    if isinstance(model, Table):
        model = model[_known(model, key)]
    elif key is not None:
        raise Refused("invalid", "key must be left out in a stream without keys")
    seen = Preview(model).whole(raw)
    return structs.PreviewOut(raw, seen.mean, mixture_of(seen.mixture), seen.fallback)


def _known(table: Table, key: str | None) -> Key:
    """Return a key that is there: as text, or else as a number."""
    if key is None:
        raise Refused("invalid", "key must be given to a stream that is keyed")
    number = int(key[:20]) if key.removeprefix("-").isdecimal() else key
    for known in (key, number):
        if known in table:
            return known
    raise UnknownName(f"key must be one that is there, got {key[:80]!r}")


def probability(request: Request, name: str) -> float:
    """Return a probability that a request asks for."""
    text = request.query_params.get(name, "")
    try:
        value = float(text[:40])
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise Refused("invalid", f"{name} must be a number in [0, 1], got {text[:80]!r}")
    return value
